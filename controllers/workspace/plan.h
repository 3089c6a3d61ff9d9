// The status of a Workspace: what is in it and what it spent. Pure.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/json.h"

namespace umpteenth::controllers::workspace {

struct Observed {
  int64_t jobs = 0;
  int64_t spent_micro_usd = 0;  // since 00:00 UTC, by runs that have ended
};

json::Value plan_status(const json::Value& object, const Observed& observed, Time now);

// Spending is counted by UTC days: how long until the next one begins. At most an hour, for wall
// clocks are set.
Duration until_recount(Time now);

}  // namespace umpteenth::controllers::workspace
