// From a SandboxEngine's spec to what runs on it need: a client, prepared images, the broker inside
// their sandboxes or in a network of theirs.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "controllers/sandbox_engine/engines.h"

namespace umpteenth::umpd {

struct EnginePartsOptions {
  std::string instance;
  std::filesystem::path broker_socket_dir;  // holds broker.sock and dns.sock, nothing else
  int broker_port = 8081;
  std::string own_container;  // umpd's own id where it runs in one on this engine
  // Serves the broker on a listening socket, as that endpoint, until what it returns is dropped.
  std::function<std::shared_ptr<void>(Fd listening, const std::string& endpoint)> adopt_listener;
  // The same for a resolver: its datagrams' socket and its listener.
  std::function<std::shared_ptr<void>(Fd datagrams, Fd listener, const std::string& endpoint)>
      adopt_resolver;
};

controllers::EngineHandle::Parts make_engine_parts(const apis::SandboxEngineSpec& spec,
                                                   const EnginePartsOptions& options);

// umpd's own container on that engine, "" where it runs in none. The engine must say so: files and
// names that look like a container's are no proof. An engine that does not answer counts as no.
std::string find_own_container(const std::string& endpoint);

}  // namespace umpteenth::umpd
