#include "broker/front.h"

#include "base/subprocess.h"
#include "tests/broker/client_hello.h"
#include "tests/broker/front_support.h"
#include "tests/support/paths.h"

namespace umpteenth::broker {
namespace {

using namespace std::string_literals;
using ::umpteenth::test::becomes;
using ::umpteenth::test::RawPeer;

const std::string kHere = "10.201.0.2";

class FrontDoor : public FrontTest {
 protected:
  FrontDoor() {
    names["listed.example"] = {"127.0.0.1"};
    open_door();
    token = add_run_at(kHere, {"listed.example", "*.wild.example"});
  }
  std::string refusal_of(const std::string& head) {
    const auto peer = connect();
    peer->send(head);
    return peer->read_all();
  }
};

TEST_F(FrontDoor, connect_tunnels_bytes_both_ways) {
  const Upstream server(Upstream::echo);
  const auto peer = connect();
  peer->send(connect_head(server.at("Listed.Example."), token) + "early ");
  EXPECT_EQ(peer->read_until("\r\n\r\n"), "HTTP/1.1 200 Connection established\r\n\r\n");
  peer->send("late!");
  EXPECT_EQ(peer->read_until("!"), "early late!");
  const std::string much(3'000'000, 'm');
  std::jthread writer([&] { peer->send(much + "!"); });
  EXPECT_EQ(peer->read_until("!").size(), much.size() + 1);
  writer.join();
  peer->hang_up();
  EXPECT_TRUE(becomes([&] { return front->stats().connections == 0; }));
  EXPECT_TRUE(becomes([&] { return !recorded().empty(); }));
  EXPECT_EQ(recorded(), std::vector{"proxy listed.example allowed"s});
}

TEST_F(FrontDoor, each_host_is_recorded_once_and_each_refusal) {
  const Upstream server(Upstream::echo);
  for (int i = 0; i < 3; ++i) {
    const auto peer = connect();
    peer->send(connect_head(server.at("listed.example"), token));
    peer->read_until("\r\n\r\n");
  }
  EXPECT_EQ(refusal_of(connect_head("other.example:443", token)),
            proxy_refusal(403, "other.example is not on this job's allow-list"));
  EXPECT_EQ(lookups, 3);  // a refused name never leaves the host
  ASSERT_TRUE(becomes([&] { return recorded().size() == 2; }));
  EXPECT_EQ(recorded()[1], "proxy other.example other.example is not on this job's allow-list");
}

TEST_F(FrontDoor, credentials_count_only_at_the_runs_endpoint) {
  const std::string answer =
      refusal_of("CONNECT listed.example:1 HTTP/1.1\r\nHost: listed.example:1\r\n\r\n");
  EXPECT_EQ(answer, proxy_refusal(407, "proxy authentication required"));
  EXPECT_EQ(refusal_of(connect_head("listed.example:1", "wrong")), answer);
  const auto elsewhere = connect("10.201.0.10");
  elsewhere->send(connect_head("listed.example:1", token));
  EXPECT_EQ(elsewhere->read_all(), answer);
  EXPECT_EQ(lookups, 0);
}

TEST_F(FrontDoor, a_name_with_one_refused_address_is_refused) {
  names["a.wild.example"] = {"127.0.0.1", "10.0.0.1"};
  names["b.wild.example"] = {"127.0.0.1", "169.254.169.254"};
  names["c.wild.example"] = {"192.168.1.1"};
  const std::string answer =
      proxy_refusal(403, "the egress proxy does not connect to this address");
  for (const char* name : {"a", "b", "c"})
    EXPECT_EQ(refusal_of(connect_head(name + ".wild.example:80"s, token)), answer) << name;
  token = add_run_at(kHere, {"*.wild.example"}, true);
  EXPECT_EQ(refusal_of(connect_head("b.wild.example:80", token)), answer);
}

TEST_F(FrontDoor, failures_to_reach_a_listed_host_say_so) {
  EXPECT_EQ(refusal_of(connect_head("x.wild.example:80", token)),
            proxy_refusal(502, "cannot resolve x.wild.example: no such name"));
  int closed = 0;
  { closed = Upstream(Upstream::echo).port(); }
  EXPECT_EQ(refusal_of(connect_head("listed.example:" + std::to_string(closed), token)),
            proxy_refusal(502, "cannot connect to listed.example: Connection refused"));
}

TEST_F(FrontDoor, absolute_form_reaches_the_server_once_without_credentials) {
  std::string seen;
  std::mutex mutex;
  const Upstream server([&](int socket) {
    std::array<char, 4096> bytes;
    std::string all;
    while (all.find("BODY") == std::string::npos) {
      const ssize_t n = recv(socket, bytes.data(), bytes.size(), 0);
      if (n <= 0) return;
      all.append(bytes.data(), static_cast<size_t>(n));
    }
    {
      const std::lock_guard lock(mutex);
      seen = all;
    }
    Upstream::say(socket,
                  "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi");
  });
  const auto peer = connect();
  peer->send("POST http://" + server.at("listed.example") +
             "/p HTTP/1.1\r\nHost: " + server.at("listed.example") + "\r\n" + credentials(token) +
             "Content-Length: 4\r\n\r\nBODYGET / HTTP/1.1\r\nHost: other.example\r\n\r\n");
  EXPECT_EQ(peer->read_all(),
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
  const std::lock_guard lock(mutex);
  EXPECT_EQ(seen, "POST /p HTTP/1.1\r\nHost: " + server.at("listed.example") +
                      "\r\nContent-Length: 4\r\nConnection: close\r\n\r\nBODY");
}

TEST_F(FrontDoor, absolute_form_with_another_host_field_is_refused) {
  EXPECT_EQ(refusal_of("GET http://listed.example/ HTTP/1.1\r\nHost: other.example\r\n" +
                       credentials(token) + "\r\n"),
            proxy_refusal(403, "the Host field must name the URL's host"));
}

TEST_F(FrontDoor, socks5_tunnels_and_refuses) {
  const Upstream server(Upstream::echo);
  const auto login = [&](RawPeer& peer, const std::string& with) {
    peer.send("\x05\x02\x00\x02"s);
    EXPECT_EQ(peer.read_until("\x02"), "\x05\x02");
    peer.send("\x01\x03ump"s + static_cast<char>(with.size()) + with);
  };
  const auto request = [](const std::string& host, int port) {
    return "\x05\x01\x00\x03"s + static_cast<char>(host.size()) + host +
           static_cast<char>(port >> 8) + static_cast<char>(port & 0xff);
  };
  const auto tunnel = connect();
  login(*tunnel, token);
  tunnel->send(request("listed.example", server.port()) + "ping!");
  EXPECT_EQ(tunnel->read_until("!"),
            "\x01\x00"s + "\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"s + "ping!");

  const auto refused = connect();
  login(*refused, token);
  refused->send(request("other.example", 80));
  EXPECT_EQ(refused->read_all(), "\x01\x00"s + "\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00"s);
  const auto wrong = connect();
  login(*wrong, "wrong");
  EXPECT_EQ(wrong->read_all(), "\x01\x01"s);
  const auto without = connect();
  without->send("\x05\x01\x00"s);
  EXPECT_EQ(without->read_all(), "\x05\xff"s);
}

TEST_F(FrontDoor, a_tls_client_must_ask_for_the_host_it_connected_to) {
  std::string seen;
  std::mutex mutex;
  const Upstream server([&](int socket) {
    std::array<char, 4096> bytes;
    for (ssize_t n = 0; (n = recv(socket, bytes.data(), bytes.size(), 0)) > 0;) {
      const std::lock_guard lock(mutex);
      seen.append(bytes.data(), static_cast<size_t>(n));
    }
  });
  const auto hello_to = [&](const std::string& name) {
    auto peer = connect();
    peer->send(connect_head(server.at("listed.example"), token));
    peer->read_until("\r\n\r\n");
    peer->send(test::records(test::client_hello(name), 9));
    return peer;
  };
  EXPECT_TRUE(hello_to("other.example")->ended());
  EXPECT_TRUE(hello_to("")->ended());
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(seen, "");
  }
  const auto good = hello_to("LISTED.example");
  good->send("more");
  const std::string whole = test::records(test::client_hello("LISTED.example"), 9) + "more";
  EXPECT_TRUE(becomes([&] {
    const std::lock_guard lock(mutex);
    return seen == whole;
  }));
  ASSERT_TRUE(becomes([&] { return recorded().size() == 3; }));
  EXPECT_EQ(recorded()[1],
            "proxy listed.example the TLS client asked for other.example, not for listed.example");
  EXPECT_EQ(recorded()[2], "proxy listed.example the TLS client names no server");
}

TEST_F(FrontDoor, servers_may_speak_first_and_each_direction_ends_alone) {
  const Upstream server([](int socket) {
    Upstream::say(socket, "SSH-2.0-server\r\n");
    std::string all;
    std::array<char, 4096> bytes;
    for (ssize_t n = 0; (n = recv(socket, bytes.data(), bytes.size(), 0)) > 0;)
      all.append(bytes.data(), static_cast<size_t>(n));
    Upstream::say(socket, "got " + all);
  });
  const auto peer = connect();
  peer->send(connect_head(server.at("listed.example"), token));
  peer->read_until("\r\n\r\n");
  EXPECT_EQ(peer->read_until("\r\n"), "SSH-2.0-server\r\n");
  peer->send("SSH-2.0-client");
  peer->wire().shutdown_write();
  EXPECT_EQ(peer->read_all(), "got SSH-2.0-client");
}

TEST_F(FrontDoor, other_requests_go_to_the_broker_api) {
  const auto peer = connect();
  peer->send("POST /v1/step HTTP/1.1\r\nHost: umpteenth:8081\r\nAuthorization: Bearer " + token +
             "\r\nContent-Length: 16\r\n\r\n{\"name\":");
  peer->send("\"first\"}");
  EXPECT_TRUE(peer->read_response().starts_with("HTTP/1.1 204"));
  EXPECT_EQ(live->last_step(), "first");
  const auto elsewhere = connect("10.201.0.10");
  elsewhere->send("GET /v1/state HTTP/1.1\r\nHost: umpteenth:8081\r\nAuthorization: Bearer " +
                  token + "\r\n\r\n");
  EXPECT_TRUE(elsewhere->read_response().starts_with("HTTP/1.1 401"));
}

TEST_F(FrontDoor, the_end_of_the_run_ends_its_connections) {
  const Upstream server(Upstream::echo);
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 5; ++i) {
    peers.push_back(connect());
    peers.back()->send(connect_head(server.at("listed.example"), token));
    peers.back()->read_until("\r\n\r\n");
  }
  registry.remove(live->info().uid);
  for (const auto& peer : peers) EXPECT_TRUE(peer->ended());
  EXPECT_TRUE(becomes([&] {
    const FrontStats stats = front->stats();
    return stats.connections == 0 && stats.runs == 0;
  }));
  EXPECT_EQ(refusal_of(connect_head(server.at("listed.example"), token)).substr(9, 3), "407");
}

TEST_F(FrontDoor, an_adopted_listener_goes_with_its_handle) {
  http::ListenOn where;
  where.host = "127.0.0.1";
  Fd listening = http::listen_on(where);
  const int port = http::bound_port(listening.get());
  const std::string own = add_run_at("netns:uid-1", {"listed.example"});
  auto handle = front->adopt_listener(std::move(listening), "netns:uid-1");
  const Upstream server(Upstream::echo);
  RawPeer tunnel(port), api_peer(port), foreign(port);
  tunnel.send(connect_head(server.at("listed.example"), own));
  EXPECT_EQ(tunnel.read_until("\r\n\r\n").substr(9, 3), "200");
  api_peer.send("GET /v1/state HTTP/1.1\r\nHost: umpteenth:8081\r\nAuthorization: Bearer " + own +
                "\r\n\r\n");
  EXPECT_EQ(api_peer.read_until("{}\r\n0\r\n\r\n").substr(9, 3), "200");
  foreign.send(connect_head(server.at("listed.example"), token));
  EXPECT_EQ(foreign.read_until("\r\n\r\n").substr(9, 3), "407");
  handle.reset();
  EXPECT_TRUE(tunnel.ended());
  EXPECT_TRUE(api_peer.ended());
  EXPECT_TRUE(becomes([&] { return front->stats().connections == 0; }));
  EXPECT_THROW(RawPeer{port}, Error);
}

TEST_F(FrontDoor, ump_connect_carries_stdin_and_stdout) {
  const Upstream server(Upstream::echo);
  http::ListenOn where;
  where.host = "127.0.0.1";
  Fd listening = http::listen_on(where);
  const int port = http::bound_port(listening.get());
  const auto handle = front->adopt_listener(std::move(listening), kHere);
  Command command;
  command.argv = {support::bin_dir() + "/ump", "connect", "listed.example",
                  std::to_string(server.port())};
  command.env = {"UMP_BROKER_URL=http://127.0.0.1:" + std::to_string(port), "UMP_TOKEN=" + token};
  command.stdin_bytes = "through " + std::string(200'000, 'x');
  const CommandResult done = system_runner().run(command);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, command.stdin_bytes);
  command.argv[2] = "other.example";
  const CommandResult refused = system_runner().run(command);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, "ump: the egress proxy refused other.example:" + command.argv[3] +
                             ": 403 Forbidden: other.example is not on this job's allow-list\n");
}

