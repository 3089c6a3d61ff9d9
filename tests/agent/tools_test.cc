#include <condition_variable>
#include <mutex>
#include <thread>

#include "agent/time_limit.h"
#include "tests/agent/bench.h"

namespace umpteenth::agent {
namespace {

using support::call;
using support::calls;

class Tools : public AgentTest {};

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST_F(Tools, read_only_calls_run_in_parallel_and_results_keep_order) {
  sandbox.put("/workspace/a", "first");
  sandbox.put("/workspace/b", "second");
  std::mutex mutex;
  std::condition_variable both;
  int inside = 0;
  // Each read goes on only once the other has begun.
  sandbox.on_read = [&](const std::string&, const std::stop_token&) {
    std::unique_lock lock(mutex);
    ++inside;
    both.notify_all();
    ASSERT_TRUE(both.wait_for(lock, std::chrono::seconds(20), [&] { return inside == 2; }));
  };
  model
      ->then(calls(
          {call("1", "read_file", R"({"path":"a"})"), call("2", "read_file", R"({"path":"b"})")}))
      .then(finish());
  EXPECT_EQ(go().end, Result::End::succeeded);
  const auto parts = model->prompts().back().messages.back().parts;
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].result_of, "1");
  EXPECT_TRUE(has(parts[0].text, "first"));
  EXPECT_EQ(parts[1].result_of, "2");
  EXPECT_TRUE(has(parts[1].text, "second"));
}

TEST_F(Tools, calls_that_change_something_run_one_at_a_time_in_order) {
  sandbox.prints("one").prints("two");
  model
      ->then(
          calls({call("1", "state_set", R"({"key":"k","value":"v"})"),
                 call("2", "state_get", R"({"key":"k"})"), call("3", "bash", R"({"command":"a"})"),
                 call("4", "bash", R"({"command":"b"})")}))
      .then(finish());
  go();
  const auto parts = model->prompts().back().messages.back().parts;
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[1].text, "v");
  EXPECT_EQ(parts[2].text, "one");
  EXPECT_EQ(parts[3].text, "two");
}

TEST_F(Tools, unknown_tools_and_bad_arguments_are_told_to_the_model) {
  models::ToolCall broken{"3", "bash", {}, "{\"command\": "};
  model
      ->then(calls({call("1", "fly", "{}"), call("2", "bash", R"({"cmd":"x"})"), broken,
                    call("4", "bash", R"({"command":"x","timeout_seconds":601})"),
                    call("5", "bash", R"({"command":7})")}))
      .then(finish());
  EXPECT_EQ(go().end, Result::End::succeeded);
  const auto parts = model->prompts().back().messages.back().parts;
  for (const models::Part& part : parts) EXPECT_TRUE(part.is_error) << part.text;
  EXPECT_TRUE(has(parts[0].text, "Unknown tool \"fly\", use bash,")) << parts[0].text;
  EXPECT_TRUE(has(parts[1].text, "command: Required value")) << parts[1].text;
  EXPECT_TRUE(has(parts[1].text, "unknown argument \"cmd\"")) << parts[1].text;
  EXPECT_TRUE(has(parts[2].text, "not a JSON object: {\"command\": ")) << parts[2].text;
  EXPECT_TRUE(has(parts[3].text, "timeout_seconds")) << parts[3].text;
  EXPECT_TRUE(has(parts[4].text, "command")) << parts[4].text;
  EXPECT_TRUE(sandbox.commands().empty());
}

TEST_F(Tools, a_tool_that_fails_unexpectedly_is_an_error_result) {
  sandbox.then([](const runs::ExecRequest&, const std::stop_token&) -> runs::ExecOutcome {
    throw std::logic_error("a fault");
  });
  const models::Part part = result_of(call("1", "bash", R"({"command":"x"})"));
  EXPECT_TRUE(part.is_error);
  EXPECT_EQ(part.text, "bash failed unexpectedly");
}

