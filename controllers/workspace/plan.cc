#include "controllers/workspace/plan.h"

#include <algorithm>
#include <chrono>

#include "apis/object.h"
#include "apis/workspace.h"
#include "controllers/run/spend.h"

namespace umpteenth::controllers::workspace {
namespace {

apis::Condition ready(const json::Value& object, const apis::WorkspaceSpec& spec,
                      const Observed& observed) {
  if (apis::deleting(object)) {
    return {"Ready", "False", "Terminating", "the workspace and its content are being deleted", 0};
  }
  std::string problem = run::spend_problem(observed.spent_micro_usd, spec.daily_spend_usd);
  if (!problem.empty()) return {"Ready", "False", "SpendLimitReached", problem, 0};
  return {"Ready", "True", "Active", "", 0};
}

}  // namespace

json::Value plan_status(const json::Value& object, const Observed& observed, Time now) {
  auto spec = apis::workspace_spec_from(object.get("spec"));
  json::Value status =
      json::Value::object({{"observedGeneration", apis::generation_of(object)},
                           {"members", static_cast<int64_t>(spec.members.size())},
                           {"jobs", observed.jobs},
                           {"spendTodayUSD", static_cast<double>(observed.spent_micro_usd) / 1e6}});
  const json::Value& old_conditions = object.at_path({"status", "conditions"});
  if (!old_conditions.is_null()) status.set("conditions", old_conditions);
  apis::Condition condition = ready(object, spec, observed);
  condition.observed_generation = apis::generation_of(object);
  apis::set_condition(status, condition, now);
  return status;
}

Duration until_recount(Time now) {
  auto tomorrow = std::chrono::floor<std::chrono::days>(now) + std::chrono::days(1);
  return std::min<Duration>(tomorrow - now, std::chrono::hours(1));
}

}  // namespace umpteenth::controllers::workspace
