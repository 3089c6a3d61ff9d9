// What a run may reach through the egress proxy: its job's network, as it was when the run began.
#pragma once

#include <string>
#include <vector>

#include "apis/job.h"

namespace umpteenth::runs {

struct EgressGrant {
  apis::NetworkMode mode = apis::NetworkMode::none;
  std::vector<std::string> allowed_domains;  // lower case; "*.x" is any depth below x
  bool allow_private = false;
  bool operator==(const EgressGrant&) const = default;
};

inline EgressGrant egress_grant(const apis::JobSpec& job) {
  return {job.network.mode, job.network.allowed_domains, job.network.allow_private};
}

}  // namespace umpteenth::runs
