// The probe sandbox: a container on the strict egress network that tries addresses which must be
// out of reach. It shows with packets what the rules that were read back say.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace umpteenth::controllers::firewall {

struct ProbeParams {
  std::string instance;
  std::string network;                   // the strict egress network's name
  std::string image;                     // the helper's
  std::vector<std::string> unreachable;  // as `ump netcheck` takes them
};

// The host's addresses on all the engine's networks, metadata services and some private addresses.
std::vector<std::string> probe_targets(const std::vector<engine::Network>& networks);

// "" where nothing was reached, else what was. Error where it could not be tried.
std::string run_probe(engine::Engine& engine, const ProbeParams& params);

}  // namespace umpteenth::controllers::firewall
