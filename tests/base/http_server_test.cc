#include "base/http/server.h"

#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/fd.h"
#include "tests/support/raw_peer.h"

namespace umpteenth::http {
namespace {

using namespace std::chrono_literals;
using test::becomes;
using test::RawPeer;

const std::string kGet = "GET /hello HTTP/1.1\r\nHost: here\r\n\r\n";

Response echo(const Request& request) {
  std::string text = request.method + " " + request.path + " " + request.body;
  return Response::text(200, text);
}

class HttpServer : public testing::Test {
 protected:
  HttpServer() { site.handle = echo; }

  int serve() {
    server = std::make_unique<Server>(listen, limits, site);
    server->start();
    return server->port();
  }
  // What the server says to these bytes until it closes.
  std::string answer_to(std::string_view bytes) {
    if (!server) serve();
    RawPeer peer(server->port());
    peer.send(bytes);
    return peer.read_all();
  }

  ListenOn listen{.host = "127.0.0.1",
                  .port = 0,
                  .unix_path = "",
                  .unix_mode = 0600,
                  .tls = std::nullopt,
                  .proxy_v2 = false};
  Limits limits;
  Site site;
  std::unique_ptr<Server> server;
};

int status_of(std::string_view response) {
  return response.size() > 12 ? std::stoi(std::string(response.substr(9, 3))) : 0;
}
std::string body_of(const std::string& response) {
  const size_t end = response.find("\r\n\r\n");
  return end == std::string::npos ? "" : response.substr(end + 4);
}

TEST_F(HttpServer, answers_and_keeps_the_connection) {
  RawPeer peer(serve());
  for (int i = 0; i < 3; ++i) {
    peer.send(kGet);
    const std::string response = peer.read_response();
    EXPECT_EQ(status_of(response), 200);
    EXPECT_EQ(body_of(response), "GET /hello ");
    EXPECT_NE(response.find("\r\nDate: "), std::string::npos);
    EXPECT_EQ(response.find("Connection: close"), std::string::npos);
  }
  peer.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(body_of(peer.read_response()), "POST /p abc");
  EXPECT_EQ(server->stats().requests, 4U);
  EXPECT_EQ(server->stats().connections, 1U);
}

TEST_F(HttpServer, pipelined_requests_are_answered_in_order) {
  RawPeer peer(serve());
  std::string all;
  for (int i = 0; i < 20; ++i)
    all += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nok";
  peer.send(all);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(body_of(peer.read_response()), "POST /" + std::to_string(i) + " ok");
}

TEST_F(HttpServer, bytes_one_by_one_make_the_same_request) {
  RawPeer peer(serve());
  for (const char c : std::string("POST /slow HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
                                  "\r\n3;x=y\r\nabc\r\n0\r\nTrailer: t\r\n\r\n"))
    peer.send(std::string(1, c));
  EXPECT_EQ(body_of(peer.read_response()), "POST /slow abc");
}

TEST_F(HttpServer, head_has_lengths_but_no_body) {
  RawPeer peer(serve());
  peer.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string response = peer.read_until("\r\n\r\n");
  EXPECT_NE(response.find("Content-Length: 8\r\n"), std::string::npos) << response;
  peer.send(kGet);
  EXPECT_EQ(body_of(peer.read_response()), "GET /hello ");
}

TEST_F(HttpServer, http_1_0_and_connection_close_end_the_connection) {
  EXPECT_EQ(body_of(answer_to("GET / HTTP/1.0\r\nHost: h\r\n\r\n")), "GET / ");
  EXPECT_EQ(body_of(answer_to("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")), "GET / ");
}

TEST_F(HttpServer, malformed_heads_are_refused_and_closed) {
  limits.header_count = 10;
  const std::string many = [] {
    std::string text = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (int i = 0; i < 10; ++i) text += "X" + std::to_string(i) + ": y\r\n";
    return text + "\r\n";
  }();
  const std::vector<std::pair<std::string, int>> table{
      {"GET / HTTP/1.1\r\n\r\n", 400},                        // no Host
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},  // two
      {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", 400},  // obs-fold
      {"GET / HTTP/1.1\r\nHost: h\r\nX : a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nX: a\nY: b\r\n\r\n", 400},                // bare LF
      {"GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n", 400},                   // bare CR
      {std::string("GET / HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n", 35), 400},  // NUL
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /a%2fb HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"\x16\x03\x01 TLS", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 3\r\n\r\nabc", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
       "chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n", 417},
      {many, 431},
  };
  std::atomic<int> handled{0};
  site.handle = [&](const Request& request) {
    ++handled;
    return echo(request);
  };
  for (const auto& [bytes, status] : table) {
    const std::string response = answer_to(bytes);
    EXPECT_EQ(status_of(response), status) << bytes << "\n" << response;
    EXPECT_NE(response.find("Connection: close\r\n"), std::string::npos) << bytes;
  }
  EXPECT_EQ(handled, 0);
}

TEST_F(HttpServer, a_flood_of_header_is_refused_at_the_limit) {
  limits.header_bytes = 2048;
  serve();
  RawPeer peer(server->port());
  peer.send("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(2048, 'a'));
  EXPECT_EQ(status_of(peer.read_until("\r\n\r\n")), 431);
  RawPeer endless_chunk(server->port());
  endless_chunk.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
                     std::string(4096, 'a'));
  EXPECT_EQ(status_of(endless_chunk.read_until("\r\n\r\n")), 400);
}

TEST_F(HttpServer, a_head_that_trickles_is_cut_at_its_deadline) {
  limits.header = 150ms;
  RawPeer peer(serve());
  const auto start = std::chrono::steady_clock::now();
  peer.send("GET / HTTP/1.1\r\nHost: h\r\n");
  // Bytes now and then must not move the deadline.
  std::jthread drip([&](std::stop_token stop) {
    try {
      while (!stop.stop_requested()) {
        peer.send("X");
        std::this_thread::sleep_for(20ms);  // the attack itself, not a wait for a result
      }
    } catch (const Error&) {  // the server closed, as it must
    }
  });
  EXPECT_EQ(status_of(peer.read_until("\r\n\r\n")), 408);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  drip.request_stop();
}

TEST_F(HttpServer, silent_and_idle_connections_end_at_the_idle_limit) {
  limits.idle = 100ms;
  RawPeer silent(serve());
  EXPECT_EQ(silent.read_all(), "");
  RawPeer used(server->port());
  used.send(kGet);
  used.read_response();
  EXPECT_EQ(used.read_all(), "");
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 0; }));
}

