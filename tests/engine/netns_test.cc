#include "engine/netns.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/http/listener.h"
#include "base/http/server.h"
#include "engine/namespaces.h"
#include "tests/support/fake_engine.h"

namespace umpteenth::engine {
namespace {

constexpr char kId[] = "4f0c5d6e7a8b9c0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f";

TEST(CgroupNames, a_container_by_its_whole_id) {
  const std::string id = kId;
  EXPECT_TRUE(cgroup_names("12:pids:/docker/" + id + "\n11:cpu:/docker/" + id + "\n", id));
  EXPECT_TRUE(cgroup_names("0::/system.slice/docker-" + id + ".scope\n", id));
  EXPECT_TRUE(cgroup_names("0::/../../docker/" + id, id));
  EXPECT_TRUE(cgroup_names("0::/docker/a" + id + "/docker/" + id + "\n", id));
  EXPECT_FALSE(cgroup_names("", id));
  EXPECT_FALSE(cgroup_names("0::/user.slice\n", id));
  EXPECT_FALSE(cgroup_names("0::/docker/" + id.substr(0, 63) + "\n", id));
  EXPECT_FALSE(cgroup_names("0::/docker/" + id + "0\n", id));
  EXPECT_FALSE(cgroup_names("0::/docker/a" + id + "\n", id));
  EXPECT_FALSE(cgroup_names("0::/docker/x\n", ""));
}

TEST(KnownObstacle, names_what_stands_in_the_way) {
  const std::string root = "Name:\tumpd\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n";
  const auto why = [&](std::string endpoint, std::string engine, std::string runtime,
                       std::string status) {
    return known_obstacle(
        {std::move(endpoint), std::move(engine), std::move(runtime), std::move(status)});
  };
  const std::string here = "unix:///var/run/docker.sock";
  EXPECT_EQ(why(here, "Docker", "runc", root), "");
  EXPECT_EQ(why(here, "Docker", "io.containerd.runc.v2", root), "");
  EXPECT_NE(why("tcp://10.0.0.1:2376", "Docker", "runc", root).find("another host"),
            std::string::npos);
  EXPECT_NE(why(here, "Podman", "crun", root).find("Podman"), std::string::npos);
  for (const char* other : {"runsc", "ghost", "kata-runtime", ""})
    EXPECT_NE(why(here, "Docker", other, root).find("share the host's"), std::string::npos);
  // Nothing; all but SYS_ADMIN; all but SYS_PTRACE; no such line.
  for (const char* status : {"CapEff:\t0000000000000000\n", "CapEff:\t000001ffffdfffff\n",
                             "CapEff:\t000001fffff7ffff\n", "Name:\tx\n"})
    EXPECT_NE(why(here, "Docker", "runc", status).find("may not enter"), std::string::npos);
}

// A process in a network namespace of its own (or not), until it is ended.
class Process {
 public:
  enum class Net { own, shared };
  explicit Process(Net net) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      if (net != Net::shared && unshare(CLONE_NEWNET) != 0) _exit(1);
      (void)!write(ready[1], "x", 1);
      pause();
      _exit(0);
    }
    close(ready[1]);
    char got = 0;
    ready_ = read(ready[0], &got, 1) == 1;
    close(ready[0]);
    pidfd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }
  ~Process() { end(); }
  bool ready() const { return ready_; }
  int pidfd() const { return pidfd_.get(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  Fd pidfd_;
  bool ready_ = false;
};

std::string refusal(int pidfd, int port) {
  try {
    listen_in_namespace_of(pidfd, port);
    return "";
  } catch (const Error& e) {
    return std::string(status_reason(e.code())) + ": " + e.message();
  }
}

// A port that is free here, so that a socket there is told from one here.
int free_port() {
  http::ListenOn where;
  where.host = "127.0.0.1";
  return http::bound_port(http::listen_on(where).get());
}

class NetnsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Process(Process::Net::own).ready())
      GTEST_SKIP() << "making a network namespace needs root";
  }
};

TEST_F(NetnsTest, it_listens_there_and_not_here) {
  Process process(Process::Net::own);
  ASSERT_TRUE(process.ready());
  const int port = free_port();
  const Fd there = listen_in_namespace_of(process.pidfd(), port);
  EXPECT_EQ(http::bound_port(there.get()), port);
  http::ListenOn where;
  where.host = "127.0.0.1";
  where.port = port;
  EXPECT_TRUE(http::listen_on(where)) << "the port is taken in this namespace";
  EXPECT_TRUE(refusal(process.pidfd(), port).starts_with("Conflict: listen on 127.0.0.1:"))
      << refusal(process.pidfd(), port);
  int shared = 0;
  socklen_t size = sizeof shared;
  for (const int option : {SO_REUSEPORT, SO_REUSEADDR}) {
    ASSERT_EQ(getsockopt(there.get(), SOL_SOCKET, option, &shared, &size), 0);
    EXPECT_EQ(shared, 0);
  }
}

TEST_F(NetnsTest, a_resolvers_port_is_taken_there_once) {
  Process process(Process::Net::own);
  ASSERT_TRUE(process.ready());
  const Fd there = bind_datagrams_in_namespace_of(process.pidfd(), 53);
  int kind = 0;
  socklen_t size = sizeof kind;
  ASSERT_EQ(getsockopt(there.get(), SOL_SOCKET, SO_TYPE, &kind, &size), 0);
  EXPECT_EQ(kind, SOCK_DGRAM);
  try {
    bind_datagrams_in_namespace_of(process.pidfd(), 53);
    FAIL() << "two of them";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::conflict) << e.message();
  }
}

TEST_F(NetnsTest, the_namespace_of_umpd_itself_is_refused) {
  Process process(Process::Net::shared);
  EXPECT_EQ(refusal(process.pidfd(), free_port()),
            "Forbidden: the sandbox shares umpd's own network namespace");
}

TEST_F(NetnsTest, what_cannot_be_entered_is_said) {
  Process ended(Process::Net::own);
  ended.end();
  EXPECT_TRUE(refusal(ended.pidfd(), free_port()).starts_with("NotFound: enter the sandbox's"));
}

// The engine says a pid that is another process here: what an engine on another host does.
TEST(ListenInSandbox, a_process_of_another_host_is_refused) {
  support::FakeEngine engine;
  engine.add_image("busybox");
  ContainerSpec spec;
  spec.name = "one";
  spec.image = "busybox";
  const std::string id = engine.create_container(spec);
  const auto message = [&] {
    try {
      listen_in_sandbox(engine, id, 8081);
      return std::string();
    } catch (const Error& e) {
      return e.message();
    }
  };
  EXPECT_NE(message().find("sandbox is gone"), std::string::npos) << "it was not started";
  engine.start_container(id);
  engine.set_pid(id, getpid());
  EXPECT_NE(message().find("is another one here: the engine runs on another host"),
            std::string::npos)
      << message();
  engine.set_pid(id, 0x3fffffff);
  EXPECT_NE(message().find("which the engine says is the sandbox's"), std::string::npos);
  // Another process from one look to the next.
  int looks = 0;
  engine.before_each([&](const std::string& call) {
    if (call == "find_container" && ++looks == 2) engine.set_pid(id, getppid());
  });
  engine.set_pid(id, getpid());
  EXPECT_NE(message().find("sandbox is gone"), std::string::npos) << message();
}

}  // namespace
}  // namespace umpteenth::engine
