#include "controllers/run/plan.h"

namespace umpteenth::controllers::run {
namespace {

bool in_flight(apis::Phase phase) { return phase != apis::Phase::queued && !apis::terminal(phase); }

std::string label(const engine::Labels& labels, const char* name) {
  auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

// Why it may go, or "" where it stays.
std::string leftover(const engine::Labels& labels, const char* role, const std::string& instance,
                     const std::set<std::string>& driven) {
  if (instance.empty() || label(labels, engine::kLabelInstance) != instance) return "";
  if (label(labels, engine::kLabelRole) != role) return "";
  std::string uid = label(labels, engine::kLabelRun);
  if (driven.contains(uid)) return "";
  return "no run in execution has uid " + (uid.empty() ? std::string("(none)") : uid);
}

}  // namespace

std::vector<Action> plan(const Situation& s) {
  if (!s.exists) {
    if (s.driven) return {StopDriver{StopDriver::Why::removed}};
    return {};
  }
  if (apis::terminal(s.phase)) return {};
  if (s.driven) {
    if (s.cancel_requested) return {StopDriver{StopDriver::Why::cancelled}};
    return {};
  }
  if (in_flight(s.phase)) return {End{apis::Phase::failed, "Interrupted", kInterrupted}};
  if (s.cancel_requested) return {End{apis::Phase::cancelled, "Cancelled", kCancelledBefore}};
  if (s.job_gone) return {End{apis::Phase::cancelled, "JobDeleted", kCancelledBefore}};
  return {};
}

std::vector<std::string> plan_claims(const std::vector<Waiting>& runs, const Limits& limits) {
  int64_t total = 0;
  std::map<std::string, int64_t> of_workspace;
  std::map<std::pair<std::string, std::string>, int64_t> of_job;
  auto count = [&](const Waiting& run) {
    ++total;
    ++of_workspace[run.ns];
    ++of_job[{run.ns, run.job}];
  };
  for (const Waiting& run : runs) {
    if (in_flight(run.phase)) count(run);
  }
  std::vector<std::string> claims;
  for (const Waiting& run : runs) {
    if (total >= limits.instance) break;
    if (run.phase != apis::Phase::queued || run.cancel_requested) continue;
    auto limit = limits.workspace.find(run.ns);
    if (limit != limits.workspace.end() && of_workspace[run.ns] >= limit->second) continue;
    bool alone = run.overlap != apis::OverlapPolicy::parallel;
    if (alone && of_job[{run.ns, run.job}] > 0) continue;
    claims.push_back(run.uid);
    count(run);
  }
  return claims;
}

Leftovers plan_sweep(const std::vector<engine::Container>& containers,
                     const std::vector<engine::Network>& networks, const std::string& instance,
                     const std::set<std::string>& driven) {
  Leftovers result;
  for (const auto& container : containers) {
    std::string why = leftover(container.labels, "sandbox", instance, driven);
    // One at work is removed by who made it.
    if (container.state == "exited" || container.state == "dead")
      if (!leftover(container.labels, "namespace-probe", instance, {}).empty())
        why = "a probe sandbox that has ended";
    if (!why.empty()) result.containers.push_back({container.id, container.name, why});
  }
  for (const auto& network : networks) {
    std::string why = leftover(network.labels, "run-network", instance, driven);
    if (!why.empty()) result.networks.push_back({network.id, network.name, why});
  }
  return result;
}

std::string to_string(const Action& action) {
  if (const auto* end = std::get_if<End>(&action)) {
    return "end as " + std::string(apis::to_string(end->phase)) + ": " + end->message;
  }
  const auto& stop = std::get<StopDriver>(action);
  return stop.why == StopDriver::Why::cancelled ? "stop driver: cancelled"
                                                : "stop driver: the run was removed";
}

}  // namespace umpteenth::controllers::run
