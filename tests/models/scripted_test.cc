#include "models/scripted.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace umpteenth::models {
namespace {

using json::Value;

Part text_part(std::string text) {
  Part part;
  part.text = std::move(text);
  return part;
}

// A conversation that grows as an agent's would.
struct Talk {
  Prompt prompt;
  std::shared_ptr<ScriptedClient> client;
  FakeClock clock{Time(Duration(0))};

  explicit Talk(const char* script,
                Value facts = Value::object({{"job", "hello"},
                                             {"run", "hello-1"},
                                             {"trigger", "Manual"},
                                             {"input", Value::object({{"n", 3}})}})) {
    client =
        std::make_shared<ScriptedClient>("demo", apis::script_from(json::parse(script)), clock);
    prompt.facts = std::move(facts);
    prompt.tools.push_back({"bash", "", Value::object()});
    prompt.messages.push_back({Message::Role::user, {text_part("please count the lines")}});
  }

  Answer ask() {
    Answer answer = client->complete(prompt, {}, {});
    prompt.messages.push_back({Message::Role::assistant, answer.parts});
    return answer;
  }
  // Results of all calls of the last answer.
  void results(const std::vector<std::pair<std::string, bool>>& texts) {
    Message message;
    size_t i = 0;
    for (const Part& part : prompt.messages.back().parts) {
      if (part.type != Part::Type::tool_call) continue;
      Part result = text_part(texts.at(i).first);
      result.type = Part::Type::tool_result;
      result.result_of = part.call.id;
      result.is_error = texts.at(i++).second;
      message.parts.push_back(result);
    }
    prompt.messages.push_back(message);
  }
  std::string error() {
    try {
      ask();
    } catch (const ModelError& e) {
      return e.message();
    }
    return "no error";
  }
};

TEST(Scripted, rules_without_match_are_used_one_after_the_other) {
  Talk talk(R"([{"say":"one"},{"say":"two","call":{"tool":"bash","arguments":{"command":"ls"}}}])");
  EXPECT_EQ(talk.ask().text(), "one");
  const Answer second = talk.ask();
  EXPECT_EQ(second.text(), "two");
  ASSERT_EQ(second.tool_calls().size(), 1U);
  EXPECT_EQ(second.tool_calls()[0].name, "bash");
  EXPECT_EQ(second.tool_calls()[0].arguments.get_string("command"), "ls");
  EXPECT_EQ(second.stop, Answer::Stop::tool_use);
}

TEST(Scripted, no_rule_left_says_where_the_conversation_stands) {
  Talk talk(R"([{"say":"one"},{"match":{"turn":9},"say":"never"}])");
  talk.ask();
  const std::string error = talk.error();
  EXPECT_NE(error.find("ModelProvider \"demo\""), std::string::npos) << error;
  EXPECT_NE(error.find("turn 2 of job \"hello\""), std::string::npos) << error;
  EXPECT_NE(error.find("1 of 2 rules"), std::string::npos) << error;
}

TEST(Scripted, a_repeated_rule_answers_again) {
  Talk talk(R"([{"say":"same","repeat":true}])");
  EXPECT_EQ(talk.ask().text(), "same");
  EXPECT_EQ(talk.ask().text(), "same");
}

TEST(Scripted, the_first_rule_that_matches_wins) {
  Talk talk(R"([
    {"match":{"job":"other"},"say":"other job"},
    {"match":{"job":["x","hello"],"turn":[2,3]},"say":"later"},
    {"match":{"contains":["count","lines"]},"call":{"tool":"bash","arguments":{}}},
    {"match":{"tool":"bash","failed":true},"say":"it failed"},
    {"match":{"tool":"bash"},"say":"it worked"}])");
  EXPECT_EQ(talk.ask().tool_calls().size(), 1U);
  talk.results({{"boom", true}});
  EXPECT_EQ(talk.ask().text(), "later");
  talk.prompt.messages.pop_back();
  EXPECT_EQ(talk.ask().text(), "it failed");
  talk.prompt.messages.pop_back();
  EXPECT_EQ(talk.ask().text(), "it worked");
}

TEST(Scripted, input_matches_as_a_subset) {
  Talk talk(
      R"([{"match":{"input":{"n":4}},"say":"four"},{"match":{"input":{"n":3}},"say":"three"}])");
  EXPECT_EQ(talk.ask().text(), "three");
}

TEST(Scripted, ump_llm_calls_are_told_apart) {
  Talk talk(R"([{"match":{"llm":true},"say":"llm","repeat":true},{"say":"agent"}])");
  EXPECT_EQ(talk.ask().text(), "agent");
  talk.prompt.tools.clear();
  EXPECT_EQ(talk.ask().text(), "llm");
}

