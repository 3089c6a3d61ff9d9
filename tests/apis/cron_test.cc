#include "apis/cron.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace umpteenth::apis {
namespace {

std::string refusal(const char* expression) {
  try {
    Cron cron(expression);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid);
    return e.message();
  }
}

// The next n occurrences after t, in UTC.
std::string next(const char* expression, const char* zone, const char* t, int n = 1) {
  const Cron cron(expression);
  Time at = parse_time(t);
  std::string all;
  for (int i = 0; i < n; ++i) {
    const auto found = cron.next(at, zone);
    if (!found) return all + " never";
    at = *found;
    all += (all.empty() ? "" : " ") + format_time(at).substr(5, 11);
  }
  return all;
}

TEST(Cron, what_it_refuses_and_why) {
  const std::pair<const char*, const char*> table[] = {
      {"", "expected 5 fields"},
      {"* * * *", "found 4"},
      {"* * * * * *", "found 6"},
      {"60 * * * *", "minute 60 is not between 0 and 59"},
      {"* 24 * * *", "hour 24 is not between 0 and 23"},
      {"* * 0 * *", "day of month 0 is not between 1 and 31"},
      {"* * * 13 *", "month 13"},
      {"* * * * 8", "day of week 8 is not between 0 and 7"},
      {"a * * * *", "minute \"a\" is not a number"},
      {"-1 * * * *", "minute"},
      {"5-1 * * * *", "range \"5-1\" runs backwards"},
      {"*/0 * * * *", "step \"0\" is not a positive number"},
      {"*/x * * * *", "step \"x\""},
      {"1, * * * *", "has an empty part"},
      {"1,,2 * * * *", "has an empty part"},
      {"1- * * * *", "minute \"1-\""},
      {"@every 5m", "unknown descriptor"},
      {"@reboot", "unknown descriptor"},
      {"TZ=UTC * * * * *", "TZ= prefix is not accepted"},
      {"CRON_TZ=UTC * * * * *", "TZ= prefix is not accepted"},
      {"0 0 30 2 *", "it never fires"},
      {"0 0 31 4,6,9,11 *", "it never fires"},
  };
  for (const auto& [expression, part] : table)
    EXPECT_NE(refusal(expression).find(part), std::string::npos)
        << expression << ": " << refusal(expression);
  EXPECT_NE(refusal(std::string(300, '*').c_str()).find("longer than"), std::string::npos);
  for (const char* good :
       {"* * * * *", "0 0 29 2 *", "0 0 30 2 1", "*/15 8-18/2 1,15 JAN-mar Mon-FRI", "@hourly",
        "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually", "0 0 * * 7",
        "0\t0 * * *", "5/20 * * * *"})
    EXPECT_EQ(refusal(good), "") << good;
}

TEST(Cron, finds_the_next_occurrence) {
  const char* t = "2026-11-30T08:00:00Z";  // a Monday
  EXPECT_EQ(next("* * * * *", "UTC", t, 2), "11-30T08:01 11-30T08:02");
  EXPECT_EQ(next("0 8 * * *", "UTC", t), "12-01T08:00");
  EXPECT_EQ(next("0 8 * * *", "UTC", "2026-11-30T07:59:59Z"), "11-30T08:00");
  EXPECT_EQ(next("5/20 * * * *", "UTC", t, 4), "11-30T08:05 11-30T08:25 11-30T08:45 11-30T09:05");
  EXPECT_EQ(next("0 9 * * 1-5", "Europe/Berlin", t, 2), "12-01T08:00 12-02T08:00");
  EXPECT_EQ(next("0 0 * * 7", "UTC", t), "12-06T00:00");
  EXPECT_EQ(next("0 0 * * SUN", "UTC", t), "12-06T00:00");
  EXPECT_EQ(next("@monthly", "UTC", t), "12-01T00:00");
  EXPECT_EQ(next("@yearly", "UTC", t), "01-01T00:00");
  EXPECT_EQ(next("0 0 29 2 *", "UTC", t), "02-29T00:00");
  // Both day fields restricted: either fits. One begins with *: both must.
  EXPECT_EQ(next("0 0 13 * 5", "UTC", t, 3), "12-04T00:00 12-11T00:00 12-13T00:00");
  EXPECT_EQ(next("0 0 */2 * 5", "UTC", t, 2), "12-11T00:00 12-25T00:00");
  EXPECT_EQ(next("0 0 30 2 1", "UTC", "2027-02-01T12:00:00Z"), "02-08T00:00");
}

TEST(Cron, a_skipped_time_fires_just_after_the_jump) {
  // Berlin 2027-03-28: 02:00 → 03:00 (01:00 UTC).
  EXPECT_EQ(next("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", 2),
            "03-28T01:00 03-29T00:30");
  EXPECT_EQ(next("0,15,30 2 * * *", "Europe/Berlin", "2027-03-27T12:00:00Z", 2),
            "03-28T01:00 03-29T00:00");
  // New York 2027-03-14: 02:00 → 03:00 (07:00 UTC).
  EXPECT_EQ(next("30 2 * * *", "America/New_York", "2027-03-13T12:00:00Z", 2),
            "03-14T07:00 03-15T06:30");
  // Lord Howe 2026-10-04: 02:00 → 02:30 (15:30 UTC the day before), half an hour only.
  EXPECT_EQ(next("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z"), "10-03T15:30");
  // Cairo 2026-04-24: 00:00 → 01:00 (22:00 UTC the day before): the jump is at midnight.
  EXPECT_EQ(next("30 0 24 4 *", "Africa/Cairo", "2026-04-23T12:00:00Z"), "04-23T22:00");
  // Samoa had no 2011-12-30 at all.
  EXPECT_EQ(next("0 12 30 12 *", "Pacific/Apia", "2011-12-29T12:00:00Z"), "12-30T10:00");
}

TEST(Cron, a_repeated_time_fires_once) {
  // Berlin 2026-10-25: 03:00 → 02:00 (01:00 UTC); 02:30 is 00:30 UTC and 01:30 UTC.
  EXPECT_EQ(next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            "10-25T00:30 10-26T01:30");
  EXPECT_EQ(next("30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z"), "10-26T01:30");
  // New York 2026-11-01: 02:00 → 01:00 (06:00 UTC).
  EXPECT_EQ(next("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2),
            "11-01T05:30 11-02T06:30");
  // Every half hour there: the second pass of the repeated hour is silent.
  EXPECT_EQ(next("*/30 * * * *", "America/New_York", "2026-11-01T04:45:00Z", 4),
            "11-01T05:00 11-01T05:30 11-01T07:00 11-01T07:30");
  // Lord Howe 2026-04-05: 02:00 → 01:30 (15:00 UTC the day before).
  EXPECT_EQ(next("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", 2),
            "04-04T14:45 04-05T15:15");
}

// Occurrences never run backwards and never stand still, whatever the zone does.
TEST(Cron, always_moves_on) {
  for (const char* zone :
       {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu",
        "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Chatham"}) {
    const Cron cron("7,37 */3 * * *");
    Time t = parse_time("2026-01-01T00:00:00Z");
    int n = 0;
    for (; t < parse_time("2027-01-01T00:00:00Z"); ++n) {
      const auto found = cron.next(t, zone);
      ASSERT_TRUE(found) << zone;
      ASSERT_GT(*found, t) << zone;
      ASSERT_LT(*found - t, std::chrono::hours(6)) << zone << " " << format_time(t);
      t = *found;
    }
    EXPECT_NEAR(n, 365 * 16, 3) << zone;
  }
}

}  // namespace
}  // namespace umpteenth::apis
