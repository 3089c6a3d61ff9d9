#include <sys/stat.h>

#include "tests/ump/support.h"

namespace umpteenth {
namespace {

CommandResult shell(const std::string& script, std::string stdin_bytes = {}) {
  return ump({"exec", "--", "sh", "-c", script}, std::move(stdin_bytes));
}

TEST(UmpExec, passes_exit_codes_signals_and_streams) {
  const CommandResult result = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "out\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(shell("kill -9 $$").exit_code, 137);
  EXPECT_EQ(shell("kill -TERM $$").exit_code, 143);
}

TEST(UmpExec, tells_what_cannot_start) {
  const CommandResult missing = ump({"exec", "--", "no-such-command"});
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_EQ(missing.err, "ump: cannot run no-such-command: No such file or directory\n");
  EXPECT_EQ(ump({"exec", "--", "/etc/passwd"}).exit_code, 126);
  const CommandResult nowhere = ump({"exec", "--workdir", "/no/such", "--", "true"});
  EXPECT_EQ(nowhere.exit_code, 126);
  EXPECT_EQ(nowhere.err, "ump: cannot enter /no/such: No such file or directory\n");
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"exec"},
                                             {"exec", "--"},
                                             {"exec", "--nonsense", "x", "--", "true"},
                                             {"exec", "--user", "root", "--", "true"},
                                             {"exec", "--user", "1:x", "--", "true"},
                                             {"exec", "--kill"},
                                             {"exec", "--kill", "/x", "--", "true"}})
    EXPECT_EQ(ump(bad).exit_code, 2);
}

TEST(UmpExec, hands_arguments_stdin_and_folder_through) {
  EXPECT_EQ(ump({"exec", "--", "printf", "%s|", "a b", "$HOME", "*"}).out, "a b|$HOME|*|");
  EXPECT_EQ(shell("cat", "from stdin").out, "from stdin");
  EXPECT_EQ(ump({"exec", "--workdir", "/usr", "--", "pwd"}).out, "/usr\n");
  // A command's own options are not the shim's.
  EXPECT_EQ(ump({"exec", "echo", "--pidfile"}).out, "--pidfile\n");
}

TEST(UmpExec, takes_its_environment_from_the_first_line_of_stdin) {
  const CommandResult result =
      ump({"exec", "--env-stdin", "--", "sh", "-c", "printf '%s,' \"$A\" \"$B\"; cat"},
          "{\"A\":\"x \\\"y\\\"\",\"B\":\"ü\"}\nthe rest\n");
  EXPECT_EQ(result.out, "x \"y\",ü,the rest\n");
  for (const char* bad : {"[]\n", "{\"A\":1}\n", "{\"A=B\":\"\"}\n", "{\"A\":{\"B\":\"\"}}\n", "\n",
                          "{\"\":\"x\"}\n", "{\"A\":\"a\\u0000b\"}\n"}) {
    const CommandResult refused = ump({"exec", "--env-stdin", "--", "echo", "ran"}, bad);
    EXPECT_EQ(refused.exit_code, 126) << bad;
    EXPECT_EQ(refused.out, "") << bad;
  }
  // The same from a pipe, as the engine gives it, in pieces.
  const CommandResult piped =
      run_program({"sh", "-c",
                   "(printf '{\"A\":'; sleep 0.1; printf '\"1\"}\\nre'; echo st) | " + ump_path() +
                       " exec --env-stdin -- sh -c 'echo $A; cat'"});
  EXPECT_EQ(piped.out, "1\nrest\n");
  const CommandResult large = run_program(
      {"sh", "-c", "head -c 2M /dev/zero | " + ump_path() + " exec --env-stdin -- true"});
  EXPECT_EQ(large.exit_code, 126);
  EXPECT_EQ(large.err, "ump: the environment on stdin is larger than 1 MiB\n");
}

TEST(UmpExec, changes_to_a_user_and_drops_its_groups) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  EXPECT_EQ(ump({"exec", "--user", "1000:1001", "--", "sh", "-c", "id -u; id -g; id -G"}).out,
            "1000\n1001\n1001\n");
  EXPECT_EQ(ump({"exec", "--user", "1000", "--", "id", "-g"}).out, "1000\n");
}

TEST(UmpExec, large_output_on_both_streams_is_whole) {
  const CommandResult result = shell(
      "i=0; while [ $i -lt 4000 ]; do printf '%0100d\\n' $i; printf '%0100d\\n' $i >&2; "
      "i=$((i+1)); done");
  EXPECT_EQ(result.out.size(), 4000U * 101);
  EXPECT_EQ(result.out, result.err);
}

