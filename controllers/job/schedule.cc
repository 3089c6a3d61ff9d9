// The schedule's part of the job plan.
#include "controllers/job/schedule.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "apis/cron.h"
#include "apis/object.h"
#include "base/error.h"

namespace umpteenth::controllers::job {

std::optional<Time> latest_due(const std::string& cron, const std::string& zone, Time after,
                               Time now) {
  using std::chrono::hours;
  apis::Cron schedule(cron);
  // The shortest window that holds an occurrence, so that a year of missed minutes costs no more
  // than an hour of them.
  constexpr std::array<hours, 4> kWindows{hours(1), hours(25), hours(24 * 32), hours(24 * 367)};
  for (size_t i = 0; i <= kWindows.size(); ++i) {
    Time from = i < kWindows.size() ? std::max(after, now - kWindows.at(i)) : after;
    std::optional<Time> latest;
    for (auto t = schedule.next(from, zone); t && *t <= now; t = schedule.next(*t, zone))
      latest = t;
    if (latest || from == after) return latest;
  }
  return std::nullopt;
}

namespace {

Time parse_or(const std::string& text, Time otherwise) {
  return text.empty() ? otherwise : parse_time(text);
}

// From when on occurrences count: since this schedule was first seen, and past all that were used.
Time counted_from(const json::Value& old_status, const Schedule& schedule,
                  const std::vector<RunOf>& runs, Time now) {
  const json::Value& seen = old_status.get("schedule");
  bool same = seen.get_string("cron") == schedule.cron &&
              seen.get_string("timeZone") == schedule.zone && !seen.get_string("since").empty();
  if (!same) return now;
  Time after = parse_or(seen.get_string("since"), now);
  after = std::max(after, parse_or(old_status.get_string("lastScheduleTime"), after));
  for (const RunOf& run : runs) after = std::max(after, parse_or(run.scheduled_for, after));
  return std::min(after, now);  // a clock that was set back must not silence the schedule
}

}  // namespace

Scheduled plan_schedule(const json::Value& old_status, const apis::JobSpec& spec,
                        const std::vector<RunOf>& runs, Time now) {
  Scheduled result;
  auto say = [&](const char* status, const char* reason, std::string message) {
    result.condition = {"Scheduled", status, reason, std::move(message), 0};
  };
  if (spec.schedule.cron.empty()) {
    say("False", "NoSchedule", "the job has no schedule");
    return result;
  }
  if (spec.suspend) {
    say("False", "Suspended", "spec.suspend is true: the schedule starts nothing");
    return result;
  }
  for (const auto& input : spec.inputs) {
    if (!input.required) continue;
    say("False", "InputRequired",
        "input " + input.name + " is required and a scheduled run has no input");
    return result;
  }
  Schedule schedule{spec.schedule.cron,
                    spec.schedule.time_zone.empty() ? "UTC" : spec.schedule.time_zone};
  try {
    Time after = counted_from(old_status, schedule, runs, now);
    result.due = latest_due(schedule.cron, schedule.zone, after, now);
    result.next = apis::Cron(schedule.cron).next(now, schedule.zone);
  } catch (const Error& e) {  // brought in behind admission: the condition is how a person learns
    result.due.reset();
    say("False", "InvalidSchedule", e.message());
    return result;
  }
  const json::Value& seen = old_status.get("schedule");
  bool same = seen.get_string("cron") == schedule.cron &&
              seen.get_string("timeZone") == schedule.zone && !seen.get_string("since").empty();
  result.memory =
      json::Value::object({{"cron", schedule.cron},
                           {"timeZone", schedule.zone},
                           {"since", same ? seen.get_string("since") : format_time(now)}});
  if (result.next) {
    say("True", "Scheduled", "by " + schedule.cron + " in " + schedule.zone);
  } else {
    say("False", "NeverFires", schedule.cron + " has no occurrence within five years");
  }
  return result;
}

}  // namespace umpteenth::controllers::job
