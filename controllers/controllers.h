// All controllers of one umpd, wired: cmd/umpd makes one of these.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "apis/seal.h"
#include "base/outbound.h"
#include "controllers/job/controller.h"
#include "controllers/job/trigger.h"
#include "controllers/sandbox_engine/controller.h"
#include "controllers/sandbox_engine/engines.h"
#include "runs/registry.h"
#include "store/store.h"

namespace umpteenth::controllers {

struct Options {
  std::string instance;        // the instance's id; on all that is ours on an engine
  int64_t max_concurrent = 3;  // runs.max_concurrent
  int broker_port = 8081;      // server.broker_port: where a sandbox finds the broker
  OutboundPolicy outbound;     // for model calls
  Engines::Make make_engine;   // see sandbox_engine/docker_parts.h
  std::function<agent::Result(const agent::Params&)> run_agent = agent::run_agent;
};

// By plural: the finalizers that objects have from their creation on, because a controller here
// takes them away.
std::map<std::string, std::vector<std::string>, std::less<>> finalizers();

class Controllers {
 public:
  Controllers(store::Store& store, Clock& clock, runs::Registry& registry,
              const apis::Sealer& sealer, Options options);
  ~Controllers();

  // Fails what a former umpd left in flight, sweeps, then goes on. Seeds come before:
  // sandbox_engine::ensure_seeds.
  void start();
  // Live runs are failed as interrupted and their sandboxes removed. False when that did not end in
  // time: the process must then end by std::_Exit, without destroying this.
  bool stop(Duration within);

  json::Value start_run(const job::StartRequest& request);  // as server::Trigger
  // What would be done now; kind is a plural. Error(not_found), Error(bad_request) for other kinds.
  json::Value preview(const std::string& kind, const std::string& ns, const std::string& name);
  // Takes this installation's rules out of the engine's host; {"removed": [lines]}.
  json::Value remove_firewall(const std::string& engine);
  // For broker::Options::model.
  models::Model model_of(const runs::LiveRun& run, const std::string& which) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace umpteenth::controllers
