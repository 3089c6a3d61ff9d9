#include "server/pki.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"

namespace umpteenth::server {
namespace {

namespace fs = std::filesystem;
using std::chrono::days;

constexpr days kAuthorityValid{3650}, kAuthorityRenew{365};
constexpr days kServerValid{397}, kServerRenew{30};
constexpr size_t kMaxPem = 64U << 10;

std::optional<x509::Certificate> load(const fs::path& folder, const std::string& name) {
  const fs::path cert = folder / (name + ".crt"), key = folder / (name + ".key");
  if (!fs::exists(cert) || !fs::exists(key)) return std::nullopt;
  try {
    x509::Certificate loaded{read_file(cert, kMaxPem), read_file(key, kMaxPem)};
    if (x509::key_fits(loaded)) return loaded;
    log::warn("private key does not fit its certificate, making new ones",
              {{"file", cert.string()}});
  } catch (const Error& e) {  // a torn or foreign file is replaced
    if (e.code() != Code::invalid) throw;
    log::warn("certificate is not readable, making a new one",
              {{"file", cert.string()}, {"error", e.message()}});
  }
  return std::nullopt;
}

void save(const fs::path& folder, const std::string& name, const x509::Certificate& made) {
  // The key first: a certificate without its key would be taken for a broken pair anyway.
  write_file_durably(folder / (name + ".key"), made.key_pem, 0600);
  write_file_durably(folder / (name + ".crt"), made.cert_pem, 0644);
}

bool same_names(x509::Names a, x509::Names b) {
  for (auto* list : {&a.dns, &a.addresses, &b.dns, &b.addresses})
    std::sort(list->begin(), list->end());
  return a == b;
}

bool is_address(const std::string& text) {
  std::array<char, 16> raw{};
  return inet_pton(AF_INET, text.c_str(), raw.data()) == 1 ||
         inet_pton(AF_INET6, text.c_str(), raw.data()) == 1;
}

x509::Certificate ensure_authority(const fs::path& folder, Time now, bool& renewed) {
  const auto known = load(folder, "ca");
  if (known && x509::inspect(known->cert_pem).not_after > now + kAuthorityRenew) return *known;
  const std::string key = known ? known->key_pem : "";
  const auto made = x509::make_authority("umpteenth", now, kAuthorityValid, key);
  save(folder, "ca", made);
  renewed = true;
  return made;
}

bool still_good(const x509::Certificate& server, const x509::Certificate& authority,
                const x509::Names& names, Time now) {
  const x509::Info info = x509::inspect(server.cert_pem);
  return info.not_after > now + kServerRenew && same_names(info.names, names) &&
         x509::issued_by(server.cert_pem, authority.cert_pem);
}

}  // namespace

x509::Names server_names(const std::string& hostname, const std::string& app_host) {
  x509::Names names{{"localhost"}, {"127.0.0.1", "::1"}};
  for (const std::string& more : {hostname, app_host}) {
    if (more.empty()) continue;
    auto& list = is_address(more) ? names.addresses : names.dns;
    if (std::find(list.begin(), list.end(), more) == list.end()) list.push_back(more);
  }
  return names;
}

Pki ensure_pki(const fs::path& folder, const x509::Names& names, Time now) {
  fs::create_directories(folder);
  fs::permissions(folder, fs::perms::owner_all);
  Pki pki;
  const x509::Certificate authority = ensure_authority(folder, now, pki.renewed);
  auto server = load(folder, "server");
  if (!server || !still_good(*server, authority, names, now)) {
    server = x509::issue_server(authority, names, now, kServerValid);
    save(folder, "server", *server);
    pki.renewed = true;
  }
  pki.authority_pem = authority.cert_pem;
  pki.tls = {server->cert_pem + authority.cert_pem, server->key_pem};
  pki.not_after = x509::inspect(server->cert_pem).not_after;
  return pki;
}

}  // namespace umpteenth::server
