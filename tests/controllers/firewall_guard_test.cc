// The guard over a fake engine and a fake host: what it plans, makes, repairs, and what it says.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "controllers/firewall/guard.h"
#include "tests/controllers/support.h"
#include "tests/support/fake_host.h"

namespace umpteenth::controllers::firewall {
namespace {

constexpr char kInstance[] = "instance";

class FirewallGuard : public ::testing::Test {
 protected:
  FirewallGuard() {
    engine->add_image("busybox");
    GuardOptions options;
    options.instance = kInstance;
    options.engine = engine;
    options.open_host = [this](const std::function<void()>&) {
      Access access;
      access.host = std::make_unique<support::BorrowedHost>(host);
      return access;
    };
    guard = std::make_unique<Guard>(std::move(options), clock);
  }

  State check() { return guard->check(spec); }
  State check_enforced() {
    State s = check();
    EXPECT_TRUE(s.enforced()) << s.reason;
    return s;
  }
  engine::Network network(Reach reach) {
    const auto all = engine->list_networks({});
    const engine::Network* n = engine::find_egress(all, kInstance, reach);
    return n ? *n : engine::Network{};
  }
  std::string strict_bridge() { return engine::bridge_of(network(Reach::internet)); }
  std::string start(const std::string& name, const std::string& on) {
    engine::ContainerSpec c;
    c.name = name;
    c.image = "busybox";
    c.networks = {{on, "", {}}};
    const std::string id = engine->create_container(c);
    engine->start_container(id);
    return id;
  }
  bool member(const std::string& container, Reach reach = Reach::internet) {
    const auto n = engine->find_network(network(reach).id);
    return n && n->members.contains(container);
  }
  State admit(const std::string& container, Reach reach = Reach::internet) {
    return guard->admit(spec, {container, container, reach},
                        [this](const std::string& what) { told.push_back(what); });
  }
  void flush() {
    host.change([](auto& dump) {
      for (auto& [name, chain] : dump.tables["filter"]) chain.rules.clear();
    });
  }

