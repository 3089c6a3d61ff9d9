// SOCKS5, the TLS ClientHello, and the rules for hosts.
#include <gtest/gtest.h>

#include "broker/client_hello.h"
#include "broker/host_rules.h"
#include "broker/socks5.h"
#include "tests/broker/client_hello.h"

namespace umpteenth::broker {
namespace {

using namespace std::string_literals;
using ::umpteenth::test::client_hello;
using ::umpteenth::test::records;

TEST(Socks5, greeting_offers_methods) {
  EXPECT_EQ(socks5::parse_greeting("\x05"s).state, socks5::State::need_more);
  EXPECT_EQ(socks5::parse_greeting("\x05\x02\x00"s).state, socks5::State::need_more);
  EXPECT_EQ(socks5::parse_greeting("\x04\x01\x02"s).state, socks5::State::bad);
  EXPECT_EQ(socks5::parse_greeting("\x05\x00"s).state, socks5::State::bad);
  const auto both = socks5::parse_greeting("\x05\x02\x00\x02rest"s);
  EXPECT_EQ(both.state, socks5::State::complete);
  EXPECT_EQ(both.size, 4U);
  EXPECT_TRUE(both.offers_password);
  EXPECT_FALSE(socks5::parse_greeting("\x05\x01\x00"s).offers_password);
}

TEST(Socks5, login_carries_the_token_as_password) {
  const std::string bytes = "\x01\x03ump\x05token"s;
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_EQ(socks5::parse_login(bytes.substr(0, n)).state, socks5::State::need_more) << n;
  const auto login = socks5::parse_login(bytes + "x");
  EXPECT_EQ(login.state, socks5::State::complete);
  EXPECT_EQ(login.size, bytes.size());
  EXPECT_EQ(login.password, "token");
  EXPECT_EQ(socks5::parse_login("\x05"s).state, socks5::State::bad);
}

TEST(Socks5, request_names_a_host_in_three_ways) {
  const std::string named = "\x05\x01\x00\x03\x07host.io\x01\xbb"s;
  for (size_t n = 0; n < named.size(); ++n)
    EXPECT_EQ(socks5::parse_request(named.substr(0, n)).state, socks5::State::need_more) << n;
  const auto request = socks5::parse_request(named + "early");
  EXPECT_EQ(request.size, named.size());
  EXPECT_TRUE(request.connect);
  EXPECT_EQ(request.host, "host.io");
  EXPECT_EQ(request.port, 443);
  EXPECT_EQ(socks5::parse_request("\x05\x01\x00\x01\x0a\x00\x00\x01\x00\x50"s).host, "10.0.0.1");
  const auto v6 =
      socks5::parse_request("\x05\x01\x00\x04"s + std::string(15, '\0') + "\x01\x00\x50"s);
  EXPECT_EQ(v6.host, "::1");
  EXPECT_EQ(v6.port, 80);
  EXPECT_FALSE(socks5::parse_request("\x05\x02\x00\x03\x01h\x00\x50"s).connect);  // BIND
  EXPECT_EQ(socks5::parse_request("\x05\x01\x00\x02xxxxxx"s).state, socks5::State::bad);
  EXPECT_EQ(socks5::parse_request("\x05\x01\x00\x03\x00\x00\x50"s).state, socks5::State::bad);
}

TEST(Socks5, replies) {
  EXPECT_EQ(socks5::request_reply(socks5::Reply::refused),
            "\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00"s);
  EXPECT_EQ(socks5::method_reply(false), "\x05\xff"s);
  EXPECT_EQ(socks5::login_reply(true), "\x01\x00"s);
}

TEST(ClientHello, names_its_server) {
  const auto hello = parse_client_hello(records(client_hello("Example.ORG")));
  EXPECT_EQ(hello.state, ClientHello::State::complete);
  EXPECT_EQ(hello.server_name, "example.org");
  const auto nameless = parse_client_hello(records(client_hello("")));
  EXPECT_EQ(nameless.state, ClientHello::State::complete);
  EXPECT_EQ(nameless.server_name, "");
}

TEST(ClientHello, may_come_in_any_number_of_records_and_reads) {
  for (const size_t record : {1U, 2U, 3U, 7U, 100U}) {
    const std::string bytes = records(client_hello("example.org"), record);
    for (size_t n = 0; n < bytes.size(); ++n)
      ASSERT_EQ(parse_client_hello(bytes.substr(0, n)).state, ClientHello::State::need_more)
          << record << " " << n;
    EXPECT_EQ(parse_client_hello(bytes).server_name, "example.org") << record;
  }
}

TEST(ClientHello, other_protocols_are_not_tls) {
  for (const std::string& text :
       {"SSH-2.0-x\r\n"s, "GET / HTTP/1.1\r\n"s, "\x16\x01\x00"s, "\x00"s})
    EXPECT_EQ(parse_client_hello(text).state, ClientHello::State::not_tls) << text;
}

TEST(ClientHello, what_is_broken_is_bad) {
  const std::string message = client_hello("example.org");
  std::string other = message;
  other[0] = 2;  // ServerHello
  std::string truncated = message;
  truncated[3] = static_cast<char>(truncated[3] - 1);  // the message is shorter than its extensions
  std::string alert = records(message, 20);
  alert[25] = 21;  // the second record
  std::string endless = records(std::string("\x01\x00\x50\x00", 4) + std::string(20000, 'x'), 1000);
  for (const std::string& bytes :
       {records(other), records(truncated), alert, endless, "\x16\x03\x01\x00\x00"s,
        "\x16\x03\x01\xff\xff\x01"s, records(client_hello("a.example", "b.example"))})
    EXPECT_EQ(parse_client_hello(bytes).state, ClientHello::State::bad);
  // Never a crash, never a name that is not there, whatever a byte becomes.
  const std::string whole = records(message);
  for (size_t i = 0; i < whole.size(); ++i)
    for (const int flip : {1, 0x7f, 0xff}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      const auto hello = parse_client_hello(bytes);
      EXPECT_LE(hello.server_name.size(), whole.size());
    }
}

runs::EgressGrant listed(std::vector<std::string> domains) {
  return {apis::NetworkMode::allowed_domains, std::move(domains), false};
}

TEST(HostRules, normal_form) {
  EXPECT_EQ(normal_host("Example.ORG."), "example.org");
  EXPECT_EQ(normal_host("[::1]"), "[::1]");
  for (const std::string& bad : {""s, "."s, "a..b"s, ".a"s, "a.."s, "a b"s, "a/b"s, "a@b"s, "a\0b"s,
                                 "a\nb"s, std::string(254, 'a')})
    EXPECT_FALSE(normal_host(bad)) << bad;
}

TEST(HostRules, only_listed_names_and_what_is_below_a_star) {
  const auto grant = listed({"example.org", "*.deep.net"});
  for (const char* host : {"example.org", "a.deep.net", "a.b.deep.net"})
    EXPECT_EQ(host_refusal(grant, host), "") << host;
  for (const char* host : {"www.example.org", "deep.net", "evildeep.net", "example.org.evil.com",
                           "xexample.org", "org", "localhost"})
    EXPECT_EQ(host_refusal(grant, host), host + " is not on this job's allow-list"s) << host;
  EXPECT_EQ(host_refusal(grant, "ex\xc3\xa4mple.org"), "use an ASCII or Punycode target hostname");
  EXPECT_EQ(host_refusal({}, "example.org"),
            "the egress proxy only serves sandboxes with internet access or an allow-list");
}

TEST(HostRules, no_literal_address_is_on_a_list) {
  const auto grant = listed({"*.1", "10.0.0.1", "::1", "0x7f.1", "2130706433"});
  for (const char* host : {"10.0.0.1", "127.1", "0177.0.0.1", "0x7f.1", "2130706433", "::1",
                           "[::1]", "fe80::1%eth0", "::ffff:10.0.0.1"})
    EXPECT_NE(host_refusal(grant, host), "") << host;
  runs::EgressGrant internet{apis::NetworkMode::internet, {}, false};
  EXPECT_EQ(host_refusal(internet, "203.0.113.1"), "");
  EXPECT_NE(host_refusal(internet, "[2001:db8::1]"), "");
}

TEST(HostRules, address_classes) {
  using net::Class;
  runs::EgressGrant strict = listed({"a"}), with_private = strict;
  with_private.allow_private = true;
  for (const auto& grant : {strict, with_private}) {
    EXPECT_TRUE(address_allowed(grant, Class::is_public));
    for (const Class refused :
         {Class::host_local, Class::metadata, Class::container, Class::blocked})
      EXPECT_FALSE(address_allowed(grant, refused)) << net::class_name(refused);
    EXPECT_EQ(address_allowed(grant, Class::private_range), grant.allow_private);
  }
}

}  // namespace
}  // namespace umpteenth::broker
