#include "tests/broker/support.h"

namespace umpteenth::broker {
namespace {

TEST_F(BrokerTest, a_token_counts_at_its_own_endpoint_while_its_run_lives) {
  EXPECT_EQ(call("POST", "/v1/step", R"({"name":"one"})").status, 204);
  http::Request wrong = request("POST", "/v1/step", R"({"name":"x"})");
  wrong.local.address = "127.0.0.2";
  EXPECT_EQ(send(wrong).status, 401);
  EXPECT_EQ(code(send(wrong)), "invalid_token");
  for (const char* header : {"", "Bearer ", "Bearer wrong", "Basic dW1wOng="}) {
    http::Request bad = request("GET", "/v1/state");
    bad.headers.set("Authorization", header);
    EXPECT_EQ(send(bad).status, 401) << header;
  }
  // Nothing tells a wrong token from a path that does not exist.
  wrong.path = wrong.target = "/v1/nothing";
  EXPECT_EQ(send(wrong).status, 401);
  registry.remove(run->info().uid);
  EXPECT_EQ(call("POST", "/v1/step", R"({"name":"two"})").status, 401);
  EXPECT_EQ(run->last_step(), "one");
}

TEST_F(BrokerTest, a_call_that_was_admitted_does_not_outlive_its_run) {
  const http::Request late = request("POST", "/v1/step", R"({"name":"late"})");
  EXPECT_EQ(std::get<http::Admitted>(site.admit(late)).body_limit, 256U << 10);
  run->close(Duration(0));
  EXPECT_EQ(send(late).status, 401);
  EXPECT_EQ(run->last_step(), "");
}

TEST_F(BrokerTest, proxy_requests_are_refused_before_anything_else) {
  for (const char* target : {"example.org:443", "http://example.org/", "https://example.org/x"}) {
    http::Request proxied;
    proxied.method = "CONNECT";
    proxied.target = target;
    const http::Response response = send(proxied);
    EXPECT_EQ(response.status, 403);
    EXPECT_EQ(message(response),
              "the egress proxy only serves sandboxes with internet access or an allow-list");
  }
}

TEST_F(BrokerTest, unknown_paths_and_methods) {
  EXPECT_EQ(call("GET", "/v1/nothing").status, 404);
  EXPECT_EQ(call("GET", "/").status, 404);
  EXPECT_EQ(call("GET", "/v1/state/").status, 404);
  EXPECT_EQ(call("DELETE", "/v1/state/k").status, 405);
  EXPECT_EQ(code(call("GET", "/v1/nothing")), "not_found");
}

TEST_F(BrokerTest, mcp_answers_that_there_is_no_server) {
  EXPECT_EQ(call("GET", "/v1/mcp/tools").body, "[]");
  const http::Response response =
      call("POST", "/v1/mcp/call", R"({"server":"git","tool":"log","arguments":{}})");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(message(response), "MCP tool log on server git not found");
}

TEST_F(BrokerTest, state_goes_in_and_out) {
  EXPECT_EQ(call("PUT", "/v1/state/a/b c", R"({"value":"grün"})").status, 204);
  EXPECT_EQ(call("GET", "/v1/state/a/b c").body, R"({"value":"grün"})");
  const http::Response missing = call("GET", "/v1/state/other");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(message(missing), "the job's state has no key \"other\"");
  EXPECT_EQ(call("PUT", "/v1/state/k", R"({"value":3})").status, 422);
  EXPECT_EQ(call("PUT", "/v1/state/k", R"({})").status, 422);
  EXPECT_EQ(call("PUT", "/v1/state/k", R"(["value"])").status, 422);
  EXPECT_EQ(call("PUT", "/v1/state/k", R"({"value":)").status, 400);
  EXPECT_EQ(message(call("PUT", "/v1/state/" + std::string(201, 'k'), R"({"value":""})")),
            "the state key is longer than 200 characters");
}

TEST_F(BrokerTest, only_the_first_state_write_is_sure_of_its_place_on_the_timeline) {
  for (int i = 0; i < 1000; ++i) call("GET", "/v1/state/none");
  call("PUT", "/v1/state/k", R"({"value":"1"})");
  call("PUT", "/v1/state/k", R"({"value":"2"})");
  const auto events = timeline();
  ASSERT_EQ(events.size(), 1002U);
  EXPECT_EQ(events[1000].get_string("type"), "log");
  EXPECT_EQ(events[1001].get_string("name"), "state set");
  EXPECT_EQ(events[1001].get_string("value"), "1");
}

TEST_F(BrokerTest, outputs_steps_summary_and_failure_reach_the_run) {
  EXPECT_EQ(call("POST", "/v1/output", R"({"key":"n","value":{"a":[1,null]}})").status, 204);
  EXPECT_EQ(run->outputs().dump(), R"({"n":{"a":[1,null]}})");
  EXPECT_EQ(message(call("POST", "/v1/output", R"({"key":"n"})")), "value is missing");
  EXPECT_EQ(message(call("POST", "/v1/output", R"({"value":1})")), "key must be a string");
  EXPECT_EQ(message(call("POST", "/v1/output",
                         R"({"key":"n","value":")" + std::string(1U << 20, 'x') + "\"}")),
            "the outputs of a run are at most 1 MiB in all");
  EXPECT_EQ(call("POST", "/v1/step", R"({"name":"fetch"})").status, 204);
  EXPECT_EQ(run->last_step(), "fetch");
  EXPECT_EQ(message(call("POST", "/v1/step", R"({"name":")" + std::string(201, 's') + "\"}")),
            "the name of a step is at most 200 bytes");
  EXPECT_EQ(call("POST", "/v1/summary", R"({"summary":"done"})").status, 204);
  EXPECT_EQ(run->summary(), "done");
  EXPECT_EQ(call("POST", "/v1/fail", R"({"reason":"no data"})").status, 204);
  EXPECT_EQ(run->failure(), "no data");
  std::vector<std::string> types;
  for (const json::Value& event : timeline())
    types.push_back(event.get_string("type") + " " + event.get_string("name"));
  EXPECT_EQ(types, (std::vector<std::string>{"broker.call output set", "script.step fetch",
                                             "broker.call summary", "broker.call fail"}));
}

