// Runs with Internet access and the firewall of their engine's host, with everything between them.
#include <gtest/gtest.h>

#include "apis/object.h"
#include "tests/controllers/world.h"
#include "tests/support/fake_host.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

struct FirewallRun : ::testing::Test {
  FirewallRun() {
    firewall::GuardOptions options;
    options.instance = kInstance;
    options.engine = ground->engine;
    options.open_host = [this](const std::function<void()>&) {
      firewall::Access access;
      access.host = std::make_unique<support::BorrowedHost>(host);
      return access;
    };
    ground->guard = std::make_shared<firewall::Guard>(std::move(options), ground->clock);
    ground->create_job("open", R"({"network":{"mode":"Internet"}})");
    ground->create_job("lan", R"({"network":{"mode":"Internet","allowPrivateNetwork":true}})");
  }
  ~FirewallRun() override { ground->guard.reset(); }

  void set_filter(const char* filter) {
    ground->patch("sandboxengines", "default",
                  [&](json::Value& engine) { engine["spec"].set("egressFilter", filter); });
  }
  json::Value engine_object() { return ground->get("sandboxengines", "", "default"); }
  std::string condition() {
    auto c = apis::find_condition(engine_object(), "EgressFirewall");
    return c ? c->status + " " + c->reason : "";
  }

  std::shared_ptr<Ground> ground = std::make_shared<Ground>();
  support::FakeHost host{*ground->engine};
};

TEST_F(FirewallRun, runs_behind_the_rules_on_an_isolated_port) {
  std::vector<engine::firewall::Port> ports;
  engine::ContainerSpec spec;
  World world(ground, [&](const agent::Params&) {
    ports = host.read().ports;
    spec = *ground->engine->spec_of(
        ground->engine->list_containers({{engine::kLabelRole, "sandbox"}}).at(0).id);
    return succeed();
  });
  world.start();
  ASSERT_TRUE(world.passes([&] { return condition() == "True Enforced"; })) << condition();
  const json::Value status = engine_object().at_path({"status", "egressFirewall"});
  EXPECT_EQ(status.get_string("state"), "Enforced");
  EXPECT_EQ(status.get_string("backend"), "nft");
  EXPECT_EQ(status.get_string("watch"), "polled");
  EXPECT_FALSE(status.get_string("lastChecked").empty());
  EXPECT_EQ(status.get_int("repairs"), 0);

  const std::pair<const char*, const char*> kinds[] = {{"open", "ump-egress"},
                                                       {"lan", "ump-egress-private"}};
  for (const auto& [job, network] : kinds) {
    const std::string run = world.start_run(job);
    ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->run(run).dump_pretty();
    EXPECT_EQ(ground->timeline_text(run).find("not enforced"), std::string::npos);
    ASSERT_EQ(spec.networks.size(), 2U);
    EXPECT_EQ(spec.networks[1].network, network);
    EXPECT_EQ(spec.dns, std::vector<std::string>{ground->status(run).sandbox.endpoint})
        << "names are resolved by us";
    bool seen = false;
    for (const auto& port : ports) {
      if (port.bridge != engine::bridge_of(*ground->engine->find_network(network))) continue;
      EXPECT_TRUE(port.isolated);
      seen = true;
    }
    EXPECT_TRUE(seen);
  }
}

TEST_F(FirewallRun, where_the_host_is_out_of_reach_auto_says_so_and_required_refuses) {
  host.fail("no iptables");
  World world(ground, [](const agent::Params&) { return succeed(); });
  world.start();
  ASSERT_TRUE(world.passes([&] { return condition() == "False NotEnforced"; })) << condition();
  EXPECT_EQ(engine_object().at_path({"status", "egressFirewall"}).get_string("reason"),
            "no iptables");
  std::string run = world.start_run("open");
  ASSERT_TRUE(world.ends(run, Phase::succeeded));
  EXPECT_NE(ground->timeline_text(run).find(
                "the egress firewall is not enforced: no iptables; this run can reach private "
                "networks"),
            std::string::npos);
  set_filter("required");
  ASSERT_TRUE(world.passes([&] {
    const auto c = apis::find_condition(engine_object(), "EgressFirewall");
    return c && c->message.find("are refused") != std::string::npos;
  }));
  run = world.start_run("open");
  ASSERT_TRUE(world.ends(run, Phase::failed));
  EXPECT_EQ(ground->status(run).message,
            "the egress firewall is required but not installed: no iptables");
  host.fail("");
  run = world.start_run("open");
  ASSERT_TRUE(world.ends(run, Phase::succeeded)) << ground->status(run).message;
  EXPECT_TRUE(world.passes([&] { return condition() == "True Enforced"; }));
}

TEST_F(FirewallRun, required_cuts_a_run_off_until_the_rules_are_back_and_its_timeline_says_so) {
  set_filter("required");
  World world(ground, work_until_stopped);
  world.start();
  const std::string run = world.start_run("open");
  ASSERT_TRUE(world.ends(run, Phase::running));
  const auto connected = [&] {
    const auto n = ground->engine->find_network("ump-egress");
    return n && !n->members.empty();
  };
  ASSERT_TRUE(connected());
  const auto spec = apis::sandbox_engine_spec_from(engine_object().get("spec"));
  host.fail("no iptables");
  ground->guard->check(spec);
  EXPECT_FALSE(connected());
  EXPECT_NE(ground->timeline_text(run).find("cut off from ump-egress"), std::string::npos);
  host.fail("");
  ground->guard->check(spec);
  EXPECT_TRUE(connected());
  EXPECT_NE(ground->timeline_text(run).find("connected to ump-egress again"), std::string::npos);
  ground->cancel(run);
  ASSERT_TRUE(world.ends(run, Phase::cancelled));
}

TEST_F(FirewallRun, what_was_repaired_is_in_the_status_and_an_event) {
  World world(ground, [](const agent::Params&) { return succeed(); });
  world.start();
  ASSERT_TRUE(world.passes([&] { return condition() == "True Enforced"; })) << condition();
  host.change([](auto& dump) { dump.tables.erase("security"); });
  ground->guard->check(apis::sandbox_engine_spec_from(engine_object().get("spec")));
  ASSERT_TRUE(world.passes([&] {
    return engine_object().at_path({"status", "egressFirewall"}).get_int("repairs") == 1;
  }));
  const json::Value status = engine_object().at_path({"status", "egressFirewall"});
  EXPECT_FALSE(status.get_string("lastRepaired").empty());
  EXPECT_NE(status.get_string("lastRepair").find("restore the rules"), std::string::npos);
  EXPECT_TRUE(world.passes([&] {
    for (const auto& record :
         ground->store->list({.kind = "events", .ns = "", .limit = 0, .next = ""}).items)
      if (record->parse().get_string("reason") == "EgressFirewallRepaired") return true;
    return false;
  }));
}

}  // namespace
}  // namespace umpteenth::controllers