  FakeClock clock{at("2026-03-02T10:00:00Z")};
  std::shared_ptr<support::FakeEngine> engine = std::make_shared<support::FakeEngine>();
  support::FakeHost host{*engine};
  apis::SandboxEngineSpec spec;
  std::unique_ptr<Guard> guard;
  std::vector<std::string> told;
};

TEST_F(FirewallGuard, makes_both_networks_and_the_rules_and_reads_them_back) {
  EXPECT_FALSE(guard->state().enforced());
  const State s = check_enforced();
  EXPECT_EQ(s.backend, "nft");
  EXPECT_EQ(s.watch, "polled");
  EXPECT_EQ(s.repairs, 0) << "the first time is no repair";
  EXPECT_EQ(network(Reach::internet).name, "ump-egress");
  EXPECT_EQ(network(Reach::internet_private).name, "ump-egress-private");
  for (const Reach r : {Reach::internet, Reach::internet_private})
    EXPECT_EQ(engine::egress_fault(network(r)), "");
  const int restores = host.restores();
  check_enforced();
  EXPECT_EQ(host.restores(), restores) << "nothing is written where all is well";
}

TEST_F(FirewallGuard, off_touches_nothing) {
  spec.egress_filter = "off";
  EXPECT_TRUE(check().off());
  EXPECT_EQ(engine->count_calls("create_network"), 0U);
  EXPECT_EQ(host.restores(), 0);
}

TEST_F(FirewallGuard, what_is_taken_away_is_put_back_and_counted) {
  check_enforced();
  const std::function<void()> harms[] = {
      [&] { flush(); },
      [&] { host.change([](auto& d) { d.tables.erase("security"); }); },
      [&] { host.change([](auto& d) { d.tables["filter"]["UMPTEENTH-PRIVATE"].rules.clear(); }); },
      [&] {
        host.change([](auto& d) {
          auto& rules = d.tables["filter"]["FORWARD"].rules;
          rules.insert(rules.begin(), "-j ACCEPT");
        });
      },
      [&] { host.lose_bridge(strict_bridge()); },
  };
  int64_t repairs = 0;
  for (const auto& harm : harms) {
    clock.advance(Duration(1000));
    harm();
    const State s = check_enforced();
    EXPECT_EQ(s.repairs, ++repairs) << s.last_repair;
    EXPECT_EQ(s.last_repaired, clock.now());
  }
}

TEST_F(FirewallGuard,
       a_sandboxs_port_is_isolated_before_it_is_admitted_and_again_when_it_is_opened) {
  check_enforced();
  const std::string c = start("c1", "ump-egress");
  EXPECT_TRUE(admit(c).enforced());
  const auto ports = [&] { return host.read().ports; };
  ASSERT_EQ(ports().size(), 1U);
  EXPECT_TRUE(ports()[0].isolated);
  EXPECT_EQ(guard->state().repairs, 0) << "a new port is no drift";
  host.open_port(ports()[0].interface);
  EXPECT_EQ(check_enforced().repairs, 1);
  EXPECT_TRUE(ports()[0].isolated);
}

TEST_F(FirewallGuard, a_lost_bridge_is_made_anew_with_its_sandboxes) {
  check_enforced();
  const std::string c = start("c1", "ump-egress");
  admit(c);
  const std::string before = strict_bridge();
  host.lose_bridge(before);
  EXPECT_EQ(check_enforced().repairs, 1);
  EXPECT_NE(strict_bridge(), before);
  EXPECT_TRUE(member(c));
  EXPECT_TRUE(std::ranges::all_of(host.read().ports, &engine::firewall::Port::isolated));
  EXPECT_EQ(told, std::vector<std::string>{"connected to ump-egress again"});
}

TEST_F(FirewallGuard, required_cuts_sandboxes_off_while_the_rules_cannot_be_kept) {
  spec.egress_filter = "required";
  check_enforced();
  const std::string c = start("c1", "ump-egress"), p = start("c2", "ump-egress-private");
  admit(c);
  admit(p, Reach::internet_private);
  flush();
  host.fail("no way");
  State s = check();
  EXPECT_FALSE(s.enforced());
  EXPECT_EQ(s.reason, "no way");
  EXPECT_FALSE(member(c));
  EXPECT_FALSE(member(p, Reach::internet_private));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], "cut off from ump-egress: the egress firewall is required but not installed");
  host.fail("");
  check_enforced();
  EXPECT_TRUE(member(c));
  EXPECT_TRUE(member(p, Reach::internet_private));
  EXPECT_EQ(told.size(), 4U);
  guard->release(c);
  engine->disconnect_network("ump-egress", c);
  check_enforced();
  EXPECT_FALSE(member(c)) << "a run that has ended is left alone";
}

TEST_F(FirewallGuard, auto_leaves_them_and_says_so) {
  check_enforced();
  const std::string c = start("c1", "ump-egress");
  admit(c);
  flush();
  host.fail("no way");
  EXPECT_FALSE(check().enforced());
  EXPECT_TRUE(member(c));
  EXPECT_TRUE(told.empty());
}

TEST_F(FirewallGuard, without_the_engines_own_chains_no_network_is_made_and_it_says_what_to_do) {
  host.change([](auto& d) { d.tables.clear(); });
  const State s = check();
  EXPECT_FALSE(s.enforced());
  EXPECT_NE(s.reason.find("restart the engine"), std::string::npos) << s.reason;
  EXPECT_EQ(engine->count_calls("create_network"), 0U);
}

TEST_F(FirewallGuard, another_installation_has_networks_of_its_own) {
  engine::NetworkSpec theirs;
  theirs.name = "ump-egress";
  theirs.labels = {{engine::kLabelInstance, "other"}, {engine::kLabelRole, engine::kEgressRole}};
  engine->create_network(theirs);
  check_enforced();
  EXPECT_TRUE(network(Reach::internet).name.starts_with("ump-egress-"));
  EXPECT_EQ(network(Reach::internet_private).name, "ump-egress-private");
}

TEST_F(FirewallGuard, a_network_of_ours_that_lets_sandboxes_meet_is_made_anew) {
  engine::NetworkSpec lax;
  lax.name = "ump-egress";
  lax.labels = {{engine::kLabelInstance, kInstance}, {engine::kLabelRole, engine::kEgressRole}};
  const std::string id = engine->create_network(lax);
  check_enforced();
  EXPECT_FALSE(engine->find_network(id));
  EXPECT_EQ(engine::egress_fault(network(Reach::internet)), "");
}

