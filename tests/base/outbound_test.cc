#include "base/outbound.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "base/http/server.h"
#include "base/net/url.h"
#include "tests/support/raw_peer.h"
#include "tests/support/test_certificate.h"

namespace umpteenth {
namespace {

using namespace std::chrono_literals;
using test::becomes;

template <typename F>
Error error_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error(Code::not_implemented, "no error");
}

class OutboundCall : public testing::Test {
 protected:
  OutboundCall() {
    site.handle = [this](const http::Request& request) { return answer(request); };
  }
  void serve(std::optional<http::TlsFiles> tls = std::nullopt) {
    server = std::make_unique<http::Server>(http::ListenOn{.host = "127.0.0.1",
                                                           .port = 0,
                                                           .unix_path = "",
                                                           .unix_mode = 0600,
                                                           .tls = tls,
                                                           .proxy_v2 = false},
                                            http::Limits{}, site);
    server->start();
    base = (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(server->port());
  }
  http::Response answer(const http::Request& request) {
    if (request.path == "/moved") {
      http::Response response = http::Response::text(302, "");
      response.headers.add("Location", base + "/secret");
      return response;
    }
    if (request.path == "/error") return http::Response::text(500, std::string(2U << 20, 'e'));
    if (request.path == "/large") return http::Response::text(200, std::string(100'000, 'l'));
    if (request.path == "/hang" || request.path == "/drip") {
      http::Response response = http::Response::text(200, request.path == "/drip" ? "begun" : "");
      response.stream = stream;
      return response;
    }
    return http::Response::text(200, request.method + " " + request.target + " " + request.body +
                                         " " + std::string(request.headers.get("Authorization")));
  }
  OutboundRequest get(const std::string& target) const {
    OutboundRequest request;
    request.url = base + target;
    return request;
  }

  http::Site site;
  std::shared_ptr<http::Stream> stream = std::make_shared<http::Stream>();
  std::unique_ptr<http::Server> server;
  std::string base;
  OutboundPolicy policy;
};

TEST_F(OutboundCall, sends_method_headers_and_body) {
  serve();
  OutboundRequest request = get("/v1/x?y=z");
  EXPECT_EQ(Outbound(policy).send(request).body, "GET /v1/x?y=z  ");
  request.method = "POST";
  request.headers = {{"Authorization", "Bearer t"}, {"X-Empty", ""}};
  request.body = "{\"a\":1}";
  const OutboundResponse response = Outbound(policy).send(request);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "POST /v1/x?y=z {\"a\":1} Bearer t");
  EXPECT_EQ(response.header("content-type"), "text/plain; charset=utf-8");
  request.method = "DELETE";
  request.body.clear();
  EXPECT_TRUE(Outbound(policy).send(request).body.starts_with("DELETE "));
}

TEST_F(OutboundCall, private_targets_are_refused_at_the_dial) {
  serve();
  policy.allow_private = false;
  for (const std::string host :
       {"127.0.0.1", "localhost", "0x7f.1", "2130706433", "0177.0.0.1", "[::ffff:127.0.0.1]"}) {
    OutboundRequest request;
    request.url = "http://" + host + ":" + std::to_string(server->port()) + "/";
    const Error error = error_of([&] { Outbound(policy).send(request); });
    EXPECT_EQ(error.code(), Code::forbidden) << host << ": " << error.message();
    EXPECT_NE(error.message().find("points to a private or local network address"),
              std::string::npos);
  }
  EXPECT_EQ(server->stats().requests, 0U);
  EXPECT_EQ(server->stats().connections, 0U);
}

TEST_F(OutboundCall, blocked_and_metadata_addresses_are_refused_even_with_private_ones_allowed) {
  serve();
  policy.topology.blocked = {*net::parse_cidr("127.0.0.0/8")};
  EXPECT_EQ(error_of([&] { Outbound(policy).send(get("/")); }).code(), Code::forbidden);
  EXPECT_EQ(server->stats().connections, 0U);
  OutboundRequest metadata;
  metadata.url = "http://169.254.169.254/latest";
  EXPECT_EQ(error_of([&] { Outbound(OutboundPolicy{}).send(metadata); }).code(), Code::forbidden);
}

TEST_F(OutboundCall, targets_are_checked_when_they_are_saved) {
  policy.allow_private = false;
  const auto said = [&](const char* url) {
    const Error error = error_of([&] { Outbound(policy).check_target(url); });
    EXPECT_EQ(error.code(), Code::invalid) << url;
    return error.message();
  };
  EXPECT_EQ(said("http://10.0.0.1/x"), "10.0.0.1 points to a private or local network address");
  EXPECT_EQ(said("http://localhost:1/"), "localhost points to a private or local network address");
  EXPECT_EQ(said("https://[fd00::1]/"), "fd00::1 points to a private or local network address");
  // A label of more than 63 bytes never leaves this machine.
  const std::string unresolvable = std::string(70, 'a') + ".invalid";
  EXPECT_EQ(said(("http://" + unresolvable + "/").c_str()),
            unresolvable + ": host cannot be resolved");
  EXPECT_EQ(said("ssh://h/"), "must be an http(s) URL");
  EXPECT_TRUE(said("not a url").starts_with("not a URL"));
  policy.allow_private = true;
  EXPECT_NO_THROW(Outbound(policy).check_target("http://127.0.0.1:11434/v1"));
  EXPECT_EQ(said("http://169.254.169.254/"),
            "169.254.169.254 points to a private or local network address");
}

TEST_F(OutboundCall, environment_proxies_and_redirects_are_ignored) {
  setenv("http_proxy", "http://127.0.0.1:9", 1);
  setenv("ALL_PROXY", "http://127.0.0.1:9", 1);
  serve();
  const OutboundResponse response = Outbound(policy).send(get("/moved"));
  unsetenv("http_proxy");
  unsetenv("ALL_PROXY");
  EXPECT_EQ(response.status, 302);
  EXPECT_EQ(response.header("location"), base + "/secret");
  EXPECT_EQ(server->stats().requests, 1U);
}

TEST_F(OutboundCall, bodies_are_capped) {
  serve();
  OutboundRequest request = get("/large");
  request.max_body = 99'999;
  EXPECT_EQ(error_of([&] { Outbound(policy).send(request); }).code(), Code::too_large);
  request.max_body = 100'000;
  EXPECT_EQ(Outbound(policy).send(request).body.size(), 100'000U);
  const OutboundResponse error = Outbound(policy).send(get("/error"));
  EXPECT_EQ(error.status, 500);
  EXPECT_EQ(error.body.size(), 1U << 20);
}

TEST_F(OutboundCall, streams_arrive_as_they_come_and_may_be_ended) {
  serve();
  OutboundRequest request = get("/drip");
  std::string seen;
  request.on_data = [&](std::string_view part) {
    seen += part;
    if (seen == "begun") stream->push("more");
    return seen != "begunmore";
  };
  const OutboundResponse response = Outbound(policy).send(request);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(seen, "begunmore");
  EXPECT_EQ(response.body, "");
  EXPECT_TRUE(becomes([&] { return stream->closed(); }));
}

TEST_F(OutboundCall, what_on_data_throws_reaches_the_caller) {
  serve();
  OutboundRequest request = get("/large");
  request.on_data = [](std::string_view) -> bool { throw Error(Code::invalid, "bad event"); };
  EXPECT_EQ(error_of([&] { Outbound(policy).send(request); }).message(), "bad event");
  request.url = base + "/error";  // an error's body is no data
  EXPECT_EQ(Outbound(policy).send(request).status, 500);
}

TEST_F(OutboundCall, silence_ends_at_the_idle_and_total_limits) {
  serve();
  OutboundRequest request = get("/drip");
  request.idle_timeout = 100ms;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of([&] { Outbound(policy).send(request); }).code(), Code::timeout);
  request = get("/drip");
  request.total_timeout = 100ms;
  EXPECT_EQ(error_of([&] { Outbound(policy).send(request); }).code(), Code::timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST_F(OutboundCall, stop_ends_a_call_at_once) {
  serve();
  std::stop_source source;
  std::jthread stopper([&] {
    becomes([&] { return server->stats().requests == 1; });
    source.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(error_of([&] { Outbound(policy).send(get("/hang"), source.get_token()); }).code(),
            Code::unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST_F(OutboundCall, certificates_are_verified) {
  const http::TlsFiles certificate = test::a_certificate();
  serve(certificate);
  EXPECT_EQ(error_of([&] { Outbound(policy).send(get("/")); }).code(), Code::bad_gateway);
  const TempDir dir;
  policy.ca_file = dir.path() / "ca.pem";
  write_file_durably(policy.ca_file, certificate.cert_chain_pem, 0600);
  EXPECT_EQ(Outbound(policy).send(get("/")).status, 200);
}

TEST_F(OutboundCall, a_port_where_nobody_listens_is_a_bad_gateway) {
  serve();
  const OutboundRequest request = get("/");
  server.reset();
  EXPECT_EQ(error_of([&] { Outbound(policy).send(request); }).code(), Code::bad_gateway);
}

TEST_F(OutboundCall, headers_cannot_be_split) {
  serve();
  OutboundRequest request = get("/");
  request.headers = {{"X", "a\r\nEvil: b"}};
  EXPECT_EQ(error_of([&] { Outbound(policy).send(request); }).code(), Code::bad_request);
  request = get("/");
  request.method = "GET / HTTP/1.1\r\nX:";
  EXPECT_EQ(error_of([&] { Outbound(policy).send(request); }).code(), Code::bad_request);
}

TEST(Url, parts_and_default_ports) {
  const net::Url url = net::parse_url("HTTPS://user:p%40ss@Example.COM/a/b?c=d#frag");
  EXPECT_EQ(url.scheme, "https");
  EXPECT_EQ(url.user, "user");
  EXPECT_EQ(url.password, "p@ss");
  EXPECT_EQ(url.host, "example.com");
  EXPECT_EQ(url.port, 443);
  EXPECT_EQ(url.path, "/a/b");
  EXPECT_EQ(url.query, "c=d");
  EXPECT_EQ(net::parse_url("ws://h").port, 80);
  EXPECT_EQ(net::parse_url("ssh://git@h/repo").port, 22);
  EXPECT_EQ(net::parse_url("http://[::1]:8080/").host, "::1");
  EXPECT_EQ(net::parse_url("http://[::1]:8080/").port, 8080);
  EXPECT_EQ(net::parse_url("unix:///run/x.sock").path, "/run/x.sock");
}

TEST(Url, what_is_not_absolute_or_not_ours_is_refused) {
  for (const char* bad : {"", "example.com/x", "/path", "http://", "http:///x",
                          "file:///etc/passwd", "gopher://h/", "http://h:99999/", "http://h h/",
                          "http://h/a\nb", "unix://relative", "javascript:alert(1)"})
    EXPECT_EQ(error_of([&] { net::parse_url(bad); }).code(), Code::bad_request) << bad;
  EXPECT_EQ(error_of([&] { net::parse_url("http://h/" + std::string(9000, 'a')); }).code(),
            Code::bad_request);
}

}  // namespace
}  // namespace umpteenth
