#include "client/kubeconfig.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "apis/yaml.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/fd.h"

namespace umpteenth::client {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

const json::Value& named(const json::Value& config, std::string_view list, std::string_view name,
                         std::string_view entry) {
  static const json::Value kNone;
  const json::Value& entries = config.get(list);
  if (entries.is_array())
    for (const json::Value& e : entries.items())
      if (e.get_string("name") == name) return e.get(entry);
  return kNone;
}

// NAME-data (base64) or NAME (a path beside the file).
std::string data_or_file(const json::Value& from, const std::string& name,
                         const std::string& config_file) {
  if (const std::string data = from.get_string(name + "-data"); !data.empty())
    return crypto::from_base64(data);
  const std::string path = from.get_string(name);
  if (path.empty()) return "";
  return read_file(std::filesystem::path(config_file).parent_path() / path, 1U << 20);
}

}  // namespace

std::string kubeconfig_path(const ConnectionFlags& flags) {
  if (!flags.kubeconfig.empty()) return flags.kubeconfig;
  for (const char* name : {"UMPCONFIG", "KUBECONFIG"})
    if (const std::string value = environment(name); !value.empty())
      return value.substr(0, value.find(':'));
  const std::filesystem::path home = environment("HOME");
  std::string tried;
  for (const auto& path : {home / ".config/umpteenth/kubeconfig", home / ".kube/config"}) {
    if (std::filesystem::exists(path)) return path.string();
    tried += (tried.empty() ? "" : ", ") + path.string();
  }
  throw Error(Code::not_found, "no kubeconfig: looked at --kubeconfig, $UMPCONFIG, $KUBECONFIG, " +
                                   tried + "; umpd writes one to DATA/kubeconfig");
}

Connection connection_from(const json::Value& config, const std::string& file,
                           const ConnectionFlags& flags) {
  Connection c;
  c.file = file;
  c.context = flags.context.empty() ? config.get_string("current-context") : flags.context;
  const json::Value& context = named(config, "contexts", c.context, "context");
  if (context.is_null())
    throw Error(Code::not_found, file + ": there is no context " + json::quote(c.context));
  const json::Value& cluster = named(config, "clusters", context.get_string("cluster"), "cluster");
  c.user = context.get_string("user");
  const json::Value& user = named(config, "users", c.user, "user");
  c.server = flags.server.empty() ? cluster.get_string("server") : flags.server;
  if (c.server.empty())
    throw Error(Code::invalid,
                file + ": the cluster of context " + json::quote(c.context) + " names no server");
  c.ca_pem = data_or_file(cluster, "certificate-authority", file);
  c.insecure = cluster.get_bool("insecure-skip-tls-verify");
  c.token = flags.token.empty() ? user.get_string("token") : flags.token;
  if (c.token.empty())
    if (const std::string path = user.get_string("tokenFile"); !path.empty()) {
      c.token = read_file(path, 1U << 16);
      while (!c.token.empty() && (c.token.back() == '\n' || c.token.back() == ' '))
        c.token.pop_back();
    }
  c.ns = flags.ns.empty() ? context.get_string("namespace", "default") : flags.ns;
  return c;
}

Connection load_connection(const ConnectionFlags& flags) {
  const std::string file = kubeconfig_path(flags);
  try {
    return connection_from(apis::parse_yaml_one(read_file(file, 4U << 20)), file, flags);
  } catch (Error& e) {
    if (e.code() == Code::bad_request) throw e.in(file);
    throw;
  }
}

}  // namespace umpteenth::client
