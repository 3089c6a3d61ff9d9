#include "runs/live_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "base/error.h"
#include "runs/job_state.h"
#include "runs/timeline.h"
#include "store/open.h"

namespace umpteenth::runs {
namespace {

RunInfo a_run(std::string uid = "uid-1") {
  RunInfo info;
  info.ns = "default";
  info.name = "hello-1";
  info.uid = std::move(uid);
  info.job = "hello";
  return info;
}

class LiveRunTest : public testing::Test {
 protected:
  std::vector<json::Value> timeline(const std::string& uid = "uid-1") {
    std::vector<json::Value> events;
    for (const store::TimelineRow& row : store_->timeline_read(uid, 0, 100'000))
      events.push_back(json::parse(row.json));
    return events;
  }

  std::unique_ptr<store::Store> store_ = store::make_memory_store();
  FakeClock clock_{parse_time("2026-11-30T08:00:00Z")};
  LiveRun run_{a_run(), *store_, clock_};
};

template <typename F>
std::string refusal(F f, Code code = Code::invalid) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.message();
    return e.message();
  }
  return "accepted";
}

TEST_F(LiveRunTest, state_survives_the_run_and_belongs_to_its_job) {
  EXPECT_TRUE(run_.state_set("cursor", "42"));
  EXPECT_FALSE(run_.state_set("cursor", "43")) << "only the first write is the first";
  LiveRun next(a_run("uid-2"), *store_, clock_);
  EXPECT_EQ(next.state_get("cursor"), "43");
  EXPECT_TRUE(next.state_set("cursor", "44")) << "each run has its own first write";
  RunInfo other = a_run("uid-3");
  other.job = "other";
  EXPECT_EQ(LiveRun(other, *store_, clock_).state_get("cursor"), std::nullopt);
  EXPECT_EQ(next.state_all(), json::Value::object({{"cursor", "44"}}));
}

TEST_F(LiveRunTest, state_limits_are_named) {
  EXPECT_EQ(refusal([&] { run_.state_set("", "x"); }), "the state key is empty");
  EXPECT_EQ(refusal([&] { run_.state_set(std::string(201, 'k'), "x"); }),
            "the state key is longer than 200 characters");
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "ü";
  EXPECT_EQ(refusal([&] { run_.state_set(umlauts, "x"); }), "accepted");
  EXPECT_EQ(refusal([&] { run_.state_set("k", std::string((1U << 20) + 1, 'x')); }),
            "the state value of \"k\" is 1048577 bytes, more than 1 MiB");
  EXPECT_EQ(refusal([&] { run_.state_set("k", std::string(1U << 20, 'x')); }), "accepted");
  EXPECT_EQ(refusal([&] { run_.state_set("k", "\xff"); }),
            "state keys and values must be UTF-8 text");
}

TEST_F(LiveRunTest, state_holds_1000_keys_and_replacing_one_is_no_new_key) {
  for (int i = 0; i < 1000; ++i) run_.state_set("k" + std::to_string(i), "v");
  EXPECT_EQ(refusal([&] { run_.state_set("one-more", "v"); }),
            "the job's state has 1000 keys already, more are not kept");
  EXPECT_EQ(refusal([&] { run_.state_set("k7", "other"); }), "accepted");
  // Someone removes a key by another way: the room it leaves is noticed.
  store_->row_remove(state_space("default", "hello"), "k1");
  EXPECT_EQ(refusal([&] { run_.state_set("one-more", "v"); }), "accepted");
}

TEST_F(LiveRunTest, state_holds_16_mib_also_for_runs_side_by_side) {
  LiveRun other(a_run("uid-2"), *store_, clock_);
  const std::string value((1U << 20) - 100, 'x');
  for (int i = 0; i < 16; ++i) (i % 2 ? run_ : other).state_set("k" + std::to_string(i), value);
  EXPECT_EQ(refusal([&] { run_.state_set("last", value); }),
            "the job's state would be larger than 16 MiB");
  EXPECT_EQ(refusal([&] { run_.state_set("k3", "short"); }), "accepted");
  EXPECT_EQ(refusal([&] { other.state_set("last", value); }), "accepted");
}

TEST_F(LiveRunTest, outputs_are_bounded_in_keys_and_bytes) {
  for (int i = 0; i < 100; ++i) run_.set_output("k" + std::to_string(i), i);
  EXPECT_EQ(refusal([&] { run_.set_output("more", 1); }), "a run has at most 100 outputs");
  EXPECT_EQ(refusal([&] { run_.set_output("k1", std::string(1U << 20, 'x')); }),
            "the outputs of a run are at most 1 MiB in all");
  EXPECT_EQ(run_.outputs().get_int("k1"), 1) << "what was refused has changed nothing";
  // Replacing counts the growth only.
  run_.set_output("k1", std::string(1'000'000, 'x'));
  EXPECT_EQ(refusal([&] { run_.set_output("k1", std::string(1'000'001, 'y')); }), "accepted");
  EXPECT_EQ(refusal([&] { run_.set_output("k2", std::string(100'000, 'x')); }),
            "the outputs of a run are at most 1 MiB in all");
  run_.set_output("k1", "short");
  EXPECT_EQ(refusal([&] { run_.set_output("k2", std::string(100'000, 'x')); }), "accepted");
}

TEST_F(LiveRunTest, steps_summary_and_failure_are_bounded) {
  EXPECT_EQ(refusal([&] { run_.add_step(std::string(201, 's')); }),
            "the name of a step is at most 200 bytes");
  EXPECT_EQ(refusal([&] { run_.add_step(""); }), "the step has no name");
  for (int i = 0; i < 1000; ++i) run_.add_step("step " + std::to_string(i));
  EXPECT_EQ(refusal([&] { run_.add_step("late"); }), "a run has at most 1000 steps");
  EXPECT_EQ(run_.last_step(), "step 999");

  run_.set_summary(std::string(16384, 's'));
  EXPECT_EQ(refusal([&] { run_.set_summary(std::string(16385, 's')); }),
            "a summary is at most 16 KiB");

  EXPECT_EQ(run_.failure(), std::nullopt);
  run_.set_failure(std::string(5000, 'f'));
  run_.set_failure("a later reason");
  EXPECT_EQ(run_.failure(), std::string(1999, 'f') + "…");
}

TEST_F(LiveRunTest, events_carry_sequence_time_and_type) {
  run_.record("run.status", json::Value::object({{"phase", "Running"}}));
  clock_.advance(Duration(1500));
  run_.record("log", json::Value::object({{"message", "hi"}, {"type", "not this"}}));
  const auto events = timeline();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].dump(),
            R"({"seq":1,"time":"2026-11-30T08:00:00.000Z","type":"run.status","phase":"Running"})");
  EXPECT_EQ(events[1].get_string("type"), "log");
  EXPECT_EQ(events[1].get_string("time"), "2026-11-30T08:00:01.500Z");
  // Whoever takes up a run that has a timeline goes on counting.
  LiveRun again(a_run(), *store_, clock_);
  again.record("log", json::Value::object());
  EXPECT_EQ(timeline().back().get_int("seq"), 3);
}

TEST_F(LiveRunTest, large_payloads_are_spilled_and_can_be_read_back) {
  json::Value calls = json::Value::array();
  for (int i = 0; i < 500; ++i) calls.push_back(std::string(100, 'c'));
  run_.record("llm.call", json::Value::object({{"turn", 3}, {"toolCalls", calls}}));
  const json::Value event = timeline().at(0);
  EXPECT_LT(event.dump().size(), kMaxPayloadBytes);
  EXPECT_EQ(event.get_int("turn"), 3) << "what is small stays readable";
  EXPECT_EQ(event.find("toolCalls"), nullptr);
  const json::Value whole =
      json::parse(store_->blob_get(event.at_path({"spilled", "digest"}).as_string()));
  EXPECT_EQ(whole.get("toolCalls"), calls);
  EXPECT_EQ(event.at_path({"spilled", "bytes"}).as_int(),
            static_cast<int64_t>(whole.dump().size()));
}

TEST_F(LiveRunTest, texts_are_clipped_by_their_field) {
  run_.record("tool.call", json::Value::object({{"arguments", std::string(5000, 'a')}}));
  run_.record("llm.call", json::Value::object({{"reasoning", std::string(9000, 'r')}}));
  run_.record("tool.result",
              json::Value::object({{"result", std::string(20000, 'x') + "\xff" + "end"}}));
  const auto events = timeline();
  EXPECT_EQ(events[0].get_string("arguments"), std::string(4000, 'a') + "…");
  EXPECT_EQ(events[1].get_string("reasoning"),
            std::string(3000, 'r') + "\n… 5000 characters left out …\n" + std::string(1000, 'r'));
  const std::string result = events[2].get_string("result");
  EXPECT_NE(result.find("… 8004 characters left out …"), std::string::npos);
  EXPECT_TRUE(
      result.ends_with("\xEF\xBF\xBD"
                       "end"))
      << "bytes that are not text are replaced";
}

TEST_F(LiveRunTest, broker_calls_stop_filling_the_timeline_at_1000) {
  for (int i = 0; i < 1500; ++i) run_.record_call("state get", json::Value::object(), false);
  EXPECT_EQ(timeline().size(), 1001U);
  EXPECT_EQ(timeline().back().get_string("type"), "log");
  run_.record_call("llm", json::Value::object({{"prompt", std::string(600, 'p')}}), true);
  ASSERT_EQ(timeline().size(), 1002U) << "what may have changed something stays";
  EXPECT_EQ(timeline().back().get_string("prompt"), std::string(500, 'p') + "…");
  EXPECT_EQ(timeline().back().get_string("name"), "llm");
  for (int i = 0; i < 6000; ++i) run_.record_call("llm", json::Value::object(), true);
  EXPECT_EQ(timeline().size(), kMaxBrokerCallsInAll) << "and that has an end too";
  run_.record("finish", json::Value::object());
  EXPECT_EQ(timeline().back().get_string("type"), "finish")
      << "the host's own events are not calls";
}

TEST_F(LiveRunTest, eight_requests_at_once_64_waiting_then_429) {
  std::vector<LiveRun::Turn> held;
  for (int i = 0; i < 8; ++i) held.push_back(run_.take_turn());
  std::mutex mutex;
  std::condition_variable changed;
  size_t refused = 0, served = 0;
  std::vector<std::jthread> waiting;
  for (int i = 0; i < 70; ++i)
    waiting.emplace_back([&] {
      try {
        const LiveRun::Turn turn = run_.take_turn();
        const std::lock_guard lock(mutex);
        ++served;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::too_many_requests);
        EXPECT_EQ(e.retry_after_seconds(), 1);
        const std::lock_guard lock(mutex);
        ++refused;
      }
      changed.notify_all();
    });
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(20), [&] { return refused == 6; }));
    EXPECT_EQ(served, 0U) << "nobody is served while eight are at work";
  }
  held.clear();
  waiting.clear();
  EXPECT_EQ(served, 64U);
  EXPECT_EQ(refused, 6U);
}

TEST_F(LiveRunTest, a_closed_run_gives_no_turns_and_waits_for_those_under_way) {
  std::optional<LiveRun::Turn> turn(run_.take_turn());
  EXPECT_FALSE(run_.close(Duration(1))) << "one is still under way";
  EXPECT_TRUE(run_.stop().stop_requested());
  EXPECT_EQ(refusal([&] { run_.take_turn(); }, Code::unauthorized), "the run has ended");
  std::jthread other([&] { turn.reset(); });
  EXPECT_TRUE(run_.close(Duration(20'000)));
}

TEST_F(LiveRunTest, closing_wakes_those_that_wait_for_a_turn) {
  std::vector<LiveRun::Turn> held;
  for (int i = 0; i < 8; ++i) held.push_back(run_.take_turn());
  std::jthread waiting([&] {
    EXPECT_EQ(refusal([&] { run_.take_turn(); }, Code::unauthorized), "the run has ended");
  });
  run_.close(Duration(1));
  waiting.join();
}

TEST(Budget, reserves_within_the_limit_and_lets_one_call_overshoot) {
  Budget budget(1000);
  EXPECT_TRUE(budget.reserve(5000)) << "alone, one may start whatever it may cost";
  EXPECT_FALSE(budget.reserve(1));
  budget.settle(5000, 400, 10, 20);
  EXPECT_EQ(budget.spent(), 400);
  EXPECT_EQ(budget.reserved(), 0);
  EXPECT_TRUE(budget.reserve(300));
  EXPECT_TRUE(budget.reserve(300));
  EXPECT_FALSE(budget.reserve(1));
  budget.settle(300, 300, 0, 0);
  EXPECT_FALSE(budget.exhausted());
  budget.settle(300, 300, 1, 2);
  EXPECT_TRUE(budget.exhausted());
  EXPECT_FALSE(budget.reserve(0)) << "spent is spent";
  EXPECT_EQ(budget.input_tokens(), 11);
  EXPECT_EQ(budget.output_tokens(), 22);
}

TEST(Budget, without_a_limit_everything_fits) {
  Budget budget(0);
  budget.charge(1'000'000'000, 1, 1);
  EXPECT_FALSE(budget.exhausted());
  EXPECT_TRUE(budget.reserve(1'000'000'000));
  EXPECT_TRUE(budget.reserve(1'000'000'000));
}

}  // namespace
}  // namespace umpteenth::runs
