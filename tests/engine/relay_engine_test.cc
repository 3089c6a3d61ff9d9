// The network attachment with real packets: sandbox → relay → a Unix socket of ours.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "base/http/server.h"
#include "base/subprocess.h"
#include "engine/relay.h"
#include "tests/engine/sandboxes.h"

namespace umpteenth::engine {
namespace {

class RelayTest : public SandboxesTest {
 protected:
  void SetUp() override {
    SandboxesTest::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directory(socket_folder());
    chmod(socket_folder().c_str(), 0755);
    AttachmentOptions options;
    options.instance = instance();
    options.subnet_pool = "10.204.0.0/16";
    options.socket_folder = socket_folder();
    networks_ = std::make_unique<RunNetworks>(*engine_, *images_, options);
  }

  std::filesystem::path socket_folder() const { return dir_.path() / "broker"; }

  TempDir dir_;
  std::unique_ptr<RunNetworks> networks_;
};

TEST_F(RelayTest, a_prepared_image_runs_ump_and_has_the_layout) {
  const std::string id = sandbox("layout");
  const Ran ran = as_agent(
      id,
      "stat -c '%n %u %a' /workspace /ump /ump/outputs /ump/logs /run/ump /usr/local/bin/ump; "
      "echo x >/workspace/w && echo y >/ump/outputs/o && cat /proc/1/cmdline | tr '\\0' ' '");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_EQ(ran.out,
            "/workspace 1000 755\n/ump 1000 755\n/ump/outputs 1000 755\n/ump/logs 1000 755\n"
            "/run/ump 0 1777\n/usr/local/bin/ump 0 755\n/usr/local/bin/ump init --ttl 10m ");
  EXPECT_EQ(images_->ensure_prepared("umpteenth-busybox"),
            images_->ensure_prepared("umpteenth-busybox:latest"));
}

TEST_F(RelayTest, a_sandbox_reaches_the_broker_and_nothing_else) {
  std::mutex mutex;
  std::vector<http::Request> seen;
  http::Site site;
  site.admit = [](const http::Request&) { return http::Admitted{1024}; };
  site.handle = [&](const http::Request& r) {
    const std::scoped_lock lock(mutex);
    seen.push_back(r);
    return http::Response::text(200, "the broker\n");
  };
  http::ListenOn listen;
  listen.unix_path = socket_folder() / "broker.sock";
  listen.unix_mode = 0666;
  listen.proxy_v2 = true;
  http::Server broker(listen, http::broker_limits(), site);
  broker.start();

  const RunNetwork mine = networks_->create("uid-a", {});
  const RunNetwork other = networks_->create("uid-b", {});
  const std::string id = sandbox("a", [&](ContainerSpec& s) { RunNetworks::attach(mine, s); });
  const std::string get = "printf 'GET /x HTTP/1.0\\r\\nHost: umpteenth\\r\\n\\r\\n' | nc -w 5 ";
  const Ran ran = as_agent(id, "grep umpteenth /etc/hosts; " + get + mine.broker_address + " 8081");
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find(mine.broker_address + "\tumpteenth"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("the broker"), std::string::npos) << ran.out;
  {
    const std::scoped_lock lock(mutex);
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0].peer.address, mine.sandbox_address);
    EXPECT_EQ(seen[0].local.address, mine.broker_address);
    EXPECT_EQ(seen[0].local.port, 8081);
  }

  // The gateway's address, another run's broker and another port: no answer. One second each, at
  // once.
  const std::string gateway =
      mine.subnet.substr(0, mine.subnet.rfind('.')) + "." +
      std::to_string(std::stoi(mine.broker_address.substr(mine.broker_address.rfind('.') + 1)) - 1);
  const Ran blocked =
      as_agent(id, "for t in '" + gateway + " 8081' '" + other.broker_address + " 8081' '" +
                       mine.broker_address +
                       " 22'; do (timeout 2 nc -w 1 $t </dev/null && echo OPEN $t) & "
                       "done; wait; cat /etc/resolv.conf");
  EXPECT_EQ(blocked.out.find("OPEN"), std::string::npos) << blocked.out;
  EXPECT_NE(blocked.out.find("timeout:1"), std::string::npos) << blocked.out;

  // The relay holds no capability and does not forward.
  const auto relay = engine_->find_container(networks_->ensure_endpoint());
  const std::string status = read_file("/proc/" + std::to_string(relay->pid) + "/status");
  EXPECT_NE(status.find("CapBnd:\t0000000000000000"), std::string::npos);
  EXPECT_NE(status.find("NoNewPrivs:\t1"), std::string::npos);
  EXPECT_NE(status.find("Uid:\t65534\t65534"), std::string::npos);
  Command forward;
  forward.argv = {"nsenter", "--net=/proc/" + std::to_string(relay->pid) + "/ns/net", "cat",
                  "/proc/sys/net/ipv4/ip_forward"};
  forward.env = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
  EXPECT_EQ(system_runner().run(forward).out, "0\n");

  // A relay that dies comes back at its addresses.
  engine_->stop_container(relay->id, Duration{1'000});
  networks_->ensure_endpoint();
  const Ran again = as_agent(id, get + mine.broker_address + " 8081");
  EXPECT_NE(again.out.find("the broker"), std::string::npos) << again.out;
  broker.stop(std::chrono::milliseconds(0));
}

// moby#26111: networks made at the same time.
TEST_F(RelayTest, networks_of_many_runs_are_made_and_removed_at_once) {
  networks_->ensure_endpoint();
  std::mutex mutex;
  std::set<std::string> subnets;
  std::vector<std::string> failures;
  const auto at_once = [&](const std::function<void(int)>& work) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        try {
          work(i);
        } catch (const Error& e) {
          const std::scoped_lock lock(mutex);
          failures.push_back(e.message());
        }
      });
  };
  at_once([&](int i) {
    const RunNetwork n = networks_->create("uid-" + std::to_string(i), {});
    const std::scoped_lock lock(mutex);
    subnets.insert(n.subnet);
  });
  EXPECT_EQ(failures, std::vector<std::string>{});
  EXPECT_EQ(subnets.size(), 8U);
  at_once([&](int i) { networks_->remove("uid-" + std::to_string(i)); });
  EXPECT_EQ(failures, std::vector<std::string>{});
  EXPECT_TRUE(networks_->list().empty());
}

}  // namespace
}  // namespace umpteenth::engine