TEST_F(Tools, bash_runs_a_login_shell_with_the_limits) {
  sandbox.prints("ok\n");
  const models::Part part = result_of(call("c1", "bash", R"({"command":"echo ok"})"));
  EXPECT_EQ(part.text, "ok\n");
  EXPECT_FALSE(part.is_error);
  const runs::ExecRequest request = sandbox.commands().at(0);
  EXPECT_EQ(request.argv, (std::vector<std::string>{"bash", "-lc", "echo ok"}));
  EXPECT_EQ(request.timeout, Duration(120'000));
  EXPECT_EQ(request.keep_head, 8'000U);
  EXPECT_EQ(request.keep_tail, 22'000U);
  EXPECT_EQ(request.working_dir, "/workspace");
  EXPECT_EQ(sandbox.file("/ump/logs/c1.txt"), "ok\n");
}

TEST_F(Tools, bash_shows_both_ends_and_keeps_all_in_the_log) {
  const std::string output = "begin" + std::string(100'000, 'x') + "end";
  sandbox.prints(output, 3);
  const models::Part part =
      result_of(call("../../etc/passwd", "bash", R"({"command":"x","timeout_seconds":600})"));
  EXPECT_TRUE(part.is_error);
  EXPECT_TRUE(has(part.text, "begin"));
  EXPECT_TRUE(has(part.text, "end\n[the full output is in /ump/logs/etcpasswd.txt]"));
  EXPECT_TRUE(has(part.text, "[exit code 3]"));
  EXPECT_LT(part.text.size(), 31'000U);
  EXPECT_EQ(sandbox.file("/ump/logs/etcpasswd.txt"), output);
  EXPECT_EQ(sandbox.commands().at(0).timeout, Duration(600'000));
}

TEST_F(Tools, bash_says_how_a_command_was_ended) {
  sandbox.then([](const runs::ExecRequest&, const std::stop_token&) {
    runs::ExecOutcome outcome;
    outcome.timed_out = true;
    outcome.exit_code = 137;
    return outcome;
  });
  sandbox.then([](const runs::ExecRequest&, const std::stop_token&) {
    runs::ExecOutcome outcome;
    outcome.oom = true;
    outcome.exit_code = 137;
    return outcome;
  });
  EXPECT_TRUE(has(result_of(call("1", "bash", R"({"command":"x","timeout_seconds":5})")).text,
                  "timed out after 5 s"));
  EXPECT_TRUE(has(result_of(call("2", "bash", R"({"command":"x"})")).text, "ran out of memory"));
}

TEST_F(Tools, bash_keeps_characters_whole_and_replaces_what_is_not_utf8) {
  sandbox.prints(
      "a\xff"
      "b\xc3\xa9");
  EXPECT_EQ(result_of(call("1", "bash", R"({"command":"x"})")).text,
            "a\xEF\xBF\xBD"
            "b\xc3\xa9");
}

TEST_F(Tools, the_log_of_endless_output_stops_growing) {
  sandbox.then([](const runs::ExecRequest& request, const std::stop_token&) {
    const std::string chunk(1U << 20, 'y');
    runs::ExecOutcome outcome;
    for (int i = 0; i < 20; ++i) request.on_output(chunk);
    outcome.total_bytes = 20U << 20;
    return outcome;
  });
  result_of(call("1", "bash", R"({"command":"yes"})"));
  const std::string log = sandbox.file("/ump/logs/1.txt");
  EXPECT_LT(log.size(), (8U << 20) + 100);
  EXPECT_TRUE(has(log, "12582912 bytes left out"));
}

TEST_F(Tools, two_calls_with_one_id_have_two_logs) {
  sandbox.prints("one").prints("two");
  model
      ->then(
          calls({call("x", "bash", R"({"command":"a"})"), call("x", "bash", R"({"command":"b"})")}))
      .then(finish());
  go();
  EXPECT_EQ(sandbox.file("/ump/logs/x.txt"), "one");
  EXPECT_EQ(sandbox.file("/ump/logs/x-2.txt"), "two");
}

TEST_F(Tools, read_file_numbers_lines_and_takes_a_range) {
  sandbox.put("/workspace/f", "a\nb\nc\nd");
  EXPECT_EQ(result_of(call("1", "read_file", R"({"path":"f"})")).text,
            "     1\ta\n     2\tb\n     3\tc\n     4\td\n");
  EXPECT_EQ(
      result_of(call("1", "read_file", R"({"path":"/workspace/f","offset":2,"limit":2})")).text,
      "     2\tb\n     3\tc\n[lines 4 to 4 are not shown: read on with offset 4]\n");
}

TEST_F(Tools, read_file_has_its_limits) {
  std::string many;
  for (int i = 0; i < 2'500; ++i) many += "x\n";
  sandbox.put("/workspace/many", many);
  sandbox.put("/workspace/long", std::string(5'000, 'y'));
  sandbox.put("/workspace/binary", std::string("a\0b", 3));
  sandbox.put("/workspace/large", std::string((2U << 20) + 1, 'z'));
  sandbox.put("/workspace/empty", "");
  EXPECT_TRUE(has(result_of(call("1", "read_file", R"({"path":"many"})")).text,
                  "[lines 2001 to 2500 are not shown"));
  EXPECT_LT(result_of(call("1", "read_file", R"({"path":"long"})")).text.size(), 2'100U);
  EXPECT_TRUE(has(result_of(call("1", "read_file", R"({"path":"empty"})")).text, "is empty"));
  for (const auto& [arguments, words] :
       {std::pair{R"({"path":"binary"})", "binary file"},
        std::pair{R"({"path":"large"})", "larger than"},
        std::pair{R"({"path":"absent"})", "no such file"},
        std::pair{R"({"path":"many","offset":9999})", "has 2500 lines"}}) {
    const models::Part part = result_of(call("1", "read_file", arguments));
    EXPECT_TRUE(part.is_error);
    EXPECT_TRUE(has(part.text, words)) << part.text;
  }
}

TEST_F(Tools, write_file_writes) {
  EXPECT_EQ(result_of(call("1", "write_file", R"({"path":"d/f","content":"x\n"})")).text,
            "wrote 2 bytes to /workspace/d/f");
  EXPECT_EQ(sandbox.file("/workspace/d/f"), "x\n");
}

TEST_F(Tools, edit_file_replaces_exactly_one_place_and_keeps_the_mode) {
  sandbox.put("/workspace/f", "one two three", 0755);
  EXPECT_EQ(
      result_of(call("1", "edit_file", R"({"path":"f","old_text":"two","new_text":"2"})")).text,
      "replaced 1 place in /workspace/f");
  EXPECT_EQ(sandbox.file("/workspace/f"), "one 2 three");
  EXPECT_EQ(sandbox.mode("/workspace/f"), 0755);
}

TEST_F(Tools, edit_file_refuses_what_is_not_exact) {
  sandbox.put("/workspace/f", "aa aa");
  for (const auto& [arguments, words] :
       {std::pair{R"({"path":"f","old_text":"b","new_text":"c"})", "is not in"},
        std::pair{R"({"path":"f","old_text":"aa","new_text":"c"})", "2 times"},
        std::pair{R"({"path":"f","old_text":"aa","new_text":"aa"})", "the same"},
        std::pair{R"({"path":"f","old_text":"","new_text":"c"})", "old_text"},
        std::pair{R"({"path":"g","old_text":"a","new_text":"c"})", "no such file"}}) {
    const models::Part part = result_of(call("1", "edit_file", arguments));
    EXPECT_TRUE(part.is_error);
    EXPECT_TRUE(has(part.text, words)) << part.text;
  }
  EXPECT_EQ(sandbox.file("/workspace/f"), "aa aa");
  EXPECT_EQ(result_of(call("1", "edit_file",
                           R"({"path":"f","old_text":"aa","new_text":"b","replace_all":true})"))
                .text,
            "replaced 2 places in /workspace/f");
  EXPECT_EQ(sandbox.file("/workspace/f"), "b b");
}

TEST_F(Tools, edit_file_cannot_grow_a_file_without_bound) {
  sandbox.put("/workspace/f", std::string(100'000, 'a'));
  const std::string arguments = R"({"path":"f","old_text":"a","replace_all":true,"new_text":")" +
                                std::string(1'000, 'b') + "\"}";
  const models::Part part = result_of(call("1", "edit_file", arguments));
  EXPECT_TRUE(part.is_error);
  EXPECT_TRUE(has(part.text, "larger than 4 MiB")) << part.text;
}

TEST_F(Tools, state_is_kept_listed_and_bounded) {
  EXPECT_TRUE(has(result_of(call("1", "state_get", "{}")).text, "keeps no state"));
  EXPECT_TRUE(has(result_of(call("1", "state_get", R"({"key":"k"})")).text, "nothing is kept"));
  result_of(call("1", "state_set", R"({"key":"k","value":{"a":1}})"));
  EXPECT_EQ(result_of(call("1", "state_get", R"({"key":"k"})")).text, R"({"a":1})");
  EXPECT_EQ(result_of(call("1", "state_get", "{}")).text, "k (7 bytes)\n");
  const std::string large = R"({"key":"k","value":")" + std::string((1U << 20) + 1, 'x') + "\"}";
  EXPECT_TRUE(result_of(call("1", "state_set", large)).is_error);
}

TEST_F(Tools, notes_are_handed_back) {
  model->then(calls({call("1", "remember", R"({"note":"use awk"})")})).then(finish());
  EXPECT_EQ(go().remembered, (std::vector<std::string>{"use awk"}));
}

TEST_F(Tools, finish_names_the_outputs_that_are_missing) {
  info.declared_outputs = {"a", "b", "c"};
  run().set_output("b", 1);
  model->then(finish(R"({"status":"success","summary":"s","outputs":{"x":1}})"))
      .then(finish(R"({"status":"success","summary":"s","outputs":{"a":1,"c":2}})"));
  EXPECT_EQ(go().end, Result::End::succeeded);
  const models::Part part = model->prompts().back().messages.back().parts.at(0);
  EXPECT_TRUE(part.is_error);
  EXPECT_TRUE(has(part.text, "not set: a, c;")) << part.text;
  EXPECT_FALSE(run().outputs().find("x")) << "a refused finish sets nothing";
}

TEST_F(Tools, finish_checks_its_arguments) {
  model->then(finish(R"({"status":"maybe","summary":"s"})"))
      .then(finish(R"({"status":"success"})"))
      .then(finish(R"({"status":"success","summary":"s","outputs":[]})"))
      .then(finish());
  EXPECT_EQ(go().turns, 4);
  const auto prompts = model->prompts();
  EXPECT_TRUE(has(prompts[1].messages.back().parts[0].text, "status"));
  EXPECT_TRUE(has(prompts[2].messages.back().parts[0].text, "summary: Required value"));
  EXPECT_TRUE(has(prompts[3].messages.back().parts[0].text, "outputs"));
}

TEST_F(Tools, finish_with_failure_fails_the_run_with_its_summary) {
  info.declared_outputs = {"a"};
  model->then(finish(R"({"status":"failure","summary":"the file is missing"})"));
  const Result result = go();
  EXPECT_EQ(result.end, Result::End::failed);
  EXPECT_EQ(result.message, "the file is missing");
  EXPECT_TRUE(timeline("error").empty());
}

TEST_F(Tools, calls_after_finish_are_not_carried_out) {
  model->then(calls({call("1", "finish", R"({"status":"success","summary":"s"})"),
                     call("2", "bash", R"({"command":"x"})")}));
  EXPECT_EQ(go().end, Result::End::succeeded);
  EXPECT_TRUE(sandbox.commands().empty());
}

TEST(TimeLimit, ends_by_the_clock_or_with_its_parent) {
  FakeClock clock(Time(Duration(0)));
  std::stop_source parent;
  TimeLimit by_time(clock, Duration(1'000), parent.get_token());
  TimeLimit by_parent(clock, Duration(9'000), parent.get_token());
  while (clock.sleepers() < 2) std::this_thread::yield();
  EXPECT_FALSE(by_time.token().stop_requested());
  clock.advance(Duration(1'000));
  while (!by_time.token().stop_requested()) std::this_thread::yield();
  EXPECT_FALSE(by_parent.token().stop_requested());
  parent.request_stop();
  EXPECT_TRUE(by_parent.token().stop_requested());
}

}  // namespace
}  // namespace umpteenth::agent
