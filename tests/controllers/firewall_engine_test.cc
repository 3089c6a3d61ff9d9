// The egress firewall with packets: a sandbox on a real engine's egress network, the rules in that
// engine's own network namespace, and somebody who takes them away.
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <iostream>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "controllers/firewall/guard.h"
#include "engine/docker.h"
#include "engine/sandbox_images.h"
#include "tests/controllers/support.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/paths.h"

namespace umpteenth::controllers::firewall {
namespace {

namespace fw = engine::firewall;

class FirewallEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto& test = support::test_engine();
    if (!test.skip.empty()) GTEST_SKIP() << test.skip;
    client_ = engine::make_docker_engine({.endpoint = test.endpoint});
    images_ = std::make_unique<engine::SandboxImages>(
        *client_, instance(),
        std::map<std::string, std::filesystem::path>{
            {client_->info().arch, support::bin_dir() + "/ump"}});
    try {
      host_ = std::make_shared<const fw::HostNamespace>(fw::HostNamespace::find(test.endpoint));
    } catch (const Error& e) {
      GTEST_SKIP() << e.message();
    }
    if (on_host({"iptables-nft", "--version"}).exit_code != 0)
      GTEST_SKIP() << "iptables is not installed";
    spec_.subnet_pool = "10.206.0.0/16";
  }

  void TearDown() override {
    keeper_ = {};
    if (guard_) {
      guard_->on_change(nullptr);
      const auto direct = access();
      const auto networks = client_->list_networks({});
      const fw::Ruleset ours = plan_rules(desired_rules(ours_alone(), networks));
      const fw::Host now = direct->read();
      direct->restore(now.backend, plan_removal(ours, now));
    }
    guard_.reset();
    for (const auto& c : client_->list_containers({{engine::kLabelInstance, instance()}}))
      client_->remove_container(c.id);
    for (const auto& n : client_->list_networks({{engine::kLabelInstance, instance()}}))
      client_->remove_network(n.id);
    for (const auto& i : client_->list_images({{engine::kLabelInstance, instance()}}))
      client_->remove_image(i.id);
  }

  static std::string instance() { return "firewall-test-" + std::to_string(getpid()); }

  static Wanted ours_alone() {
    Wanted w;
    w.instance = instance();
    return w;
  }

  CommandResult on_host(std::vector<std::string> argv) {
    Command c;
    c.argv = std::move(argv);
    CommandResult r;
    host_->run([&] { r = system_runner().run(c); });
    return r;
  }
  std::unique_ptr<fw::HostFirewall> access() {
    return fw::make_direct_access(host_, support::bin_dir() + "/ump", system_runner());
  }

  void make_guard() {
    GuardOptions options;
    options.instance = instance();
    options.engine = client_;
    options.open_host = [this](const std::function<void()>& changed) {
      return Access{access(), std::make_unique<fw::HostWatch>(*host_, changed)};
    };
    options.helper_image = [this] { return images_->ensure_helper(); };
    guard_ = std::make_unique<Guard>(std::move(options), system_clock());
  }
  // What the controller does: checks when something changed, and only then.
  void keep() {
    guard_->on_change([this] {
      const std::lock_guard lock(mutex_);
      changed_ = true;
      wake_.notify_all();
    });
    keeper_ = std::jthread([this](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      while (wake_.wait(lock, stop, [this] { return changed_; })) {
        changed_ = false;
        lock.unlock();
        guard_->check(spec_);
        lock.lock();
      }
    });
  }

  engine::Network network(Reach reach) {
    const auto all = client_->list_networks({});
    const engine::Network* n = engine::find_egress(all, instance(), reach);
    if (!n) return {};
    return *client_->find_network(n->id);
  }
  std::string bridge() { return engine::bridge_of(network(Reach::internet)); }
  std::string gateway() { return network(Reach::internet).gateways.at(0); }

