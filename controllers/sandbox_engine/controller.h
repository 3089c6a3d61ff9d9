// SandboxEngine: keeps a client for each, looks at it every half minute, publishes what it found.
#pragma once

#include <set>

#include "controllers/runtime/events.h"
#include "controllers/runtime/manager.h"
#include "controllers/sandbox_engine/engines.h"

namespace umpteenth::controllers::sandbox_engine {

class SandboxEngineController {
 public:
  // running: how many sandboxes the engine of that name executes now.
  SandboxEngineController(store::Store& store, Clock& clock, Engines& engines,
                          std::function<int64_t(const std::string& engine)> running);

  Controller controller();  // valid while this object lives
  Outcome reconcile(const store::Key& key);

 private:
  void announce(const std::string& name, const json::Value& before, const json::Value& now);

  store::Store& store_;
  Clock& clock_;
  Engines& engines_;
  std::function<int64_t(const std::string&)> running_;
  Events events_;
};

// What must exist at the first start. Objects that are there are left alone; where they differ from
// what the options say, the resource wins and the difference is returned as a warning.
struct Seeds {
  apis::SandboxEngineSpec engine;
  int64_t max_concurrent_runs = 3;
  int64_t retention_days = 90;
  std::set<std::string> given;  // the options that somebody set: only these can differ
};
std::vector<std::string> ensure_seeds(store::Store& store, Clock& clock, const Seeds& seeds);

}  // namespace umpteenth::controllers::sandbox_engine
