#include "controllers/sandbox_engine/controller.h"

#include "apis/object.h"
#include "base/error.h"
#include "base/log.h"
#include "controllers/runtime/write.h"
#include "controllers/sandbox_engine/plan.h"

namespace umpteenth::controllers::sandbox_engine {
namespace {
constexpr char kActor[] = "system:controller:sandbox-engine";
constexpr Duration kLookAgain{30'000};
constexpr Duration kLookAgainUnreachable{5'000};
}  // namespace

SandboxEngineController::SandboxEngineController(store::Store& store, Clock& clock,
                                                 Engines& engines,
                                                 std::function<int64_t(const std::string&)> running)
    : store_(store),
      clock_(clock),
      engines_(engines),
      running_(std::move(running)),
      events_(store, clock, "sandbox-engine") {}

Controller SandboxEngineController::controller() {
  Controller c;
  c.name = "sandbox-engine";
  c.sources = {{"sandboxengines", own_key}};
  c.reconcile = [this](const store::Key& key, const std::stop_token&) { return reconcile(key); };
  return c;
}

Outcome SandboxEngineController::reconcile(const store::Key& key) {
  auto record = store_.find(key);
  if (!record) {
    engines_.remove(key.name);
    return Outcome::done();
  }
  json::Value object = record->parse();
  auto spec = apis::sandbox_engine_spec_from(object.get("spec"));
  Observed observed;
  observed.running = running_(key.name);
  if (unsupported(spec).empty()) {
    try {
      auto handle = engines_.ensure(key.name, spec);
      auto info = handle->engine().info();
      if (spec.attachment != kNetwork)
        observed.namespace_obstacle = handle->parts().namespace_obstacle(spec.runtime);
      observed.info = std::move(info);
    } catch (const Error& e) {  // an engine that does not answer is what the status is for
      observed.error = "failed to reach the container engine: " + log::clip(e.message());
    }
  } else {
    engines_.remove(key.name);
  }
  json::Value status = plan_status(object, observed, clock_.now());
  auto written = write_status(store_, *record, status, kActor);
  if (written) {
    json::Value now = written->parse();
    auto before = apis::find_condition(object, "Ready");
    auto after = apis::find_condition(now, "Ready");
    if (after && (!before || before->status != after->status)) {
      log::info("sandbox engine changed", {{"engine", key.name},
                                           {"ready", after->status},
                                           {"reason", after->reason},
                                           {"message", log::clip(after->message)}});
      if (after->status == "True") {
        events_.normal(now, after->reason, after->message);
      } else {
        events_.warning(now, after->reason, after->message);
      }
    }
  }
  return Outcome::look_again(observed.info ? kLookAgain : kLookAgainUnreachable);
}

}  // namespace umpteenth::controllers::sandbox_engine
