#include "engine/relay.h"
#include "engine/egress_networks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "tests/support/fake_engine.h"

namespace umpteenth::engine {
namespace {

class RunNetworksTest : public ::testing::Test {
 protected:
  RunNetworksTest() : images_(fake_, "inst-1", {{"amd64", ump()}}) { options_.instance = "inst-1"; }

  std::filesystem::path ump() {
    std::ofstream(dir_.path() / "ump") << "program";
    return dir_.path() / "ump";
  }
  RunNetworks networks() {
    options_.socket_folder = "/var/lib/umpteenth/run";
    return {fake_, images_, options_};
  }
  std::string relay_name() { return fake_.list_containers({{kLabelRole, "relay"}}).at(0).name; }

  TempDir dir_;
  support::FakeEngine fake_;
  SandboxImages images_;
  AttachmentOptions options_;
};

TEST_F(RunNetworksTest, a_run_gets_an_internal_network_with_the_relay_in_it) {
  RunNetworks networks = this->networks();
  const RunNetwork run = networks.create("uid-1", {{kLabelJob, "hello"}});
  EXPECT_EQ(run.subnet, "10.201.0.8/29");  // the relay's own was first
  EXPECT_EQ(run.broker_address, "10.201.0.10");
  EXPECT_EQ(run.sandbox_address, "10.201.0.11");
  const auto seen = fake_.find_network(run.id);
  EXPECT_TRUE(seen->internal);
  EXPECT_FALSE(seen->ipv6);
  EXPECT_EQ(seen->options.at("com.docker.network.bridge.inhibit_ipv4"), "true");
  EXPECT_EQ(seen->labels.at(kLabelRun), "uid-1");
  EXPECT_EQ(seen->labels.at(kLabelJob), "hello");
  EXPECT_EQ(seen->labels.at(kLabelRole), "run-network");
  ASSERT_EQ(seen->members.size(), 1U);
  EXPECT_EQ(seen->members.begin()->second.ipv4, run.broker_address);

  EXPECT_EQ(networks.create("uid-1", {}), run);  // taken up again
  EXPECT_EQ(networks.find("uid-1"), run);
  networks.remove("uid-1");
  networks.remove("uid-1");
  EXPECT_FALSE(networks.find("uid-1"));
}

TEST_F(RunNetworksTest, their_bridges_have_names_by_which_one_rule_closes_them_all) {
  RunNetworks networks = this->networks();
  for (const char* run : {"uid-1", "uid-2"}) {
    const auto seen = fake_.find_network(networks.create(run, {}).id);
    EXPECT_TRUE(bridge_of(*seen).starts_with(run_bridge_prefix(options_.instance)));
    EXPECT_EQ(bridge_of(*seen).size(), 15U) << "the kernel takes no longer ones";
  }
}

TEST_F(RunNetworksTest, the_relay_answers_questions_where_there_is_a_forwarder) {
  options_.dns = true;
  networks().ensure_endpoint();
  const auto spec = fake_.spec_of(relay_name());
  ASSERT_TRUE(spec);
  const std::vector<std::string> added(spec->cmd.end() - 4, spec->cmd.end());
  EXPECT_EQ(added, (std::vector<std::string>{"--dns", "0.0.0.0:53", "--dns-socket",
                                             "/run/umpteenth/dns.sock"}));
  EXPECT_EQ(spec->sysctls.at("net.ipv4.ip_unprivileged_port_start"), "53");
}

TEST_F(RunNetworksTest, the_relay_is_confined) {
  networks().ensure_endpoint();
  const auto spec = fake_.spec_of(relay_name());
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->entrypoint, (std::vector<std::string>{"/ump", "relay"}));
  EXPECT_EQ(spec->cmd, (std::vector<std::string>{"--listen", "0.0.0.0:8081", "--socket",
                                                 "/run/umpteenth/broker.sock"}));
  EXPECT_EQ(spec->user, "65534:65534");
  EXPECT_EQ(spec->cap_drop, std::vector<std::string>{"ALL"});
  EXPECT_TRUE(spec->no_new_privileges);
  EXPECT_FALSE(spec->privileged);
  EXPECT_EQ(spec->cpus, 0.5);
  EXPECT_EQ(spec->memory_bytes, 64 << 20);
  EXPECT_EQ(spec->pids, 64);
  EXPECT_EQ(spec->restart_policy, "unless-stopped");
  EXPECT_EQ(spec->sysctls.at("net.ipv4.ip_forward"), "0");
  ASSERT_EQ(spec->mounts.size(), 1U);
  EXPECT_EQ(spec->mounts[0], (Mount{"/var/lib/umpteenth/run", "/run/umpteenth", true}));
  EXPECT_TRUE(fake_.find_network(spec->network_mode)->internal);
}

TEST_F(RunNetworksTest, a_relay_is_kept_started_again_or_made_anew_and_rejoins) {
  RunNetworks networks = this->networks();
  const RunNetwork run = networks.create("uid-1", {});
  const std::string first = networks.ensure_endpoint();
  EXPECT_EQ(networks.ensure_endpoint(), first);

  fake_.kill_container(first);
  EXPECT_EQ(networks.ensure_endpoint(), first);
  EXPECT_EQ(fake_.find_container(first)->state, "running");

  options_.broker_port = 9081;
  RunNetworks changed = this->networks();
  const std::string second = changed.ensure_endpoint();
  EXPECT_NE(second, first);
  EXPECT_EQ(fake_.find_network(run.id)->members.at(second).ipv4, run.broker_address);

  changed.remove_relay();
  EXPECT_TRUE(fake_.list_containers({{kLabelRole, "relay"}}).empty());
  EXPECT_TRUE(fake_.list_networks({{kLabelRole, "relay"}}).empty());
}

TEST_F(RunNetworksTest, a_broker_that_does_not_arrive_fails_the_create_and_leaves_no_network) {
  RunNetworks networks = this->networks();
  networks.ensure_endpoint();
  fake_.fail_next("connect_network", Error(Code::conflict, "address already in use"));
  try {
    networks.create("uid-1", {});
    FAIL() << "a network without its broker was handed out";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("the engine reports no address of the broker"), std::string::npos);
  }
  EXPECT_TRUE(networks.list().empty());
}