TEST(UmpExec, a_background_process_does_not_hold_the_command) {
  const auto began = std::chrono::steady_clock::now();
  const CommandResult result = shell("sleep 300 & echo $!");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  const pid_t left = std::stoi(result.out);
  EXPECT_TRUE(lives(left)) << "what a command leaves in the background goes on";
  kill(left, SIGKILL);
}

TEST(UmpExec, a_background_printer_is_cut_after_its_grace) {
  const auto began = std::chrono::steady_clock::now();
  const CommandResult result = shell("(while echo x; do :; done) & echo main");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("main"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

TEST(UmpExec, ends_its_command_when_it_is_told_to_end) {
  Background shim({ump_path(), "exec", "--", "sh", "-c", "sleep 300 & echo $!; wait"});
  const pid_t sleeper = std::stoi(shim.read_line());
  kill(shim.pid(), SIGTERM);
  EXPECT_EQ(shim.wait(), 143);
  EXPECT_FALSE(lives(sleeper));
}

class UmpKill : public testing::Test {
 protected:
  std::string pid_file() const { return (dir_.path() / "run.pid").string(); }
  std::vector<std::string> shim(const std::string& script) const {
    return {ump_path(), "exec", "--pidfile", pid_file(), "--", "sh", "-c", script};
  }
  CommandResult kill_it() const { return ump({"exec", "--kill", pid_file()}); }
  bool exists(const std::string& name) const {
    return std::filesystem::exists(std::filesystem::symlink_status(dir_.path() / name));
  }
  void put(const std::string& text) const { write_file_durably(pid_file(), text, 0600); }

  TempDir dir_;
};

TEST_F(UmpKill, ends_the_whole_group_and_removes_the_pid_file) {
  Background command(shim("sleep 300 & echo $!; wait"));
  const pid_t sleeper = std::stoi(command.read_line());
  EXPECT_TRUE(exists("run.pid"));
  EXPECT_EQ(kill_it().exit_code, 0);
  EXPECT_EQ(command.wait(), 143);
  EXPECT_FALSE(lives(sleeper));
  EXPECT_FALSE(exists("run.pid"));
}

TEST_F(UmpKill, escalates_to_sigkill) {
  Background command(shim("trap '' TERM; sleep 300 & echo $!; while :; do wait; done"));
  const pid_t sleeper = std::stoi(command.read_line());
  EXPECT_EQ(kill_it().exit_code, 0);
  EXPECT_EQ(command.wait(), 137);
  EXPECT_FALSE(lives(sleeper));
}

TEST_F(UmpKill, reaches_what_left_the_group_for_a_session_of_its_own) {
  Background command(shim("setsid sh -c 'sleep 300 & echo $!' ; wait; sleep 300"));
  const pid_t daemon = std::stoi(command.read_line());
  ASSERT_TRUE(lives(daemon));
  EXPECT_EQ(kill_it().exit_code, 0);
  EXPECT_EQ(command.wait(), 143);
  EXPECT_FALSE(lives(daemon));
}

TEST_F(UmpKill, ends_a_stopped_command) {
  Background command(shim("echo $$; kill -STOP $$; echo went on; sleep 300"));
  const pid_t stopped = std::stoi(command.read_line());
  ASSERT_TRUE(eventually([&] {
    const std::string stat = read_file("/proc/" + std::to_string(stopped) + "/stat");
    return stat[stat.rfind(')') + 2] == 'T';
  }));
  EXPECT_EQ(kill_it().exit_code, 0);
  EXPECT_EQ(command.wait(), 143) << "by SIGTERM, without waiting for SIGKILL";
}

TEST_F(UmpKill, before_the_start_keeps_the_command_from_running) {
  EXPECT_EQ(kill_it().exit_code, 0);
  EXPECT_EQ(read_file(pid_file()), "cancelled\n");
  Background command(shim("touch " + (dir_.path() / "ran").string()));
  EXPECT_EQ(command.wait(), 143);
  EXPECT_FALSE(exists("ran"));
  EXPECT_FALSE(exists("run.pid"));
}

TEST_F(UmpKill, at_any_moment_of_the_start_ends_the_command) {
  for (int round = 0; round < 40; ++round) {
    Background command(shim("exec sleep 300"));
    // Every round a little later, from before the registration to after the exec.
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(150 * round);
    while (std::chrono::steady_clock::now() < until) {
    }
    ASSERT_EQ(kill_it().exit_code, 0) << round;
    ASSERT_EQ(command.wait(), 143) << round;
    ASSERT_FALSE(exists("run.pid")) << round;
  }
}

TEST_F(UmpKill, after_the_end_harms_nobody) {
  Background command(shim("exit 0"));
  EXPECT_EQ(command.wait(), 0);
  EXPECT_EQ(kill_it().exit_code, 0);
  EXPECT_EQ(kill_it().exit_code, 0) << "its own mark is no error";
}

TEST_F(UmpKill, never_follows_a_planted_link) {
  const std::string victim = (dir_.path() / "victim").string();
  write_file_durably(victim, "precious", 0600);
  std::filesystem::create_symlink(victim, pid_file());
  EXPECT_EQ(kill_it().exit_code, 1);
  Background command(shim("touch " + (dir_.path() / "ran").string()));
  EXPECT_EQ(command.wait(), 126);
  EXPECT_EQ(read_file(victim), "precious");
  EXPECT_FALSE(exists("ran")) << "a command that cannot be killed must not run";

  std::filesystem::remove(pid_file());
  std::filesystem::create_symlink(dir_.path() / "elsewhere", pid_file());
  Background dangling(shim("true"));
  EXPECT_EQ(dangling.wait(), 126);
  EXPECT_EQ(kill_it().exit_code, 1);
  EXPECT_FALSE(exists("elsewhere")) << "the file was made where the link points";
}

TEST_F(UmpKill, is_not_held_by_a_planted_fifo) {
  ASSERT_EQ(mkfifo(pid_file().c_str(), 0666), 0);
  const CommandResult result = kill_it();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_FALSE(result.timed_out);
}

TEST_F(UmpKill, refuses_dangerous_groups_and_nonsense) {
  for (const char* content : {"0 0 0\n", "1 1 1\n", "-1 5 5\n"}) {
    put(content);
    const CommandResult result = kill_it();
    EXPECT_EQ(result.exit_code, 1) << content;
    EXPECT_NE(result.err.find("refusing to signal the process group"), std::string::npos)
        << result.err;
  }
  put("something else");
  EXPECT_EQ(kill_it().exit_code, 1);
}

TEST_F(UmpKill, spares_a_process_that_got_the_pid_of_an_ended_command) {
  Background bystander({"/bin/sleep", "300"});
  setpgid(bystander.pid(), bystander.pid());
  put(std::to_string(bystander.pid()) + " 0 1\n");
  EXPECT_EQ(kill_it().exit_code, 0);
  EXPECT_TRUE(lives(bystander.pid()));
}

TEST_F(UmpKill, one_pid_file_serves_one_command) {
  Background first(shim("echo up; sleep 300"));
  ASSERT_EQ(first.read_line(), "up");
  Background second(shim("true"));
  EXPECT_EQ(second.wait(), 126);
  EXPECT_EQ(kill_it().exit_code, 0) << "the first is still the one that is killed";
  EXPECT_EQ(first.wait(), 143);
}

TEST_F(UmpKill, a_pid_file_that_cannot_be_written_keeps_the_command_from_running) {
  const std::string ran = (dir_.path() / "ran").string();
  const CommandResult result =
      ump({"exec", "--pidfile", "/no/such/folder/x.pid", "--", "touch", ran});
  EXPECT_EQ(result.exit_code, 126);
  EXPECT_FALSE(exists("ran"));
}

TEST_F(UmpKill, a_command_ended_for_want_of_memory_leaves_a_mark) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a cgroup";
  // A cgroup with a limit, seen at /sys/fs/cgroup as a container sees its own.
  const std::string script = R"(
set -e
name=ump-test-$$
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  grep -qw memory /sys/fs/cgroup/cgroup.subtree_control || echo +memory >/sys/fs/cgroup/cgroup.subtree_control || exit 77
  group=/sys/fs/cgroup/$name
  mkdir $group || exit 77
  echo 32M >$group/memory.max; echo 0 >$group/memory.swap.max 2>/dev/null || :
  view='mount -t cgroup2 none /sys/fs/cgroup'
else
  group=/sys/fs/cgroup/memory/$name
  mkdir $group || exit 77
  echo 32M >$group/memory.limit_in_bytes || exit 77
  view="mount --bind $group /sys/fs/cgroup/memory"
fi
code=0
sh -c "echo \$\$ >$group/cgroup.procs && exec unshare --cgroup --mount sh -c '$view && exec \"\$@\"' - \"\$@\"" - "$@" || code=$?
rmdir $group
exit $code
)";
  const CommandResult result =
      run_program({"sh", "-c", script, "-", ump_path(), "exec", "--pidfile", pid_file(), "--", "sh",
                   "-c", "x=$(head -c 200M /dev/zero | tr '\\0' x); echo survived"});
  if (result.exit_code == 77) GTEST_SKIP() << "no cgroup with a memory limit here: " << result.err;
  EXPECT_EQ(result.exit_code, 137) << result.out << result.err;
  EXPECT_EQ(read_file(pid_file()), "oom\n");
}

}  // namespace
}  // namespace umpteenth
