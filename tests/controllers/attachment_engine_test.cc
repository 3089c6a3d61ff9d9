// What a run is promised of the way in which its sandbox meets the broker, whichever it is.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "apis/object.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/subprocess.h"
#include "tests/controllers/engine_world.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/loopback_server.h"
#include "tests/support/paths.h"

namespace umpteenth::controllers {
namespace {

using apis::Phase;

class AttachmentTest : public EngineWorld {
 protected:
  std::string sandbox_of(const std::string& run) { return ground_.status(run).sandbox.container; }
};
ON_BOTH_ATTACHMENTS(AttachmentTest);

TEST_P(AttachmentTest, the_status_says_which_it_is) {
  EXPECT_TRUE(eventually(
      [&] {
        return ground_.get("sandboxengines", "", "default")
                   .get("status")
                   .get_string("attachment") == GetParam();
      },
      std::chrono::seconds(60)))
      << ground_.get("sandboxengines", "", "default").dump_pretty();
}

TEST_P(AttachmentTest, the_broker_is_reached_by_name_and_nothing_else_is) {
  std::string calls, rest;
  start([&](const agent::Params& params) {
    calls = in_sandbox(params,
                       "echo $UMP_BROKER_URL; ump state set key value && ump state get key; "
                       "ump output set answer 42; echo rc=$?");
    rest = in_sandbox(
        params,
        "for t in '1.1.1.1 53' '10.0.0.1 80' '169.254.169.254 80' 'umpteenth 22' 'umpteenth 8080'; "
        "do (timeout 3 nc -w 1 $t -e true && echo OPEN $t) & done; wait; "
        "timeout 8 nslookup example.com 2>&1; grep -v '^#' /etc/resolv.conf; ip route");
    return succeed();
  });
  job("hello");
  const std::string run = start_run("hello");
  ASSERT_TRUE(ends(run, Phase::succeeded)) << ground_.run(run).dump_pretty();
  EXPECT_NE(calls.find("http://umpteenth:8081\nvalue\nrc=0\n"), std::string::npos) << calls;
  EXPECT_EQ(ground_.status(run).outputs.get_int("answer"), 42);
  EXPECT_EQ(rest.find("OPEN"), std::string::npos) << rest;
  EXPECT_EQ(rest.find("Address 1:"), std::string::npos) << rest;
  EXPECT_NE(rest.find("nameserver 127.0.0.1"), std::string::npos) << rest;
}

TEST_P(AttachmentTest, a_list_opens_its_hosts_through_the_proxy_and_no_others) {
  support::LoopbackServer server([](support::LoopbackServer::Connection& c) {
    c.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nlisted");
  });
  const std::string port = std::to_string(server.port());
  std::string listed, other, direct;
  start([&](const agent::Params& params) {
    const auto get = [&](const std::string& host) {
      return in_sandbox(params, "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 ump connect " +
                                    host + " " + port + " 2>&1");
    };
    listed = get("listed.test");
    other = get("other.test");
    direct = in_sandbox(params, "timeout 3 nc -w 1 127.0.0.1 " + port + " -e true && echo OPEN");
    return succeed();
  });
  job("hello", R"({"network":{"mode":"AllowedDomains","allowedDomains":["listed.test"]}})");
  const std::string run = start_run("hello");
  ASSERT_TRUE(ends(run, Phase::succeeded)) << ground_.run(run).dump_pretty();
  EXPECT_NE(listed.find("\r\n\r\nlisted"), std::string::npos) << listed;
  EXPECT_NE(other.find("403 Forbidden: other.test is not on this job's allow-list"),
            std::string::npos)
      << other;
  EXPECT_EQ(direct.find("OPEN"), std::string::npos) << direct;
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_NE(ground_.timeline_text(run).find("proxy listed.test"), std::string::npos);
}

TEST_P(AttachmentTest, a_token_is_good_in_its_own_sandbox_alone) {
  std::mutex mutex;
  std::string holders, own, others, none, after;
  std::atomic<bool> done{false}, holder_ended{false};
  start([&](const agent::Params& params) {
    if (params.run.info().job == "holder") {
      {
        const std::lock_guard lock(mutex);
        holders = in_sandbox(params, "printf %s \"$UMP_TOKEN\"");
      }
      eventually([&] { return done.load(); }, std::chrono::seconds(120));
      return succeed();
    }
    const auto token = [&] {
      const std::lock_guard lock(mutex);
      return holders;
    };
    eventually([&] { return !token().empty(); }, std::chrono::seconds(120));
    own = in_sandbox(params, "ump state list 2>&1; echo rc=$?");
    others = in_sandbox(params, "UMP_TOKEN=" + token() + " ump state list 2>&1; echo rc=$?");
    none = in_sandbox(params, "UMP_TOKEN=x ump state list 2>&1; echo rc=$?");
    done = true;
    eventually([&] { return holder_ended.load(); }, std::chrono::seconds(120));
    after = in_sandbox(params, "UMP_TOKEN=" + token() + " ump state list 2>&1; echo rc=$?");
    return succeed();
  });
  job("holder");
  job("thief");
  const std::string holder = start_run("holder"), thief = start_run("thief");
  EXPECT_TRUE(ends(holder, Phase::succeeded)) << ground_.run(holder).dump_pretty();
  holder_ended = true;
  ASSERT_TRUE(ends(thief, Phase::succeeded)) << ground_.run(thief).dump_pretty();
  EXPECT_GE(holders.size(), 43U);
  EXPECT_EQ(own, "{}\nrc=0\n");
  for (const std::string* refused : {&others, &none, &after})
    EXPECT_EQ(*refused, none) << "a stranger must not learn which tokens there are";
  EXPECT_NE(none.find("rc=1"), std::string::npos) << none;
}

TEST_P(AttachmentTest, nothing_inside_can_stand_in_for_the_broker) {
  std::string bound, answered;
  start([&](const agent::Params& params) {
    bound = in_sandbox(params,
                       "a=$(awk '/umpteenth/ { print $1; exit }' /etc/hosts); "
                       "timeout 3 httpd -f -p $a:8081 2>&1");
    answered = in_sandbox(params, "httpd -p 0.0.0.0:8081 -h /; ump state set k v 2>&1; echo rc=$?");
    return succeed();
  });
  job("root", R"({"sandbox":{"runAsRoot":true}})");
  const std::string run = start_run("root");
  ASSERT_TRUE(ends(run, Phase::succeeded)) << ground_.run(run).dump_pretty();
  EXPECT_NE(bound.find("bind: "), std::string::npos) << bound;
  EXPECT_NE(answered.find("rc=0"), std::string::npos) << answered;
}

TEST_P(AttachmentTest, a_sandbox_whose_first_process_is_killed_fails_its_run) {
  start(work_until_stopped);
  job("hello");
  const std::string run = start_run("hello");
  ASSERT_TRUE(runs(run)) << ground_.run(run).dump_pretty();
  const auto container = client_->find_container(sandbox_of(run));
  ASSERT_TRUE(container);
  ASSERT_EQ(kill(static_cast<pid_t>(container->pid), SIGKILL), 0);
  const auto from = std::chrono::steady_clock::now();
  ASSERT_TRUE(ends(run, Phase::failed)) << ground_.run(run).dump_pretty();
  EXPECT_LT(std::chrono::steady_clock::now() - from, std::chrono::seconds(5));
  EXPECT_EQ(ground_.status(run).reason, "SandboxGone");
  EXPECT_EQ(ground_.status(run).message, "sandbox is gone");
  EXPECT_TRUE(sandboxes().empty());
}

// What runs could leave behind on the machine. Numbers of the engine that the test knows.
struct Traces {
  size_t processes = 0, mounts = 0, links = 0, namespaces = 0, descriptors = 0;
  bool operator==(const Traces&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Traces& t) {
  return out << "processes " << t.processes << ", mounts " << t.mounts << ", links " << t.links
             << ", namespaces " << t.namespaces << ", descriptors " << t.descriptors;
}

size_t lines_with(const std::string& text, const std::string& what) {
  std::istringstream all(text);
  size_t count = 0;
  for (std::string line; std::getline(all, line);) count += line.find(what) != std::string::npos;
  return count;
}

class RunsLeaveNothing : public EngineWorld {
 protected:
  std::filesystem::path engine_dir() const { return support::test_engine().dir; }

