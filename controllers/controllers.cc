#include "controllers/controllers.h"

#include <chrono>

#include "apis/object.h"
#include "base/error.h"
#include "controllers/firewall/controller.h"
#include "controllers/model_provider/controller.h"
#include "controllers/retention/controller.h"
#include "controllers/run/controller.h"
#include "controllers/runtime/informer.h"
#include "controllers/workspace/controller.h"

namespace umpteenth::controllers {

std::map<std::string, std::vector<std::string>, std::less<>> finalizers() {
  return {{"jobs", {apis::kRunsFinalizer}}};
}

struct Controllers::Parts {
  Parts(store::Store& s, Clock& c, runs::Registry& registry, const apis::Sealer& sealer,
        Options options)
      : store(s),
        timer(c),
        events(s, c, "umpd"),
        engines(std::move(options.make_engine)),
        resolver(s, sealer, std::move(options.outbound)),
        spend(s, c),
        services{s,
                 c,
                 timer,
                 index,
                 registry,
                 engines,
                 resolver,
                 spend,
                 watch,
                 events,
                 options.instance,
                 options.broker_port,
                 std::move(options.run_agent)},
        manager(s, c),
        drivers(services,
                [this](const store::Key&) { manager.poke(run::kAdmission, run::admission_key()); }),
        trigger(s, index, c, events),
        jobs(s, c, index, trigger),
        runs(services, drivers, options.max_concurrent),
        workspaces(s, c, spend),
        model_providers(s, c),
        sandbox_engines(s, c, engines,
                        [this](const std::string& name) { return watch.watched(name); }),
        firewalls(s, c, engines,
                  {[this](const store::Key& key) { manager.poke(firewall::kController, key); },
                   [this](const store::Key& key) { manager.poke("sandbox-engine", key); }}),
        retention(s, c, index),
        index_feed(s, "runs", [this](const store::Event& event) { index.observe(event); }) {
    manager.add(sandbox_engines.controller());
    manager.add(firewalls.controller());
    manager.add(jobs.controller());
    for (auto& controller : runs.controllers()) manager.add(std::move(controller));
    manager.add(retention.controller());
    manager.add(workspaces.controller());
    manager.add(model_providers.controller());
  }

  store::Store& store;
  Timer timer;
  RunIndex index;
  Events events;
  Engines engines;
  run::Resolver resolver;
  run::Spend spend;
  run::SandboxWatch watch;
  run::Services services;
  Manager manager;
  run::Drivers drivers;
  job::TriggerService trigger;
  job::JobController jobs;
  run::RunController runs;
  workspace::WorkspaceController workspaces;
  model_provider::ModelProviderController model_providers;
  sandbox_engine::SandboxEngineController sandbox_engines;
  firewall::FirewallController firewalls;
  retention::RetentionController retention;
  Informer index_feed;
};

Controllers::Controllers(store::Store& store, Clock& clock, runs::Registry& registry,
                         const apis::Sealer& sealer, Options options)
    : parts_(std::make_unique<Parts>(store, clock, registry, sealer, std::move(options))) {}

Controllers::~Controllers() {
  if (parts_) stop(Duration(10'000));
}

void Controllers::start() {
  // Every run is known before the first decision about one.
  parts_->index_feed.start();
  parts_->manager.start();
}

bool Controllers::stop(Duration within) {
  using std::chrono::steady_clock;
  auto end = steady_clock::now() + within;
  auto left = [&] {
    return std::max(Duration(0), std::chrono::duration_cast<Duration>(end - steady_clock::now()));
  };
  // The runs first, for they need the time; a claim made meanwhile is refused by the drivers.
  bool drivers = parts_->drivers.stop_all(left());
  bool workers = parts_->manager.stop(std::max(left(), Duration(500)));
  parts_->index_feed.stop();
  parts_->watch.stop();
  parts_->timer.stop();
  return drivers && workers;
}

json::Value Controllers::start_run(const job::StartRequest& request) {
  return parts_->trigger.start(request);
}

json::Value Controllers::preview(const std::string& kind, const std::string& ns,
                                 const std::string& name) {
  if (kind == "jobs") return parts_->jobs.preview({kind, ns, name});
  if (kind == "runs") return parts_->runs.preview({kind, ns, name});
  if (kind == "sandboxengines") return parts_->firewalls.preview({kind, ns, name});
  throw Error(Code::bad_request,
              "no plan can be shown for " + kind + "; jobs, runs and sandboxengines have one");
}

json::Value Controllers::remove_firewall(const std::string& engine) {
  return parts_->firewalls.remove({"sandboxengines", "", engine});
}

models::Model Controllers::model_of(const runs::LiveRun& run, const std::string& which) const {
  return parts_->resolver.model_of(run, which);
}

}  // namespace umpteenth::controllers
