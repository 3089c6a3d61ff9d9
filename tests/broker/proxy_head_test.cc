#include "broker/proxy_head.h"

#include <gtest/gtest.h>

#include "base/crypto.h"

namespace umpteenth::broker {
namespace {

using namespace std::string_literals;

ProxyHead whole(const std::string& bytes) {
  ProxyHead head = parse_proxy_head(bytes);
  EXPECT_EQ(head.state, ProxyHead::State::complete) << bytes;
  return head;
}

TEST(FirstBytes, tell_the_proxy_from_the_broker_api) {
  EXPECT_EQ(first_bytes(""), Speaks::need_more);
  EXPECT_EQ(first_bytes("\x05"), Speaks::socks5);
  EXPECT_EQ(first_bytes("GET"), Speaks::need_more);
  EXPECT_EQ(first_bytes("GET "), Speaks::need_more);
  EXPECT_EQ(first_bytes("GET /v1/state HTTP/1.1"), Speaks::broker_api);
  EXPECT_EQ(first_bytes("GET http://a/"), Speaks::proxy);
  EXPECT_EQ(first_bytes("CONNECT "), Speaks::proxy);
  EXPECT_EQ(first_bytes("OPTIONS *"), Speaks::broker_api);
  EXPECT_EQ(first_bytes("\x16\x03\x01"), Speaks::broker_api);  // which answers 400
  EXPECT_EQ(first_bytes(std::string(33, 'A')), Speaks::broker_api);
}

TEST(ProxyHead, reads_connect_with_credentials_byte_by_byte) {
  const std::string bytes =
      "CONNECT Example.org:443 HTTP/1.1\r\nHost: Example.org:443\r\n"
      "proxy-authorization: basic " +
      crypto::base64("ump:to:ken") + "\r\n\r\nearly";
  const size_t head_size = bytes.size() - 5;
  for (size_t n = 0; n < head_size; ++n)
    EXPECT_EQ(parse_proxy_head(bytes.substr(0, n)).state, ProxyHead::State::need_more) << n;
  const ProxyHead head = whole(bytes);
  EXPECT_EQ(head.size, head_size);
  EXPECT_EQ(head.refusal_status, 0) << head.refusal;
  EXPECT_TRUE(head.connect);
  EXPECT_EQ(head.host, "Example.org");
  EXPECT_EQ(head.port, 443);
  EXPECT_EQ(head.password, "to:ken");
}

TEST(ProxyHead, credentials_of_no_use_are_none) {
  for (const char* value : {"Basic", "Basic %%%", "Bearer abc", "Basic bm9jb2xvbg=="})
    EXPECT_EQ(whole("CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: "s + value + "\r\n\r\n").password,
              "")
        << value;
}

TEST(ProxyHead, forwards_absolute_form_without_what_holds_for_one_hop) {
  const ProxyHead head = whole(
      "POST http://Example.org:8080/a?b=1 HTTP/1.1\r\nHost: example.org:8080\r\n"
      "Proxy-Authorization: Basic eDp5\r\nConnection: keep-alive, X-Mine, Host, Content-Length\r\n"
      "Keep-Alive: 5\r\nX-Mine: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nAccept: */*\r\n"
      "Content-Length: 3\r\n\r\n");
  EXPECT_EQ(head.refusal_status, 0) << head.refusal;
  EXPECT_FALSE(head.connect);
  EXPECT_EQ(head.password, "y");
  EXPECT_EQ(head.host_problem, "");
  EXPECT_EQ(head.forward,
            "POST /a?b=1 HTTP/1.1\r\nHost: Example.org:8080\r\nAccept: */*\r\n"
            "Content-Length: 3\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(whole("GET http://a HTTP/1.0\r\n\r\n").forward,
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(whole("GET http://a?q HTTP/1.1\r\n\r\n").forward.substr(0, 7), "GET /?q");
}

TEST(ProxyHead, the_host_field_must_name_the_urls_host) {
  for (const char* host : {"evil.example", "a:81", "a.evil.example", "", "a b"})
    EXPECT_NE(whole("GET http://a/ HTTP/1.1\r\nHost: "s + host + "\r\n\r\n").host_problem, "")
        << host;
  for (const char* host : {"a", "A", "a.", "a:80"})
    EXPECT_EQ(whole("GET http://a/ HTTP/1.1\r\nHost: "s + host + "\r\n\r\n").host_problem, "")
        << host;
  EXPECT_EQ(whole("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n").refusal_status, 400);
}

TEST(ProxyHead, refuses_what_is_malformed) {
  const struct {
    std::string bytes;
    int status;
  } kCases[] = {
      {"CONNECT a HTTP/1.1\r\n\r\n", 400},
      {"CONNECT a:0 HTTP/1.1\r\n\r\n", 400},
      {"CONNECT a:65536 HTTP/1.1\r\n\r\n", 400},
      {"CONNECT a:44x HTTP/1.1\r\n\r\n", 400},
      {"CONNECT :443 HTTP/1.1\r\n\r\n", 400},
      {"CONNECT ::1:443 HTTP/1.1\r\n\r\n", 400},
      {"CONNECT a:443 HTTP/2.0\r\n\r\n", 400},
      {"CONNECT a:443\r\n\r\n", 400},
      {"CONNECT a:443 HTTP/1.1\r\n folded: x\r\n\r\n", 400},
      {"CONNECT a:443 HTTP/1.1\r\nname : x\r\n\r\n", 400},
      {"CONNECT a:443 HTTP/1.1\r\nname: x\ny\r\n\r\n", 400},
      {"GET https://a/ HTTP/1.1\r\n\r\n", 400},
      {"GET ftp://a/ HTTP/1.1\r\n\r\n", 400},
      {"GET http://user@a/ HTTP/1.1\r\n\r\n", 400},
      {"GET http:///x HTTP/1.1\r\n\r\n", 400},
      {"GET http://a/ b HTTP/1.1\r\n\r\n", 400},
      {"GET http://a/#f HTTP/1.1\r\n\r\n", 400},
      {"POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
      {"POST http://a/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST http://a/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400},
  };
  for (const auto& [bytes, status] : kCases)
    EXPECT_EQ(whole(bytes).refusal_status, status) << bytes;
  std::string many = "CONNECT a:443 HTTP/1.1\r\n";
  for (size_t i = 0; i <= kMaxProxyFields; ++i) many += "x: y\r\n";
  EXPECT_EQ(whole(many + "\r\n").refusal_status, 431);
  EXPECT_EQ(whole("CONNECT a:443 HTTP/1.1\r\nx: " + std::string(kMaxProxyHead, 'y')).refusal_status,
            431);
}

TEST(BodyFrame, ends_where_the_body_ends) {
  BodyFrame none;
  EXPECT_TRUE(none.done());
  EXPECT_EQ(none.take("GET / HTTP/1.1"), 0U);
  BodyFrame three = BodyFrame::length(3);
  EXPECT_EQ(three.take("ab"), 2U);
  EXPECT_FALSE(three.done());
  EXPECT_EQ(three.take("cGET"), 1U);
  EXPECT_TRUE(three.done());
}

TEST(BodyFrame, follows_chunks_however_they_are_cut) {
  const std::string body = "4;ext=1\r\nwiki\r\nA\r\n0123456789\r\n0\r\n\r\n";
  const std::string next = "GET / HTTP/1.1\r\nHost: evil\r\n\r\n";
  for (size_t cut = 0; cut <= body.size(); ++cut) {
    BodyFrame frame = BodyFrame::chunked();
    const auto first = frame.take(body.substr(0, cut));
    const auto second = frame.take(body.substr(cut) + next);
    ASSERT_TRUE(first && second) << cut;
    EXPECT_EQ(*first + *second, body.size()) << cut;
    EXPECT_TRUE(frame.done());
  }
  for (const char* broken : {"x\r\n", "4\nwiki", "4\r\nwikiX", "\r\n", "0\r\nTrailer: x\r\n\r\n",
                             "fffffffffffffffff\r\n", "4 \r\n", "-1\r\n"})
    EXPECT_FALSE(BodyFrame::chunked().take(broken)) << broken;
  BodyFrame long_extension = BodyFrame::chunked();
  EXPECT_FALSE(long_extension.take("1;" + std::string(1000, 'e')));
}

TEST(AnswerHead, loses_what_holds_for_one_hop_and_closes) {
  const AnswerHead head = parse_answer_head(
      "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\nX: y\r\n\r\nbody");
  ASSERT_EQ(head.state, AnswerHead::State::complete);
  EXPECT_EQ(head.forward, "HTTP/1.1 200 OK\r\nX: y\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(head.interim);
  EXPECT_TRUE(parse_answer_head("HTTP/1.1 100 Continue\r\n\r\n").interim);
  EXPECT_EQ(parse_answer_head("HTTP/1.1 200 OK\r\nX: y\r\n").state, AnswerHead::State::need_more);
  for (const char* bad : {"SSH-2.0-x", "HTTP/1.1 101 Switching\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
                          "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"})
    EXPECT_EQ(parse_answer_head(bad).state, AnswerHead::State::bad) << bad;
  EXPECT_EQ(parse_answer_head("HTTP/1.1 200 OK\r\nX: " + std::string(kMaxAnswerHead, 'y')).state,
            AnswerHead::State::bad);
}

TEST(ProxyRefusal, challenges_where_credentials_are_missing) {
  const std::string text = proxy_refusal(407, "proxy authentication required");
  EXPECT_TRUE(
      text.starts_with("HTTP/1.1 407 Proxy Authentication Required\r\n"
                       "Proxy-Authenticate: Basic realm=\"umpteenth\"\r\n"))
      << text;
  EXPECT_TRUE(text.ends_with("Content-Length: 30\r\n\r\nproxy authentication required\n")) << text;
}

}  // namespace
}  // namespace umpteenth::broker