TEST_F(FirewallGuard, a_fight_is_noticed_and_left_for_a_while) {
  check_enforced();
  for (int i = 0; i < Fight::kIdenticalRepairs; ++i) {
    clock.advance(Duration(500));
    flush();
    check_enforced();
  }
  clock.advance(Duration(500));
  flush();
  const State s = check();
  EXPECT_FALSE(s.enforced());
  EXPECT_NE(s.reason.find("undoes the rules again and again (10 times)"), std::string::npos)
      << s.reason;
  clock.advance(Fight::kFirstPause);
  check_enforced();
}

TEST_F(FirewallGuard, orphan_bridges_of_run_networks_go_after_a_while_and_no_others) {
  const std::string orphan = engine::run_bridge(kInstance, "gone");
  host.add_link(orphan);
  host.add_link("ur12345deadbeef");
  check_enforced();
  EXPECT_TRUE(host.has_link(orphan)) << "its network may be in the making";
  clock.advance(Duration(61'000));
  check_enforced();
  EXPECT_FALSE(host.has_link(orphan));
  EXPECT_TRUE(host.has_link("ur12345deadbeef")) << "another installation's";
}

TEST_F(FirewallGuard, blocked_targets_of_all_engines_there_are_in_the_rules) {
  spec.blocked_targets = {"203.0.113.0/24"};
  guard->block_too({*net::parse_cidr("198.51.100.0/24")});
  check_enforced();
  const auto host_now = host.read();
  const auto* chain = host_now.ipv4.find("filter", engine::firewall::own_chain(kInstance));
  ASSERT_TRUE(chain);
  for (const char* range : {"203.0.113.0/24", "198.51.100.0/24"})
    EXPECT_TRUE(std::ranges::any_of(chain->rules, [&](const std::string& r) {
      return r.find(range) != std::string::npos;
    })) << range;
}

TEST_F(FirewallGuard, an_engine_that_is_down_is_a_reason_not_an_error) {
  check_enforced();
  engine->set_down(true);
  EXPECT_FALSE(check().enforced());
  engine->set_down(false);
  check_enforced();
}

TEST_F(FirewallGuard, a_preview_changes_nothing) {
  const Guard::Preview p = guard->preview(spec);
  ASSERT_FALSE(p.plan.actions.empty());
  EXPECT_EQ(to_string(p.plan.actions.front()), "create network ump-egress");
  EXPECT_EQ(engine->count_calls("create_network"), 0U);
  check_enforced();
  const Guard::Preview now = guard->preview(spec);
  EXPECT_TRUE(now.plan.actions.empty());
  EXPECT_NE(now.rules.find("-i " + strict_bridge() + " -j UMPTEENTH-PRIVATE\n"), std::string::npos)
      << now.rules;
}

TEST_F(FirewallGuard, removal_takes_out_what_was_put_in) {
  check_enforced();
  spec.egress_filter = "off";
  EXPECT_FALSE(guard->remove(spec).empty());
  const auto left = host.read();
  EXPECT_EQ(left.ipv4.tables.at("filter"), support::docker_tables().tables.at("filter"));
  EXPECT_TRUE(left.ipv4.find("security", "FORWARD")->rules.empty());
}

TEST(FirewallFight, pauses_grow_and_peace_ends_it) {
  Fight fight;
  Time now = at("2026-03-02T10:00:00Z");
  for (int i = 1; i < Fight::kIdenticalRepairs; ++i) EXPECT_TRUE(fight.may_repair("a", now));
  EXPECT_TRUE(fight.may_repair("a", now));
  EXPECT_FALSE(fight.may_repair("a", now));
  EXPECT_EQ(fight.next() - now, Fight::kFirstPause);
  EXPECT_TRUE(fight.may_repair("b", now)) << "another repair is no fight";
  for (int i = 0; i < Fight::kIdenticalRepairs; ++i) EXPECT_TRUE(fight.may_repair("a", now));
  for (int i = 0; i < 12; ++i) {
    now = fight.next();
    EXPECT_TRUE(fight.may_repair("a", now));
    EXPECT_LE(fight.next() - now, Fight::kLongestPause);
  }
  EXPECT_EQ(fight.next() - now, Fight::kLongestPause);
  now = now + Fight::kLongestPause + Fight::kPeace + Duration(1);
  EXPECT_TRUE(fight.may_repair("a", now));
  EXPECT_EQ(fight.times(), 1);
}

}  // namespace
}  // namespace umpteenth::controllers::firewall