  std::string sandbox(const std::string& name, const std::string& on) {
    engine::ContainerSpec s;
    s.name = "fw-" + std::to_string(getpid()) + "-" + name;
    s.image = images_->ensure_prepared("umpteenth-busybox:latest");
    s.entrypoint = {engine::kUmpPath, "init", "--ttl", "10m"};
    s.user = "0:0";
    s.labels = {{engine::kLabelInstance, instance()}, {engine::kLabelRole, "sandbox"}};
    s.cap_drop = {"ALL"};
    s.memory_bytes = 64 << 20;
    s.pids = 64;
    s.networks = {{on, "", {}}};
    const std::string id = client_->create_container(s);
    client_->start_container(id);
    return id;
  }
  // Whether the target answers, as `ump netcheck` sees it in the container.
  bool reaches(const std::string& container, const std::string& target) {
    engine::ExecSpec exec;
    exec.argv = {engine::kUmpPath, "netcheck", "--timeout", "500ms", "--reach", target};
    exec.user = "1000:1000";
    std::string said;
    auto running = client_->exec(container, exec,
                                 [&](engine::Output, std::string_view bytes) { said += bytes; });
    const auto code = running->wait(Duration(30'000));
    EXPECT_TRUE(code == 0 || code == 1) << said;
    return code == 0;
  }

  std::shared_ptr<engine::Engine> client_;
  std::unique_ptr<engine::SandboxImages> images_;
  std::shared_ptr<const fw::HostNamespace> host_;
  apis::SandboxEngineSpec spec_;
  std::unique_ptr<Guard> guard_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool changed_ = false;
  std::jthread keeper_;
};

TEST_F(FirewallEngine, an_engine_elsewhere_is_out_of_reach_and_it_says_why) {
  try {
    fw::HostNamespace::find("tcp://192.0.2.1:2375");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("its endpoint is tcp://192.0.2.1:2375"), std::string::npos);
  }
}

TEST_F(FirewallEngine, what_a_sandbox_reached_it_does_not_reach_behind_the_rules) {
  const engine::Network before =
      engine::ensure_egress_network(*client_, instance(), Reach::internet);
  const std::string c = sandbox("a", before.name);
  const std::string host = "icmp:" + gateway();
  ASSERT_TRUE(reaches(c, host)) << "without this the rest would prove nothing";
  const auto probe = [&] {
    return run_probe(*client_, {instance(), before.name, images_->ensure_helper(), {host}});
  };
  EXPECT_EQ(probe(), host);

  make_guard();
  State s = guard_->check(spec_);
  EXPECT_FALSE(s.enforced()) << "the probe has not been made";
  s = guard_->probe(spec_);
  ASSERT_TRUE(s.enforced()) << s.reason;
  EXPECT_EQ(s.watch, "events");
  EXPECT_FALSE(reaches(c, host));
  EXPECT_EQ(probe(), "");
  const auto read = access()->read();
  ASSERT_EQ(read.ports.size(), 1U);
  EXPECT_TRUE(read.ports[0].isolated) << "it was on the bridge before";
}

TEST_F(FirewallEngine, sandboxes_on_one_bridge_do_not_reach_each_other) {
  make_guard();
  guard_->check(spec_);
  const std::string name = network(Reach::internet_private).name;
  const std::string a = sandbox("a", name), b = sandbox("b", name);
  for (const std::string& c : {a, b}) guard_->admit(spec_, {c, c, Reach::internet_private}, {});
  const auto seen = network(Reach::internet_private);
  EXPECT_FALSE(reaches(a, "icmp:" + seen.members.at(b).ipv4));
  EXPECT_TRUE(reaches(a, "icmp:" + seen.gateways.at(0))) << "with allowPrivateNetwork the host is";
}

TEST_F(FirewallEngine, what_somebody_takes_away_comes_back_within_a_moment_by_events_alone) {
  make_guard();
  guard_->check(spec_);
  ASSERT_TRUE(guard_->probe(spec_).enforced()) << guard_->state().reason;
  const std::string c = sandbox("a", network(Reach::internet).name);
  ASSERT_TRUE(guard_->admit(spec_, {c, c, Reach::internet}, {}).enforced());
  keep();
  const std::string own = fw::own_chain(instance());
  const auto port = [this] {
    for (const auto& p : access()->read().ports)
      if (p.bridge == bridge()) return p.interface;
    return std::string();
  };
  const std::vector<std::vector<std::string>> harms = {
      {"iptables-nft", "-D", "INPUT", "-i", bridge(), "-j", "UMPTEENTH-HOST"},
      {"iptables-nft", "-D", "DOCKER-USER", "-i", bridge(), "-j", "UMPTEENTH-PRIVATE"},
      {"iptables-nft", "-F", "UMPTEENTH-HOST"},
      {"iptables-nft", "-I", "INPUT", "1", "-i", bridge(), "-j", "ACCEPT"},
      {"iptables-nft", "-t", "security", "-D", "FORWARD", "-j", own},
      {"iptables-nft", "-t", "security", "-F", own + "-IN"},
      {"ip6tables-nft", "-t", "security", "-F", own},
      {"bridge", "link", "set", "dev", port(), "isolated", "off"},
      {"sysctl", "-q", "net.ipv6.conf." + bridge() + ".disable_ipv6=0"},
      {"ip", "link", "del", bridge()},
  };
  for (const auto& harm : harms) {
    std::string what;
    for (const std::string& word : harm) what += word + " ";
    SCOPED_TRACE(what);
    const int64_t repairs = guard_->state().repairs;
    const auto from = std::chrono::steady_clock::now();
    const CommandResult done = on_host(harm);
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_TRUE(
        eventually([&] { return guard_->state().repairs > repairs && guard_->state().enforced(); },
                   std::chrono::seconds(20)))
        << guard_->state().reason;
    const auto took = std::chrono::steady_clock::now() - from;
    std::cout << what << "undone after "
              << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms\n";
    EXPECT_FALSE(reaches(c, "icmp:" + gateway()));
    if (harm[0] == "iptables-nft" && harm[1] == "-I")
      on_host({"iptables-nft", "-D", "INPUT", "-i", bridge(), "-j", "ACCEPT"});
  }
  EXPECT_TRUE(network(Reach::internet).members.contains(c)) << "on the bridge that was made anew";
  for (const auto& p : access()->read().ports) EXPECT_TRUE(p.isolated) << p.interface;
}

TEST_F(FirewallEngine, a_helper_container_reads_and_changes_the_same) {
  const auto helper =
      fw::make_helper_access(*client_, {instance(), [this] { return images_->ensure_helper(); }});
  fw::Host seen;
  try {
    seen = helper->read();
  } catch (const Error& e) {
    if (e.message().find("apply caps") == std::string::npos &&
        e.message().find("mount namespace") == std::string::npos)
      throw;
    GTEST_SKIP() << "no helper can be made here: " << e.message();
  }
  make_guard();
  guard_->check(spec_);
  seen = helper->read();
  const fw::Host direct = access()->read();
  EXPECT_EQ(seen.backend, direct.backend);
  EXPECT_TRUE(seen.interfaces.contains(bridge()));
  const fw::Ruleset wanted = plan_rules(desired_rules(ours_alone(), client_->list_networks({})));
  ASSERT_EQ(on_host({"iptables-nft", "-F", "UMPTEENTH-HOST"}).exit_code, 0);
  EXPECT_FALSE(inspect(wanted, helper->read()).enforced);
  helper->restore("nft", plan_restore(wanted, helper->read()));
  EXPECT_EQ(inspect(wanted, helper->read()).reason, "");
  sandbox("a", network(Reach::internet).name);
  helper->isolate({bridge()});
  for (const auto& p : helper->read().ports) EXPECT_TRUE(p.isolated);
  EXPECT_THROW(helper->restore("nft", {"*filter\n-A NOWHERE -j ACCEPT\nCOMMIT\n", ""}), Error);
  EXPECT_TRUE(client_
                  ->list_containers(
                      {{engine::kLabelInstance, instance()}, {engine::kLabelRole, "firewall"}})
                  .empty());
}

}  // namespace
}  // namespace umpteenth::controllers::firewall