TEST_F(RunNetworksTest, subnets_in_use_routes_and_refused_ones_are_avoided) {
  NetworkSpec foreign;
  foreign.name = "foreign";
  foreign.subnet = "10.201.0.0/25";
  fake_.create_network(foreign);
  options_.read_routes = [] {
    return std::string(
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        "tun0 8000C90A 00000000 0001 0 0 0 80FFFFFF 0 0 0\n");  // 10.201.0.128/25
  };
  RunNetworks networks = this->networks();
  networks.ensure_endpoint();
  fake_.fail_next("create_network", Error(Code::conflict, "its subnet overlaps with something"));
  EXPECT_EQ(networks.create("uid-1", {}).subnet, "10.201.1.16/29");
}

TEST_F(RunNetworksTest, a_foreign_network_or_container_of_that_name_is_refused) {
  RunNetworks networks = this->networks();
  const std::string name = networks.create("uid-1", {}).name;
  networks.remove("uid-1");
  NetworkSpec foreign;
  foreign.name = name;
  fake_.create_network(foreign);
  EXPECT_THROW(networks.create("uid-1", {}), Error);
  EXPECT_TRUE(fake_.find_network(name));  // and not touched
  EXPECT_FALSE(networks.find("uid-1"));
}

TEST_F(RunNetworksTest, fifty_runs_at_once_get_fifty_subnets) {
  RunNetworks networks = this->networks();
  networks.ensure_endpoint();
  std::mutex mutex;
  std::set<std::string> subnets;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 50; ++i)
      threads.emplace_back([&, i] {
        const RunNetwork run = networks.create("uid-" + std::to_string(i), {});
        const std::scoped_lock lock(mutex);
        subnets.insert(run.subnet);
      });
  }
  EXPECT_EQ(subnets.size(), 50U);
}

TEST_F(RunNetworksTest, an_exhausted_pool_is_told_with_its_name) {
  options_.subnet_pool = "10.201.0.0/28";  // the relay's and one run's
  RunNetworks networks = this->networks();
  networks.create("uid-1", {});
  try {
    networks.create("uid-2", {});
    FAIL() << "a third subnet was found in two";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::conflict);
    EXPECT_TRUE(e.message().starts_with("subnetPool 10.201.0.0/28 has no free /29")) << e.message();
  }
}

TEST_F(RunNetworksTest, the_sandbox_knows_the_broker_and_no_resolver) {
  ContainerSpec sandbox;
  sandbox.network_mode = "bridge";
  RunNetworks::attach({"id", "net", "10.201.0.8/29", "10.201.0.10", "10.201.0.11"}, sandbox);
  EXPECT_EQ(sandbox.network_mode, "");
  ASSERT_EQ(sandbox.networks.size(), 1U);
  EXPECT_EQ(sandbox.networks[0].ipv4, "10.201.0.11");
  EXPECT_EQ(sandbox.extra_hosts, std::vector<std::string>{"umpteenth:10.201.0.10"});
  EXPECT_EQ(sandbox.dns, std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(sandbox.dns_options, (std::vector<std::string>{"timeout:1", "attempts:1"}));
}

TEST_F(RunNetworksTest, umpds_own_container_is_the_endpoint_where_there_is_one) {
  fake_.add_image("umpd");
  ContainerSpec umpd;
  umpd.name = "umpd";
  umpd.image = "umpd";
  umpd.network_mode = "bridge";
  const std::string id = fake_.create_container(umpd);
  fake_.start_container(id);
  const std::string host = id.substr(0, 12);
  const std::string files = "/var/lib/docker/containers/" + id;
  const std::string own = "620 598 254:1 " + files + "/hosts /etc/hosts rw,relatime - ext4 x rw\n";
  EXPECT_EQ(find_own_container(fake_, own, "", host), id);
  EXPECT_EQ(find_own_container(fake_, "", "0::/docker/" + id + "\n", host), id);
  EXPECT_EQ(find_own_container(fake_, "", "0::/system.slice/docker-" + id + ".scope\n", host), id);
  EXPECT_EQ(find_own_container(fake_, "", "", host), id);
  EXPECT_FALSE(find_own_container(fake_, own, "", "my-laptop"));  // not our hostname
  EXPECT_FALSE(find_own_container(fake_, "", "0::/user.slice\n", "my-laptop"));
  EXPECT_FALSE(find_own_container(fake_, "", "0::/docker/" + std::string(64, 'a') + "\n", "x"));
  // The host of containers sees their mounts: none of them is it.
  const std::string others = "7 6 0:5 / " + files + "/mounts/shm rw - tmpfs shm rw\n";
  EXPECT_FALSE(find_own_container(fake_, others, "", "my-laptop"));
  EXPECT_TRUE(container_id_candidates(others, "", "my-laptop").empty());

  options_.own_container = id;
  RunNetworks networks = this->networks();
  const RunNetwork run = networks.create("uid-1", {});
  EXPECT_EQ(fake_.find_network(run.id)->members.at(id).ipv4, run.broker_address);
  EXPECT_TRUE(fake_.list_containers({{kLabelRole, "relay"}}).empty());
}

}  // namespace
}  // namespace umpteenth::engine
