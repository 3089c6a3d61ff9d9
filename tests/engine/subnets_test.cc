#include "engine/subnets.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace umpteenth::engine {
namespace {

net::Cidr cidr(const char* text) { return *net::parse_cidr(text); }
std::string chosen(const char* pool, const std::vector<const char*>& taken) {
  std::vector<net::Cidr> t;
  for (const char* text : taken) t.push_back(cidr(text));
  return net::format(choose_subnet(cidr(pool), t));
}

TEST(Subnets, the_first_free_one_is_chosen) {
  EXPECT_EQ(chosen("10.201.0.0/16", {}), "10.201.0.0/29");
  EXPECT_EQ(chosen("10.201.0.0/16", {"10.201.0.0/29", "10.201.0.16/29"}), "10.201.0.8/29");
  EXPECT_EQ(chosen("10.201.0.0/16", {"10.201.0.0/24"}), "10.201.1.0/29");
  EXPECT_EQ(chosen("10.201.0.0/16", {"10.201.0.4/30"}), "10.201.0.8/29");
}

TEST(Subnets, a_large_route_is_stepped_over_and_foreign_ones_do_not_matter) {
  EXPECT_EQ(chosen("10.0.0.0/8", {"10.0.0.0/9", "172.16.0.0/12"}), "10.128.0.0/29");
  EXPECT_EQ(chosen("255.255.255.0/24", {"255.255.255.0/25"}), "255.255.255.128/29");
}

TEST(Subnets, an_exhausted_pool_says_so) {
  std::vector<net::Cidr> taken;
  for (int i = 0; i < 32; ++i) {
    const net::Cidr c = choose_subnet(cidr("10.9.8.0/24"), taken);
    for (const net::Cidr& t : taken) EXPECT_FALSE(t.overlaps(c));
    taken.push_back(c);
  }
  try {
    choose_subnet(cidr("10.9.8.0/24"), taken);
    FAIL() << "a 33rd /29 was found in a /24";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::conflict);
    EXPECT_TRUE(e.message().starts_with("subnetPool 10.9.8.0/24 has no free /29 left"));
  }
  // A VPN that routes everything private leaves nothing.
  EXPECT_THROW(chosen("10.201.0.0/16", {"10.0.0.0/8"}), Error);
}

TEST(Subnets, pools_that_cannot_be_used_are_refused) {
  EXPECT_THROW(chosen("10.201.0.0/30", {}), Error);
  EXPECT_THROW(chosen("fd00::/64", {}), Error);
}

TEST(Subnets, routes_are_read_and_the_default_route_is_left_out) {
  const auto routes = parse_routes(
      "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
      "eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
      "eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
      "tun0\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n"
      "bad\tzz\t\n");
  ASSERT_EQ(routes.size(), 2U);
  EXPECT_EQ(net::format(routes[0]), "172.17.0.0/16");
  EXPECT_EQ(net::format(routes[1]), "10.0.0.0/8");
  EXPECT_TRUE(parse_routes("").empty());
}

TEST(Subnets, members_have_fixed_places) {
  EXPECT_EQ(net::format(host_address(cidr("10.201.0.248/29"), 2)), "10.201.0.250");
}

}  // namespace
}  // namespace umpteenth::engine