TEST(Scripted, templates_keep_types_and_quote_for_the_shell) {
  Talk talk(
      R"([
    {"call":{"tool":"bash","arguments":{"command":"seq {{input.n}}; echo {{ input.who | sh }}"}}},
    {"match":{"regex":"^total: ([0-9]+)$"},"say":"{{match.1}} on turn {{turn}} of {{job}}",
     "call":{"tool":"finish","arguments":{"outputs":{"n":"{{input.n}}","all":"{{input}}","text":"n={{input | json}}"}}}},
    {"call":{"tool":"finish","arguments":{"sum":"{{result.sum}}","second":"{{results.1}}","deep":"{{results.0.a.1}}"}}}])",
      Value::object({{"job", "hello"}, {"input", Value::object({{"n", 3}, {"who", "it's"}})}}));
  EXPECT_EQ(talk.ask().tool_calls()[0].arguments.get_string("command"), "seq 3; echo 'it'\\''s'");
  talk.results({{"noise\ntotal: 42\nmore", false}});
  const Answer answer = talk.ask();
  EXPECT_EQ(answer.text(), "42 on turn 2 of hello");
  const Value outputs = answer.tool_calls()[0].arguments.get("outputs");
  EXPECT_TRUE(outputs.get("n").is_int());
  EXPECT_EQ(outputs.get("all").get_int("n"), 3);
  EXPECT_EQ(outputs.get_string("text"), R"(n={"n":3,"who":"it's"})");

  Part extra;
  extra.type = Part::Type::tool_call;
  extra.call = {"second", "bash", Value::object(), ""};
  talk.prompt.messages.back().parts.push_back(extra);
  talk.results({{R"({"a":[1,2]})", false}, {"{\"sum\": 7}\n", false}});
  const Value last = talk.ask().tool_calls()[0].arguments;
  EXPECT_EQ(last.get_int("sum"), 7);
  EXPECT_EQ(last.get_string("second"), "{\"sum\": 7}");
  EXPECT_EQ(last.get_int("deep"), 2);
}

TEST(Scripted, braces_that_are_no_template_stay) {
  Talk talk(R"([{"say":"awk '{{print $1}}' {{ }} {{.x}} {{a b}}"}])");
  EXPECT_EQ(talk.ask().text(), "awk '{{print $1}}' {{ }} {{.x}} {{a b}}");
}

TEST(Scripted, a_template_without_a_value_names_rule_and_template) {
  Talk talk(R"([{"say":"{{input.missing}}"}])");
  const std::string error = talk.error();
  EXPECT_NE(error.find("rule 1"), std::string::npos) << error;
  EXPECT_NE(error.find("{{input.missing}} has no value"), std::string::npos) << error;
  Talk before(R"([{"say":"{{result}}"}])");
  EXPECT_NE(before.error().find("no tool was called"), std::string::npos);
}

TEST(Scripted, errors_refusals_usage_and_bad_arguments) {
  Talk talk(R"([
    {"error":"transient","message":"busy with {{job}}"},{"error":"permanent"},
    {"error":"contextOverflow"},{"error":"quota"},{"refuse":true},
    {"say":"x","usage":{"inputTokens":10,"outputTokens":2,"cacheReadTokens":3,"cacheWriteTokens":4}},
    {"call":{"tool":"bash","arguments":"{broken"}}])");
  for (const Failure failure :
       {Failure::transient, Failure::permanent, Failure::context_overflow, Failure::quota}) {
    try {
      talk.ask();
      FAIL() << "no error";
    } catch (const ModelError& e) {
      EXPECT_EQ(e.failure(), failure) << e.message();
      EXPECT_FALSE(e.maybe_billed());
      if (failure == Failure::transient) {
        EXPECT_EQ(e.message(), "busy with hello");
      }
    }
  }
  EXPECT_EQ(talk.ask().stop, Answer::Stop::refusal);
  const Usage usage = talk.ask().usage;
  EXPECT_EQ(usage.input_tokens, 10);
  EXPECT_EQ(usage.cache_write_tokens, 4);
  EXPECT_EQ(talk.ask().tool_calls()[0].bad_arguments, "{broken");
}

TEST(Scripted, usage_is_estimated_where_not_given) {
  Talk talk(R"([{"say":"12345678"}])");
  const Usage usage = talk.ask().usage;
  EXPECT_EQ(usage.output_tokens, 2);
  EXPECT_EQ(usage.input_tokens, 6);  // "please count the lines"
}

