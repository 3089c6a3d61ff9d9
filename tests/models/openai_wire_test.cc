#include "models/openai_wire.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace umpteenth::models {
namespace {

using json::Value;

std::string event(std::string_view json) { return "data: " + std::string(json) + "\n\n"; }
std::string delta(std::string_view json) {
  return event(R"({"choices":[{"index":0,"delta":)" + std::string(json) + "}]}");
}
std::string finished(std::string_view reason) {
  return event(R"({"choices":[{"index":0,"delta":{},"finish_reason":")" + std::string(reason) +
               "\"}]}") +
         event("[DONE]");
}

const std::function<void(const Delta&)> kNobody;

Answer parse(const std::string& stream, size_t step = SIZE_MAX) {
  ChatStream chat(kNobody);
  for (size_t at = 0; at < stream.size(); at += std::min(step, stream.size() - at))
    chat.feed(std::string_view(stream).substr(at, step));
  return chat.finish();
}

std::pair<Failure, std::string> failure(const std::string& stream) {
  try {
    parse(stream);
  } catch (const ModelError& e) {
    return {e.failure(), e.message()};
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(ChatStream, text_calls_and_usage_split_at_every_byte) {
  const std::string stream =
      ": hello\n\n" + delta(R"({"role":"assistant","content":""})") +
      delta(R"({"reasoning_content":"let me "})") + delta(R"({"reasoning_content":"see"})") +
      delta(R"({"content":"Gr\u00fc"})") + delta(R"({"content":"ße"})") +
      delta(
          R"({"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"bash","arguments":""}}]})") +
      delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"comm"}}]})") +
      delta(
          R"({"tool_calls":[{"index":1,"id":"c2","function":{"name":"finish","arguments":"{}"}}]})") +
      delta(R"({"tool_calls":[{"index":0,"function":{"arguments":"and\":\"ls\"}"}}]})") +
      event(R"({"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})") +
      event(
          R"({"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}})") +
      event("[DONE]") + "trailing noise";
  for (size_t step = 1; step < 200; ++step) {
    const Answer answer = parse(stream, step);
    EXPECT_EQ(answer.text(), "Grüße");
    ASSERT_EQ(answer.parts.size(), 4U);
    EXPECT_EQ(answer.parts[0].type, Part::Type::reasoning);
    EXPECT_EQ(answer.parts[0].text, "let me see");
    const auto calls = answer.tool_calls();
    EXPECT_EQ(calls[0].id, "c1");
    EXPECT_EQ(calls[0].name, "bash");
    EXPECT_EQ(calls[0].arguments.get_string("command"), "ls");
    EXPECT_EQ(calls[1].name, "finish");
    EXPECT_EQ(answer.stop, Answer::Stop::tool_use);
    EXPECT_EQ(answer.usage.input_tokens, 40);
    EXPECT_EQ(answer.usage.cache_read_tokens, 60);
    EXPECT_EQ(answer.usage.output_tokens, 7);
  }
}

TEST(ChatStream, deltas_are_given_as_they_come) {
  std::string seen;
  const std::function<void(const Delta&)> note = [&](const Delta& d) {
    seen += (d.type == Delta::Type::text ? "t:" : "r:") + std::string(d.text) + ";";
  };
  ChatStream chat(note);
  chat.feed(delta(R"({"reasoning":"why"})"));
  chat.feed(delta(R"({"content":"one"})"));
  EXPECT_EQ(seen, "r:why;t:one;");
}

TEST(ChatStream, calls_without_index_are_told_apart_by_their_ids) {
  const Answer answer =
      parse(delta(R"({"tool_calls":[{"id":"a","function":{"name":"x","arguments":"{\"k\":"}}]})") +
            delta(R"({"tool_calls":[{"function":{"arguments":"1}"}}]})") +
            delta(R"({"tool_calls":[{"id":"b","function":{"name":"y","arguments":{"z":2}}}]})") +
            finished("tool_calls"));
  const auto calls = answer.tool_calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].arguments.get_int("k"), 1);
  EXPECT_EQ(calls[1].id, "b");
  EXPECT_EQ(calls[1].arguments.get_int("z"), 2);
}

TEST(ChatStream, arguments_that_are_no_object_are_kept_as_they_came) {
  for (const char* arguments : {R"({\"a\":)", "[1]", "7", "nonsense"}) {
    const Answer answer =
        parse(delta(R"({"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":")" +
                    std::string(arguments) + "\"}}]}") +
              finished("tool_calls"));
    EXPECT_FALSE(answer.tool_calls().at(0).bad_arguments.empty()) << arguments;
    EXPECT_TRUE(answer.tool_calls().at(0).arguments.is_object());
  }
}

