// Whether what a job refers to exists. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "apis/object.h"
#include "controllers/job/plan.h"

namespace umpteenth::controllers::job {

apis::Condition secrets_resolved(const apis::JobSpec& spec, const Observed& observed);
apis::Condition model_resolved(const apis::JobSpec& resolved, const Observed& observed);

// Why {secret, key} means no value, or "" where it does.
std::string secret_problem(const apis::SecretRef& ref, const std::set<std::string>* keys);

}  // namespace umpteenth::controllers::job
