#include "base/http/client.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <future>

#include "base/error.h"
#include "base/fd.h"
#include "base/http/listener.h"
#include "base/http/server.h"
#include "tests/support/code_of.h"
#include "tests/support/raw_peer.h"

namespace umpteenth::http {
namespace {

using namespace std::chrono_literals;
using test::becomes;

ListenOn loopback() {
  return {.host = "127.0.0.1",
          .port = 0,
          .unix_path = "",
          .unix_mode = 0600,
          .tls = std::nullopt,
          .proxy_v2 = false};
}

ClientTarget at(int port) { return {.unix_path = "", .host = "127.0.0.1", .port = port}; }

// A server that says exactly what the test wants, a connection after the other.
class ScriptedServer {
 public:
  using Turn = std::function<void(int socket)>;

  explicit ScriptedServer(std::vector<Turn> turns)
      : listener_(listen_on(loopback())), thread_([this, turns = std::move(turns)] {
          for (const Turn& turn : turns) {
            bool exhausted = false;
            std::optional<Accepted> accepted;
            if (!becomes([&] {
                  return (accepted = accept_from(listener_.get(), exhausted)).has_value();
                }))
              return;
            ++connections;
            turn(accepted->socket.get());
          }
        }) {}

  int port() const { return bound_port(listener_.get()); }
  std::atomic<int> connections{0};

 private:
  Fd listener_;
  std::jthread thread_;
};

void say(int socket, std::string_view bytes) {
  send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string hear(int socket, std::string_view marker = "\r\n\r\n") {
  std::string all;
  std::array<char, 4096> buffer;
  becomes([&] {
    const ssize_t n = recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n > 0) all.append(buffer.data(), static_cast<size_t>(n));
    return n == 0 || all.find(marker) != std::string::npos;
  });
  return all;
}

using support::code_of;

class HttpClient : public testing::Test {
 protected:
  int serve() {
    site.handle = [](const Request& r) {
      if (r.path == "/stream") {
        Response response = Response::text(200, "one ");
        response.stream = std::make_shared<Stream>();
        response.stream->push("two");
        response.stream->close();
        return response;
      }
      if (r.path == "/none")
        return Response{.status = 204, .headers = {}, .body = "", .stream = nullptr};
      return Response::text(r.path == "/missing" ? 404 : 200,
                            r.method + " " + r.target + " " + r.body);
    };
    server = std::make_unique<Server>(listen, limits, site);
    server->start();
    return server->port();
  }
  static ClientRequest get(std::string target) {
    ClientRequest request;
    request.target = std::move(target);
    request.timeout = 5s;
    return request;
  }

  ListenOn listen = loopback();
  Limits limits;
  Site site;
  std::unique_ptr<Server> server;
};

TEST_F(HttpClient, sends_and_reuses_one_connection) {
  Client client(at(serve()));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.send(get("/a?b=c")).body, "GET /a?b=c ");
    ClientRequest post = get("/p");
    post.method = "POST";
    post.body = "text";
    EXPECT_EQ(client.send(post).body, "POST /p text");
    EXPECT_EQ(client.send(get("/stream")).body, "one two");
    EXPECT_EQ(client.send(get("/none")).status, 204);
    EXPECT_EQ(client.send(get("/missing")).status, 404);
    ClientRequest head = get("/h");
    head.method = "HEAD";
    EXPECT_EQ(client.send(head).body, "");
  }
  EXPECT_EQ(server->stats().connections, 1U);
}

TEST_F(HttpClient, speaks_over_a_unix_socket) {
  const TempDir dir;
  listen.host = "";
  listen.unix_path = dir.path() / "s";
  serve();
  Client client(parse_client_target("unix://" + listen.unix_path));
  EXPECT_EQ(client.send(get("/u")).body, "GET /u ");
}

TEST_F(HttpClient, many_threads_share_a_client) {
  Client client(at(serve()));
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string target = "/" + std::to_string(t) + "/" + std::to_string(i);
        right += client.send(get(target)).body == "GET " + target + " ";
      }
    });
  threads.clear();
  EXPECT_EQ(right, 400);
}