TEST(Scripted, a_delay_waits_on_the_clock_and_ends_with_the_run) {
  Talk talk(R"([{"say":"late","delay":"2s"},{"say":"never","delay":"1m"}])");
  std::stop_source stop;
  std::string first, second;
  std::atomic<bool> answered{false};
  std::thread asker([&] {
    first = talk.client->complete(talk.prompt, {}, stop.get_token()).text();
    answered = true;
    try {
      talk.client->complete(talk.prompt, {}, stop.get_token());
    } catch (const ModelError& e) {
      second = e.message();
    }
  });
  const auto wait_for_sleeper = [&] {
    while (talk.clock.sleepers() == 0) std::this_thread::yield();
  };
  wait_for_sleeper();
  talk.clock.advance(Duration(2'000));
  while (!answered) std::this_thread::yield();
  wait_for_sleeper();
  stop.request_stop();
  asker.join();
  EXPECT_EQ(first, "late");
  EXPECT_EQ(second, "the call was stopped");
}

TEST(Scripted, answers_are_capped_like_any_models) {
  std::string calls;
  for (int i = 0; i < 129; ++i) calls += std::string(i ? "," : "") + R"({"tool":"bash"})";
  Talk many(("[{\"calls\":[" + calls + "]}]").c_str());
  EXPECT_EQ(many.error(), "the answer makes more tool calls than any model makes in one call");
  Talk large(("[{\"say\":\"" + std::string(5 << 20, 'x') + "\"}]").c_str());
  EXPECT_EQ(large.error(), "the answer is larger than 4 MiB");
}

struct BadScript {
  const char* script;
  const char* field;
  const char* message;
};
class ScriptShape : public testing::TestWithParam<BadScript> {};

TEST_P(ScriptShape, is_refused_with_field_and_rule) {
  std::vector<Cause> causes;
  apis::check_script(json::parse(GetParam().script), "spec.script", causes);
  ASSERT_FALSE(causes.empty());
  EXPECT_EQ(causes[0].field, GetParam().field);
  EXPECT_NE(causes[0].message.find(GetParam().message), std::string::npos) << causes[0].message;
  EXPECT_THROW(apis::script_from(json::parse(GetParam().script)), Error);
}

INSTANTIATE_TEST_SUITE_P(
    All, ScriptShape,
    testing::Values(
        BadScript{"{}", "spec.script", "must be a list of rules"},
        BadScript{"[1]", "spec.script[0]", "must be an object"},
        BadScript{R"([{}])", "spec.script[0]", "Required value: say, call"},
        BadScript{R"([{"say":1}])", "spec.script[0].say", "must be a string"},
        BadScript{R"([{"sya":"x"}])", "spec.script[0].sya", "unknown field, use \"match\""},
        BadScript{R"([{"say":"x","match":{"turns":1}}])", "spec.script[0].match.turns",
                  "unknown field"},
        BadScript{R"([{"say":"x","match":{"turn":0}}])", "spec.script[0].match.turn",
                  "a whole number from 1"},
        BadScript{R"([{"say":"x","match":{"tool":[]}}])", "spec.script[0].match.tool",
                  "matches nothing"},
        BadScript{R"([{"say":"x","match":{"tool":["a",2]}}])", "spec.script[0].match.tool[1]",
                  "a string"},
        BadScript{R"([{"say":"x","match":{"regex":"("}}])", "spec.script[0].match.regex",
                  "regular expression"},
        BadScript{R"([{"say":"x","match":{"failed":"yes"}}])", "spec.script[0].match.failed",
                  "true or false"},
        BadScript{R"([{"call":{"arguments":{}}}])", "spec.script[0].call.tool", "Required value"},
        BadScript{R"([{"call":{"tool":"x","arguments":[1]}}])", "spec.script[0].call.arguments",
                  "an object"},
        BadScript{R"([{"call":{"tool":"x","arguments":{"a":["{{inptu.n}}"]}}}])",
                  "spec.script[0].call.arguments.a[0]", "unknown name"},
        BadScript{R"([{"say":"{{input|quote}}"}])", "spec.script[0].say", "unknown filter"},
        BadScript{R"([{"calls":{}}])", "spec.script[0].calls", "a list of calls"},
        BadScript{R"([{"call":{"tool":"x"},"calls":[]}])", "spec.script[0].calls", "not both"},
        BadScript{R"([{"error":"oops"}])", "spec.script[0].error",
                  "supported values: \"transient\""},
        BadScript{R"([{"error":"quota","say":"x"}])", "spec.script[0].error",
                  "cannot answer as well"},
        BadScript{R"([{"say":"x","message":"y"}])", "spec.script[0].message",
                  "only goes with error"},
        BadScript{R"([{"say":"x","delay":"2"}])", "spec.script[0].delay", "such as 500ms"},
        BadScript{R"([{"say":"x","delay":"99h"}])", "spec.script[0].delay", "such as 500ms"},
        BadScript{R"([{"say":"x","usage":{"inputTokens":-1}}])", "spec.script[0].usage.inputTokens",
                  "from 0"}));

}  // namespace
}  // namespace umpteenth::models