TEST_F(HttpServer, a_body_that_does_not_come_ends_at_its_deadline) {
  limits.body = 100ms;
  const std::string response =
      answer_to("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(status_of(response), 408);
}

TEST_F(HttpServer, a_torn_body_never_reaches_the_handler) {
  std::atomic<int> handled{0};
  site.handle = [&](const Request& request) {
    ++handled;
    return echo(request);
  };
  RawPeer peer(serve());
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
  peer.wire().shutdown_write();
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_EQ(handled, 0);
}

TEST_F(HttpServer, refusals_come_before_the_body_is_read) {
  limits.body_bytes = 100;
  site.admit = [](const Request& head) -> std::variant<Admitted, Response> {
    if (head.headers.get("Authorization").empty()) return Response::text(401, "who?");
    return Admitted{head.path == "/large" ? 1000U : 100U};
  };
  serve();
  const auto post = [&](const std::string& path, const std::string& rest) {
    RawPeer peer(server->port());
    peer.send("POST " + path + " HTTP/1.1\r\nHost: h\r\n" + rest + "\r\n");
    return peer.read_until("\r\n\r\n");  // no byte of a body was sent
  };
  EXPECT_EQ(status_of(post("/", "Content-Length: 50\r\n")), 401);
  const std::string too_large = post("/", "Authorization: x\r\nContent-Length: 101\r\n");
  EXPECT_EQ(status_of(too_large), 413);
  EXPECT_NE(too_large.find("Connection: close"), std::string::npos);
  // Nor does a client that waits for 100 Continue get one.
  EXPECT_EQ(status_of(post("/",
                           "Authorization: x\r\nContent-Length: 101\r\n"
                           "Expect: 100-continue\r\n")),
            413);
  RawPeer chunked(server->port());
  chunked.send(
      "POST / HTTP/1.1\r\nHost: h\r\nAuthorization: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "65\r\n");
  EXPECT_EQ(status_of(chunked.read_until("\r\n\r\n")), 413);
  RawPeer large(server->port());
  large.send("POST /large HTTP/1.1\r\nHost: h\r\nAuthorization: x\r\nContent-Length: 101\r\n\r\n" +
             std::string(101, 'b'));
  EXPECT_EQ(status_of(large.read_response()), 200);
}

TEST_F(HttpServer, a_refusal_without_a_body_keeps_the_connection) {
  site.admit = [](const Request& head) -> std::variant<Admitted, Response> {
    if (head.path == "/no") return Response::text(401, "who?");
    return Admitted{10};
  };
  RawPeer peer(serve());
  peer.send("GET /no HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(peer.read_response()), 401);
  peer.send(kGet);
  EXPECT_EQ(status_of(peer.read_response()), 200);
}

TEST_F(HttpServer, a_client_that_sends_on_still_reads_the_refusal) {
  limits.body_bytes = 10;
  RawPeer peer(serve());
  peer.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n");
  peer.send(std::string(2'000'000, 'x'));
  EXPECT_EQ(status_of(peer.read_response()), 413);
}

TEST_F(HttpServer, expect_continue_is_answered) {
  RawPeer peer(serve());
  peer.send("PUT /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(peer.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  peer.send("ok");
  EXPECT_EQ(body_of(peer.read_response()), "PUT /e ok");
}

TEST_F(HttpServer, what_a_handler_throws_becomes_an_answer) {
  site.handle = [](const Request& request) -> Response {
    if (request.path == "/ours") throw Error(Code::not_found, "job x not found");
    throw std::runtime_error("secret detail");
  };
  EXPECT_EQ(body_of(answer_to("GET /ours HTTP/1.0\r\nHost: h\r\n\r\n")), "job x not found\n");
  const std::string other = answer_to("GET /other HTTP/1.0\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(other), 500);
  EXPECT_EQ(other.find("secret"), std::string::npos);
}

TEST_F(HttpServer, refusals_are_worded_by_the_site) {
  site.error_response = [](const Request&, const ErrorView& view) {
    const auto& error = dynamic_cast<const Error&>(view.exception());
    return Response::json(http_status(error.code()), "{\"m\":\"" + error.message() + "\"}");
  };
  EXPECT_EQ(body_of(answer_to("GET / HTTP/1.1\r\n\r\n")), "{\"m\":\"Host is required\"}");
}

TEST_F(HttpServer, response_headers_cannot_be_split) {
  site.handle = [](const Request&) {
    Response response = Response::text(200, "x");
    response.headers.add("X-Name", "a\r\nSet-Cookie: evil");
    return response;
  };
  const std::string response = answer_to("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
  EXPECT_EQ(response.find("\nSet-Cookie"), std::string::npos) << response;
}

TEST_F(HttpServer, connections_are_capped_in_total_and_per_peer) {
  limits.connections = 8;
  limits.connections_per_peer = 3;
  serve();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<RawPeer>(server->port()));
    peers.back()->send(kGet);
    EXPECT_EQ(status_of(peers.back()->read_response()), 200);
  }
  RawPeer fourth(server->port());
  EXPECT_EQ(fourth.read_all(), "");
  EXPECT_TRUE(becomes([&] { return server->stats().refused_connections == 1; }));
  peers.pop_back();
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 2; }));
  RawPeer again(server->port());
  again.send(kGet);
  EXPECT_EQ(status_of(again.read_response()), 200);
}

TEST_F(HttpServer, accept_filter_closes_at_once) {
  site.accept = [](const Endpoint& peer, const Endpoint& local) {
    return peer.address != "127.0.0.1" || local.address != "127.0.0.1";
  };
  RawPeer peer(serve());
  EXPECT_EQ(peer.read_all(), "");
  EXPECT_TRUE(becomes([&] { return server->stats().refused_connections == 1; }));
}

TEST_F(HttpServer, a_full_handler_queue_answers_503_with_retry_after) {
  limits.handler_threads = 1;
  limits.handler_queue = 1;
  std::atomic<bool> go{false};
  site.handle = [&](const Request& request) {
    go.wait(false);
    return echo(request);
  };
  serve();
  std::vector<std::unique_ptr<RawPeer>> waiting;
  for (size_t i = 0; i < 2; ++i) {
    waiting.push_back(std::make_unique<RawPeer>(server->port()));
    waiting.back()->send(kGet);
    EXPECT_TRUE(becomes([&] { return server->stats().requests_in_flight == i + 1; }));
  }
  RawPeer third(server->port());
  third.send(kGet);
  const std::string response = third.read_response();
  EXPECT_EQ(status_of(response), 503);
  EXPECT_NE(response.find("Retry-After: 1\r\n"), std::string::npos);
  go = true;
  go.notify_all();
  for (auto& peer : waiting) EXPECT_EQ(status_of(peer->read_response()), 200);
}

TEST_F(HttpServer, a_thousand_idle_connections_leave_room_for_work) {
  limits.connections = 1100;
  limits.connections_per_peer = 1100;
  serve();
  std::vector<std::unique_ptr<RawPeer>> idle;
  for (int i = 0; i < 1000; ++i) idle.push_back(std::make_unique<RawPeer>(server->port()));
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 1000; }));
  RawPeer peer(server->port());
  peer.send(kGet);
  EXPECT_EQ(status_of(peer.read_response()), 200);
  idle[777]->send(kGet);
  EXPECT_EQ(status_of(idle[777]->read_response()), 200);
  idle.clear();
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 1; }));
}