TEST_F(HttpClient, a_kept_connection_that_died_is_retried_for_idempotent_methods_only) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  const auto serve_one_then_die_on_the_next = [&](int socket) {
    hear(socket);
    say(socket, ok);
    hear(socket);  // and closes without an answer
  };
  const auto serve_one = [&](int socket) {
    hear(socket);
    say(socket, ok);
  };
  {
    ScriptedServer scripted({serve_one_then_die_on_the_next, serve_one});
    Client client(at(scripted.port()));
    EXPECT_EQ(client.send(get("/1")).body, "ok");
    EXPECT_EQ(client.send(get("/2")).body, "ok");
    EXPECT_EQ(scripted.connections, 2);
  }
  ScriptedServer scripted({serve_one_then_die_on_the_next, serve_one});
  Client client(at(scripted.port()));
  EXPECT_EQ(client.send(get("/1")).body, "ok");
  ClientRequest post = get("/2");
  post.method = "POST";
  EXPECT_EQ(code_of([&] { client.send(post); }), Code::unavailable);
  EXPECT_EQ(client.send(get("/3")).body, "ok");
}

TEST_F(HttpClient, broken_peers_have_their_codes) {
  struct Case {
    const char* says;
    Code code;
  };
  for (const Case& c :
       {Case{"", Code::unavailable}, Case{"SSH-2.0-x\r\n\r\n", Code::bad_gateway},
        Case{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", Code::bad_gateway},
        Case{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Code::bad_gateway},
        Case{"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", Code::too_large},
        Case{"HTTP/1.1 200 OK\r\n\r\n0123456789012345678901234567890123456789"
             "0123456789012345678901234567890123456789",
             Code::too_large}}) {
    ScriptedServer scripted({[&](int socket) {
      hear(socket);
      say(socket, c.says);
    }});
    Client client(at(scripted.port()));
    ClientRequest request = get("/");
    request.max_body = 64;
    EXPECT_EQ(code_of([&] { client.send(request); }), c.code) << c.says;
  }
  ScriptedServer endless({[](int socket) {
    hear(socket);
    say(socket, "HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x'));
  }});
  EXPECT_EQ(code_of([&] { Client(at(endless.port())).send(get("/")); }), Code::bad_gateway);
}

TEST_F(HttpClient, nobody_listening_is_unavailable_and_names_the_target) {
  int port = serve();
  server.reset();
  try {
    Client(at(port)).send(get("/"));
    FAIL() << "somebody answered";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unavailable);
    EXPECT_TRUE(e.message().starts_with("127.0.0.1:" + std::to_string(port))) << e.message();
  }
  EXPECT_EQ(
      code_of([] { Client({.unix_path = "/nonexistent/s", .host = "", .port = 0}).send({}); }),
      Code::unavailable);
}

TEST_F(HttpClient, silence_ends_at_the_deadline_and_stop_ends_it_at_once) {
  std::promise<void> done;
  ScriptedServer silent({[&](int socket) {
                           hear(socket);
                           hear(socket);  // until the client gives up
                         },
                         [&](int socket) {
                           hear(socket);
                           hear(socket);
                         }});
  Client client(at(silent.port()));
  ClientRequest request = get("/");
  request.timeout = 100ms;
  EXPECT_EQ(code_of([&] { client.send(request); }), Code::timeout);
  std::stop_source source;
  std::jthread stopper([&] {
    becomes([&] { return silent.connections == 2; });
    source.request_stop();
  });
  EXPECT_EQ(code_of([&] { client.send(get("/"), source.get_token()); }), Code::unavailable);
}

TEST_F(HttpClient, interim_answers_are_skipped) {
  ScriptedServer scripted({[](int socket) {
    hear(socket);
    say(socket,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  }});
  EXPECT_EQ(Client(at(scripted.port())).send(get("/")).body, "ok");
}

TEST_F(HttpClient, request_lines_and_headers_cannot_be_split) {
  Client client(at(serve()));
  ClientRequest request = get("/ HTTP/1.1\r\nEvil: x");
  EXPECT_EQ(code_of([&] { client.send(request); }), Code::bad_request);
  request = get("/");
  request.headers.add("X", "a\r\nEvil: x");
  EXPECT_EQ(code_of([&] { client.send(request); }), Code::bad_request);
}

TEST_F(HttpClient, open_reads_a_body_as_it_comes) {
  std::promise<void> first_read;
  ScriptedServer scripted({[&](int socket) {
    hear(socket);
    say(socket,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Kind: events\r\n\r\n3\r\none\r\n");
    first_read.get_future().wait();
    say(socket, "3\r\ntwo\r\n0\r\n\r\n");
    hear(socket);
  }});
  Client client(at(scripted.port()));
  const auto reader = client.open(get("/events"));
  EXPECT_EQ(reader->head().status, 200);
  EXPECT_EQ(reader->head().headers.get("x-kind"), "events");
  std::array<char, 2> small{};
  EXPECT_EQ(reader->read(small.data(), 2, 5s), 2U);
  EXPECT_EQ(reader->read(small.data(), 2, 5s), 1U);
  EXPECT_EQ(code_of([&] { reader->read(small.data(), 2, 20ms); }), Code::timeout);
  first_read.set_value();
  EXPECT_EQ(reader->read(small.data(), 2, 5s), 2U);  // the deadline did no harm
  EXPECT_EQ(reader->read(small.data(), 2, 5s), 1U);
  EXPECT_EQ(reader->read(small.data(), 2, 5s), 0U);
}

TEST_F(HttpClient, cancel_ends_a_pending_read) {
  ScriptedServer scripted({[](int socket) {
    hear(socket);
    say(socket, "HTTP/1.1 200 OK\r\n\r\n");
    hear(socket);
  }});
  Client client(at(scripted.port()));
  const auto reader = client.open(get("/"));
  std::jthread canceller([&] { reader->cancel(); });
  char c = 0;
  EXPECT_EQ(code_of([&] { reader->read(&c, 1, 5s); }), Code::unavailable);
}

TEST_F(HttpClient, upgrade_takes_101_and_200_and_loses_no_byte) {
  for (const char* head :
       {"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nearly",
        "HTTP/1.1 200 OK\r\nContent-Type: application/x\r\n\r\nearly"}) {
    std::string asked, said;
    {
      ScriptedServer scripted({[&](int socket) {
        asked = hear(socket);
        say(socket, head);
        said = hear(socket, "bye");
        say(socket, "-late");
      }});
      Client client(at(scripted.port()));
      ClientRequest request = get("/exec");
      request.method = "POST";
      request.body = "{}";
      const auto duplex = client.upgrade(request);
      duplex->write("bye", 5s);
      std::string all;
      std::array<char, 3> buffer{};
      while (const size_t n = duplex->read(buffer.data(), buffer.size(), 5s))
        all.append(buffer.data(), n);
      EXPECT_EQ(all, "early-late");
    }
    EXPECT_NE(asked.find("Upgrade: tcp\r\n"), std::string::npos);
    EXPECT_EQ(said, "bye");
  }
}

TEST_F(HttpClient, upgrade_refused_is_an_error_with_the_text) {
  Client client(at(serve()));
  try {
    client.upgrade(get("/missing"));
    FAIL() << "upgraded";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::not_found);
    EXPECT_EQ(e.message(), "GET /missing ");
  }
}

TEST_F(HttpClient, a_duplex_reads_and_writes_at_once_and_survives_a_timeout) {
  ScriptedServer scripted({[](int socket) {
    hear(socket);
    say(socket, "HTTP/1.1 101 UPGRADED\r\n\r\n");
    const std::string all = hear(socket, "END");
    say(socket, std::to_string(all.size()));
  }});
  Client client(at(scripted.port()));
  const auto duplex = client.upgrade(get("/exec"));
  std::array<char, 64> buffer{};
  EXPECT_EQ(code_of([&] { duplex->read(buffer.data(), buffer.size(), 20ms); }), Code::timeout);
  std::jthread writer([&] {
    for (int i = 0; i < 100; ++i) duplex->write(std::string(10'000, 'w'), 5s);
    duplex->write("END", 5s);
    duplex->shutdown_write();
  });
  std::string all;
  while (const size_t n = duplex->read(buffer.data(), buffer.size(), 5s))
    all.append(buffer.data(), n);
  EXPECT_EQ(all, "1000003");
}

TEST(ClientTarget, endpoints_parse_strictly) {
  EXPECT_EQ(parse_client_target("unix:///var/run/docker.sock").unix_path, "/var/run/docker.sock");
  EXPECT_EQ(parse_client_target("tcp://127.0.0.1:2375").port, 2375);
  EXPECT_EQ(parse_client_target("tcp://[::1]:2375/").host, "::1");
  for (const char* bad :
       {"", "unix://", "unix://relative", "tcp://host", "tcp://host:0", "tcp://host:99999",
        "tcp://:1", "http://h:1", "tcp://u@h:1", "tcp://h:1x"})
    EXPECT_EQ(code_of([&] { parse_client_target(bad); }), Code::bad_request) << bad;
}

}  // namespace
}  // namespace umpteenth::http
