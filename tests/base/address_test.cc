#include "base/net/address.h"

#include <gtest/gtest.h>

namespace umpteenth::net {
namespace {

Topology a_topology() {
  Topology topology;
  topology.known = true;
  topology.containers = {*parse_cidr("172.17.0.0/16"), *parse_cidr("10.89.0.0/24")};
  topology.gateways = {*parse_address("172.17.0.1")};
  topology.blocked = {*parse_cidr("198.51.100.0/24"), *parse_cidr("2001:db8:bad::/48")};
  return topology;
}

std::string class_of(std::string_view text, const Topology& topology = a_topology()) {
  const auto address = parse_address(text);
  return address ? std::string(class_name(classify(*address, topology))) : "not an address";
}

TEST(Address, classes_follow_the_table) {
  const std::vector<std::pair<std::string, std::string>> table{
      {"127.0.0.1", "host-local"},
      {"127.255.255.255", "host-local"},
      {"0.0.0.0", "host-local"},
      {"::", "host-local"},
      {"::1", "host-local"},
      {"224.0.0.1", "host-local"},
      {"239.255.255.255", "host-local"},
      {"ff02::1", "host-local"},
      {"fe80::1", "host-local"},
      {"febf::1", "host-local"},
      {"169.254.0.1", "metadata"},
      {"169.254.169.254", "metadata"},
      {"100.100.100.200", "metadata"},
      {"fd00:ec2::254", "metadata"},
      {"10.0.0.1", "private"},
      {"172.16.0.1", "private"},
      {"172.31.255.255", "private"},
      {"172.32.0.0", "public"},
      {"172.15.255.255", "public"},
      {"192.168.1.1", "private"},
      {"192.169.0.0", "public"},
      {"100.64.0.0", "private"},
      {"100.127.255.255", "private"},
      {"100.128.0.0", "public"},
      {"0.1.2.3", "private"},
      {"192.0.0.255", "private"},
      {"192.0.1.0", "public"},
      {"198.18.0.0", "private"},
      {"198.19.255.255", "private"},
      {"198.20.0.0", "public"},
      {"240.0.0.1", "private"},
      {"255.255.255.255", "private"},
      {"fc00::1", "private"},
      {"fdff::1", "private"},
      {"fec0::1", "private"},
      {"64:ff9b:1::1", "private"},
      {"172.17.0.2", "container"},
      {"10.89.0.7", "container"},
      {"172.17.0.1", "private"},  // a gateway is the host
      {"198.51.100.9", "blocked"},
      {"2001:db8:bad::1", "blocked"},
      {"8.8.8.8", "public"},
      {"2606:4700::1111", "public"},
  };
  for (const auto& [address, expected] : table) EXPECT_EQ(class_of(address), expected) << address;
}

TEST(Address, wrapped_forms_are_judged_by_what_is_inside) {
  for (const char* wrapped : {"::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::7f00:1",
                              "2002:7f00:1::1", "2001:0:0:0:0:0:80ff:fffe", "::127.0.0.1"})
    EXPECT_EQ(class_of(wrapped), "host-local") << wrapped;
  EXPECT_EQ(class_of("64:ff9b::a9fe:a9fe"), "metadata");
  EXPECT_EQ(class_of("2002:a9fe:a9fe::"), "metadata");
  EXPECT_EQ(class_of("::ffff:172.17.0.2"), "container");
  EXPECT_EQ(class_of("64:ff9b::808:808"), "public");
  EXPECT_EQ(class_of("2002:0808:0808::1"), "public");
  EXPECT_EQ(class_of("fe80::1%eth0"), "host-local");
  // Not through parse_address: as a resolver would give it.
  Address raw{{0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1}};
  EXPECT_EQ(classify(raw, a_topology()), Class::private_range);
}

TEST(Address, unknown_topology_fails_closed) {
  const Topology unknown;
  EXPECT_EQ(class_of("10.1.2.3", unknown), "container");
  EXPECT_EQ(class_of("fd12::1", unknown), "container");
  EXPECT_EQ(class_of("8.8.8.8", unknown), "public");
  EXPECT_EQ(class_of("127.0.0.1", unknown), "host-local");
}

TEST(Address, only_strict_literals_parse) {
  for (const char* bad :
       {"",           "127.1",    "0177.0.0.1",   "127.0.0.01", "0x7f.0.0.1",
        "2130706433", "1.2.3.4 ", " 1.2.3.4",     "1.2.3.256",  "1.2.3",
        "1.2.3.4.5",  "::1%",     "1.2.3.4%eth0", "[::1]",      "1:2:3",
        "::g",        "12345::",  "localhost",    "1.2.3.4/32", "::ffff:1.2.3.04"})
    EXPECT_FALSE(parse_address(bad)) << bad;
  EXPECT_FALSE(parse_address(std::string_view("1.2.3.4\0", 8)));
  EXPECT_FALSE(parse_address(std::string(1000, '1')));
}

TEST(Address, text_round_trips_in_its_canonical_form) {
  EXPECT_EQ(format(*parse_address("::ffff:10.0.0.1")), "10.0.0.1");
  EXPECT_EQ(format(*parse_address("64:ff9b::1.2.3.4")), "1.2.3.4");
  EXPECT_EQ(format(*parse_address("2001:DB8:0:0::1")), "2001:db8::1");
  EXPECT_EQ(format(*parse_cidr("10.0.0.0/8")), "10.0.0.0/8");
  EXPECT_EQ(format(*parse_cidr("fd00::/8")), "fd00::/8");
}

TEST(Cidr, refuses_host_bits_and_loose_text) {
  for (const char* bad :
       {"10.0.0.1/8", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.0/+8",
        "10.0.0.0/8 ", "10.0.0.0/", "::/129", "fd00::1/64", "::ffff:10.0.0.0/104", "64:ff9b::/96"})
    EXPECT_FALSE(parse_cidr(bad)) << bad;
}

TEST(Cidr, contains_and_overlaps_by_bits) {
  const Cidr range = *parse_cidr("10.1.0.0/20");
  EXPECT_TRUE(range.contains(*parse_address("10.1.15.255")));
  EXPECT_FALSE(range.contains(*parse_address("10.1.16.0")));
  EXPECT_TRUE(range.overlaps(*parse_cidr("10.0.0.0/8")));
  EXPECT_TRUE(parse_cidr("10.0.0.0/8")->overlaps(range));
  EXPECT_FALSE(range.overlaps(*parse_cidr("10.1.16.0/20")));
  EXPECT_TRUE(parse_cidr("0.0.0.0/0")->contains(*parse_address("9.9.9.9")));
  EXPECT_FALSE(parse_cidr("::/0")->contains(*parse_address("9.9.9.9")));
  EXPECT_TRUE(parse_cidr("fd00:8::/29")->contains(*parse_address("fd00:f::1")));
}

}  // namespace
}  // namespace umpteenth::net
