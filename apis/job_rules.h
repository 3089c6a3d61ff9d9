// What a Job's schema cannot say.
#pragma once

#include <vector>

#include "apis/job.h"
#include "apis/kind.h"

namespace umpteenth::apis {

void check_job(const json::Value& object, const json::Value* old, std::vector<Cause>& causes);
// The rules of a network section at `path` (of jobs and workspace defaults).
void check_network(const json::Value& network, const std::string& path, std::vector<Cause>& causes);

// A run's input against the job's `inputs`, as causes below spec.input. A job that declares none
// takes any JSON.
std::vector<Cause> missing_inputs(const JobSpec& spec, const json::Value& input);
std::vector<Cause> undeclared_inputs(const JobSpec& spec, const json::Value& input);

}  // namespace umpteenth::apis
