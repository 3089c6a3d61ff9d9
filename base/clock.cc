#include "base/clock.h"

#include <cctype>
#include <cstdio>

#include "base/error.h"
#include "base/json.h"

namespace umpteenth {
namespace {

using namespace std::chrono;  // NOLINT(google-build-using-namespace): one small file of time code

class SystemClock : public Clock {
 public:
  Time now() const override { return time_point_cast<milliseconds>(system_clock::now()); }

  bool sleep_until(Time t, std::stop_token stop) override {
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    // In slices, so that a clock that was set back or forward is noticed.
    while (!stop.stop_requested()) {
      const Time current = now();
      if (current >= t) return true;
      const auto slice = std::min<milliseconds>(t - current, milliseconds(1000));
      wake.wait_for(lock, stop, slice, [] { return false; });
    }
    return false;
  }
};

std::string format(Time t, bool with_ms) {
  const auto day = floor<days>(t);
  const year_month_day ymd(day);
  const hh_mm_ss time(t - day);
  char text[40];
  int n = std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d", int(ymd.year()),
                        unsigned(ymd.month()), unsigned(ymd.day()), int(time.hours().count()),
                        int(time.minutes().count()), int(time.seconds().count()));
  if (with_ms)
    n += std::snprintf(text + n, sizeof text - n, ".%03d", int(time.subseconds().count()));
  return std::string(text, n) + "Z";
}

}  // namespace

Clock& system_clock() {
  static SystemClock instance;
  return instance;
}

std::string format_time(Time t) { return format(t, false); }
std::string format_time_ms(Time t) { return format(t, true); }

Time parse_time(std::string_view text) {
  const auto bad = [&] {
    return Error(Code::bad_request, "not an RFC 3339 time: " + json::quote(text.substr(0, 64)));
  };
  const std::string s(text);
  int year = 0, month = 0, dayn = 0, hour = 0, minute = 0, second = 0, used = 0;
  if (s.size() < 20 ||
      std::sscanf(s.c_str(), "%4d-%2d-%2d%*1[Tt]%2d:%2d:%2d%n", &year, &month, &dayn, &hour,
                  &minute, &second, &used) != 6 ||
      used != 19)
    throw bad();
  size_t at = 19;
  int ms = 0;
  if (s[at] == '.') {
    int scale = 100;
    const size_t first = ++at;
    for (; at < s.size() && std::isdigit(static_cast<unsigned char>(s[at])); ++at, scale /= 10)
      ms += (s[at] - '0') * scale;
    if (at == first) throw bad();
  }
  int offset_minutes = 0;
  if (at >= s.size()) throw bad();
  if (s[at] == 'Z' || s[at] == 'z') {
    ++at;
  } else if (s[at] == '+' || s[at] == '-') {
    int oh = 0, om = 0, n = 0;
    if (std::sscanf(s.c_str() + at + 1, "%2d:%2d%n", &oh, &om, &n) != 2 || n != 5) throw bad();
    offset_minutes = (s[at] == '-' ? -1 : 1) * (oh * 60 + om);
    at += 6;
  }
  const year_month_day ymd{std::chrono::year(year), std::chrono::month(unsigned(month)),
                           std::chrono::day(unsigned(dayn))};
  if (at != s.size() || !ymd.ok() || hour > 23 || minute > 59 || second > 60) throw bad();
  return Time(sys_days(ymd).time_since_epoch()) + hours(hour) + minutes(minute - offset_minutes) +
         seconds(second) + milliseconds(ms);
}

std::string format_age(Duration d) {
  const int64_t s = std::max<int64_t>(0, duration_cast<seconds>(d).count());
  const auto pair = [](int64_t big, const char* unit, int64_t small, const char* small_unit) {
    std::string text = std::to_string(big) + unit;
    if (small > 0) text += std::to_string(small) + small_unit;
    return text;
  };
  const int64_t m = s / 60, h = m / 60, days_ = h / 24;
  if (s < 120) return std::to_string(s) + "s";
  if (m < 10) return pair(m, "m", s % 60, "s");
  if (m < 180) return std::to_string(m) + "m";
  if (h < 8) return pair(h, "h", m % 60, "m");
  if (h < 48) return std::to_string(h) + "h";
  if (days_ < 8) return pair(days_, "d", h % 24, "h");
  if (days_ < 365 * 2) return std::to_string(days_) + "d";
  return pair(days_ / 365, "y", days_ % 365, "d");
}

Time FakeClock::now() const {
  std::lock_guard lock(mutex_);
  return now_;
}

bool FakeClock::sleep_until(Time t, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  ++sleepers_;
  const bool reached = changed_.wait(lock, stop, [&] { return now_ >= t; });
  --sleepers_;
  return reached;
}

void FakeClock::advance(Duration d) {
  std::lock_guard lock(mutex_);
  now_ += d;
  changed_.notify_all();
}

size_t FakeClock::sleepers() const {
  std::lock_guard lock(mutex_);
  return sleepers_;
}

}  // namespace umpteenth
