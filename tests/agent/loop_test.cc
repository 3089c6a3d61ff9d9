#include <atomic>
#include <thread>

#include "agent/prompt.h"
#include "tests/agent/bench.h"

namespace umpteenth::agent {
namespace {

using models::Failure;
using models::ModelError;
using support::call;
using support::calls;
using support::says;

class Loop : public AgentTest {};

TEST_F(Loop, finishes_with_outputs_and_tells_the_timeline) {
  info.declared_outputs = {"greeting"};
  sandbox.prints("hi\n");
  model->then(calls({call("a", "bash", R"({"command":"echo hi"})")}))
      .then(
          finish(R"({"status":"success","summary":"said hi","outputs":{"greeting":"hi","n":3}})"));
  const Result result = go();
  EXPECT_EQ(result.end, Result::End::succeeded);
  EXPECT_EQ(result.message, "");
  EXPECT_EQ(result.summary, "said hi");
  EXPECT_EQ(result.turns, 2);
  EXPECT_EQ(run().outputs(), json::parse(R"({"greeting":"hi","n":3})"));
  EXPECT_EQ(run().summary(), "said hi");
  EXPECT_EQ(timeline("llm.call").size(), 2U);
  ASSERT_EQ(timeline("tool.call").size(), 2U);
  EXPECT_EQ(timeline("tool.call")[0].get("arguments").get_string("command"), "echo hi");
  EXPECT_EQ(timeline("tool.result")[0].get_string("text"), "hi\n");
  ASSERT_EQ(timeline("finish").size(), 1U);
  EXPECT_EQ(timeline("finish")[0].get("outputs").get_int("n"), 3);
}

TEST_F(Loop, system_prompt_is_byte_stable_and_the_first_message_tells_the_run) {
  Params one = params();
  one.input = json::parse(R"({"who":"ada"})");
  one.extra_instructions = "be brief";
  one.time_zone = "Europe/Berlin";
  const std::string first = first_message(one, clock.now());
  for (const char* words : {"Manual", "2026-11-30T08:00:00Z (2026-11-30 09:00 Europe/Berlin)",
                            R"({"who":"ada"})", "be brief"})
    EXPECT_NE(first.find(words), std::string::npos) << words << " in " << first;
  clock.advance(Duration(3'600'000));
  Params two = params();
  EXPECT_EQ(system_blocks(one), system_blocks(two));
  ASSERT_EQ(system_blocks(two).size(), 2U);
  EXPECT_NE(system_blocks(two)[1].find("Say hello."), std::string::npos);
  EXPECT_EQ(first_message(two, clock.now()).find("Input"), std::string::npos);
}

TEST_F(Loop, a_long_input_is_clipped_at_both_ends) {
  Params long_input = params();
  long_input.input = "begin" + std::string(20'000, 'x') + "end";
  const std::string first = first_message(long_input, clock.now());
  EXPECT_LT(first.size(), 5'000U);
  EXPECT_NE(first.find("begin"), std::string::npos);
  EXPECT_NE(first.find("end\""), std::string::npos);
}

TEST_F(Loop, the_model_is_offered_tools_sorted_by_name) {
  model->then(finish());
  go();
  std::vector<std::string> names;
  const auto prompts = model->prompts();
  for (const models::Tool& tool : prompts[0].tools) names.push_back(tool.name);
  EXPECT_EQ(names, (std::vector<std::string>{"bash", "edit_file", "finish", "read_file", "remember",
                                             "state_get", "state_set", "write_file"}));
  EXPECT_EQ(prompts[0].facts.get_string("job"), "hello");
}

TEST_F(Loop, reminds_once_then_fails) {
  model->then(says("I think")).then(says("I still think"));
  const Result result = go();
  EXPECT_EQ(result.end, Result::End::failed);
  EXPECT_EQ(result.message, "the model stopped without calling finish");
  EXPECT_EQ(model->prompts()[1].messages.back().parts[0].text, kReminder);
  ASSERT_EQ(timeline("error").size(), 1U);
  EXPECT_EQ(timeline("error")[0].get_string("message"), result.message);
}

TEST_F(Loop, going_back_to_work_resets_the_reminder) {
  model->then(says("hm"))
      .then(calls({call("a", "state_get", "{}")}))
      .then(says("hm again"))
      .then(finish());
  EXPECT_EQ(go().end, Result::End::succeeded);
}

TEST_F(Loop, an_empty_answer_is_reminded_too) {
  model->then(models::Answer{}).then(finish());
  EXPECT_EQ(go().end, Result::End::succeeded);
}

TEST_F(Loop, a_refusal_fails_the_run) {
  models::Answer refusal = says("I cannot");
  refusal.stop = models::Answer::Stop::refusal;
  model->then(refusal);
  EXPECT_EQ(go().message, "the model refused to continue");
}

TEST_F(Loop, the_turn_limit_is_exact) {
  for (int i = 0; i < 61; ++i) model->then(calls({call("a", "state_get", "{}")}));
  const Result result = go();
  EXPECT_EQ(result.end, Result::End::failed);
  EXPECT_EQ(result.message, "the run exceeded its limit of 60 turns");
  EXPECT_EQ(result.turns, 60);
  EXPECT_EQ(model->prompts().size(), 60U);
}

TEST_F(Loop, the_cost_limit_is_checked_before_each_call) {
  info.max_cost_micro_usd = 2'000'000;
  price = {1'000, 0, 0, 0};  // $1000 a million tokens
  models::Answer dear = calls({call("a", "state_get", "{}")});
  dear.usage.input_tokens = 1'500;
  model->then(dear).then(dear).then(finish());
  const Result result = go();
  EXPECT_EQ(result.message, "the run exceeded its cost limit of $2.00");
  EXPECT_EQ(result.turns, 2);
  EXPECT_EQ(run().budget().spent(), 3'000'000);
  EXPECT_EQ(run().budget().input_tokens(), 3'000);
}

TEST_F(Loop, what_ump_llm_spends_counts) {
  info.max_cost_micro_usd = 1'000'000;
  model->then([this](const models::Prompt&, const std::stop_token&) {
    run().budget().charge(1'000'000, 10, 10);
    return calls({call("a", "state_get", "{}")});
  });
  EXPECT_EQ(go().message, "the run exceeded its cost limit of $1.00");
}

TEST_F(Loop, the_deadline_stops_the_run) {
  info.deadline = clock.now();
  const Result result = go();
  EXPECT_EQ(result.end, Result::End::stopped);
  EXPECT_EQ(result.message, "the run exceeded its time limit");
}

// Moves the clock by a second whenever the agent sleeps, until it is done; when it asked the model.
TEST_F(Loop, transient_failures_are_retried_after_2_10_and_30_seconds) {
  std::vector<int64_t> asked;
  const Time begin = clock.now();
  const auto note = [&] {
    asked.push_back(std::chrono::duration_cast<std::chrono::seconds>(clock.now() - begin).count());
  };
  for (int i = 0; i < 3; ++i)
    model->then([&](const models::Prompt&, const std::stop_token&) -> models::Answer {
      note();
      throw ModelError(Failure::transient, "busy", false);
    });
  model->then([&](const models::Prompt&, const std::stop_token&) {
    note();
    return finish();
  });
  std::atomic<bool> done{false};
  Result result;
  std::thread agent([&] {
    result = go();
    done = true;
  });
  for (const int seconds : {2, 10, 30}) {
    while (clock.sleepers() == 0 && !done) std::this_thread::yield();
    clock.advance(std::chrono::seconds(seconds) - Duration(1));
    EXPECT_EQ(clock.sleepers(), 1U) << "woke before " << seconds << " s";
    const size_t before = model->prompts().size();
    clock.advance(Duration(1));
    while (model->prompts().size() == before && !done) std::this_thread::yield();
  }
  agent.join();
  EXPECT_EQ(asked, (std::vector<int64_t>{0, 2, 12, 42}));
  EXPECT_EQ(result.end, Result::End::succeeded);
  EXPECT_EQ(result.turns, 1);
  EXPECT_EQ(timeline("llm.call").size(), 4U);
}

TEST_F(Loop, a_retry_after_that_is_longer_is_waited_for) {
  ModelError busy(Failure::transient, "busy", false);
  busy.retry_after(20);
  model->then_fail(busy).then(finish());
  Result result;
  std::thread agent([&] { result = go(); });
  while (clock.sleepers() == 0) std::this_thread::yield();
  clock.advance(Duration(19'999));
  EXPECT_EQ(clock.sleepers(), 1U);
  clock.advance(Duration(1));
  agent.join();
  EXPECT_EQ(result.end, Result::End::succeeded);
}

TEST_F(Loop, after_the_last_retry_the_run_fails_with_the_cause) {
  Params hasty = params();
  hasty.transient_retries = {Duration(0), Duration(0)};
  const ModelError busy(Failure::transient, "busy", false);
  model->then_fail(busy).then_fail(busy).then_fail(busy).then(finish());
  EXPECT_EQ(run_agent(hasty).message, "the model call failed: busy");
  EXPECT_EQ(model->prompts().size(), 3U);
}

TEST_F(Loop, other_failures_are_not_retried) {
  for (const auto& [failure, words] :
       {std::pair{Failure::permanent, "the model call failed: no"},
        std::pair{Failure::quota, "the model API's quota is used up: no"},
        std::pair{Failure::context_overflow,
                  "the conversation no longer fits the model's context window: no"}}) {
    const size_t before = model->prompts().size();
    model->then_fail(ModelError(failure, "no", false));
    EXPECT_EQ(go().message, words);
    EXPECT_EQ(model->prompts().size(), before + 1);
  }
}

TEST_F(Loop, a_call_that_broke_off_is_charged_for_what_was_sent) {
  info.max_cost_micro_usd = 100;
  price = {10, 0, 0, 0};
  Params hasty = params();
  hasty.transient_retries = {Duration(0)};
  model->then_fail(ModelError(Failure::transient, "broke off", true))
      .then(calls({call("a", "state_get", "{}")}))
      .then(finish());
  EXPECT_EQ(run_agent(hasty).message, "the run exceeded its cost limit of $0.00");
}

TEST_F(Loop, a_stop_while_the_model_answers_ends_the_run) {
  model->then([this](const models::Prompt&, const std::stop_token& stop) -> models::Answer {
    run().stop().request_stop();
    EXPECT_TRUE(stop.stop_requested());
    throw ModelError(Failure::permanent, "the call was stopped", true);
  });
  EXPECT_EQ(go().end, Result::End::stopped);
}

TEST_F(Loop, a_stop_during_a_command_ends_the_run_before_the_next_call) {
  sandbox.then([this](const runs::ExecRequest&, const std::stop_token& stop) {
    run().stop().request_stop();
    EXPECT_TRUE(stop.stop_requested());
    return runs::ExecOutcome{};
  });
  model->then(calls({call("a", "bash", R"({"command":"sleep 9"})"), call("b", "state_get", "{}")}));
  EXPECT_EQ(go().end, Result::End::stopped);
  EXPECT_EQ(timeline("tool.call").size(), 1U);
  EXPECT_EQ(model->prompts().size(), 1U);
}

TEST_F(Loop, a_sandbox_removed_because_of_the_stop_is_no_error) {
  sandbox.then([this](const runs::ExecRequest&, const std::stop_token&) -> runs::ExecOutcome {
    run().stop().request_stop();
    throw Error(Code::not_found, "sandbox is gone");
  });
  model->then(calls({call("a", "bash", R"({"command":"sleep 9"})")}));
  EXPECT_EQ(go().end, Result::End::stopped);
}

TEST_F(Loop, a_stop_while_waiting_to_retry_ends_the_run) {
  model->then_fail(ModelError(Failure::transient, "busy", false));
  Result result;
  std::thread agent([&] { result = go(); });
  while (clock.sleepers() == 0) std::this_thread::yield();
  run().stop().request_stop();
  agent.join();
  EXPECT_EQ(result.end, Result::End::stopped);
}

TEST_F(Loop, a_lost_sandbox_is_thrown_to_the_driver) {
  sandbox.lose(Error(Code::not_found, "sandbox is gone: container 12 is not running"));
  model->then(calls(
      {call("a", "read_file", R"({"path":"x"})"), call("b", "read_file", R"({"path":"y"})")}));
  EXPECT_THROW(go(), Error);
}

TEST_F(Loop, an_engine_that_is_away_is_thrown_to_the_driver) {
  sandbox.lose(Error(Code::unavailable, "the engine cannot be reached"));
  model->then(calls({call("a", "bash", R"({"command":"x"})")}));
  EXPECT_THROW(go(), Error);
}

TEST_F(Loop, too_many_tool_calls_fail_the_run_and_none_is_made) {
  std::vector<models::ToolCall> many;
  for (int i = 0; i < 129; ++i)
    many.push_back(call(std::to_string(i), "remember", R"({"note":"x"})"));
  model->then(calls(many));
  EXPECT_EQ(go().message, "the answer makes more tool calls than any model makes in one call");
  EXPECT_TRUE(timeline("tool.call").empty());
}

}  // namespace
}  // namespace umpteenth::agent
