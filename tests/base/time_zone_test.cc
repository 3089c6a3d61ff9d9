#include "base/time_zone.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace umpteenth {
namespace {

CivilTime at(int year, int month, int day, int hour, int minute) {
  return {.year = year,
          .month = month,
          .day = day,
          .hour = hour,
          .minute = minute,
          .second = 0,
          .weekday = 0};
}

struct Case {
  const char* zone;
  CivilTime local;
  const char* utc;
  bool skipped = false;
  bool repeated = false;
};

TEST(TimeZone, spring_and_autumn_in_three_zones) {
  const Case cases[] = {
      {"Europe/Berlin", at(2026, 3, 29, 1, 59), "2026-03-29T00:59:00Z"},
      {"Europe/Berlin", at(2026, 3, 29, 2, 30), "2026-03-29T01:00:00Z", true},
      {"Europe/Berlin", at(2026, 3, 29, 3, 0), "2026-03-29T01:00:00Z"},
      {"Europe/Berlin", at(2026, 10, 25, 2, 30), "2026-10-25T00:30:00Z", false, true},
      {"Europe/Berlin", at(2026, 10, 25, 3, 0), "2026-10-25T02:00:00Z"},
      {"America/New_York", at(2026, 3, 8, 2, 15), "2026-03-08T07:00:00Z", true},
      {"America/New_York", at(2026, 11, 1, 1, 15), "2026-11-01T05:15:00Z", false, true},
      {"America/New_York", at(2026, 7, 4, 12, 0), "2026-07-04T16:00:00Z"},
      // Half an hour only.
      {"Australia/Lord_Howe", at(2026, 10, 4, 2, 10), "2026-10-03T15:30:00Z", true},
      {"Australia/Lord_Howe", at(2026, 10, 4, 2, 30), "2026-10-03T15:30:00Z"},
      {"Australia/Lord_Howe", at(2026, 4, 5, 1, 40), "2026-04-04T14:40:00Z", false, true},
      {"UTC", at(2024, 2, 29, 23, 59), "2024-02-29T23:59:00Z"},
  };
  for (const Case& c : cases) {
    const Instant instant = from_civil(c.local, c.zone);
    EXPECT_EQ(format_time(instant.time), c.utc) << c.zone;
    EXPECT_EQ(instant.skipped, c.skipped) << c.zone << " " << c.utc;
    EXPECT_EQ(instant.repeated, c.repeated) << c.zone << " " << c.utc;
  }
}

TEST(TimeZone, civil_time_knows_the_weekday) {
  const CivilTime berlin = to_civil(parse_time("2026-11-29T23:30:15Z"), "Europe/Berlin");
  EXPECT_EQ(berlin, (CivilTime{.year = 2026,
                               .month = 11,
                               .day = 30,
                               .hour = 0,
                               .minute = 30,
                               .second = 15,
                               .weekday = 1}));
  EXPECT_EQ(to_civil(parse_time("1969-12-31T23:59:59Z"), "UTC").weekday, 3);
}

TEST(TimeZone, names_are_checked_before_any_file_is_opened) {
  EXPECT_TRUE(time_zone_exists("Europe/Berlin"));
  EXPECT_TRUE(time_zone_exists("UTC"));
  EXPECT_TRUE(time_zone_exists("Etc/GMT+5"));
  for (const char* bad : {"", "Local", "Europe/Atlantis", "../../etc/passwd", "/etc/localtime",
                          "Europe/Berlin\n", "CET; rm", "Europe/../UTC"})
    EXPECT_FALSE(time_zone_exists(bad)) << bad;
}

TEST(TimeZone, errors_name_the_zone_and_refuse_impossible_dates) {
  try {
    to_civil(Time{}, "Mars/Olympus");
    FAIL() << "an unknown zone was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid);
    EXPECT_EQ(e.message(), "\"Mars/Olympus\" is not an IANA time zone");
  }
  EXPECT_THROW(from_civil(at(2026, 2, 29, 0, 0), "UTC"), Error);
  EXPECT_THROW(from_civil(at(2026, 1, 1, 24, 0), "UTC"), Error);
  EXPECT_THROW(from_civil(at(2026, 13, 1, 0, 0), "UTC"), Error);
}

}  // namespace
}  // namespace umpteenth
