// What a run's sandbox is made of. Pure: the hardening is here and nowhere else.
#pragma once

#include <string>
#include <vector>

#include "apis/job.h"
#include "base/clock.h"
#include "engine/types.h"

namespace umpteenth::controllers::run {

inline constexpr int kBrokerPort = 8081;
inline constexpr Duration kTtlBeyondTimeout{300'000};

struct SandboxParams {
  std::string instance;  // the instance's id
  std::string ns, run, run_uid, job;
  apis::JobSpec spec;
  std::string image;          // the prepared image's id
  std::string runtime;        // "" = the engine's default
  bool in_namespace = false;  // the broker listens inside; there is no run network then
  std::string network;        // the run network's name
  std::string broker_ip;      // the broker's endpoint in it
  std::string sandbox_ip;
  std::string open_network;  // the egress network's name; "" unless the mode is Internet
  std::string expires;       // RFC 3339
};

std::string sandbox_name(const std::string& instance, const std::string& run_uid);
engine::Labels sandbox_labels(const SandboxParams& params, const char* role);
engine::ContainerSpec container_spec(const SandboxParams& params);
// The environment of every command: the run's own variables, then the secrets. Secrets named like a
// reserved variable, or with a name that no environment can carry, are left out. With
// AllowedDomains the variables by which programs find the egress proxy come along.
struct EnvVar {
  std::string name, value;
};
std::vector<std::string> command_env(const std::string& token, const std::string& run_uid,
                                     apis::NetworkMode mode, const std::vector<EnvVar>& secrets,
                                     int broker_port = kBrokerPort);
bool reserved_env(const std::string& name);

}  // namespace umpteenth::controllers::run
