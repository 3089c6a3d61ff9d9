// From a SandboxEngine's spec to what runs on it need: a client, prepared images, run networks with
// the broker in them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "controllers/sandbox_engine/engines.h"

namespace umpteenth::umpd {

struct EnginePartsOptions {
  std::string instance;
  std::filesystem::path broker_socket_dir;  // holds broker.sock, nothing else
  int broker_port = 8081;
  std::function<void()> listen_for_members;  // umpd is a container of this engine
};

controllers::EngineHandle::Parts make_engine_parts(const apis::SandboxEngineSpec& spec,
                                                   const EnginePartsOptions& options);

// umpd runs in a container (which engine's is for the engine to say).
bool in_a_container();

}  // namespace umpteenth::umpd
