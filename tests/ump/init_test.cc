#include <sstream>

#include "tests/ump/support.h"

namespace umpteenth {
namespace {

pid_t parent_of(pid_t pid) {
  std::istringstream stat(read_file("/proc/" + std::to_string(pid) + "/stat"));
  std::string skip;
  pid_t parent = 0;
  stat >> skip >> skip >> skip >> parent;
  return parent;
}

// Entering "/" is the last thing it does before it waits.
bool ready(pid_t init) {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/" + std::to_string(init) + "/cwd", ignored) == "/";
}

TEST(UmpInit, reaps_children_and_orphans) {
  // The shell becomes ump, so that its child is ump's from the start.
  Background init(
      {"/bin/sh", "-c", "sh -c 'sleep 300 & echo $$ $!; wait' & exec " + ump_path() + " init"});
  std::istringstream pids(init.read_line());
  pid_t child = 0, grandchild = 0;
  pids >> child >> grandchild;
  ASSERT_GT(grandchild, 0);
  ASSERT_TRUE(eventually([&] { return ready(init.pid()); }));
  kill(child, SIGKILL);
  EXPECT_TRUE(eventually([&] { return kill(child, 0) != 0; })) << "the child stays a zombie";
  EXPECT_EQ(parent_of(grandchild), init.pid()) << "an orphan comes to init";
  kill(grandchild, SIGKILL);
  EXPECT_TRUE(eventually([&] { return kill(grandchild, 0) != 0; })) << "the orphan stays a zombie";
}

TEST(UmpInit, ends_well_on_term_int_and_hup) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Background init({ump_path(), "init", "--ttl", "1h"});
    ASSERT_TRUE(eventually([&] { return ready(init.pid()); }));
    kill(init.pid(), signal);
    EXPECT_EQ(init.wait(), 0) << strsignal(signal);
  }
}

TEST(UmpInit, ends_as_the_first_process_of_a_pid_namespace) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a PID namespace";
  const CommandResult result = run_program(
      {"unshare", "--pid", "--fork", "--mount-proc", "sh", "-c",
       "(while kill -TERM 1; do sleep 0.05; done) & exec " + ump_path() + " init --ttl 20s"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_FALSE(result.timed_out) << "a signal from inside reaches PID 1";
}

TEST(UmpInit, ends_the_sandbox_when_its_time_is_over) {
  const CommandResult result = ump({"init", "--ttl", "200ms"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "ump: sandbox reached its time limit of 200ms\n");
}

TEST(UmpInit, hides_its_memory_and_environment_from_the_sandbox) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to run a reader as another user";
  Background init(
      {"/bin/sh", "-c",
       "exec setpriv --reuid 1000 --regid 1000 --clear-groups " + ump_path() + " init"});
  ASSERT_TRUE(eventually([&] { return ready(init.pid()); }));
  const std::string path = "/proc/" + std::to_string(init.pid()) + "/environ";
  const CommandResult same_user =
      run_program({"setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "cat", path});
  EXPECT_NE(same_user.exit_code, 0) << "read by another process of its user";
}

TEST(UmpInit, refuses_bad_durations_and_arguments) {
  for (const char* bad : {"", "0s", "5", "-3s", "5 m", "1x", "10000000h", "5m3"}) {
    const CommandResult result = ump({"init", "--ttl", bad});
    EXPECT_EQ(result.exit_code, 2) << bad;
    EXPECT_NE(result.err.find("is no duration"), std::string::npos) << result.err;
  }
  EXPECT_EQ(ump({"init", "--ttl"}).exit_code, 2);
  EXPECT_EQ(ump({"init", "extra"}).exit_code, 2);
}

}  // namespace
}  // namespace umpteenth
