// Workspace: a Kubernetes namespace; members, defaults, limits, retention.
#pragma once

#include <string>
#include <vector>

#include "apis/common.h"
#include "apis/job.h"
#include "apis/kind.h"

namespace umpteenth::apis {

struct WorkspaceSpec {
  std::string display_name;
  struct Member {
    std::string user, group, role;  // role: Member | Admin | Owner
    bool operator==(const Member&) const = default;
  };
  std::vector<Member> members;
  struct Defaults {
    std::string image;
    ModelRef model;
    Resources resources;
    NetworkMode network = NetworkMode::internet;
    bool operator==(const Defaults&) const = default;
  } defaults;
  double daily_spend_usd = 0;
  int64_t max_concurrent_runs = 3;
  int64_t retention_days = 90;  // 1–3650
  bool operator==(const WorkspaceSpec&) const = default;
};

const Kind& workspace_kind();
WorkspaceSpec workspace_spec_from(const json::Value& spec);
json::Value to_json(const WorkspaceSpec& spec);

}  // namespace umpteenth::apis
