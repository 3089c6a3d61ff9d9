// In a network namespace of the test's own: nothing of the machine's firewall changes.
#include <filesystem>
#include <memory>

#include "tests/ump/support.h"

namespace umpteenth {
namespace {

class Hostfw : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "a network namespace of its own needs root";
    if (run_program({"iptables-nft-save", "--version"}).exit_code != 0)
      GTEST_SKIP() << "iptables is not installed";
    holder_ = std::make_unique<Background>(
        std::vector<std::string>{"/usr/bin/unshare", "--net", "sleep", "600"});
    ASSERT_TRUE(eventually([&] { return name_space() != ours(); }));
    ASSERT_EQ(in({"ip", "link", "set", "lo", "up"}).exit_code, 0);
  }
  std::string name_space() const {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/" + std::to_string(holder_->pid()) + "/ns/net",
                                         ignored);
  }
  static std::string ours() { return std::filesystem::read_symlink("/proc/self/ns/net"); }

  CommandResult in(const std::vector<std::string>& argv, std::string stdin_bytes = {}) {
    Command c;
    c.argv = {"nsenter", "-t", std::to_string(holder_->pid()), "--net"};
    c.argv.insert(c.argv.end(), argv.begin(), argv.end());
    c.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    c.stdin_bytes = std::move(stdin_bytes);
    return system_runner().run(c);
  }
  CommandResult hostfw(std::vector<std::string> arguments, std::string stdin_bytes = {}) {
    arguments.insert(arguments.begin(), {ump_path(), "hostfw", "--here"});
    return in(arguments, std::move(stdin_bytes));
  }
  std::string saved() {
    const CommandResult r = hostfw({"save"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_TRUE(r.out.ends_with("== end\n")) << r.out;
    return r.out;
  }
  void make_bridge() {
    for (const std::vector<std::string>& argv : std::vector<std::vector<std::string>>{
             {"ip", "link", "add", "br0", "type", "bridge"},
             {"ip", "link", "add", "p1", "type", "veth", "peer", "name", "q1"},
             {"ip", "link", "add", "p2", "type", "veth", "peer", "name", "q2"},
             {"ip", "link", "set", "p1", "master", "br0"},
             {"ip", "link", "set", "p2", "master", "br0"}})
      ASSERT_EQ(in(argv).exit_code, 0);
  }

  std::unique_ptr<Background> holder_;
};

TEST_F(Hostfw, restores_both_families_in_one_call_and_saves_them) {
  const std::string rules =
      "*security\n:OWN - [0:0]\n-A OWN -i br0 -j DROP\n-I INPUT 1 -j OWN\nCOMMIT\n";
  const CommandResult r = hostfw({"restore", "nft"}, rules + "== ipv6\n" + rules);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const std::string text = saved();
  const size_t four = text.find("== ipv4 nft\n"), six = text.find("== ipv6 nft\n");
  ASSERT_NE(four, std::string::npos) << text;
  ASSERT_NE(six, std::string::npos) << text;
  for (const size_t from : {four, six}) {
    EXPECT_NE(text.find("-A INPUT -j OWN\n", from), std::string::npos);
    EXPECT_NE(text.find("-A OWN -i br0 -j DROP\n", from), std::string::npos);
  }
}

TEST_F(Hostfw, a_bad_line_changes_nothing_and_is_told) {
  const CommandResult r =
      hostfw({"restore", "nft"}, "*filter\n:OWN - [0:0]\n-A OWN -j NOWHERE\nCOMMIT\n");
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_NE(r.err.find("iptables-nft-restore: exit code"), std::string::npos) << r.err;
  EXPECT_NE(r.err.find("Chain 'NOWHERE' does not exist"), std::string::npos) << r.err;
  EXPECT_EQ(saved().find("OWN"), std::string::npos);
}

TEST_F(Hostfw, legacy_tables_are_read_where_there_are_any) {
  EXPECT_EQ(saved().find("legacy"), std::string::npos);
  const CommandResult r =
      hostfw({"restore", "legacy"}, "*filter\n:OWN - [0:0]\n-A OWN -i br0 -j DROP\nCOMMIT\n");
  if (r.exit_code != 0) GTEST_SKIP() << "no legacy backend here: " << r.err;
  const std::string text = saved();
  const size_t legacy = text.find("== ipv4 legacy\n");
  ASSERT_NE(legacy, std::string::npos) << text;
  EXPECT_NE(text.find("-A OWN -i br0 -j DROP\n", legacy), std::string::npos);
}

TEST_F(Hostfw, ports_are_isolated_and_read_back) {
  make_bridge();
  EXPECT_NE(saved().find("\np1 br0 open\n"), std::string::npos) << saved();
  const CommandResult r = hostfw({"isolate", "br0"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, "br0 2\n");
  const std::string text = saved();
  EXPECT_NE(text.find("\np1 br0 isolated\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\np2 br0 isolated\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nbr0\n"), std::string::npos) << text;
  EXPECT_EQ(in({"cat", "/proc/sys/net/ipv6/conf/br0/disable_ipv6"}).out, "1\n");
  const CommandResult gone = hostfw({"isolate", "br9"});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_NE(gone.err.find("bridge br9: No such device"), std::string::npos) << gone.err;
}

TEST_F(Hostfw, says_where_ipv6_is_on_and_turns_it_off_with_the_ports) {
  make_bridge();
  const auto enabled = [&] {
    const std::string text = saved();
    return text.substr(text.find("== ipv6-enabled\n")).find("\nbr0\n") != std::string::npos;
  };
  if (!enabled()) GTEST_SKIP() << "this kernel has no IPv6";
  EXPECT_EQ(hostfw({"isolate", "br0"}).exit_code, 0);
  EXPECT_FALSE(enabled());
}

TEST_F(Hostfw, removes_an_interface_and_is_content_where_it_is_gone) {
  make_bridge();
  for (int i = 0; i < 2; ++i) {
    const CommandResult r = hostfw({"remove", "br0"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(saved().find("\nbr0\n"), std::string::npos);
  }
}

TEST_F(Hostfw, what_it_says_and_takes_may_be_files) {
  TempDir dir;
  const std::string rules = dir.path() / "rules", out = dir.path() / "out";
  write_file_durably(rules, "*filter\n:OWN - [0:0]\nCOMMIT\n", 0600);
  EXPECT_EQ(hostfw({"restore", "nft", rules}).exit_code, 0);
  const CommandResult r = hostfw({"--out", out, "save"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_NE(read_file(out).find(":OWN - [0:0]\n"), std::string::npos);
}

TEST_F(Hostfw, wrong_usage_is_told) {
  for (const std::vector<std::string>& a :
       std::vector<std::vector<std::string>>{{},
                                             {"flush"},
                                             {"save", "more"},
                                             {"restore"},
                                             {"restore", "ebtables"},
                                             {"isolate"},
                                             {"remove"},
                                             {"remove", "../br0"},
                                             {"isolate", "../br0"},
                                             {"isolate", "a-name-that-is-long"}})
    EXPECT_EQ(hostfw(a).exit_code, 2) << (a.empty() ? "" : a.back());
}

TEST_F(Hostfw, an_echo_that_the_firewall_refuses_is_unreachable) {
  ASSERT_EQ(in({"sh", "-c", "echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range"}).exit_code,
            0);
  const std::vector<std::string> check = {ump_path(), "netcheck", "--timeout",
                                          "500ms",    "--reach",  "icmp:127.0.0.1"};
  EXPECT_EQ(in(check).out, "reachable icmp:127.0.0.1\n");
  ASSERT_EQ(
      hostfw({"restore", "nft"}, "*filter\n-A INPUT -d 127.0.0.1/32 -j REJECT\nCOMMIT\n").exit_code,
      0);
  EXPECT_EQ(in(check).out, "unreachable icmp:127.0.0.1\n");
}

}  // namespace
}  // namespace umpteenth
