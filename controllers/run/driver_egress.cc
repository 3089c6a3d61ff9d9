// A run with Internet access and the firewall of its engine's host.
#include "base/error.h"
#include "controllers/run/driver.h"
#include "controllers/sandbox_engine/plan.h"
#include "engine/egress_networks.h"

namespace umpteenth::controllers::run {
namespace {

engine::firewall::Reach reach_of(const apis::JobSpec& job) {
  return job.network.allow_private ? engine::firewall::Reach::internet_private
                                   : engine::firewall::Reach::internet;
}

}  // namespace

// The network that the sandbox is to join. Error(forbidden) where the firewall is required and not
// there.
std::string Driver::open_egress() {
  const auto& guard = handle_->parts().guard;
  const apis::SandboxEngineSpec& spec = handle_->spec();
  const std::string name =
      engine::ensure_egress_network(handle_->engine(), services_.instance, reach_of(job_)).name;
  firewall::State state;
  state.reason = "umpd has no way to this engine's host";
  if (guard) state = guard->check(spec);
  if (guard && guard->probe_due()) state = guard->probe(spec);
  const std::string refusal = sandbox_engine::internet_refusal(spec, state);
  if (!refusal.empty()) throw Error(Code::forbidden, refusal);
  if (!state.enforced() && spec.egress_filter != "off")
    note("log",
         json::Value::object({{"message", "the egress firewall is not enforced: " + state.reason +
                                              "; this run can reach private networks"}}));
  return name;
}

// After the container's start and before anything untrusted runs in it.
void Driver::guard_egress() {
  const auto& guard = handle_->parts().guard;
  if (!guard || handle_->spec().egress_filter == "off") return;
  const firewall::State state =
      guard->admit(handle_->spec(), {uid_, sandbox_->container, reach_of(job_)},
                   [self = weak_from_this()](const std::string& what) {
                     if (auto driver = self.lock())
                       driver->note("log", json::Value::object({{"message", what}}));
                   });
  const std::string refusal = sandbox_engine::internet_refusal(handle_->spec(), state);
  if (!refusal.empty()) throw Error(Code::forbidden, refusal);
}

}  // namespace umpteenth::controllers::run
