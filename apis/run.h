// Run: one execution of a job. spec never changes, except cancelRequested: false → true.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apis/common.h"
#include "apis/kind.h"

namespace umpteenth::apis {

enum class Phase {
  queued,
  provisioning,
  running,
  verifying,
  succeeded,
  failed,
  timed_out,
  cancelled,
  skipped,
};
std::string_view to_string(Phase phase);  // Queued … Skipped
Phase phase_from(std::string_view text);  // "" = queued
bool terminal(Phase phase);
bool may_follow(Phase from, Phase to);  // forward only

struct RunSpec {
  std::string job;
  int64_t job_generation = 0;
  json::Value job_spec;      // resolved: workspace defaults filled in
  std::string trigger;       // Manual | Schedule | Webhook | API | Retry
  json::Value input;         // any JSON
  std::string instructions;  // ≤ 10 000 characters
  std::string mode = "Explore";
  bool cancel_requested = false;
  std::string scheduled_for;  // the occurrence, RFC 3339
  bool operator==(const RunSpec&) const = default;
};

struct Artifact {
  std::string path, digest;
  int64_t size = 0;
  bool operator==(const Artifact&) const = default;
};

struct RunStatus {
  Phase phase = Phase::queued;
  std::string reason, message;
  std::string start_time, completion_time;
  int64_t queue_ms = 0, image_ms = 0, provision_ms = 0, model_ms = 0, tools_ms = 0, total_ms = 0;
  int64_t input_tokens = 0, output_tokens = 0, cost_micro_usd = 0;
  int turns = 0;
  json::Value outputs = json::Value::object();
  std::string summary;
  std::vector<Artifact> artifacts;
  struct Sandbox {
    std::string container, network, endpoint, image, runtime, engine;
    bool operator==(const Sandbox&) const = default;
  } sandbox;
  bool operator==(const RunStatus&) const = default;
};

const Kind& run_kind();
RunSpec run_spec_from(const json::Value& spec);
json::Value to_json(const RunSpec& spec);
RunStatus run_status_from(const json::Value& status);
json::Value to_json(const RunStatus& status);
// <job, ≤ 200>-<time+random, base32>
std::string make_run_name(std::string_view job, Time now);

}  // namespace umpteenth::apis
