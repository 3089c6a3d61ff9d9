#include "cmd/umpd/identity.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/fd.h"
#include "base/net/address.h"
#include "base/net/url.h"
#include "base/x509.h"
#include "server/kubeconfig.h"
#include "server/pki.h"

namespace umpteenth::umpd {

namespace fs = std::filesystem;

namespace {

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

Identity identity_from_files(const Config& config) {
  const std::string cert = read_file(config.server.tls_cert, 1U << 20);
  const std::string key = read_file(config.server.tls_key, 1U << 20);
  try {
    x509::inspect(cert);
  } catch (Error& e) {
    throw e.in("server.tls.cert " + config.server.tls_cert);
  }
  if (!x509::key_fits({cert, key}))
    throw Error(Code::invalid, "server.tls.key " + config.server.tls_key +
                                   " does not fit the certificate in " + config.server.tls_cert);
  return {http::TlsFiles{cert, key}, cert, false};
}

}  // namespace

Identity load_identity(const Config& config, const fs::path& data_dir, Time now) {
  if (config.server.tls_mode == "off") return {};
  if (config.server.tls_mode == "files") return identity_from_files(config);
  const std::string app_host = config.app.url.empty() ? "" : net::parse_url(config.app.url).host;
  x509::Names names = server::server_names(host_name(), app_host);
  const auto address = net::parse_address(config.server.host);
  const bool any = config.server.host == "0.0.0.0" || config.server.host == "::";
  if (address && !any) {
    const std::string literal = net::format(*address);
    if (std::find(names.addresses.begin(), names.addresses.end(), literal) == names.addresses.end())
      names.addresses.push_back(literal);
  }
  server::Pki pki = server::ensure_pki(data_dir / "pki", names, now);
  return {std::move(pki.tls), std::move(pki.authority_pem), pki.renewed};
}

std::string local_url(const Config& config, int port) {
  std::string host = config.server.host;
  if (host == "0.0.0.0" || host.empty()) host = "127.0.0.1";
  // Through a socket nobody comes but a proxy, at app.url.
  if (!unix_socket_of(host).empty())
    return config.app.url.empty() ? "http://localhost" : config.app.url;
  if (host == "::" || host == "::1") host = "localhost";  // umpctl's library reads no [::1]
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return (config.server.tls_mode == "off" ? "http://" : "https://") + host + ":" +
         std::to_string(port);
}

void ensure_kubeconfig(const fs::path& data_dir, server::Tokens& tokens, const Identity& identity,
                       const std::string& url, bool rotate) {
  const fs::path file = data_dir / "kubeconfig";
  std::string token = server::kubeconfig_token(file);
  const auto known = token.empty() ? std::nullopt : tokens.find(token);
  if (rotate || !known) token = tokens.rotate_admin();
  server::write_kubeconfig(file, {url, identity.authority_pem, token, "default"});
}

}  // namespace umpteenth::umpd
