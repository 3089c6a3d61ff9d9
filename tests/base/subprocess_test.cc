#include "base/subprocess.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/fd.h"

namespace umpteenth {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

CommandResult sh(std::string script, Duration timeout = 10s) {
  Command command;
  command.argv = {"/bin/sh", "-c", std::move(script)};
  command.timeout = timeout;
  return system_runner().run(command);
}

// Gone, or a zombie that init has not collected yet.
bool process_gone(pid_t pid) {
  if (kill(pid, 0) != 0) return true;
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  const size_t paren = line.rfind(')');
  return paren == std::string::npos || line[paren + 2] == 'Z';
}

bool gone_within(pid_t pid, Duration limit) {
  const auto deadline = Steady::now() + limit;
  while (!process_gone(pid)) {
    if (Steady::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(Subprocess, returns_output_and_exit_code) {
  const CommandResult result = sh("echo out; echo err >&2; exit 7");
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(sh("kill -TERM $$").exit_code, 128 + SIGTERM);
}

TEST(Subprocess, argv_never_meets_a_shell) {
  Command command;
  command.argv = {"printf", "%s|", "$(id)", "; echo x", "a b"};
  EXPECT_EQ(system_runner().run(command).out, "$(id)|; echo x|a b|");
}

TEST(Subprocess, stdin_environment_and_folder_are_what_was_given) {
  const TempDir dir;
  Command command;
  command.argv = {"/bin/sh", "-c", "cat; pwd; env | sort | grep -v -e ^_= -e ^PWD= -e SHLVL"};
  command.stdin_bytes = std::string(3U << 20, 'x') + "\n";
  command.max_output = 8U << 20;
  command.env = {"ONLY=this", "PATH=/usr/bin:/bin"};
  command.working_dir = dir.path();
  const CommandResult result = system_runner().run(command);
  EXPECT_EQ(result.out.substr(3U << 20),
            "\n" + dir.path().string() + "\nONLY=this\nPATH=/usr/bin:/bin\n");
  setenv("UMP_TEST_SECRET", "leak", 1);
  EXPECT_EQ(sh("echo $UMP_TEST_SECRET").out, "\n");
}

TEST(Subprocess, a_missing_program_is_not_found) {
  Command command;
  command.argv = {"no-such-program-here"};
  try {
    system_runner().run(command);
    FAIL() << "it started";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::not_found);
    EXPECT_NE(e.message().find("no-such-program-here"), std::string::npos);
  }
}

TEST(Subprocess, output_over_the_limit_is_dropped_and_marked) {
  Command command;
  command.argv = {"/bin/sh", "-c", "head -c 300000 /dev/zero; head -c 10 /dev/zero >&2"};
  command.max_output = 1000;
  const CommandResult result = system_runner().run(command);
  EXPECT_EQ(result.out.size(), 1000U);
  EXPECT_EQ(result.err.size(), 10U);
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.exit_code, 0);
}

TEST(Subprocess, timeout_kills_the_whole_group) {
  const auto start = Steady::now();
  const CommandResult result = sh("sleep 300 & echo $!; trap '' TERM; wait", 200ms);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_LT(Steady::now() - start, 5s);
  EXPECT_TRUE(gone_within(std::stoi(result.out), 5s));
}

TEST(Subprocess, children_left_behind_are_killed_at_the_end) {
  const auto start = Steady::now();
  const CommandResult result = sh("sleep 300 & echo $!");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LT(Steady::now() - start, 5s);
  EXPECT_TRUE(gone_within(std::stoi(result.out), 5s));
}

TEST(Subprocess, a_pipe_held_by_another_session_does_not_block) {
  const auto start = Steady::now();
  const CommandResult result = sh("setsid sleep 8 & echo $!");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LT(Steady::now() - start, 5s);
  kill(std::stoi(result.out), SIGKILL);
}

TEST(Subprocess, stop_kills_and_throws) {
  std::stop_source source;
  Command command;
  command.argv = {"sleep", "300"};
  std::jthread stopper([&] { source.request_stop(); });
  const auto start = Steady::now();
  try {
    system_runner().run(command, source.get_token());
    FAIL() << "it ended by itself";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::unavailable);
  }
  EXPECT_LT(Steady::now() - start, 5s);
}

TEST(Subprocess, no_descriptor_leaks_into_the_program) {
  const CommandResult result = sh("ls /proc/self/fd | tr '\\n' ' '");
  EXPECT_EQ(result.out, "0 1 2 3 ");  // 3 is ls reading the folder
}

}  // namespace
}  // namespace umpteenth