  // Shims and the engine's own name its folder; what runs in containers is below its cgroup.
  bool of_the_engine(const std::filesystem::path& process, const std::string& cgroup) const {
    try {
      return read_file(process / "cmdline").find(engine_dir().string()) != std::string::npos ||
             read_file(process / "cgroup").find(cgroup) != std::string::npos;
    } catch (const Error&) {  // it has ended
      return false;
    }
  }

  Traces traces() const {
    Traces seen;
    std::set<std::string> namespaces;
    const std::string cgroup =
        "/umpteenth-" + crypto::hex(crypto::sha256(engine_dir().string())).substr(0, 8) + "/";
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().string()[0]))) continue;
      if (!of_the_engine(entry.path(), cgroup)) continue;
      ++seen.processes;
      std::error_code ended;
      namespaces.insert(std::filesystem::read_symlink(entry.path() / "ns/net", ended));
    }
    namespaces.erase("");
    seen.namespaces = namespaces.size();
    std::string holder = read_file(engine_dir() / "engine/holder.pid");
    while (!holder.empty() && holder.back() == '\n') holder.pop_back();
    // Others mount on this machine too.
    for (const std::string& table :
         {"/proc/" + holder + "/mounts", std::string("/proc/self/mounts")})
      seen.mounts += lines_with(read_file(table), engine_dir());
    Command ip;
    ip.argv = {support::source_dir() + "/tests/support/engine.sh",
               "run",
               engine_dir(),
               "ip",
               "-o",
               "link"};
    ip.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
    seen.links = lines_with(system_runner().run(ip).out, ": ");
    // Connections to the engine are kept for the next call; these are a sandbox's.
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code closed;
      const std::string what = std::filesystem::read_symlink(entry.path(), closed);
      int listens = 0;
      socklen_t size = sizeof listens;
      getsockopt(std::atoi(entry.path().filename().c_str()), SOL_SOCKET, SO_ACCEPTCONN, &listens,
                 &size);
      if (listens != 0 || what == "anon_inode:[pidfd]") ++seen.descriptors;
    }
    return seen;
  }
};
ON_BOTH_ATTACHMENTS(RunsLeaveNothing);

