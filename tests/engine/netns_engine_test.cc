// The namespace attachment on a real engine: who reaches the listener, who cannot take its address,
// and what keeps a namespace alive.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/subprocess.h"
#include "engine/namespaces.h"
#include "engine/netns.h"
#include "tests/engine/sandboxes.h"

namespace umpteenth::engine {
namespace {

constexpr int kPort = 8081;

bool becomes(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool readable(int fd, int timeout_ms) {
  pollfd wanted{fd, POLLIN, 0};
  return poll(&wanted, 1, timeout_ms) == 1;
}

class NetnsEngineTest : public SandboxesTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "entering a namespace needs root";
    SandboxesTest::SetUp();
  }

  std::string with_the_name(const std::string& name) {
    return sandbox(name, [](ContainerSpec& s) { s.extra_hosts = {"umpteenth:127.0.0.1"}; });
  }
  std::string inside(const std::string& id, const std::string& script) {
    const Ran ran = as_agent(id, script);
    EXPECT_TRUE(ran.code) << script;
    return ran.out;
  }

  // In the engine's own network namespace, so that nothing of the machine's is touched.
  CommandResult ip(const std::vector<std::string>& arguments) {
    Command c;
    c.argv = {support::source_dir() + "/tests/support/engine.sh", "run", support::test_engine().dir,
              "ip"};
    c.argv.insert(c.argv.end(), arguments.begin(), arguments.end());
    c.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
    return system_runner().run(c);
  }
};

TEST_F(NetnsEngineTest, a_sandbox_without_a_network_reaches_the_listener_by_name) {
  const std::string id = with_the_name("reach"), other = with_the_name("other");
  const NamespaceListener there = listen_in_sandbox(*engine_, id, kPort);
  EXPECT_NE(inside(id, "cat /etc/hosts; timeout 5 nc -w 1 umpteenth 8081 -e true && echo REACHED")
                .find("REACHED"),
            std::string::npos);
  EXPECT_TRUE(readable(there.socket.get(), 10'000)) << "its connection arrived here";
  EXPECT_FALSE(readable(there.process.get(), 0)) << "it lives";
  const std::string elsewhere = inside(
      other, "timeout 5 nc -w 1 127.0.0.1 8081 -e true && echo REACHED; ip -o addr; ip route");
  EXPECT_EQ(elsewhere.find("REACHED"), std::string::npos) << "the listener is in one sandbox only";
  EXPECT_EQ(elsewhere.find("eth"), std::string::npos) << elsewhere;
}

TEST_F(NetnsEngineTest, nobody_inside_can_take_the_address_or_join_it) {
  const std::string id = sandbox("taken");
  const NamespaceListener there = listen_in_sandbox(*engine_, id, kPort);
  const std::string tried =
      inside(id,
             "for a in 127.0.0.1 0.0.0.0; do timeout 2 httpd -f -p $a:8081 2>&1; done; "
             "timeout 2 nc -l -p 8081 </dev/null 2>&1; echo; "
             "timeout 1 httpd -f -p 127.0.0.1:8082; echo other: $?");
  size_t refused = 0;
  for (size_t at = 0; (at = tried.find("in use", at)) != std::string::npos; ++at) ++refused;
  EXPECT_EQ(refused, 3U) << tried;
  EXPECT_NE(tried.find("other: 143"), std::string::npos) << "it could listen elsewhere: " << tried;
}

TEST_F(NetnsEngineTest, an_address_that_is_taken_already_is_a_conflict) {
  const std::string id = sandbox("squat");
  const auto squatter = engine_->exec(
      id, {{"httpd", "-f", "-p", "127.0.0.1:8081"}, {}, "1000:1000", "/workspace", false},
      [](Output, std::string_view) {});
  ASSERT_TRUE(
      becomes([&] { return inside(id, "grep -c ':1F91 ' /proc/net/tcp").starts_with("1"); }));
  try {
    listen_in_sandbox(*engine_, id, kPort);
    FAIL() << "two listeners";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::conflict) << e.message();
  }
}

TEST_F(NetnsEngineTest, an_ended_sandbox_is_told_and_cannot_be_entered) {
  const std::string id = sandbox("ended");
  const NamespaceListener there = listen_in_sandbox(*engine_, id, kPort);
  engine_->remove_container(id);
  EXPECT_TRUE(readable(there.process.get(), 5'000));
  try {
    listen_in_sandbox(*engine_, id, kPort);
    FAIL() << "it is gone";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("sandbox is gone"), std::string::npos) << e.message();
  }
}

// One end of a veth pair in the sandbox: the other goes with the namespace, and only with it.
TEST_F(NetnsEngineTest, a_namespace_lives_as_long_as_its_listener_and_no_longer) {
  if (support::test_engine().dir.empty()) GTEST_SKIP() << "the engine is not of this machine";
  const std::string id = sandbox("held");
  NamespaceListener there = listen_in_sandbox(*engine_, id, kPort);
  const std::string outer = "umpt" + std::to_string(getpid() % 100'000);
  ASSERT_EQ(ip({"link", "add", outer, "type", "veth", "peer", "name", "inner", "netns",
                std::to_string(engine_->find_container(id)->pid)})
                .exit_code,
            0);
  const auto exists = [&] { return ip({"link", "show", outer}).exit_code == 0; };
  engine_->remove_container(id);
  ASSERT_TRUE(readable(there.process.get(), 5'000));
  EXPECT_TRUE(exists()) << "the listener holds the namespace";
  there.socket.reset();
  EXPECT_TRUE(becomes([&] { return !exists(); })) << "something else holds the namespace";
}

TEST_F(NetnsEngineTest, whether_it_can_be_is_tried_once_a_runtime) {
  Namespaces here(*engine_, *images_, instance(), support::test_engine().endpoint);
  EXPECT_EQ(here.obstacle("runc"), "");
  EXPECT_EQ(here.obstacle(""), "") << "the engine's default runtime";
  EXPECT_NE(here.obstacle("runsc").find("runsc"), std::string::npos);
  Namespaces remote(*engine_, *images_, instance(), "tcp://192.0.2.1:2376");
  EXPECT_NE(remote.obstacle("runc").find("another host"), std::string::npos);
  EXPECT_TRUE(engine_->list_containers({{kLabelInstance, instance()}}).empty())
      << "the probe sandbox is gone";
}

}  // namespace
}  // namespace umpteenth::engine
