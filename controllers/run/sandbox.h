// A run's container and how it meets the broker: made whole or not at all, removed whatever is left
// of them.
#pragma once

#include <memory>
#include <string>

#include "controllers/run/sandbox_spec.h"
#include "controllers/sandbox_engine/engines.h"

namespace umpteenth::controllers::run {

struct Sandbox {
  std::string container;
  // The run's own network. With a door: the network that it shares with others, if any, by name.
  RunNetwork network;
  std::shared_ptr<BrokerDoor> door;  // null with a network of its own

  const std::string& endpoint() const { return door ? door->endpoint() : network.broker_ip; }
};

// Fills in what is known of params only then (addresses, networks). What it made is removed again
// when a step fails. Nothing but `ump init` has run in it.
Sandbox create_sandbox(EngineHandle& handle, SandboxParams params);
void destroy_sandbox(EngineHandle& handle, const Sandbox& sandbox);  // gone already is success
// Removes what an attempt of this very run left behind when the engine went away in its middle.
void clear_attempt(EngineHandle& handle, const SandboxParams& params);
// True while the container runs in its network together with the broker's endpoint. A door tells
// of the container's end by itself.
// Error(unavailable) when the engine does not answer: nothing is known then.
bool sandbox_intact(EngineHandle& handle, const Sandbox& sandbox);

}  // namespace umpteenth::controllers::run