class NarrowDoor : public FrontTest {};

TEST_F(NarrowDoor, tunnels_of_a_run_and_of_an_endpoint_are_bounded) {
  names["listed.example"] = {"127.0.0.1"};
  options.tunnels_per_run = 3;
  options.connections_per_endpoint = 5;
  open_door();
  token = add_run_at(kHere, {"listed.example"});
  const Upstream server(Upstream::echo);
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(connect());
    peers.back()->send(connect_head(server.at("listed.example"), token));
    peers.back()->read_until("\r\n\r\n");
  }
  const auto fourth = connect();
  fourth->send(connect_head(server.at("listed.example"), token));
  EXPECT_EQ(fourth->read_until("connections\n"),
            proxy_refusal(429, "the sandbox has too many open proxy connections"));
  const auto silent = connect();
  EXPECT_TRUE(becomes([&] { return front->stats().connections == 5; }));
  EXPECT_TRUE(connect()->ended());
  const std::string other = add_run_at("10.201.0.10", {"listed.example"});
  const auto neighbour = connect("10.201.0.10");
  neighbour->send(connect_head(server.at("listed.example"), other));
  EXPECT_EQ(neighbour->read_until("\r\n\r\n").substr(9, 3), "200");
}

TEST_F(NarrowDoor, the_slow_and_the_silent_are_dropped) {
  options.handshake_timeout = options.hello_timeout = std::chrono::milliseconds(200);
  names["listed.example"] = {"127.0.0.1"};
  open_door();
  token = add_run_at(kHere, {"listed.example"});
  const Upstream server(Upstream::echo);
  const auto silent = connect();
  const auto slow = connect();
  slow->send("CONNECT listed.ex");
  const auto greeting = connect();
  greeting->send("\x05"s);
  const auto hello = connect();
  hello->send(connect_head(server.at("listed.example"), token));
  hello->read_until("\r\n\r\n");
  hello->send(test::records(test::client_hello("listed.example")).substr(0, 20));
  EXPECT_TRUE(silent->ended());
  EXPECT_EQ(slow->read_all(), proxy_refusal(408, "the request's head did not come in time"));
  EXPECT_TRUE(greeting->ended());
  EXPECT_TRUE(hello->ended());
}

