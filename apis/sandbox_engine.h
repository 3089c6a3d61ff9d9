// SandboxEngine: where sandboxes run; its status is the truth about enforcement.
#pragma once

#include <string>
#include <vector>

#include "apis/common.h"
#include "apis/kind.h"

namespace umpteenth::apis {

struct SandboxEngineSpec {
  std::string type = "Docker";  // Docker | Podman | Swarm | MicroVM
  std::string endpoint = "unix:///var/run/docker.sock";
  std::string runtime = "runc";
  std::string egress_filter = "auto";  // auto | required | off
  std::string attachment = "auto";     // auto | namespace | network
  std::string subnet_pool = "10.201.0.0/16";
  std::vector<std::string> blocked_targets;
  std::string image;  // the instance's default sandbox image
  bool operator==(const SandboxEngineSpec&) const = default;
};

const Kind& sandbox_engine_kind();
SandboxEngineSpec sandbox_engine_spec_from(const json::Value& spec);
json::Value to_json(const SandboxEngineSpec& spec);

}  // namespace umpteenth::apis
