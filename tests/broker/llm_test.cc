#include "broker/llm.h"

#include <thread>

#include "tests/broker/support.h"

namespace umpteenth::broker {
namespace {

class LlmTest : public BrokerTest {
 protected:
  http::Response ask(const json::Value& body) { return call("POST", "/v1/llm", body.dump()); }
  static json::Value question() { return json::Value::object({{"prompt", "why?"}}); }
};

TEST_F(LlmTest, answers_text_and_charges_what_was_used) {
  start(1'000'000);
  model->says("because", 200, 30);
  json::Value body = question();
  body.set("model", "agent");
  body.set("system", "be brief");
  body.set("maxTokens", 50);
  const http::Response response = ask(body);
  EXPECT_EQ(response.status, 200);
  const json::Value reply = json::parse(response.body);
  EXPECT_EQ(reply.get_string("text"), "because");
  EXPECT_EQ(reply.at_path({"usage", "inputTokens"}).as_int(), 200);
  EXPECT_EQ(reply.get_double("cost"), 0.0005);
  EXPECT_EQ(run->budget().spent(), 500);
  EXPECT_EQ(run->budget().reserved(), 0);
  EXPECT_EQ(run->budget().input_tokens(), 200);
  const models::Prompt prompt = model->last();
  EXPECT_EQ(prompt.model, "told-agent");
  EXPECT_EQ(prompt.system, std::vector<std::string>{"be brief"});
  EXPECT_EQ(prompt.max_tokens, 50);
  EXPECT_TRUE(prompt.low_effort);
  EXPECT_TRUE(prompt.tools.empty());
  const json::Value event = timeline().back();
  EXPECT_EQ(event.get_string("name"), "llm");
  EXPECT_EQ(event.get_string("result"), "because");
  EXPECT_EQ(event.get_int("costMicroUSD"), 500);
}

TEST_F(LlmTest, refuses_bad_questions_before_the_model) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({})", "prompt must be a string"},
      {R"({"prompt":""})", "prompt must not be empty"},
      {R"({"prompt":"x","model":"best"})", "model must be utility or agent"},
      {R"({"prompt":"x","schema":[]})", "schema must be a JSON object"},
      {R"({"prompt":"x","maxTokens":0})", "maxTokens must be a whole number from 1 to 16000"},
      {R"({"prompt":"x","maxTokens":16001})", "maxTokens must be a whole number from 1 to 16000"},
      {R"({"prompt":"x","maxTokens":"9"})", "maxTokens must be a whole number from 1 to 16000"},
      {R"({"prompt":"x","system":1})", "system must be a string"}};
  for (const auto& [body, why] : cases) {
    const http::Response response = call("POST", "/v1/llm", body);
    EXPECT_EQ(response.status, 422) << body;
    EXPECT_EQ(message(response), why);
  }
  EXPECT_EQ(model->calls(), 0);
  no_model = true;
  EXPECT_EQ(ask(question()).status, 404);
}

TEST_F(LlmTest, the_worst_case_counts_prompt_answer_and_schema) {
  LlmCall call;
  call.prompt = std::string(2000, 'p');
  const models::Price price{.input = 1, .output = 10, .cache_read = 0, .cache_write = 0};
  EXPECT_EQ(worst_case(call, price), 1001 + 40960);
  call.max_tokens = 100;
  EXPECT_EQ(worst_case(call, price), 1001 + 1000);
  call.schema = json::Value::object();
  EXPECT_EQ(worst_case(call, price), 2 * (1002 + 1000)) << "there may be a second try";
}

TEST_F(LlmTest, with_a_schema_the_answer_is_json_and_gets_a_second_try) {
  start(0);
  json::Value body = question();
  body.set("schema", json::Value::object({{"type", "object"}}));
  model->says("```json\n{\"a\": \"<b>\"}\n```");
  EXPECT_EQ(json::parse(ask(body).body).get("json").dump(), R"({"a":"<b>"})");
  EXPECT_EQ(model->calls(), 1);

  model->replies([](const models::Prompt& prompt, const std::stop_token&) {
    return ToldModel::answer(prompt.messages.size() == 1 ? "well: {" : "[1]", 10, 1);
  });
  const json::Value second = json::parse(ask(body).body);
  EXPECT_EQ(second.get("json").dump(), "[1]");
  EXPECT_EQ(second.at_path({"usage", "inputTokens"}).as_int(), 20) << "both tries are counted";

  model->says("never");
  const http::Response never = ask(body);
  EXPECT_EQ(never.status, 502);
  EXPECT_TRUE(message(never).starts_with("the model did not answer with JSON")) << message(never);
}

