#include "controllers/run/sandbox_spec.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "controllers/run/sandbox_exec.h"
#include "engine/names.h"

namespace umpteenth::controllers::run {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

// Docker's default set without NET_RAW: raw frames cross bridges that separate by address.
const std::vector<std::string>& root_job_capabilities() {
  static const std::vector<std::string> kCapabilities{
      "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
      "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};
  return kCapabilities;
}

// Programs read one case or the other. Node takes them only when told so.
std::vector<std::string> proxy_env(const std::string& token, int broker_port) {
  const std::string proxy = "ump:" + token + "@umpteenth:" + std::to_string(broker_port);
  const std::pair<std::string, std::string> variables[] = {
      {"HTTP_PROXY", "http://" + proxy},
      {"HTTPS_PROXY", "http://" + proxy},
      {"ALL_PROXY", "socks5h://" + proxy},
      {"NO_PROXY", "umpteenth,localhost,127.0.0.1"}};
  std::vector<std::string> env{"NODE_USE_ENV_PROXY=1"};
  for (const auto& [name, value] : variables) {
    std::string lower = name;
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    env.push_back(name + "=" + value);
    env.push_back(lower + "=" + value);
  }
  return env;
}

}  // namespace

std::string sandbox_name(const std::string& instance, const std::string& run_uid) {
  return engine::own_name(instance, run_uid);
}

engine::Labels sandbox_labels(const SandboxParams& params, const char* role) {
  return {{engine::kLabelInstance, params.instance}, {engine::kLabelRole, role},
          {engine::kLabelRun, params.run_uid},       {engine::kLabelRunName, params.run},
          {engine::kLabelJob, params.job},           {engine::kLabelWorkspace, params.ns},
          {engine::kLabelExpires, params.expires}};
}

engine::ContainerSpec container_spec(const SandboxParams& params) {
  const apis::Resources& resources = params.spec.sandbox.resources;
  auto ttl = std::chrono::seconds(params.spec.limits.timeout_seconds) +
             std::chrono::duration_cast<std::chrono::seconds>(kTtlBeyondTimeout);
  engine::ContainerSpec spec;
  spec.name = sandbox_name(params.instance, params.run_uid);
  spec.image = params.image;
  spec.entrypoint = {kUmp, "init", "--ttl", std::to_string(ttl.count()) + "s"};
  spec.user = "0:0";
  spec.working_dir = "/workspace";
  spec.hostname = "sandbox";
  spec.labels = sandbox_labels(params, "sandbox");
  spec.cap_drop = {"ALL"};
  if (params.spec.sandbox.run_as_root) spec.cap_add = root_job_capabilities();
  spec.no_new_privileges = true;
  spec.disable_healthcheck = true;
  spec.cpus = resources.cpus;
  spec.memory_bytes = resources.memory_mib << 20;
  spec.pids = resources.pids;
  spec.disk_bytes = resources.disk_mib << 20;
  spec.runtime = params.runtime;
  if (!params.in_namespace) spec.networks = {{params.network, params.sandbox_ip, {}}};
  if (!params.open_network.empty()) spec.networks.push_back({params.open_network, "", {}});
  if (spec.networks.empty()) spec.network_mode = "none";
  spec.extra_hosts = {"umpteenth:" +
                      (params.in_namespace ? std::string(kLoopback) : params.broker_ip)};
  if (params.open_network.empty()) {
    // An internal network still resolves public names through a resolver on the host's loopback.
    spec.dns = {kLoopback};
    spec.dns_options = {"timeout:1", "attempts:1"};
  } else {
    // The broker's endpoint resolves for it, by the rules of broker/dns.
    spec.dns = {params.in_namespace ? std::string(kLoopback) : params.broker_ip};
    spec.dns_options = {"timeout:3", "attempts:2"};
  }
  return spec;
}

bool reserved_env(const std::string& name) {
  constexpr std::array kReserved{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
                                 "NODE_USE_ENV_PROXY"};
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper.starts_with("UMP_") || std::ranges::find(kReserved, upper) != kReserved.end();
}

std::vector<std::string> command_env(const std::string& token, const std::string& run_uid,
                                     apis::NetworkMode mode, const std::vector<EnvVar>& secrets,
                                     int broker_port) {
  std::vector<std::string> env;
  auto sorted = secrets;
  std::ranges::sort(sorted, {}, &EnvVar::name);
  for (const auto& [name, value] : sorted) {
    bool carried = !name.empty() && name.find('=') == std::string::npos &&
                   name.find('\0') == std::string::npos && value.find('\0') == std::string::npos;
    if (carried && !reserved_env(name)) env.push_back(name + "=" + value);
  }
  env.push_back("UMP_BROKER_URL=http://umpteenth:" + std::to_string(broker_port));
  env.push_back("UMP_TOKEN=" + token);
  env.push_back("UMP_RUN_ID=" + run_uid);
  if (mode == apis::NetworkMode::allowed_domains)
    for (std::string& variable : proxy_env(token, broker_port)) env.push_back(std::move(variable));
  return env;
}

}  // namespace umpteenth::controllers::run
