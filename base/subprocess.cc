#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "base/error.h"
#include "base/fd.h"

namespace umpteenth {
namespace {

using Steady = std::chrono::steady_clock;

constexpr const char* kMinimalPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
// How long output is still read after the program ended: a process that left the group may hold
// the pipe open for ever.
constexpr std::chrono::milliseconds kLastWords{200};

struct Pipe {
  Fd read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw errno_error(Code::internal, "make a pipe");
  Pipe made{Fd(ends[0]), Fd(ends[1])};
  fcntl(made.read.get(), F_SETFL, O_NONBLOCK);
  return made;
}

// A memory file, not a pipe: the program may leave it unread without blocking us.
Fd stdin_of(const std::string& bytes) {
  Fd fd(bytes.empty() ? open("/dev/null", O_RDONLY | O_CLOEXEC)
                      : memfd_create("stdin", MFD_CLOEXEC));
  if (!fd) throw errno_error(Code::internal, "prepare standard input");
  if (!bytes.empty()) {
    write_all(fd.get(), bytes);
    if (lseek(fd.get(), 0, SEEK_SET) != 0)
      throw errno_error(Code::internal, "prepare standard input");
  }
  return fd;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

pid_t spawn(const Command& command, int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  const Defer release([&] {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  });
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (!command.working_dir.empty())
    posix_spawn_file_actions_addchdir_np(&actions, command.working_dir.c_str());
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  const std::vector<std::string> minimal{kMinimalPath};
  pid_t pid = -1;
  const int failure = posix_spawnp(&pid, command.argv[0].c_str(), &actions, &attributes,
                                   pointers(command.argv).data(),
                                   pointers(command.env.empty() ? minimal : command.env).data());
  if (failure != 0)
    throw Error(failure == ENOENT ? Code::not_found : Code::internal,
                "start " + command.argv[0] + ": " + std::strerror(failure));
  return pid;
}

// The leader stays a zombie until reap(), so its group id cannot become another's meanwhile.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid), pidfd_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))) {
    if (pidfd_) return;
    const Error error = errno_error(Code::internal, "open a pidfd");
    reap();
    throw error;
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) reap();
  }

  int pidfd() const { return pidfd_.get(); }
  void kill_group() const { kill(-pid_, SIGKILL); }
  int reap() {
    kill_group();
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_;
  Fd pidfd_;
};

// Reads what is there; closes the descriptor at the end of the stream.
void take_output(Fd& from, std::string& into, size_t max, bool& truncated) {
  std::array<char, 64U << 10> buffer;
  const ssize_t n = read(from.get(), buffer.data(), buffer.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return from.reset();
  const size_t room = max - std::min(max, into.size());
  into.append(buffer.data(), std::min(room, static_cast<size_t>(n)));
  truncated = truncated || static_cast<size_t>(n) > room;
}

class SystemRunner : public Runner {
 public:
  CommandResult run(const Command& command, std::stop_token stop) override;
};

CommandResult SystemRunner::run(const Command& command, std::stop_token stop) {
  if (command.argv.empty()) throw Error(Code::internal, "start a program: argv is empty");
  const Fd in = stdin_of(command.stdin_bytes);
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const Fd stopped(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stopped) throw errno_error(Code::internal, "make an eventfd");
  const std::stop_callback on_stop(stop, [&] { eventfd_write(stopped.get(), 1); });

  Child child(spawn(command, in.get(), out.write.get(), err.write.get()));
  out.write.reset();
  err.write.reset();

  CommandResult result;
  auto deadline = Steady::now() + command.timeout;
  bool ended = false;
  bool was_stopped = false;
  while (!ended || out.read || err.read) {
    std::array<pollfd, 4> polled{{{out.read.get(), POLLIN, 0},
                                  {err.read.get(), POLLIN, 0},
                                  {ended ? -1 : child.pidfd(), POLLIN, 0},
                                  {was_stopped ? -1 : stopped.get(), POLLIN, 0}}};
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now()).count();
    if (left <= 0) {
      if (ended || result.timed_out) break;
      result.timed_out = true;
      child.kill_group();
      deadline = Steady::now() + std::chrono::seconds(5);
      continue;
    }
    if (poll(polled.data(), polled.size(), static_cast<int>(std::min<int64_t>(left, 60'000))) < 0) {
      if (errno == EINTR) continue;
      throw errno_error(Code::internal, "wait for " + command.argv[0]);
    }
    if (polled[0].revents != 0)
      take_output(out.read, result.out, command.max_output, result.truncated);
    if (polled[1].revents != 0)
      take_output(err.read, result.err, command.max_output, result.truncated);
    if (polled[3].revents != 0) {
      was_stopped = true;
      child.kill_group();
    }
    if (polled[2].revents != 0) {
      ended = true;
      child.kill_group();
      deadline = Steady::now() + kLastWords;
    }
  }
  result.exit_code = child.reap();
  if (was_stopped) throw Error(Code::unavailable, "run " + command.argv[0] + ": stopped");
  return result;
}

}  // namespace

Runner& system_runner() {
  static SystemRunner runner;
  return runner;
}

}  // namespace umpteenth
