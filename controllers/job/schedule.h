// The schedule's part of the job plan. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apis/object.h"
#include "controllers/job/plan.h"

namespace umpteenth::controllers::job {

struct Schedule {
  std::string cron, zone;
};

struct Scheduled {
  std::optional<Time> due;   // start one run for this occurrence
  std::optional<Time> next;  // after now
  json::Value memory;        // status.schedule; null while nothing is scheduled
  apis::Condition condition;
};

// Occurrences before the schedule was first seen, changed or resumed start nothing.
Scheduled plan_schedule(const json::Value& old_status, const apis::JobSpec& spec,
                        const std::vector<RunOf>& runs, Time now);

}  // namespace umpteenth::controllers::job
