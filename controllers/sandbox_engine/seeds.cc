#include "apis/lifecycle.h"
#include "apis/object.h"
#include "apis/workspace.h"
#include "base/error.h"
#include "controllers/sandbox_engine/controller.h"

namespace umpteenth::controllers::sandbox_engine {
namespace {

constexpr char kActor[] = "system:seeds";

void create(store::Store& store, Clock& clock, const apis::Kind& kind, const std::string& name,
            json::Value spec) {
  apis::WriteOptions options;
  options.field_manager = "umpd";
  options.now = clock.now();
  json::Value object =
      apis::prepare_create(kind, apis::make_object(kind, "", name, std::move(spec)), options)
          .object;
  store::Key key{kind.plural, "", name};
  try {
    store.commit_one({store::Verb::create, key, std::move(object), std::nullopt}, kActor,
                     "create " + store::to_string(key));
  } catch (const Error& e) {
    if (e.code() != Code::already_exists) throw;
  }
}

struct Difference {
  const char* option;
  std::string object, field;  // field: below spec, for people
  json::Value has, says;
};
void compare(std::vector<std::string>& warnings, const Seeds& seeds, const Difference& d) {
  if (!seeds.given.contains(d.option) || d.has.is_null() || d.has == d.says) return;
  warnings.push_back(d.object + ": spec." + d.field + " is " + d.has.dump() + " and " + d.option +
                     " says " + d.says.dump() + ": the resource wins");
}

}  // namespace

std::vector<std::string> ensure_seeds(store::Store& store, Clock& clock, const Seeds& seeds) {
  std::vector<std::string> warnings;
  json::Value engine = apis::to_json(seeds.engine);
  if (auto there = store.find({"sandboxengines", "", "default"})) {
    json::Value spec = there->parse().get("spec");
    const std::pair<const char*, const char*> fields[] = {
        {"engine.endpoint", "endpoint"},
        {"sandbox.egress_filter", "egressFilter"},
        {"sandbox.image", "image"},
        {"network.blocked_targets", "blockedTargets"},
    };
    for (const auto& [option, field] : fields)
      compare(warnings, seeds,
              {option, "sandboxengines/default", field, spec.get(field), engine.get(field)});
  } else {
    create(store, clock, apis::sandbox_engine_kind(), "default", engine);
  }
  json::Value limits = json::Value::object({{"maxConcurrentRuns", seeds.max_concurrent_runs}});
  json::Value retention = json::Value::object({{"days", seeds.retention_days}});
  if (auto there = store.find({"workspaces", "", apis::kDefaultWorkspace})) {
    json::Value spec = there->parse().get("spec");
    compare(warnings, seeds,
            {"runs.max_concurrent", "workspaces/default", "limits.maxConcurrentRuns",
             spec.at_path({"limits", "maxConcurrentRuns"}), seeds.max_concurrent_runs});
    compare(warnings, seeds,
            {"runs.retention_days", "workspaces/default", "retention.days",
             spec.at_path({"retention", "days"}), seeds.retention_days});
  } else {
    create(store, clock, apis::workspace_kind(), apis::kDefaultWorkspace,
           json::Value::object(
               {{"displayName", "Default"}, {"limits", limits}, {"retention", retention}}));
  }
  if (!store.find({"workspaces", "", apis::kSystemWorkspace})) {
    create(store, clock, apis::workspace_kind(), apis::kSystemWorkspace,
           json::Value::object({{"displayName", "Umpteenth"}}));
  }
  return warnings;
}

}  // namespace umpteenth::controllers::sandbox_engine
