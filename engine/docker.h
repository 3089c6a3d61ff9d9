// The Docker Engine API client (Docker ≥ 20.10; Podman's compatible API). Negotiates the version at
// the first call; reconnects by itself.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"

namespace umpteenth::engine {

struct DockerOptions {
  std::string endpoint = "unix:///var/run/docker.sock";  // or tcp://host:port
  int concurrent_starts = 3;  // 50 parallel starts on 2 cores are CPU bound
};

std::unique_ptr<Engine> make_docker_engine(const DockerOptions& options);

}  // namespace umpteenth::engine
