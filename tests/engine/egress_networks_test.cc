#include "engine/egress_networks.h"

#include <gtest/gtest.h>

#include "engine/names.h"

namespace umpteenth::engine {
namespace {

using firewall::Reach;

Network a_network(const std::string& id, const std::string& name, const std::string& instance,
                  const std::string& created_at) {
  Network n;
  n.id = id;
  n.name = name;
  n.created_at = created_at;
  n.options = {{"com.docker.network.bridge.enable_icc", "false"}};
  n.labels = {{kLabelInstance, instance}, {kLabelRole, kEgressRole}};
  return n;
}

TEST(EgressNetworks, of_two_that_were_made_at_once_the_younger_gives_way) {
  const Network first = a_network("b1", "ump-egress", "one", "2026-11-30T10:00:00.1Z");
  const Network second = a_network("a2", "ump-egress", "two", "2026-11-30T10:00:00.2Z");
  const std::vector<Network> both{first, second};
  EXPECT_FALSE(gives_way(first, both));
  EXPECT_TRUE(gives_way(second, both));
  const NetworkSpec next = egress_spec({first}, "two", Reach::internet);
  EXPECT_NE(next.name, "ump-egress");
  EXPECT_TRUE(next.name.starts_with("ump-egress-"));

  const std::vector<Network> apart{first,
                                   a_network("c3", next.name, "two", "2026-11-30T10:00:01Z")};
  ASSERT_NE(find_egress(apart, "two", Reach::internet), nullptr);
  EXPECT_EQ(find_egress(apart, "two", Reach::internet)->id, "c3");
  EXPECT_FALSE(gives_way(*find_egress(apart, "two", Reach::internet), apart));
}

TEST(EgressNetworks, of_the_same_moment_exactly_one_stays) {
  const Network one = a_network("a", "ump-egress", "one", "2026-11-30T10:00:00Z");
  const Network two = a_network("b", "ump-egress", "two", "2026-11-30T10:00:00Z");
  EXPECT_NE(gives_way(one, {one, two}), gives_way(two, {one, two}));
}

}  // namespace
}  // namespace umpteenth::engine
