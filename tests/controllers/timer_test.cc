#include "controllers/runtime/timer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "tests/controllers/support.h"

namespace umpteenth::controllers {
namespace {

TEST(Timer, runs_tasks_when_their_time_has_come_and_in_order) {
  FakeClock clock(at("2026-01-01T00:00:00Z"));
  std::mutex mutex;
  std::vector<int> ran;
  Timer timer(clock);
  auto note = [&](int n) {
    return [&, n] {
      std::lock_guard lock(mutex);
      ran.push_back(n);
    };
  };
  timer.at(clock.now() + Duration(300), note(3));
  timer.at(clock.now() + Duration(100), note(1));
  timer.at(clock.now() + Duration(200), note(2));
  ASSERT_TRUE(eventually([&] { return clock.sleepers() == 1; }));
  clock.advance(Duration(250));
  ASSERT_TRUE(eventually([&] {
    std::lock_guard lock(mutex);
    return ran.size() == 2;
  }));
  clock.advance(Duration(100));
  ASSERT_TRUE(eventually([&] {
    std::lock_guard lock(mutex);
    return ran.size() == 3;
  }));
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 3}));
}

TEST(Timer, forgets_a_cancelled_task_and_survives_one_that_throws) {
  FakeClock clock(at("2026-01-01T00:00:00Z"));
  std::atomic<int> cancelled{0}, after{0};
  Timer timer(clock);
  auto id = timer.at(clock.now() + Duration(10), [&] { ++cancelled; });
  timer.at(clock.now() + Duration(20), [] { throw std::runtime_error("boom"); });
  timer.at(clock.now() + Duration(30), [&] { ++after; });
  timer.cancel(id);
  clock.advance(Duration(50));
  ASSERT_TRUE(eventually([&] { return after == 1; }));
  EXPECT_EQ(cancelled, 0);
}

// Many rounds: the thread may be anywhere between its start and its sleep when stop() comes.
TEST(Timer, stops_while_it_waits) {
  for (int round = 0; round < 200; ++round) {
    FakeClock clock(at("2026-01-01T00:00:00Z"));
    std::atomic<int> ran{0};
    Timer timer(clock);
    timer.at(clock.now() + Duration(1000), [&] { ++ran; });
    timer.stop();
    clock.advance(Duration(2000));
    EXPECT_EQ(ran, 0);
  }
}

}  // namespace
}  // namespace umpteenth::controllers
