// What the execution of runs works with. All of it outlives the runs.
#pragma once

#include <functional>
#include <string>

#include "agent/agent.h"
#include "base/clock.h"
#include "controllers/run/resolver.h"
#include "controllers/run/sandbox_watch.h"
#include "controllers/run/spend.h"
#include "controllers/runtime/events.h"
#include "controllers/runtime/run_index.h"
#include "controllers/runtime/timer.h"
#include "controllers/sandbox_engine/engines.h"
#include "runs/registry.h"
#include "store/store.h"

namespace umpteenth::controllers::run {

struct Services {
  store::Store& store;
  Clock& clock;
  Timer& timer;
  RunIndex& index;
  runs::Registry& registry;
  Engines& engines;
  const Resolver& resolver;
  Spend& spend;
  SandboxWatch& watch;
  Events& events;
  std::string instance;
  int broker_port;  // server.broker_port
  std::function<agent::Result(const agent::Params&)> run_agent;
};

}  // namespace umpteenth::controllers::run
