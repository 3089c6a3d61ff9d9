#include "server/kubeconfig.h"

#include "apis/yaml.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/fd.h"

namespace umpteenth::server {
namespace {

using json::Value;

constexpr char kName[] = "umpteenth";
constexpr char kUser[] = "umpteenth-admin";
constexpr size_t kMaxBytes = 1U << 20;

Value named(const char* name, const char* field, Value what) {
  return Value::array({Value::object({{"name", name}, {field, std::move(what)}})});
}

}  // namespace

std::string kubeconfig_text(const Kubeconfig& config) {
  Value cluster = Value::object({{"server", config.server}});
  if (!config.authority_pem.empty())
    cluster.set("certificate-authority-data", crypto::base64(config.authority_pem));
  const Value context =
      Value::object({{"cluster", kName}, {"user", kUser}, {"namespace", config.ns}});
  return apis::to_yaml(
      Value::object({{"apiVersion", "v1"},
                     {"kind", "Config"},
                     {"clusters", named(kName, "cluster", std::move(cluster))},
                     {"users", named(kUser, "user", Value::object({{"token", config.token}}))},
                     {"contexts", named(kName, "context", context)},
                     {"current-context", kName},
                     {"preferences", Value::object()}}));
}

void write_kubeconfig(const std::filesystem::path& path, const Kubeconfig& config) {
  write_file_durably(path, kubeconfig_text(config), 0600);
}

std::string kubeconfig_token(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return "";
  try {
    const Value config = apis::parse_yaml_one(read_file(path, kMaxBytes));
    const Value& users = config.get("users");
    if (!users.is_array()) return "";
    for (const Value& user : users.items())
      if (user.get_string("name") == kUser) return user.get("user").get_string("token");
  } catch (const Error&) {  // whatever it is, it is no kubeconfig of ours
  }
  return "";
}

}  // namespace umpteenth::server