TEST_F(BrokerTest, bodies_that_would_grow_when_read_are_refused) {
  std::string many = R"({"key":"k","value":[)";
  for (int i = 0; i < 300'000; ++i) many += "1,";
  const http::Response response = call("POST", "/v1/output", many + "1]}");
  EXPECT_EQ(response.status, 422);
  EXPECT_EQ(message(response), "the body holds more than 250000 values");
  // Commas in a text are none.
  const std::string csv(400'000, ',');
  EXPECT_EQ(call("PUT", "/v1/state/csv", R"({"value":"\")" + csv + "\"}").status, 204);
  EXPECT_EQ(call("POST", "/v1/output",
                 R"({"key":"k","value":)" + std::string(100, '[') + std::string(100, ']') + "}")
                .status,
            400);
  EXPECT_EQ(call("POST", "/v1/step", std::string((256U << 10) + 1, ' ')).status, 413);
  EXPECT_EQ(call("PUT", "/v1/state/k", std::string((8U << 20) + 1, ' ')).status, 413);
  EXPECT_EQ(call("GET", "/v1/state", "body").status, 413);
}

TEST_F(BrokerTest, a_full_disk_is_the_hosts_trouble_and_says_so) {
  const http::Response response =
      site.error_response({}, http::ErrorView(Error(Code::unavailable, "no space left")));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(code(response), "service_unavailable");
  const std::runtime_error secret("/var/lib/umpd/secret path");
  const http::Response hidden = site.error_response({}, http::ErrorView(secret));
  EXPECT_EQ(hidden.status, 500);
  EXPECT_EQ(message(hidden), "internal error");
}

}  // namespace
}  // namespace umpteenth::broker
