// The status of a ModelProvider: whether a run could use it, as far as that can be told without
// asking it. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/json.h"

namespace umpteenth::controllers::model_provider {

struct Observed {
  // Of the Secret that spec.apiKey names; none: there is no such Secret.
  std::optional<std::set<std::string>> secret_keys;
  std::string client_problem;  // why no client can be made of the spec; "" = one can
};

json::Value plan_status(const json::Value& object, const Observed& observed, Time now);

}  // namespace umpteenth::controllers::model_provider