TEST_P(RunsLeaveNothing, no_namespace_link_mount_process_or_descriptor_however_many_ran) {
  if (engine_dir().empty()) GTEST_SKIP() << "the engine is not one of this machine's tests";
  const size_t many = std::getenv("UMPTEENTH_ALL") != nullptr ? 250 : 25;
  start(
      [](const agent::Params& params) {
        in_sandbox(params, "ump state set k v; sleep 600 >/dev/null 2>&1 &");
        return succeed();
      },
      6);
  job("hello", R"({"schedule":{"overlapPolicy":"Parallel"}})");
  const auto all_succeed = [&](size_t count) {
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) names.push_back(start_run("hello"));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120 + 15 * count);
    return std::ranges::all_of(names, [&](const std::string& name) {
      eventually([&] { return apis::terminal(ground_.status(name).phase); },
                 std::chrono::duration_cast<std::chrono::milliseconds>(
                     deadline - std::chrono::steady_clock::now()));
      EXPECT_EQ(ground_.status(name).phase, Phase::succeeded) << ground_.run(name).dump_pretty();
      return ground_.status(name).phase == Phase::succeeded;
    });
  };
  ASSERT_TRUE(all_succeed(6)) << "what is made once, is there now";
  const Traces before = traces();
  ASSERT_TRUE(all_succeed(many));
  EXPECT_TRUE(sandboxes().empty());
  EXPECT_EQ(networks_of_runs(), 0U);
  Traces after;
  EXPECT_TRUE(eventually([&] { return (after = traces()) == before; }, std::chrono::seconds(30)))
      << "before: " << before << "\nafter:  " << after;
}

}  // namespace
}  // namespace umpteenth::controllers
