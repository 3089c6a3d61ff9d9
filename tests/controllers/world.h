// A whole umpd of controllers over a memory store and a FakeEngine. Tests see what a person sees:
// the objects; and what the engine was told.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "apis/run.h"
#include "controllers/controllers.h"
#include "store/open.h"
#include "tests/controllers/support.h"
#include "tests/support/fake_engine.h"

namespace umpteenth::controllers {

inline constexpr char kInstance[] = "0f1e2d3c-test";

// The doors of sandboxes on an engine that has no processes. Thread-safe.
class FakeDoors {
 public:
  std::string obstacle = "a fake engine has no namespaces";   // before the world starts; "" = none
  std::function<void(const std::string& container)> on_open;  // may throw

  bool asked(const std::string& runtime) const;
  size_t open() const { return *open_; }
  void end_process(const std::string& container);  // as its door is told

 private:
  friend struct Ground;
  std::string tell_obstacle(const std::string& runtime);
  std::shared_ptr<BrokerDoor> open_door(const std::string& run_uid, const std::string& container);

  mutable std::mutex mutex_;
  std::set<std::string> asked_;
  std::map<std::string, Fd> processes_;
  std::shared_ptr<std::atomic<size_t>> open_ = std::make_shared<std::atomic<size_t>>(0);
};

// Objects that share their world with others, e.g. with a second umpd after a crash.
struct Ground {
  FakeClock clock{at("2026-03-02T10:00:00Z")};
  std::unique_ptr<store::Store> store = store::make_memory_store();
  std::shared_ptr<support::FakeEngine> engine = std::make_shared<support::FakeEngine>();
  std::shared_ptr<FakeDoors> doors = std::make_shared<FakeDoors>();
  std::string relay;                       // the broker's endpoint, a container
  std::shared_ptr<firewall::Guard> guard;  // of the engine's host; null: there is no way to it

  Ground();
  void create(const std::string& kind_plural, const std::string& ns, const std::string& name,
              const std::string& spec_json);
  void create_job(const std::string& name, const std::string& spec_json = "{}");
  json::Value get(const std::string& kind_plural, const std::string& ns,
                  const std::string& name) const;  // null where absent
  json::Value run(const std::string& name) const { return get("runs", "default", name); }
  apis::RunStatus status(const std::string& run) const;
  std::vector<json::Value> runs() const;
  void patch(const std::string& kind_plural, const std::string& name,
             const std::function<void(json::Value&)>& change);
  void cancel(const std::string& run);
  void remove(const std::string& kind_plural, const std::string& name);
  std::vector<std::string> timeline(const std::string& run) const;  // "type" or "type phase"
  std::string timeline_text(const std::string& run) const;
  size_t sandboxes() const;
  size_t run_networks() const;

  EngineHandle::Parts parts() const;
};

// One umpd's life.
struct World {
  using Agent = std::function<agent::Result(const agent::Params&)>;

  explicit World(std::shared_ptr<Ground> on, Agent agent, int64_t max_concurrent = 3);
  ~World();

  void start() { controllers->start(); }
  std::string start_run(const std::string& job, const std::string& input_json = "{}");
  bool ends(const std::string& run, apis::Phase phase);  // polls; time goes on meanwhile
  bool passes(const std::function<bool()>& condition);   // the same for anything

  std::shared_ptr<Ground> ground;
  runs::Registry registry;
  apis::Sealer sealer;
  std::unique_ptr<Controllers> controllers;
};

agent::Result succeed(const std::string& summary = "done");
// Ends when the run is stopped.
agent::Result work_until_stopped(const agent::Params& params);

}  // namespace umpteenth::controllers