TEST(ChatStream, knows_why_an_answer_ended) {
  EXPECT_EQ(parse(delta(R"({"content":"x"})") + finished("stop")).stop, Answer::Stop::end);
  EXPECT_EQ(parse(delta(R"({"content":"x"})") + finished("length")).stop, Answer::Stop::max_tokens);
  EXPECT_EQ(parse(finished("content_filter")).stop, Answer::Stop::refusal);
  EXPECT_EQ(parse(delta(R"({"refusal":"no"})") + finished("stop")).stop, Answer::Stop::refusal);
}

TEST(ChatStream, a_stream_that_breaks_off_is_transient) {
  for (const std::string& stream :
       {std::string(), delta(R"({"content":"x"})"), delta(R"({"content":"x"})") + "data: {\"choi",
        event("[DONE]")}) {
    const auto [kind, message] = failure(stream);
    EXPECT_EQ(kind, Failure::transient) << message;
  }
}

TEST(ChatStream, an_answer_without_done_is_complete) {
  EXPECT_EQ(
      parse(event(R"({"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]})")).text(),
      "x");
}

TEST(ChatStream, garbage_is_transient_and_never_crashes) {
  for (const char* bytes :
       {"data: nonsense\n\n", "data: [1]\n\n", "data: \xff\xfe\n\n", "<html>Bad gateway</html>",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":7}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[7]}}]}\n\n",
        "data: {\"choices\":7}\n\n"}) {
    const auto [kind, message] = failure(bytes);
    EXPECT_EQ(kind, Failure::transient) << bytes << " " << message;
  }
  EXPECT_EQ(failure("data: " + std::string(100'000, '[') + "\n\n").first, Failure::transient);
}

TEST(ChatStream, an_error_inside_the_stream_is_classified) {
  EXPECT_EQ(failure(event(R"({"error":{"message":"Overloaded","type":"overloaded_error"}})")).first,
            Failure::transient);
  EXPECT_EQ(
      failure(event(R"({"error":{"message":"no such thing","type":"invalid_request_error"}})"))
          .first,
      Failure::permanent);
  EXPECT_EQ(failure(event(R"({"error":{"message":"x","code":"insufficient_quota"}})")).first,
            Failure::quota);
}

TEST(ChatStream, more_calls_than_128_are_refused) {
  std::string stream;
  for (int i = 0; i < 128; ++i)
    stream += delta(R"({"tool_calls":[{"index":)" + std::to_string(i) +
                    R"(,"id":"c","function":{"name":"x","arguments":"{}"}}]})");
  EXPECT_EQ(parse(stream + finished("tool_calls")).tool_calls().size(), 128U);
  stream += delta(R"({"tool_calls":[{"index":128,"id":"c","function":{"name":"x"}}]})");
  const auto [kind, message] = failure(stream + finished("tool_calls"));
  EXPECT_EQ(kind, Failure::permanent);
  EXPECT_EQ(message, "the answer makes more tool calls than any model makes in one call");
}

TEST(ChatStream, answers_over_four_mib_are_refused_wherever_the_bytes_are) {
  const std::string mib(1U << 20, 'x');
  for (const auto& make : std::vector<std::function<std::string()>>{
           [&] { return delta(R"({"content":")" + mib + "\"}"); },
           [&] { return delta(R"({"reasoning":")" + mib + "\"}"); },
           [&] {
             return delta(
                 R"({"tool_calls":[{"index":0,"id":"c","function":{"name":"x","arguments":")" +
                 mib + "\"}}]}");
           }}) {
    std::string stream;
    for (int i = 0; i < 5; ++i) stream += make();
    const auto [kind, message] = failure(stream + finished("stop"));
    EXPECT_EQ(kind, Failure::permanent);
    EXPECT_EQ(message, "the answer is larger than 4 MiB");
  }
  EXPECT_EQ(failure("data: " + std::string(30U << 20, 'x')).second,
            "the answer is larger than 4 MiB");
}

TEST(ChatStream, a_lying_usage_cannot_overflow) {
  const Usage usage =
      parse(
          event(
              R"({"choices":[],"usage":{"prompt_tokens":-5,"completion_tokens":9223372036854775807,"prompt_tokens_details":{"cached_tokens":99}}})") +
          finished("stop"))
          .usage;
  EXPECT_EQ(usage.input_tokens, 0);
  EXPECT_EQ(usage.cache_read_tokens, 0);
  EXPECT_EQ(usage.output_tokens, 1'000'000'000'000);
}

struct Classified {
  int status;
  const char* body;
  Failure failure;
};
class ChatError : public testing::TestWithParam<Classified> {};

TEST_P(ChatError, is_classified) {
  const ModelError error = chat_error(GetParam().status, GetParam().body);
  EXPECT_EQ(error.failure(), GetParam().failure) << error.message();
  EXPECT_NE(error.message().find(std::to_string(GetParam().status)), std::string::npos);
  EXPECT_FALSE(error.maybe_billed());
}

INSTANTIATE_TEST_SUITE_P(
    All, ChatError,
    testing::Values(
        Classified{408, "", Failure::transient}, Classified{409, "{}", Failure::transient},
        Classified{429, R"({"error":{"message":"slow down","type":"rate_limit_error"}})",
                   Failure::transient},
        Classified{429, R"({"error":{"message":"pay","code":"insufficient_quota"}})",
                   Failure::quota},
        Classified{402, R"({"error":"pay"})", Failure::quota},
        Classified{500, "<html>", Failure::transient}, Classified{503, "", Failure::transient},
        Classified{529, R"({"error":{"type":"overloaded_error"}})", Failure::transient},
        Classified{400, R"({"error":{"message":"x","code":"context_length_exceeded"}})",
                   Failure::context_overflow},
        Classified{400,
                   R"({"error":{"message":"This model's maximum context length is 8192 tokens"}})",
                   Failure::context_overflow},
        Classified{413, R"({"message":"prompt is too long"})", Failure::context_overflow},
        Classified{400, R"({"error":{"message":"bad field"}})", Failure::permanent},
        Classified{401, "", Failure::permanent}, Classified{403, "", Failure::permanent},
        Classified{404, R"({"error":{"code":404,"message":"no model"}})", Failure::permanent},
        Classified{422, "[]", Failure::permanent}));

TEST(ChatErrors, quote_foreign_text_only_in_part) {
  const std::string body(100'000, 'x');
  EXPECT_LT(chat_error(500, body).message().size(), 300U);
}

TEST(ChatRequest, carries_the_conversation) {
  Prompt prompt;
  prompt.model = "m-1";
  prompt.system = {"base", "job"};
  prompt.max_tokens = 99;
  prompt.facts = Value::object({{"job", "secret-name"}});
  prompt.tools.push_back({"bash", "runs", json::parse(R"({"type":"object"})")});
  const auto part = [](Part::Type type, std::string text, std::string of = "") {
    Part made;
    made.type = type;
    made.text = std::move(text);
    made.result_of = std::move(of);
    return made;
  };
  Part call = part(Part::Type::tool_call, "");
  call.call = {"c1", "bash", json::parse(R"({"command":"ls"})"), ""};
  Part bad = part(Part::Type::tool_call, "");
  bad.call = {"c2", "bash", {}, "{oops"};
  prompt.messages = {
      {Message::Role::user, {part(Part::Type::text, "go")}},
      {Message::Role::assistant,
       {part(Part::Type::reasoning, "hidden"), part(Part::Type::text, "ok"), call, bad}},
      {Message::Role::user,
       {part(Part::Type::tool_result, "a", "c1"), part(Part::Type::tool_result, "b", "c2")}}};
  const Value request = chat_request(prompt, false);
  EXPECT_EQ(request.get("messages"), json::parse(R"([
    {"role":"system","content":"base\n\njob"},
    {"role":"user","content":"go"},
    {"role":"assistant","content":"ok","tool_calls":[
      {"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},
      {"id":"c2","type":"function","function":{"name":"bash","arguments":"{\"notJSON\":\"{oops\"}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"a"},
    {"role":"tool","tool_call_id":"c2","content":"b"}])"));
  EXPECT_TRUE(request.get_bool("stream"));
  EXPECT_TRUE(request.at_path({"stream_options", "include_usage"}).as_bool());
  EXPECT_EQ(request.get_int("max_tokens"), 99);
  EXPECT_EQ(request.get("tools").items().at(0).get("function").get_string("name"), "bash");
  EXPECT_EQ(request.dump().find("secret-name"), std::string::npos);
  EXPECT_EQ(request.dump().find("hidden"), std::string::npos);
}

TEST(ChatRequest, the_official_api_has_its_own_names) {
  Prompt prompt;
  prompt.model = "o3-mini";
  prompt.low_effort = true;
  prompt.schema = json::parse(R"({"type":"object"})");
  const Value request = chat_request(prompt, true);
  EXPECT_EQ(request.get_int("max_completion_tokens"), 4096);
  EXPECT_FALSE(request.find("max_tokens"));
  EXPECT_EQ(request.get_string("reasoning_effort"), "low");
  EXPECT_EQ(request.at_path({"response_format", "json_schema", "schema"}), prompt.schema);
  prompt.model = "gpt-4o";
  EXPECT_FALSE(chat_request(prompt, true).find("reasoning_effort"));
}

}  // namespace
}  // namespace umpteenth::models
