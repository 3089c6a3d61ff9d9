// `ump exec`: runs a command so that another `ump exec --kill` can end it with all it started.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "ump/exec_output.h"
#include "ump/json.h"
#include "ump/pid_file.h"
#include "ump/processes.h"
#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int kNotStarted = 126;
constexpr int kNotFound = 127;
constexpr int kCancelled = 128 + SIGTERM;
constexpr size_t kMaxEnvironment = 1U << 20;

struct Options {
  const char* pid_file = nullptr;
  const char* kill = nullptr;
  const char* work_dir = nullptr;
  bool env_from_stdin = false;
  bool as_user = false;
  long uid = 0, gid = 0;
  char** command = nullptr;
};

bool parse_user(char* text, Options* options) {
  char* colon = strchr(text, ':');
  if (colon) *colon = '\0';
  constexpr long kMost = 0x7FFFFFFF;
  options->as_user = true;
  if (!parse_number(text, 0, kMost, &options->uid)) return false;
  options->gid = options->uid;
  return !colon || parse_number(colon + 1, 0, kMost, &options->gid);
}

int parse(int argc, char** argv, Options* options) {
  int i = 0;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; ++i) {
    const char* flag = argv[i];
    if (strcmp(flag, "--") == 0) {
      ++i;
      break;
    }
    if (strcmp(flag, "--env-stdin") == 0) {
      options->env_from_stdin = true;
      continue;
    }
    if (++i == argc) return usage("exec: %s needs a value", flag);
    if (strcmp(flag, "--pidfile") == 0)
      options->pid_file = argv[i];
    else if (strcmp(flag, "--kill") == 0)
      options->kill = argv[i];
    else if (strcmp(flag, "--workdir") == 0)
      options->work_dir = argv[i];
    else if (strcmp(flag, "--user") != 0)
      return usage("exec: unknown option %s", flag);
    else if (!parse_user(argv[i], options))
      return usage("exec: --user must be a number, or two: UID:GID");
  }
  options->command = argv + i;
  if (options->kill) return i == argc ? kOk : usage("exec: --kill takes no command");
  return i < argc ? kOk : usage("exec: no command");
}

int kill_command(const char* path) {
  PidFile cancelled;
  cancelled.content = PidFile::Content::cancelled;
  switch (create_pid_file(path, cancelled)) {
    case Created::yes:  // not started yet: it finds the mark and does not start
      return kOk;
    case Created::failed:
      return kFailed;
    case Created::exists:
      break;
  }
  PidFile found;
  if (!read_pid_file(path, &found)) return kFailed;
  if (found.content != PidFile::Content::command) return kOk;
  const unsigned long long start = start_of(found.group);
  // A pid is not given out again while a group of that number lives, so another start means that
  // the whole group is gone.
  if (found.group > 1 && start != 0 && start != found.start) return kOk;
  return terminate_group(found.group, found.shim) ? kOk : kFailed;
}

// Bytes up to and with the end of the line, not one more: the rest of stdin is the command's. A
// pipe is looked into with tee(2); anything else is read byte by byte. 0 at the end.
class LineReader {
 public:
  LineReader() { (void)!pipe2(peek_, O_CLOEXEC); }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;
  ~LineReader() {
    close(peek_[0]);
    close(peek_[1]);
  }

  ssize_t read_some(char* into, size_t max) {
    const ssize_t seen = tee(STDIN_FILENO, peek_[1], max, 0);
    if (seen == 0) return 0;
    if (seen < 0) return read(STDIN_FILENO, into, 1);
    const ssize_t copied = read(peek_[0], into, static_cast<size_t>(seen));
    const void* newline = copied > 0 ? memchr(into, '\n', static_cast<size_t>(copied)) : nullptr;
    const ssize_t wanted = newline ? static_cast<const char*>(newline) - into + 1 : copied;
    return wanted > 0 ? read(STDIN_FILENO, into, static_cast<size_t>(wanted)) : wanted;
  }

 private:
  int peek_[2] = {-1, -1};
};

bool read_environment() {
  Buffer line;
  LineReader reader;
  while (line.size() == 0 || line.data()[line.size() - 1] != '\n') {
    const ssize_t n = reader.read_some(line.room(16384), 16384);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    line.grow(static_cast<size_t>(n));
    if (line.size() > kMaxEnvironment) {
      complain("the environment on stdin is larger than 1 MiB");
      return false;
    }
  }
  const auto set = [](const char* name, const char* value) {
    return *name != '\0' && !strchr(name, '=') && setenv(name, value, 1) == 0;
  };
  if (json_each_string(line.data(), line.size(), set)) return true;
  complain("the environment on stdin must be one line, a JSON object of strings");
  return false;
}

