// From a SandboxEngine's spec to what runs on it need: a client, prepared images, run networks with
// the broker in them.
#pragma once

#include <filesystem>
#include <string>

#include "controllers/sandbox_engine/engines.h"

namespace umpteenth::umpd {

struct EnginePartsOptions {
  std::string instance;
  std::filesystem::path broker_socket_dir;  // holds broker.sock, nothing else
  int broker_port = 8081;
  std::string own_container;  // umpd's own id where it runs in one on this engine
};

controllers::EngineHandle::Parts make_engine_parts(const apis::SandboxEngineSpec& spec,
                                                   const EnginePartsOptions& options);

// umpd's own container on that engine, "" where it runs in none. The engine must say so: files and
// names that look like a container's are no proof. An engine that does not answer counts as no.
std::string find_own_container(const std::string& endpoint);

}  // namespace umpteenth::umpd
