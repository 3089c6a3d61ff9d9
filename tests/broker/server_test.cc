#include "base/http/server.h"

#include <thread>

#include "base/subprocess.h"
#include "tests/broker/support.h"
#include "tests/support/paths.h"
#include "tests/support/raw_peer.h"

namespace umpteenth::broker {
namespace {

using test::RawPeer;

class BrokerServer : public BrokerTest {
 protected:
  void serve(const http::Limits& with = limits(1)) {
    http::ListenOn listen;
    listen.host = "127.0.0.1";
    server = std::make_unique<http::Server>(listen, with, site);
    server->start();
  }
  std::string head(const std::string& line, size_t length) const {
    return line + " HTTP/1.1\r\nHost: umpteenth:8081\r\nAuthorization: Bearer " + token +
           "\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
  }
  static int status_of(const std::string& response) {
    return response.size() < 12 ? 0 : std::stoi(response.substr(9, 3));
  }
  CommandResult ump(std::vector<std::string> arguments) const {
    Command command;
    command.argv = std::move(arguments);
    command.argv.insert(command.argv.begin(), support::bin_dir() + "/ump");
    command.env = {"UMP_BROKER_URL=http://127.0.0.1:" + std::to_string(server->port()),
                   "UMP_TOKEN=" + token};
    return system_runner().run(command);
  }

