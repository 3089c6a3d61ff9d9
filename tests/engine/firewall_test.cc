// The rules' text, and verdicts on texts as iptables-save prints them.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "engine/firewall/inspect.h"
#include "tests/support/fake_host.h"
#include "tests/support/golden.h"

namespace umpteenth::engine::firewall {
namespace {

constexpr char kStrict[] = "br-6f4224cb7d04", kPrivate[] = "br-4abf31989891",
               kRun[] = "ur9f86d+";  // a family

Desired desired() {
  return {"test",
          {{kStrict, Reach::internet}, {kPrivate, Reach::internet_private}, {kRun, Reach::closed}},
          {*net::parse_cidr("203.0.113.0/24"), *net::parse_cidr("2001:db8::/32")},
          {*net::parse_cidr("10.201.0.0/16"), *net::parse_cidr("198.51.100.0/28")}};
}

using support::kDockerTables;

std::string saved(const std::string& ipv4, const std::string& ipv6,
                  const std::string& bridge_filter = "1") {
  return "== ipv4 nft\n" + ipv4 + "== ipv6 nft\n" + ipv6 + "== bridge-nf-call-iptables\n" +
         bridge_filter + "\n== links\nlo\ndocker0\n" + kStrict + "\n" + kPrivate +
         "\nur9f86d00112233\nveth1 " + kStrict + " isolated\n== end\n";
}

Host applied(Host host, const Restore& restore) {
  host.ipv4 = support::restored(host.ipv4, restore.ipv4);
  host.ipv6 = support::restored(host.ipv6, restore.ipv6);
  return host;
}

Host fresh() { return parse_host(saved(kDockerTables, "")); }
Host installed() {
  const Host host = fresh();
  return applied(host, plan_restore(plan_rules(desired()), host));
}
Verdict verdict(const Host& host) { return inspect(plan_rules(desired()), host); }

// Not enforced with this reason, and after one restore enforced again with nothing left to do.
void expect_repaired(const Host& host, const std::string& reason) {
  const Verdict before = verdict(host);
  EXPECT_FALSE(before.enforced);
  EXPECT_NE(before.reason.find(reason), std::string::npos) << before.reason;
  const Restore restore = plan_restore(plan_rules(desired()), host);
  EXPECT_FALSE(restore.empty());
  const Host after = applied(host, restore);
  EXPECT_EQ(verdict(after).reason, "");
  EXPECT_TRUE(plan_restore(plan_rules(desired()), after).empty());
}

TEST(FirewallRules, their_text) {
  const Restore r = plan_restore(plan_rules(desired()), fresh());
  EXPECT_TRUE(
      umpteenth::testing::golden("tests/golden/firewall_rules.txt", r.ipv4 + "# IPv6\n" + r.ipv6));
}

TEST(FirewallRules, a_name_that_iptables_would_read_otherwise_is_refused) {
  for (const char* name :
       {"", "br+", "br 1", "+", "-i", "br-0123456789abc", "br\n1", "..", "a/b"}) {
    Desired d = desired();
    d.bridges[0].interface = name;
    EXPECT_THROW(plan_rules(d), Error) << name;
  }
}

TEST(FirewallInspect, a_fresh_engine_is_not_enforced_and_one_restore_makes_it_so) {
  expect_repaired(fresh(), "UMPTEENTH-");
}

TEST(FirewallInspect, every_rule_jump_and_chain_that_is_removed_is_missed_and_restored) {
  const Ruleset wanted = plan_rules(desired());
  int removals = 0;
  const auto each = [&](const std::vector<Table>& tables, Dump Host::*dump) {
    for (const Table& t : tables) {
      for (const auto& [chain, rules] : t.chains) {
        for (size_t i = 0; i < rules.size(); ++i, ++removals) {
          Host host = installed();
          auto& there = (host.*dump).tables[t.name][chain].rules;
          there.erase(there.begin() + static_cast<long>(i));
          expect_repaired(host, "lacks rules of ours");
        }
      }
      for (const Jump& jump : t.jumps) {
        Host host = installed();
        auto& there = (host.*dump).tables[t.name][jump.from].rules;
        std::erase(there, jump.rule);
        expect_repaired(host, "is missing in " + t.name + " " + jump.from);
        ++removals;
      }
    }
  };
  each(wanted.ipv4, &Host::ipv4);
  each(wanted.ipv6, &Host::ipv6);
  EXPECT_GT(removals, 80);
}

struct Intruder {
  const char* what;
  const char* table;
  const char* chain;
  const char* rule;
};

TEST(FirewallInspect, what_could_let_a_bridge_through_before_our_jumps_is_noticed) {
  const Intruder intruders[] = {
      {"another tool's accept", "filter", "FORWARD", "-i br-6f4224cb7d04 -j ACCEPT"},
      {"for every interface", "filter", "FORWARD", "-j ACCEPT"},
      {"for a pattern", "filter", "FORWARD", "-i br-+ -j ACCEPT"},
      {"for all but one", "filter", "FORWARD", "! -i eth0 -j ACCEPT"},
      {"to one address", "filter", "FORWARD", "-d 10.0.0.5/32 -j ACCEPT"},
      {"into a chain that accepts", "filter", "FORWARD", "-j OTHER"},
      {"goto", "filter", "FORWARD", "-g LOGGED"},
      {"queued to a program", "filter", "FORWARD", "-j NFQUEUE --queue-num 0"},
      {"return first", "filter", "DOCKER-USER", "-j RETURN"},
      {"an accept for the host", "filter", "INPUT", "-p tcp -m tcp --dport 22 -j ACCEPT"},
      {"in the second line", "security", "FORWARD", "-j ACCEPT"},
      {"for one run's network", "security", "FORWARD", "-i ur9f86d00112233 -j ACCEPT"},
      {"for a wider family", "security", "INPUT", "-i ur+ -j ACCEPT"},
      {"for all but one run's network", "security", "INPUT", "! -i ur9f86d0011+ -j ACCEPT"},
      {"in the second line, host", "security", "INPUT", "-m mark --mark 0x1 -j RETURN"},
  };
  for (const Intruder& i : intruders) {
    SCOPED_TRACE(i.what);
    Host host = installed();
    host.ipv4.tables["filter"]["OTHER"] = {"-", {"-p icmp -j DROP", "-s 10.0.0.0/8 -j ACCEPT"}};
    host.ipv4.tables["filter"]["LOGGED"] = {"-", {"-j LOG"}};
    auto& rules = host.ipv4.tables[i.table][i.chain].rules;
    rules.insert(rules.begin(), i.rule);
    expect_repaired(host, "comes before");
  }
}

TEST(FirewallInspect, what_cannot_let_our_bridges_through_may_come_first) {
  for (const char* rule :
       {"-i eth0 -j ACCEPT", "-i docker+ -j ACCEPT", "-p tcp -j DROP",
        "-j LOG --log-prefix \"a -j ACCEPT\"",
        "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", "-j OTHER", "-p icmp"}) {
    SCOPED_TRACE(rule);
    Host host = installed();
    host.ipv4.tables["filter"]["OTHER"] = {"-", {"-i eth1 -j ACCEPT", "-j RETURN"}};
    auto& rules = host.ipv4.tables["filter"]["FORWARD"].rules;
    rules.insert(rules.begin(), rule);
    EXPECT_EQ(verdict(host).reason, "");
    EXPECT_TRUE(plan_restore(plan_rules(desired()), host).empty());
  }
}

// Measured: after another tool's flush and a Docker restart every `iptables -C` passes.
TEST(FirewallInspect, the_engines_chain_behind_an_accept_is_put_first_again) {
  Host host = installed();
  auto& forward = host.ipv4.tables["filter"]["FORWARD"].rules;
  std::rotate(forward.begin(), forward.begin() + 1, forward.end());
  expect_repaired(host, "comes before \"-j DOCKER-USER\" in filter FORWARD");
}

TEST(FirewallInspect, an_accept_inside_a_chain_of_ours_is_noticed_and_a_further_refusal_is_not) {
  Host host = installed();
  auto& chain = host.ipv4.tables["filter"]["UMPTEENTH-PRIVATE"].rules;
  chain.insert(chain.begin() + 2, "-d 10.9.0.0/16 -j DROP");
  EXPECT_EQ(verdict(host).reason, "");
  chain.insert(chain.begin() + 2, "-d 10.8.0.0/16 -j RETURN");
  expect_repaired(host, "chain UMPTEENTH-PRIVATE of table filter lacks rules");
}

TEST(FirewallInspect, a_doubled_jump_is_made_one_again) {
  Host host = installed();
  auto& input = host.ipv4.tables["filter"]["INPUT"].rules;
  input.insert(input.begin(), input.front());
  const Host after = applied(host, plan_restore(plan_rules(desired()), host));
  EXPECT_EQ(std::ranges::count(after.ipv4.find("filter", "INPUT")->rules,
                               after.ipv4.find("filter", "INPUT")->rules.front()),
            1);
}

TEST(FirewallInspect,
     after_a_flush_of_everything_the_second_line_is_restored_and_the_engine_is_named) {
  Host host = installed();
  host.ipv4 = {};
  host.ipv6 = {};
  EXPECT_NE(verdict(host).reason.find("DOCKER-USER is missing"), std::string::npos);
  const Host after = applied(host, plan_restore(plan_rules(desired()), host));
  EXPECT_NE(verdict(after).reason.find("restart the engine"), std::string::npos);
  EXPECT_FALSE(reaches_late(after.ipv4, "security", "FORWARD", "-j " + own_chain("test"), kStrict));
  EXPECT_FALSE(after.ipv4.find("filter", "DOCKER-USER"));
}

TEST(FirewallInspect, the_bridges_themselves_count) {
  Host host = installed();
  host.bridge_filtered = false;
  EXPECT_NE(verdict(host).reason.find("bridge-nf-call-iptables is not 1"), std::string::npos);
  host = installed();
  host.ports.push_back({kPrivate, "veth9", false});
  EXPECT_EQ(verdict(host).reason,
            std::string("port veth9 of bridge ") + kPrivate + " is not isolated");
  host.ports.back().bridge = "docker0";
  EXPECT_EQ(verdict(host).reason, "");
  host.ipv6_interfaces = {kPrivate, "docker0"};
  EXPECT_EQ(verdict(host).reason, std::string("IPv6 is on on bridge ") + kPrivate);
  host.ipv6_interfaces.clear();
  host.interfaces.erase(kStrict);
  EXPECT_EQ(verdict(host).reason, std::string("bridge ") + kStrict + " is missing on the host");
}

TEST(FirewallInspect, a_host_without_ipv6_needs_no_rules_for_it) {
  Host host = installed();
  host.ipv6 = {};
  EXPECT_TRUE(verdict(host).reason.starts_with("IPv6: "));
  host.ipv6_present = false;
  EXPECT_EQ(verdict(host).reason, "");
}

TEST(FirewallRestore, jumps_of_bridges_that_are_gone_go_and_others_installations_stay) {
  Host host = installed();
  auto& user = host.ipv4.tables["filter"]["DOCKER-USER"].rules;
  user.insert(user.begin(), "-i br-gone -j UMPTEENTH-PRIVATE");
  user.insert(user.begin(), "-i docker0 -j UMPTEENTH-PRIVATE");
  EXPECT_EQ(plan_restore(plan_rules(desired()), host).ipv4,
            "*filter\n-D DOCKER-USER -i br-gone -j UMPTEENTH-PRIVATE\nCOMMIT\n");
}

TEST(FirewallRestore, a_bridge_less_takes_its_jump_to_our_chain_along) {
  Desired fewer = desired();
  fewer.bridges.erase(fewer.bridges.begin() + 1);
  const Host host = installed();
  const Host after = applied(host, plan_restore(plan_rules(fewer), host));
  EXPECT_EQ(inspect(plan_rules(fewer), after).reason, "");
  for (const std::string& rule : after.ipv4.find("filter", "INPUT")->rules)
    EXPECT_NE(rule, std::string("-i ") + kPrivate + " -j " + own_chain("test"));
}

TEST(FirewallRemoval, takes_out_what_is_ours_and_leaves_shared_chains_that_others_use) {
  Host host = installed();
  Desired other{"other", {{"docker0", Reach::internet}}, {}, {}};
  host = applied(host, plan_restore(plan_rules(other), host));
  EXPECT_EQ(verdict(host).reason, "");
  const Host after = applied(host, plan_removal(plan_rules(desired()), host));
  EXPECT_EQ(inspect(plan_rules(other), after).reason, "");
  EXPECT_FALSE(after.ipv4.find("filter", own_chain("test")));
  const Host bare = applied(after, plan_removal(plan_rules(other), after));
  EXPECT_EQ(bare.ipv4.find("filter", "DOCKER-USER")->rules, std::vector<std::string>{"-j RETURN"});
  EXPECT_FALSE(bare.ipv4.find("filter", "UMPTEENTH-PRIVATE"));
  EXPECT_TRUE(bare.ipv4.find("security", "INPUT")->rules.empty());
}

TEST(FirewallHost, the_backend_that_the_engine_uses_is_read) {
  const std::string empty = "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
  const std::string rest = "== bridge-nf-call-iptables\n1\n== links\n== end\n";
  EXPECT_EQ(
      parse_host("== ipv4 nft\n" + std::string(kDockerTables) + "== ipv4 legacy\n" + empty + rest)
          .backend,
      "nft");
  const Host legacy =
      parse_host("== ipv4 nft\n" + empty + "== ipv4 legacy\n" + kDockerTables + rest);
  EXPECT_EQ(legacy.backend, "legacy");
  EXPECT_TRUE(legacy.ipv4.find("filter", "DOCKER-USER"));
  EXPECT_EQ(parse_host("== ipv4 legacy\n" + empty + rest).backend, "legacy");
  EXPECT_FALSE(parse_host("== ipv4 nft\n" + empty + "== ipv6\nabsent\n" + rest).ipv6_present);
}

TEST(FirewallHost, text_that_is_cut_off_or_foreign_is_an_error_not_a_verdict) {
  const std::string whole = saved(kDockerTables, "");
  for (size_t n = 0; n + 1 < whole.size(); n += 7)
    EXPECT_THROW(parse_host(std::string_view(whole).substr(0, n)), Error) << n;
  EXPECT_THROW(parse_host("iptables: not found\n"), Error);
  EXPECT_THROW(parse_host("== bridge-nf-call-iptables\n1\n== end\n"), Error);
  EXPECT_THROW(parse_dump("*filter\n-A NOWHERE -j ACCEPT\nCOMMIT\n"), Error);
  EXPECT_THROW(parse_dump("*filter\nFORWARD\nCOMMIT\n"), Error);
}

}  // namespace
}  // namespace umpteenth::engine::firewall
