// What every sandbox is made with, as the engine reports it and as the kernel says inside: the
// table of docs/security.md, row by row.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <sstream>

#include "engine/docker_api.h"
#include "tests/controllers/engine_world.h"
#include "tests/support/engine_fixture.h"

namespace umpteenth::controllers {
namespace {

constexpr char kSecret[] = "s3cr3t-value-of-a-job";
// Docker's default set is 00000000a80425fb; NET_RAW is bit 13.
constexpr char kRootCapabilities[] = "00000000a80405fb";
constexpr char kNone[] = "0000000000000000";

// "Name:\tvalue" lines.
std::map<std::string, std::string> fields(const std::string& text) {
  std::map<std::string, std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const size_t colon = line.find(":\t"); colon != std::string::npos)
      found[line.substr(0, colon)] = line.substr(colon + 2);
  return found;
}

class SandboxDefaults : public EngineWorld {
 protected:
  void SetUp() override {
    EngineWorld::SetUp();
    if (IsSkipped()) return;
    ground_.create("secrets", "default", "github",
                   json::Value::object(
                       {{"sealedData",
                         json::Value::object(
                             {{"value", sealer_.seal({"default", "github", "value"}, kSecret)}})}})
                       .dump());
  }

  // Runs a job with these settings and looks at its sandbox while it lives.
  void look(const std::string& job_json, const std::function<void(const agent::Params&)>& inside) {
    start([&, inside](const agent::Params& params) {
      const auto made = sandboxes();
      EXPECT_EQ(made.size(), 1U);
      if (!made.empty()) {
        engine::DockerApi api(endpoint_);
        inspected_ = api.get("/containers/" + made[0].id + "/json");
      }
      token_ = in_sandbox(params, "printf %s \"$UMP_TOKEN\"");
      inside(params);
      return succeed();
    });
    job("hello", job_json);
    const std::string run = start_run("hello");
    ASSERT_TRUE(ends(run, apis::Phase::succeeded)) << ground_.run(run).dump_pretty();
  }
  const json::Value& host(const char* field) const {
    return inspected_.at_path({"HostConfig", field});
  }

