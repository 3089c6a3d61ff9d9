#include "controllers/runtime/work_queue.h"

#include <gtest/gtest.h>

#include "tests/controllers/support.h"

namespace umpteenth::controllers {
namespace {

const store::Key kA{"jobs", "default", "a"};
const store::Key kB{"jobs", "default", "b"};

struct WorkQueueTest : ::testing::Test {
  FakeClock clock{at("2026-01-01T00:00:00Z")};
  Timer timer{clock};
  WorkQueue queue{clock, timer};
  std::stop_source stop;
  ~WorkQueueTest() override { timer.stop(); }
};

TEST_F(WorkQueueTest, many_events_of_one_object_are_one_piece_of_work) {
  for (int i = 0; i < 100; ++i) queue.add(kA);
  queue.add(kB);
  EXPECT_EQ(queue.ready(), 2U);
  EXPECT_EQ(queue.get(stop.get_token()), kA);
  EXPECT_EQ(queue.get(stop.get_token()), kB);
  EXPECT_EQ(queue.ready(), 0U);
}

TEST_F(WorkQueueTest, an_event_while_the_object_is_worked_on_brings_it_back_only_afterwards) {
  queue.add(kA);
  ASSERT_EQ(queue.get(stop.get_token()), kA);
  queue.add(kA);
  EXPECT_EQ(queue.ready(), 0U) << "two workers would have the same key";
  queue.done(kA);
  EXPECT_EQ(queue.ready(), 1U);
  ASSERT_EQ(queue.get(stop.get_token()), kA);
  queue.done(kA);
  EXPECT_EQ(queue.ready(), 0U);
}

TEST_F(WorkQueueTest, a_delayed_key_comes_when_its_earliest_time_has_come) {
  queue.add_after(kA, Duration(500));
  queue.add_after(kA, Duration(100));
  queue.add_after(kA, Duration(900));
  EXPECT_EQ(queue.delayed(), 1U);
  clock.advance(Duration(99));
  EXPECT_EQ(queue.ready(), 0U);
  clock.advance(Duration(1));
  ASSERT_TRUE(eventually([&] { return queue.ready() == 1; }));
  EXPECT_EQ(queue.delayed(), 0U);
}

TEST_F(WorkQueueTest, stop_ends_a_waiting_worker) {
  std::thread worker([&] { EXPECT_EQ(queue.get(stop.get_token()), std::nullopt); });
  stop.request_stop();
  worker.join();
}

TEST_F(WorkQueueTest, forget_ends_the_failures_in_a_row) {
  queue.retry(kA);
  queue.retry(kA);
  EXPECT_EQ(queue.failures(kA), 2);
  EXPECT_EQ(queue.failures(kB), 0);
  queue.forget(kA);
  EXPECT_EQ(queue.failures(kA), 0);
}

TEST(Backoff, doubles_from_5_ms_to_1000_s_with_jitter_below) {
  EXPECT_EQ(backoff(1, 0), Duration(5));
  EXPECT_EQ(backoff(2, 0), Duration(10));
  EXPECT_EQ(backoff(11, 0), Duration(5120));
  EXPECT_EQ(backoff(30, 0), Duration(1'000'000));
  EXPECT_EQ(backoff(1'000'000, 0), Duration(1'000'000));
  for (int failures = 1; failures < 64; ++failures) {
    EXPECT_GE(backoff(failures, 0.999), Duration(5));
    EXPECT_GE(backoff(failures, 0.999) * 2 + Duration(2), backoff(failures, 0));
    EXPECT_LE(backoff(failures, 0.5), backoff(failures, 0));
  }
}

}  // namespace
}  // namespace umpteenth::controllers