// What went wrong between fork and exec, sent to the shim through a pipe that exec closes.
struct StartFailure {
  enum class Step { user, work_dir, exec } step;
  int error;
};

[[noreturn]] void become_command(const Options& options, pid_t shim, int go, int failure) {
  const auto fail = [failure](StartFailure::Step step) {
    const StartFailure what{step, errno};
    (void)!write(failure, &what, sizeof what);
    _exit(kNotStarted);
  };
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  char c = 0;
  if (read(go, &c, 1) != 1) _exit(kNotStarted);
  if (options.as_user && (setgroups_none() != 0 || setgid(static_cast<gid_t>(options.gid)) != 0 ||
                          setuid(static_cast<uid_t>(options.uid)) != 0))
    fail(StartFailure::Step::user);
  // After the change of user, which clears it.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != shim) _exit(kNotStarted);
  if (options.work_dir && chdir(options.work_dir) != 0) fail(StartFailure::Step::work_dir);
  execvp(options.command[0], options.command);
  fail(StartFailure::Step::exec);
  _exit(kNotStarted);
}

int report(const StartFailure& failure, const Options& options) {
  errno = failure.error;
  switch (failure.step) {
    case StartFailure::Step::user:
      complain_errno("cannot become the user %ld:%ld", options.uid, options.gid);
      return kNotStarted;
    case StartFailure::Step::work_dir:
      complain_errno("cannot enter %s", options.work_dir);
      return kNotStarted;
    case StartFailure::Step::exec:
      break;
  }
  complain_errno("cannot run %s", options.command[0]);
  return failure.error == ENOENT ? kNotFound : kNotStarted;
}

// Writes the pid file. Otherwise the exit code: the command must not start.
int register_command(const char* path, pid_t child) {
  PidFile mine;
  mine.group = child;
  mine.shim = getpid();
  mine.start = start_of(child);
  switch (create_pid_file(path, mine)) {
    case Created::yes:
      return kOk;
    case Created::failed:
      return kNotStarted;
    case Created::exists:
      break;
  }
  PidFile found;
  if (!read_pid_file(path, &found)) return kNotStarted;
  if (found.content == PidFile::Content::cancelled) {
    unlink(path);
    return kCancelled;
  }
  complain("the pid file %s is in use", path);
  return kNotStarted;
}

void finish(const char* pid_file, long kills_before) {
  if (!pid_file) return;
  PidFile oom;
  oom.content = PidFile::Content::oom;
  if (oom_kills() == kills_before || !replace_pid_file(pid_file, oom)) unlink(pid_file);
}

int run_command(const Options& options) {
  int go[2], failure[2];
  OutputPipes output;
  if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0 || !output.open()) {
    complain_errno("cannot make a pipe");
    return kNotStarted;
  }
  const long kills_before = oom_kills();
  const pid_t shim = getpid();
  const pid_t child = fork();
  if (child < 0) {
    complain_errno("cannot start a process");
    return kNotStarted;
  }
  if (child == 0) {
    setpgid(0, 0);
    close(go[1]);
    output.become_stdout_and_stderr();
    become_command(options, shim, go[0], failure[1]);
  }
  setpgid(child, child);
  close(failure[1]);
  close(go[0]);
  output.close_write_ends();

  const int refused = options.pid_file ? register_command(options.pid_file, child) : kOk;
  if (refused != kOk) {
    close(go[1]);  // the child ends without having run anything
    output.forward_until_end(child);
    return refused;
  }
  (void)!write(go[1], "", 1);
  close(go[1]);
  // Before the wait for exec: what stops the child there are signals, and they end it.
  StartFailure why;
  const bool failed = read(failure[0], &why, sizeof why) == sizeof why;
  close(failure[0]);
  close(STDIN_FILENO);  // the command's alone
  const int code = output.forward_until_end(child);
  finish(options.pid_file, kills_before);
  return failed ? report(why, options) : code;
}

}  // namespace

int command_exec(int argc, char** argv) {
  Options options;
  if (const int bad = parse(argc, argv, &options); bad != kOk) return bad;
  if (options.kill) return kill_command(options.kill);
  if (options.env_from_stdin && !read_environment()) return kNotStarted;
  // Orphans of the command come to the shim, where a kill finds them, whatever session they opened.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  block_shim_signals();
  return run_command(options);
}

}  // namespace umpteenth::ump