  std::unique_ptr<http::Server> server;
};

TEST_F(BrokerServer, ump_speaks_with_it) {
  model->says("42");
  serve();
  EXPECT_EQ(ump({"state", "set", "a/b ü?%", "multi\nline"}).exit_code, 0);
  EXPECT_EQ(ump({"state", "get", "a/b ü?%"}).out, "multi\nline\n");
  EXPECT_EQ(ump({"state", "get", "none"}).exit_code, 1);
  EXPECT_EQ(ump({"state", "list"}).out, "{\"a/b ü?%\":\"multi\\nline\"}\n");
  EXPECT_EQ(ump({"output", "set", "n", "{\"x\": 1}"}).exit_code, 0);
  EXPECT_EQ(ump({"step", "first"}).exit_code, 0);
  EXPECT_EQ(ump({"llm", "what?"}).out, "42\n");
  EXPECT_EQ(ump({"summary", "fine"}).exit_code, 0);
  EXPECT_EQ(ump({"fail"}).exit_code, 1);
  EXPECT_EQ(run->outputs().dump(), R"({"n":{"x":1}})");
  EXPECT_EQ(run->last_step(), "first");
  EXPECT_EQ(run->summary(), "fine");
  EXPECT_EQ(run->failure(), "the script reported a failure");
  const CommandResult refused = ump({"step", std::string(300, 's')});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, "ump: the name of a step is at most 200 bytes\n");
}

TEST_F(BrokerServer, the_whole_state_is_one_object_however_large) {
  json::Value whole = json::Value::object();
  for (int i = 0; i < 12; ++i) {
    const std::string key = "k" + std::to_string(10 + i);
    const std::string value = std::string(1'000'000, static_cast<char>('a' + i)) + "\x01\"\\";
    run->state_set(key, value);
    whole.set(key, value);
  }
  serve();
  const CommandResult value = ump({"state", "get", "k10"});
  EXPECT_EQ(value.out.size(), 1'000'004U) << value.err;
  RawPeer peer(server->port());
  peer.send("GET /v1/state HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n");
  const std::string response = peer.read_all();
  EXPECT_TRUE(json::parse(response.substr(response.find("\r\n\r\n") + 4)) == whole);
}

TEST_F(BrokerServer, readers_that_do_not_read_keep_their_turn_and_let_go_of_it) {
  for (int i = 0; i < 16; ++i) run->state_set("k" + std::to_string(i), std::string(1'000'000, 'x'));
  serve();
  std::vector<std::unique_ptr<RawPeer>> slow;
  for (int i = 0; i < 8; ++i) {
    slow.push_back(std::make_unique<RawPeer>(server->port()));
    slow.back()->send(head("GET /v1/state", 0));
    EXPECT_EQ(status_of(slow.back()->read_until("\r\n\r\n")), 200);
  }
  RawPeer ninth(server->port());
  ninth.send(head("GET /v1/state/none", 0));
  slow.pop_back();  // hangs up
  EXPECT_EQ(status_of(ninth.read_response()), 404) << "a reader that leaves makes room";
}

TEST_F(BrokerServer, refuses_before_the_body_is_read) {
  serve();
  // None of these bodies is ever sent: an answer shows that it was not waited for.
  const auto answer_to = [&](const std::string& bytes) {
    RawPeer peer(server->port());
    peer.send(bytes);
    return status_of(peer.read_until("\r\n\r\n"));
  };
  EXPECT_EQ(answer_to(head("PUT /v1/state/k", (8U << 20) + 1)), 413);
  EXPECT_EQ(answer_to(head("POST /v1/nothing", 100)), 404);
  token = "wrong";
  EXPECT_EQ(answer_to(head("POST /v1/llm", 8U << 20)), 401);
  EXPECT_EQ(answer_to("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n"), 403);
  EXPECT_EQ(answer_to("GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n"), 403);
  EXPECT_EQ(answer_to("GET / HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n"), 431);
}

TEST_F(BrokerServer, the_endpoint_is_the_one_of_the_proxy_header) {
  http::ListenOn listen;
  const TempDir dir;
  listen.unix_path = (dir.path() / "broker.sock").string();
  listen.proxy_v2 = true;
  server = std::make_unique<http::Server>(listen, limits(1), site);
  server->start();
  const auto status_through = [&](const std::string& reached) {
    RawPeer peer(listen.unix_path);
    std::string header("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C", 16);
    header += std::string("\x0A\x09\0\x03", 4) + reached + std::string("\x9C\x40\x1F\x91", 4);
    peer.send(header + head("GET /v1/state/none", 0));
    return status_of(peer.read_response());
  };
  EXPECT_EQ(status_through(std::string("\x7F\0\0\x01", 4)), 404) << "its own endpoint";
  EXPECT_EQ(status_through(std::string("\x0A\x09\0\x02", 4)), 401) << "another run's";
}

TEST_F(BrokerServer, a_flood_is_answered_with_429_and_other_runs_are_served) {
  Gate gate;
  model->replies([&](const models::Prompt&, const std::stop_token& stop) {
    gate.pass(stop);
    return ToldModel::answer("x", 1, 1);
  });
  serve();
  const std::string body = R"({"prompt":"x"})";
  const std::string bytes = head("POST /v1/llm", body.size()) + body;
  std::vector<std::unique_ptr<RawPeer>> flood;
  const auto send_one = [&] {
    flood.push_back(std::make_unique<RawPeer>(server->port()));
    flood.back()->send(bytes);
  };
  for (int i = 0; i < 8; ++i) send_one();
  ASSERT_TRUE(gate.reached_by(8));
  for (int i = 0; i < 64; ++i) send_one();
  ASSERT_TRUE(test::becomes([&] { return server->stats().requests_in_flight == 72; },
                            std::chrono::seconds(20)));
  // Which of the 65 is the last is the pool's choice: one of them is told to come again.
  send_one();
  ASSERT_TRUE(test::becomes([&] { return server->stats().requests == 73; }));
  ASSERT_TRUE(test::becomes([&] { return server->stats().requests_in_flight == 72; }));

  const auto first_run = run;
  add_run(0);
  RawPeer other(server->port());
  other.send(head("GET /v1/state/none", 0));
  EXPECT_EQ(status_of(other.read_response()), 404) << "served while the first run is stuck";

  gate.open();
  int served = 0, refused = 0;
  for (auto& peer : flood) {
    const std::string response = peer->read_response();
    if (status_of(response) == 200) ++served;
    if (status_of(response) != 429) continue;
    ++refused;
    EXPECT_NE(response.find("Retry-After: 1\r\n"), std::string::npos) << response;
  }
  EXPECT_EQ(served, 72);
  EXPECT_EQ(refused, 1);
}

TEST_F(BrokerServer, large_bodies_side_by_side_do_not_fill_the_memory) {
  Gate gate;
  model->replies([&](const models::Prompt&, const std::stop_token& stop) {
    gate.pass(stop);
    return ToldModel::answer("x", 1, 1);
  });
  EXPECT_EQ(limits(1).bodies_per_peer, 64U << 20);
  http::Limits small = limits(1);
  small.bodies_per_peer = 8 * 100'000;
  serve(small);
  const auto question = [&](size_t size) {
    const std::string body = R"({"prompt":")" + std::string(size, 'p') + "\"}";
    return head("POST /v1/llm", body.size()) + body;
  };
  // Eight calls at work hold all but 8 kB of what one peer may have in memory.
  std::vector<std::unique_ptr<RawPeer>> large;
  for (int i = 0; i < 8; ++i) {
    large.push_back(std::make_unique<RawPeer>(server->port()));
    large.back()->send(question(99'000));
  }
  ASSERT_TRUE(gate.reached_by(8));
  RawPeer ninth(server->port());
  ninth.send(question(20'000));
  const std::string refusal = ninth.read_until("\r\n\r\n");
  EXPECT_EQ(status_of(refusal), 503);
  EXPECT_NE(refusal.find("Retry-After: 1\r\n"), std::string::npos) << refusal;
  gate.open();
  for (auto& peer : large) EXPECT_EQ(status_of(peer->read_response()), 200);
  RawPeer next(server->port());
  next.send(question(20'000));
  EXPECT_EQ(status_of(next.read_response()), 200) << "what was answered is not counted any more";
}

TEST_F(BrokerServer, a_call_goes_on_when_its_client_hangs_up) {
  start(1'000'000);
  Gate gate;
  model->replies([&](const models::Prompt&, const std::stop_token& stop) {
    gate.pass(stop);
    return ToldModel::answer("x", 500, 0);
  });
  serve();
  const std::string body = R"({"prompt":"x"})";
  {
    RawPeer peer(server->port());
    peer.send(head("POST /v1/llm", body.size()) + body);
    ASSERT_TRUE(gate.reached_by(1));
  }
  gate.open();
  EXPECT_TRUE(test::becomes([&] { return run->budget().spent() == 500; }))
      << "paid for, so counted";
}

}  // namespace
}  // namespace umpteenth::broker
