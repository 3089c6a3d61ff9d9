// Job: an instruction, its sandbox, network, secrets, schedule, budgets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apis/common.h"
#include "apis/kind.h"

namespace umpteenth::apis {

enum class NetworkMode { internet, allowed_domains, none };
enum class OverlapPolicy { skip, queue, parallel };

struct JobSpec {
  std::string instruction;  // ≤ 20 000 characters
  bool suspend = false;
  ModelRef model;
  struct Limits {
    int64_t timeout_seconds = 900;  // 30–86400
    int64_t max_turns = 60;         // 1–1000
    double max_cost_usd = 2;        // 0 = off
    bool operator==(const Limits&) const = default;
  } limits;
  struct Schedule {
    std::string cron, time_zone;  // cron "" = none
    OverlapPolicy overlap = OverlapPolicy::skip;
    bool operator==(const Schedule&) const = default;
  } schedule;
  bool webhook_enabled = false;
  struct Input {
    std::string name;
    bool required = false;
    bool operator==(const Input&) const = default;
  };
  std::vector<Input> inputs;
  std::vector<std::string> outputs;
  struct Sandbox {
    std::string image, dockerfile, runtime, engine;
    bool run_as_root = false;
    Resources resources;
    bool operator==(const Sandbox&) const = default;
  } sandbox;
  struct Network {
    NetworkMode mode = NetworkMode::internet;
    std::vector<std::string> allowed_domains;
    bool allow_private = false;
    bool operator==(const Network&) const = default;
  } network;
  struct SecretEnv {
    SecretRef ref;
    std::string env;
    bool operator==(const SecretEnv&) const = default;
  };
  std::vector<SecretEnv> secrets;
  bool self_improve = true;
  struct History {
    int64_t successful = -1, failed = -1;  // -1 = keep all
    bool operator==(const History&) const = default;
  } history;
  bool operator==(const JobSpec&) const = default;
};

const Kind& job_kind();
JobSpec job_spec_from(const json::Value& spec);  // a validated spec
json::Value to_json(const JobSpec& spec);
std::string_view to_string(NetworkMode mode);          // Internet | AllowedDomains | None
std::string_view to_string(OverlapPolicy policy);      // Skip | Queue | Parallel
NetworkMode network_mode_from(std::string_view text);  // of a validated spec
OverlapPolicy overlap_policy_from(std::string_view text);

}  // namespace umpteenth::apis