  json::Value inspected_;
  std::string token_;
};
ON_BOTH_ATTACHMENTS(SandboxDefaults);

TEST_P(SandboxDefaults, the_engine_was_told_all_of_it) {
  std::string upper;
  look(R"({"limits":{"timeoutSeconds":900},"secrets":[{"secret":"github","env":"GITHUB_TOKEN"}]})",
       [&](const agent::Params& params) {
         upper = inspected_.at_path({"GraphDriver", "Data"}).get_string("UpperDir");
         in_sandbox(params, "echo mark >/workspace/mark && echo mark >/tmp/mark");
         if (!upper.empty() && geteuid() == 0) {
           EXPECT_EQ(access((upper + "/workspace/mark").c_str(), F_OK), 0) << upper;
         }
         EXPECT_EQ(in_sandbox(params, "printf %s \"$GITHUB_TOKEN\""), kSecret);
       });
  EXPECT_EQ(host("CapDrop"), json::parse(R"(["ALL"])"));
  EXPECT_TRUE(host("CapAdd").is_null() || host("CapAdd").empty()) << host("CapAdd").dump();
  EXPECT_EQ(host("SecurityOpt"), json::parse(R"(["no-new-privileges"])"));
  EXPECT_EQ(host("NanoCpus").as_int(), 1'000'000'000);
  EXPECT_EQ(host("Memory").as_int(), int64_t{1024} << 20);
  EXPECT_EQ(host("MemorySwap").as_int(), int64_t{1024} << 20) << "as much as memory: no swap";
  EXPECT_EQ(host("PidsLimit").as_int(), 256);
  EXPECT_EQ(host("Privileged").dump(), "false");
  EXPECT_EQ(host("ReadonlyRootfs").dump(), "false");
  EXPECT_EQ(host("PidMode").as_string(), "");
  EXPECT_EQ(host("RestartPolicy").get_string("Name"), "no");
  EXPECT_TRUE(host("Binds").is_null()) << host("Binds").dump();
  EXPECT_TRUE(inspected_.get("Mounts").empty()) << inspected_.get("Mounts").dump();
  EXPECT_EQ(inspected_.at_path({"Config", "Healthcheck", "Test"}), json::parse(R"(["NONE"])"));
  EXPECT_EQ(inspected_.at_path({"Config", "Entrypoint"}),
            json::parse(R"(["/usr/local/bin/ump","init","--ttl","1200s"])"))
      << "the timeout and five minutes";
  const json::Value& networks = inspected_.at_path({"NetworkSettings", "Networks"});
  ASSERT_EQ(networks.size(), 1U) << networks.dump();
  for (const auto& [name, network] : networks.members()) {
    EXPECT_EQ(network.get_string("GlobalIPv6Address"), "");
    EXPECT_EQ(name == "none", in_namespace()) << name;
  }
  const std::string all = inspected_.dump();
  EXPECT_GE(token_.size(), 43U);
  EXPECT_EQ(all.find(token_), std::string::npos) << "the token is in the configuration";
  EXPECT_EQ(all.find(kSecret), std::string::npos) << "a secret is in the configuration";
  EXPECT_EQ(all.find("UMP_"), std::string::npos) << all;
  if (!upper.empty() && geteuid() == 0) {
    EXPECT_TRUE(eventually([&] { return access(upper.c_str(), F_OK) != 0; }))
        << "the writable root outlived the sandbox: " << upper;
  }
}

TEST_P(SandboxDefaults, the_kernel_holds_the_agent_to_it) {
  std::map<std::string, std::string> agent, init;
  std::string limits, reach, argv;
  look(R"({"secrets":[{"secret":"github","env":"GITHUB_TOKEN"}]})",
       [&](const agent::Params& params) {
         agent = fields(in_sandbox(params, "cat /proc/self/status"));
         init = fields(in_sandbox(params, "cat /proc/1/status"));
         limits = in_sandbox(
             params,
             "c=/sys/fs/cgroup; one() { cat \"$@\" 2>/dev/null | head -1; }; "
             "echo pids $(one $c/pids.max $c/pids/pids.max); "
             "echo memory $(one $c/memory.max $c/memory/memory.limit_in_bytes); "
             "echo swap $(one $c/memory.swap.max $c/memory/memory.memsw.limit_in_bytes); "
             "echo cpu $(one $c/cpu.max || true; cat $c/cpu/cpu.cfs_quota_us "
             "$c/cpu/cpu.cfs_period_us 2>/dev/null)");
         reach = in_sandbox(params,
                            "cat /proc/1/environ /proc/1/mem 2>&1 | head -c 300; "
                            "echo; ip -o addr; cat /proc/net/if_inet6; "
                            "ls /var/run/docker.sock /run/docker.sock 2>&1; "
                            "mount -t tmpfs x /mnt 2>&1; echo x >/proc/sys/kernel/hostname");
         argv = in_sandbox(params, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '");
       });
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_EQ(agent[set], kNone) << set;
    EXPECT_EQ(init[set], kNone) << set << " of ump init";
  }
  EXPECT_EQ(agent["Uid"], "1000\t1000\t1000\t1000");
  EXPECT_EQ(agent["Gid"], "1000\t1000\t1000\t1000");
  EXPECT_EQ(init["Uid"], "0\t0\t0\t0");
  EXPECT_EQ(agent["NoNewPrivs"], "1");
  EXPECT_EQ(init["NoNewPrivs"], "1");
  EXPECT_EQ(agent["Seccomp"], "2");
  EXPECT_NE(limits.find("pids 256\n"), std::string::npos) << limits;
  EXPECT_NE(limits.find("memory 1073741824\n"), std::string::npos) << limits;
  // Version 2 says what swap alone may be, version 1 the sum; a kernel may not count it.
  const bool no_swap = limits.find("swap 0\n") != std::string::npos ||
                       limits.find("swap 1073741824\n") != std::string::npos;
  EXPECT_TRUE(no_swap || limits.find("swap\n") != std::string::npos) << limits;
  EXPECT_NE(limits.find("cpu 100000 100000"), std::string::npos) << limits;
  EXPECT_NE(reach.find("Permission denied"), std::string::npos) << reach;
  EXPECT_EQ(reach.find("inet6"), std::string::npos) << "IPv6 is off: " << reach;
  EXPECT_EQ(reach.find("UMP_"), std::string::npos) << reach;
  EXPECT_NE(argv.find("/usr/local/bin/ump init --ttl 1200s "), std::string::npos) << argv;
  EXPECT_EQ(argv.find(token_), std::string::npos) << "the token is in a command line";
  EXPECT_EQ(argv.find(kSecret), std::string::npos) << "a secret is in a command line";
}

TEST_P(SandboxDefaults, a_root_job_has_the_default_capabilities_without_raw_sockets) {
  std::map<std::string, std::string> root, init;
  std::string rest;
  look(R"({"sandbox":{"runAsRoot":true,"resources":{"cpus":0.5,"memoryMiB":128,"pids":64}}})",
       [&](const agent::Params& params) {
         root = fields(in_sandbox(params, "cat /proc/self/status"));
         init = fields(in_sandbox(params, "cat /proc/1/status"));
         rest = in_sandbox(params,
                           "ip -o addr; ping -c 1 -W 1 127.0.0.1 2>&1; "
                           "echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; "
                           "mount -t tmpfs x /mnt && echo MOUNTED; "
                           "ip link set lo down && echo CHANGED; "
                           "ls /dev; "
                           "cat /proc/1/environ | tr '\\0' '\\n'");
       });
  EXPECT_EQ(root["Uid"], "0\t0\t0\t0");
  EXPECT_EQ(root["CapEff"], kRootCapabilities);
  EXPECT_EQ(root["CapBnd"], kRootCapabilities);
  EXPECT_EQ(root["NoNewPrivs"], "1");
  EXPECT_EQ(init["NoNewPrivs"], "1");
  EXPECT_EQ(root["Seccomp"], "2");
  EXPECT_EQ(rest.find("inet6"), std::string::npos) << "IPv6 is off: " << rest;
  EXPECT_EQ(rest.find("MOUNTED"), std::string::npos) << rest;
  EXPECT_EQ(rest.find("CHANGED"), std::string::npos) << rest;
  EXPECT_EQ(rest.find("UMP_TOKEN"), std::string::npos) << rest;
  EXPECT_EQ(host("SecurityOpt"), json::parse(R"(["no-new-privileges"])"));
  EXPECT_EQ(host("Memory").as_int(), int64_t{128} << 20);
  EXPECT_EQ(host("MemorySwap").as_int(), int64_t{128} << 20);
  EXPECT_EQ(host("NanoCpus").as_int(), 500'000'000);
  EXPECT_EQ(host("PidsLimit").as_int(), 64);
}

}  // namespace
}  // namespace umpteenth::controllers
