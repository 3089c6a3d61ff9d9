#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/fd.h"
#include "base/http/server.h"
#include "base/subprocess.h"
#include "tests/support/raw_peer.h"
#include "tests/support/test_certificate.h"

namespace umpteenth::http {
namespace {

using namespace std::chrono_literals;
using test::becomes;
using test::RawPeer;

class HttpTls : public testing::Test {
 protected:
  HttpTls() {
    listen.tls = certificate;
    site.handle = [](const Request& request) {
      if (request.path == "/large") return Response::text(200, std::string(1'000'000, 'l'));
      Response response = Response::text(200, request.tls ? "secure" : "plain");
      if (request.path == "/stream") {
        response.stream = std::make_shared<Stream>();
        response.stream->push(" one");
        response.stream->push(" two");
        response.stream->close();
      }
      return response;
    };
  }
  int serve() {
    write_file_durably(ca, certificate.cert_chain_pem, 0600);
    server = std::make_unique<Server>(listen, limits, site);
    server->start();
    return server->port();
  }
  // What a real client says.
  CommandResult curl(std::vector<std::string> options, const std::string& path) {
    Command command;
    command.argv = {"curl", "-sS", "--noproxy", "*", "--cacert", ca};
    command.argv.insert(command.argv.end(), options.begin(), options.end());
    command.argv.push_back("https://127.0.0.1:" + std::to_string(server->port()) + path);
    command.max_output = 4U << 20;
    return system_runner().run(command);
  }

  TempDir dir;
  std::string ca = dir.path() / "ca.pem";
  TlsFiles certificate = test::a_certificate();
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

TEST_F(HttpTls, serves_real_clients_bodies_and_streams) {
  serve();
  EXPECT_EQ(curl({}, "/").out, "secure");
  EXPECT_EQ(curl({}, "/large").out.size(), 1'000'000U);
  EXPECT_EQ(curl({}, "/stream").out, "secure one two");
  EXPECT_EQ(curl({"--data-binary", std::string(100'000, 'b')}, "/").out, "secure");
}

TEST_F(HttpTls, negotiates_http_1_1_and_nothing_older_than_tls_1_2) {
  serve();
  const CommandResult h2 = curl({"--http2", "-v"}, "/");
  EXPECT_EQ(h2.out, "secure");
  EXPECT_NE(h2.err.find("ALPN: server accepted http/1.1"), std::string::npos) << h2.err;
  Command command;
  const std::string target = "127.0.0.1:" + std::to_string(server->port());
  command.argv = {"openssl", "s_client", "-connect",       target,
                  "-tls1_1", "-cipher",  "ALL:@SECLEVEL=0"};
  EXPECT_NE(system_runner().run(command).exit_code, 0);
  command.argv = {"openssl", "s_client", "-connect", target, "-alpn", "h2"};
  EXPECT_NE(system_runner().run(command).exit_code, 0);
}

TEST_F(HttpTls, a_handshake_that_does_not_come_is_cut) {
  limits.tls_handshake = 100ms;
  RawPeer silent(serve());
  EXPECT_TRUE(silent.ended());
  RawPeer half(server->port());
  half.send(std::string("\x16\x03\x01\x02\x00\x01", 6));
  EXPECT_TRUE(half.ended());
  RawPeer plain(server->port());
  plain.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(plain.ended());
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 0; }));
  EXPECT_EQ(server->stats().requests, 0U);
}

TEST_F(HttpTls, new_connections_use_the_replaced_certificate) {
  serve();
  EXPECT_EQ(curl({}, "/").out, "secure");
  const TlsFiles fresh = test::a_certificate();
  server->replace_tls(fresh);
  EXPECT_NE(curl({}, "/").exit_code, 0);  // the old one is all this client trusts
  write_file_durably(ca, fresh.cert_chain_pem, 0600);
  EXPECT_EQ(curl({}, "/").out, "secure");
}

TEST_F(HttpTls, a_key_that_does_not_fit_is_refused) {
  listen.tls->private_key_pem = test::a_certificate().private_key_pem;
  EXPECT_THROW(Server(listen, limits, site), Error);
  listen.tls = TlsFiles{"not a certificate", "not a key"};
  EXPECT_THROW(Server(listen, limits, site), Error);
}

TEST_F(HttpTls, a_client_that_leaves_a_stream_is_noticed) {
  std::atomic<bool> ended{false};
  site.handle = [&](const Request&) {
    Response response = Response::text(200, "begun");
    response.stream = std::make_shared<Stream>();
    response.stream->on_end([&] { ended = true; });
    return response;
  };
  serve();
  EXPECT_EQ(curl({"--max-time", "0.3"}, "/").out, "begun");
  EXPECT_TRUE(becomes([&] { return ended.load(); }));
  EXPECT_TRUE(becomes([&] { return server->stats().connections == 0; }));
}

}  // namespace
}  // namespace umpteenth::http