TEST_F(HttpServer, a_unix_socket_has_its_mode_and_replaces_a_stale_one) {
  const TempDir dir;
  listen.host = "";
  listen.unix_path = (dir.path() / "api.sock").string();
  listen.unix_mode = 0660;
  serve();
  EXPECT_EQ(static_cast<int>(std::filesystem::status(listen.unix_path).permissions()), 0660);
  RawPeer peer(listen.unix_path);
  peer.send(kGet);
  EXPECT_EQ(status_of(peer.read_response()), 200);
  EXPECT_THROW(Server(listen, limits, site), Error);  // another process listens there
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(listen.unix_path));
}

TEST_F(HttpServer, an_address_in_use_is_named) {
  listen.port = serve();
  try {
    Server second(listen, limits, site);
    FAIL() << "bound twice";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unavailable);
    EXPECT_EQ(e.message(),
              "listen on 127.0.0.1:" + std::to_string(listen.port) + ": Address already in use");
  }
}

TEST_F(HttpServer, stop_waits_for_handlers_and_closes_idle_connections) {
  std::atomic<bool> go{false};
  site.handle = [&](const Request& request) {
    go.wait(false);
    return echo(request);
  };
  serve();
  RawPeer idle(server->port());
  RawPeer busy(server->port());
  busy.send(kGet);
  EXPECT_TRUE(becomes([&] { return server->stats().requests_in_flight == 1; }));
  std::jthread stopper([&] { server->stop(5s); });
  EXPECT_EQ(idle.read_all(), "");
  go = true;
  go.notify_all();
  const std::string response = busy.read_all();
  EXPECT_EQ(body_of(response), "GET /hello ");
  stopper.join();
  EXPECT_EQ(server->stats().connections, 0U);
  EXPECT_THROW(RawPeer(server->port()), Error);
}

TEST_F(HttpServer, stop_cuts_what_does_not_end_within_the_grace) {
  RawPeer half(serve());
  half.send("GET / HTTP/1.1\r\nHos");
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 1; }));
  const auto start = std::chrono::steady_clock::now();
  server->stop(50ms);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
  EXPECT_TRUE(half.ended());
}

}  // namespace
}  // namespace umpteenth::http
