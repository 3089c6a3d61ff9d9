#include "controllers/workspace/controller.h"

#include "controllers/runtime/write.h"
#include "controllers/workspace/plan.h"

namespace umpteenth::controllers::workspace {
namespace {

constexpr char kActor[] = "system:controller:workspace";
constexpr Duration kSettle{500};

}  // namespace

Controller WorkspaceController::controller() {
  Controller c;
  c.name = "workspace";
  c.settle = kSettle;
  auto around = [](const store::Event& event) -> std::vector<store::Key> {
    return {{"workspaces", "", event.record->key.ns}};
  };
  auto around_when_counted = [around](const store::Event& event) -> std::vector<store::Key> {
    if (event.type == store::Event::Type::modified) return {};  // there before and after
    return around(event);
  };
  // A run's end is what changes the spending.
  c.sources = {{"workspaces", own_key}, {"jobs", around_when_counted}, {"runs", around}};
  c.reconcile = [this](const store::Key& key, const std::stop_token&) { return reconcile(key); };
  return c;
}

Outcome WorkspaceController::reconcile(const store::Key& key) {
  auto record = store_.find(key);
  if (!record) return Outcome::done();
  Observed observed;
  store::Query jobs{.kind = "jobs", .ns = key.name, .limit = 0, .next = ""};
  observed.jobs = static_cast<int64_t>(store_.list(jobs).items.size());
  observed.spent_micro_usd = spend_.today(key.name);
  write_status(store_, *record, plan_status(record->parse(), observed, clock_.now()), kActor);
  return Outcome::look_again(until_recount(clock_.now()));
}

}  // namespace umpteenth::controllers::workspace