TEST_F(LlmTest, a_refusal_is_422_and_is_paid_for) {
  start(1'000'000);
  model->replies([](const models::Prompt&, const std::stop_token&) {
    models::Answer answer = ToldModel::answer("", 100, 0);
    answer.stop = models::Answer::Stop::refusal;
    return answer;
  });
  const http::Response response = ask(question());
  EXPECT_EQ(response.status, 422);
  EXPECT_EQ(message(response), "The model refused to answer");
  EXPECT_EQ(run->budget().spent(), 100);
}

TEST_F(LlmTest, over_the_budget_is_403) {
  start(100'000);
  model->says("x", 100'000, 0);
  EXPECT_EQ(ask(question()).status, 200) << "the first may start whatever is left";
  const http::Response response = ask(question());
  EXPECT_EQ(response.status, 403);
  EXPECT_EQ(message(response), "the run reached its cost limit, so ump llm is no longer available");
  EXPECT_EQ(model->calls(), 1);
}

TEST_F(LlmTest, calls_side_by_side_share_what_is_left) {
  start(50'000);  // one call reserves some 41 000
  Gate gate;
  model->replies([&](const models::Prompt&, const std::stop_token& stop) {
    gate.pass(stop);
    return ToldModel::answer("x", 10, 1);
  });
  std::jthread first([&] { EXPECT_EQ(ask(question()).status, 200); });
  ASSERT_TRUE(gate.reached_by(1));
  EXPECT_EQ(ask(question()).status, 403) << "the reservation of the first counts";
  gate.open();
  first.join();
  EXPECT_EQ(ask(question()).status, 200) << "it was settled";
}

TEST_F(LlmTest, a_failure_that_may_have_been_billed_costs_its_reservation) {
  start(1'000'000);
  const auto fails = [&](bool billed) {
    model->replies([=](const models::Prompt&, const std::stop_token&) -> models::Answer {
      throw models::ModelError(models::Failure::transient, "the stream broke", billed);
    });
  };
  fails(false);
  EXPECT_EQ(ask(question()).status, 503);
  EXPECT_EQ(run->budget().spent(), 0) << "no connection, no bill";
  EXPECT_EQ(run->budget().reserved(), 0);
  fails(true);
  const http::Response response = ask(question());
  EXPECT_EQ(message(response), "the stream broke");
  EXPECT_EQ(run->budget().spent(), 3 + 40960);
  EXPECT_EQ(timeline().back().get_string("error"), "the stream broke");
  model->replies([](const models::Prompt&, const std::stop_token&) -> models::Answer {
    throw std::bad_alloc();
  });
  EXPECT_EQ(ask(question()).status, 500);
  EXPECT_EQ(run->budget().spent(), 2 * (3 + 40960)) << "what nobody knows is charged";
  EXPECT_EQ(run->budget().reserved(), 0);
}

TEST_F(LlmTest, a_call_ends_at_its_deadline) {
  start(0, std::chrono::milliseconds(50));
  model->replies([](const models::Prompt&, const std::stop_token& stop) -> models::Answer {
    Gate never;
    never.pass(stop);
    throw models::ModelError(models::Failure::permanent, "the call was stopped", true);
  });
  const http::Response response = ask(question());
  EXPECT_EQ(response.status, 504);
}

TEST_F(LlmTest, the_end_of_the_run_ends_its_calls_and_counts_them) {
  start(0);
  Gate gate;
  model->replies([&](const models::Prompt&, const std::stop_token& stop) -> models::Answer {
    gate.pass(stop);
    throw models::ModelError(models::Failure::permanent, "the call was stopped", true);
  });
  std::jthread caller([&] { EXPECT_EQ(ask(question()).status, 502); });
  ASSERT_TRUE(gate.reached_by(1));
  EXPECT_TRUE(run->close(Duration(20'000))) << "the call under way ends";
  EXPECT_EQ(run->budget().spent(), 3 + 40960);
}

}  // namespace
}  // namespace umpteenth::broker
