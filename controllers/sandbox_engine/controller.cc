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

firewall::State firewall_of(const EngineHandle& handle) {
  if (handle.parts().guard) return handle.parts().guard->state();
  firewall::State none;
  none.reason = "umpd has no way to this engine's host";
  none.pending = false;
  return none;
}
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
      observed.firewall = firewall_of(*handle);
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
  if (written) announce(key.name, object, written->parse());
  return Outcome::look_again(observed.info ? kLookAgain : kLookAgainUnreachable);
}

// Events for conditions that turned.
void SandboxEngineController::announce(const std::string& name, const json::Value& before,
                                       const json::Value& now) {
  for (const char* type : {"Ready", "EgressFirewall"}) {
    const auto was = apis::find_condition(before, type);
    const auto is = apis::find_condition(now, type);
    if (!is || is->status == "Unknown") continue;
    if (was && was->status == is->status && was->reason == is->reason) continue;
    log::info(
        "sandbox engine changed",
        {{"engine", name}, {"condition", type}, {"status", is->status}, {"reason", is->reason}});
    if (is->status == "True") {
      events_.normal(now, is->reason, is->message);
    } else {
      events_.warning(now, is->reason, is->message);
    }
  }
}

}  // namespace umpteenth::controllers::sandbox_engine