TEST_F(NarrowDoor, a_run_with_slow_names_leaves_look_ups_to_others) {
  Gate gate;
  std::stop_source stop;
  options.resolve = [&](const std::string& host) {
    if (host == "slow.example") gate.pass(stop.get_token());
    return std::vector{*net::parse_address("127.0.0.1")};
  };
  open_door();
  token = add_run_at(kHere, {"slow.example"});
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 20; ++i) {
    peers.push_back(connect());
    peers.back()->send(connect_head("slow.example:1", token));
  }
  EXPECT_TRUE(gate.reached_by(3));
  const std::string other = add_run_at("10.201.0.10", {"fast.example"});
  const Upstream server(Upstream::echo);
  const auto neighbour = connect("10.201.0.10");
  neighbour->send(connect_head(server.at("fast.example"), other));
  EXPECT_EQ(neighbour->read_until("\r\n\r\n").substr(9, 3), "200");
  gate.open();
  for (const auto& peer : peers) EXPECT_TRUE(peer->ended());
}

TEST_F(NarrowDoor, a_reader_that_does_not_read_holds_the_sender_up) {
  names["listed.example"] = {"127.0.0.1"};
  open_door();
  token = add_run_at(kHere, {"listed.example"});
  std::atomic<size_t> sent{0};
  const Upstream server([&](int socket) {
    const std::string block(65536, 'b');
    while (::send(socket, block.data(), block.size(), MSG_NOSIGNAL) > 0) sent += block.size();
  });
  const auto peer = connect();
  peer->send(connect_head(server.at("listed.example"), token));
  size_t before = 1;
  EXPECT_TRUE(becomes([&] {  // it has come to a halt
    const size_t now = sent;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return now > 0 && std::exchange(before, sent.load()) == now && now == sent;
  }));
  EXPECT_LT(sent, 32U << 20);
}

}  // namespace
}  // namespace umpteenth::broker
