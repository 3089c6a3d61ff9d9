// What a Job's schema cannot say.
#pragma once

#include <vector>

#include "apis/kind.h"

namespace umpteenth::apis {

void check_job(const json::Value& object, const json::Value* old, std::vector<Cause>& causes);
// The rules of a network section at `path` (of jobs and workspace defaults).
void check_network(const json::Value& network, const std::string& path, std::vector<Cause>& causes);

}  // namespace umpteenth::apis
