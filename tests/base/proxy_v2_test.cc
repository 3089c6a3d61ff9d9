#include "base/http/proxy_v2.h"

#include <gtest/gtest.h>

#include "base/http/server.h"
#include "tests/support/raw_peer.h"

namespace umpteenth::http {
namespace {

using namespace std::chrono_literals;
using State = ProxyHeader::State;
using test::RawPeer;

std::string header(char command, char family, const std::string& rest) {
  return std::string("\r\n\r\n\0\r\nQUIT\n", 12) + command + family +
         static_cast<char>(rest.size() >> 8) + static_cast<char>(rest.size() & 255) + rest;
}

const std::string kV4("\x0a\x01\x02\x03\xac\x1e\x00\x02\x30\x39\x1f\x91", 12);

TEST(ProxyV2, reads_both_families_and_skips_tlvs) {
  const std::string v4 = header('\x21', '\x11', kV4 + std::string("\x04\x00\x01x", 4));
  const ProxyHeader parsed = parse_proxy_v2(v4 + "GET /");
  ASSERT_EQ(parsed.state, State::complete);
  EXPECT_EQ(parsed.size, v4.size());
  EXPECT_EQ(parsed.peer->address, "10.1.2.3");
  EXPECT_EQ(parsed.peer->port, 12345);
  EXPECT_EQ(parsed.local->address, "172.30.0.2");
  EXPECT_EQ(parsed.local->port, 8081);

  std::string v6(36, '\0');
  v6[0] = '\xfd';
  v6[15] = 1;
  v6[31] = 2;
  const ProxyHeader six = parse_proxy_v2(header('\x21', '\x21', v6));
  ASSERT_EQ(six.state, State::complete);
  EXPECT_EQ(six.peer->address, "fd00::1");
  EXPECT_EQ(six.local->address, "::2");
}

TEST(ProxyV2, local_and_unspecified_carry_no_addresses) {
  for (const std::string& bytes :
       {header('\x20', '\x00', ""), header('\x20', '\x11', kV4), header('\x21', '\x00', "")}) {
    const ProxyHeader parsed = parse_proxy_v2(bytes);
    EXPECT_EQ(parsed.state, State::complete);
    EXPECT_FALSE(parsed.peer);
  }
}

TEST(ProxyV2, every_torn_prefix_asks_for_the_rest) {
  const std::string whole = header('\x21', '\x11', kV4);
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_EQ(parse_proxy_v2(whole.substr(0, n)).state, State::need_more) << n;
    EXPECT_GT(proxy_v2_missing(whole.substr(0, n)), 0U);
    EXPECT_LE(n + proxy_v2_missing(whole.substr(0, n)), whole.size());
  }
}

TEST(ProxyV2, datagrams_only_where_they_are_asked_for) {
  const ProxyHeader parsed = parse_proxy_v2(header('\x21', '\x12', kV4), true);
  ASSERT_EQ(parsed.state, State::complete);
  EXPECT_TRUE(parsed.datagram);
  EXPECT_EQ(parsed.local->address, "172.30.0.2");
  EXPECT_FALSE(parse_proxy_v2(header('\x21', '\x11', kV4), true).datagram);
  EXPECT_EQ(parse_proxy_v2(header('\x21', '\x13', kV4), true).state, State::bad);
}

TEST(ProxyV2, what_is_no_header_of_ours_is_bad_at_once) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n"), std::string("P"), std::string("\r\n\r\nX"),
        std::string("PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n"), header('\x11', '\x11', kV4),
        header('\x22', '\x11', kV4), header('\x21', '\x12', kV4), header('\x21', '\x31', kV4),
        header('\x21', '\x11', "short"), header('\x21', '\x21', kV4),
        header('\x21', '\x11', kV4 + std::string(600, 't'))})
    EXPECT_EQ(parse_proxy_v2(bytes).state, State::bad);
}

class ProxiedServer : public testing::Test {
 protected:
  int serve() {
    site.handle = [](const Request& r) {
      return Response::text(200, r.peer.address + " " + r.local.address);
    };
    server = std::make_unique<Server>(ListenOn{.host = "127.0.0.1",
                                               .port = 0,
                                               .unix_path = "",
                                               .unix_mode = 0600,
                                               .tls = std::nullopt,
                                               .proxy_v2 = true},
                                      limits, site);
    server->start();
    return server->port();
  }
  Limits limits;
  Site site;
  std::unique_ptr<Server> server;
};

const std::string kGet = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

TEST_F(ProxiedServer, requests_carry_the_told_addresses) {
  RawPeer peer(serve());
  const std::string bytes = header('\x21', '\x11', kV4) + kGet;
  for (const char c : bytes) peer.send(std::string(1, c));
  EXPECT_TRUE(peer.read_response().ends_with("10.1.2.3 172.30.0.2"));
  peer.send(kGet);  // once a connection, not once a request
  EXPECT_TRUE(peer.read_response().ends_with("10.1.2.3 172.30.0.2"));
}

TEST_F(ProxiedServer, a_connection_without_or_with_a_torn_header_is_dropped) {
  limits.header = 100ms;
  RawPeer absent(serve());
  absent.send(kGet);
  EXPECT_TRUE(absent.ended());
  RawPeer torn(server->port());
  torn.send(header('\x21', '\x11', kV4).substr(0, 20));
  EXPECT_TRUE(torn.ended());
  EXPECT_EQ(server->stats().requests, 0U);
}

TEST_F(ProxiedServer, caps_and_filter_see_the_told_peer) {
  limits.connections_per_peer = 1;
  site.accept = [](const Endpoint&, const Endpoint& local) {
    return local.address == "172.30.0.2";
  };
  RawPeer first(serve());
  first.send(header('\x21', '\x11', kV4) + kGet);
  first.read_response();
  RawPeer same(server->port());
  same.send(header('\x21', '\x11', kV4) + kGet);
  EXPECT_TRUE(same.ended());
  std::string other = kV4;
  other[3] = '\x04';
  RawPeer another(server->port());
  another.send(header('\x21', '\x11', other) + kGet);
  EXPECT_TRUE(another.read_response().ends_with("10.1.2.4 172.30.0.2"));
  other[3] = '\x05';
  other[7] = '\x07';
  RawPeer elsewhere(server->port());
  elsewhere.send(header('\x21', '\x11', other) + kGet);
  EXPECT_TRUE(elsewhere.ended());
}

}  // namespace
}  // namespace umpteenth::http
