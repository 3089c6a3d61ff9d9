#include "ump/exec_output.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "ump/processes.h"
#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int64_t kDrainMs = 500;

sigset_t shim_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, s);
  return signals;
}

// Reaps whatever ended, orphans too. True once the command is among them.
bool reap(pid_t command, int* code) {
  bool ended = false;
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (pid != command) continue;
    ended = true;
    *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return ended;
}

}  // namespace

void block_shim_signals() {
  const sigset_t signals = shim_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
}

int setgroups_none() { return geteuid() == 0 ? setgroups(0, nullptr) : 0; }

OutputPipes::~OutputPipes() {
  close_write_ends();
  for (const Stream& stream : streams_)
    if (stream.read_end >= 0) close(stream.read_end);
}

bool OutputPipes::open() {
  for (int i = 0; i < 2; ++i) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    streams_[i].read_end = ends[0];
    streams_[i].write_end = ends[1];
    streams_[i].to = STDOUT_FILENO + i;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  return true;
}

void OutputPipes::become_stdout_and_stderr() {
  for (const Stream& stream : streams_) dup2(stream.write_end, stream.to);
}

void OutputPipes::close_write_ends() {
  for (Stream& stream : streams_) {
    if (stream.write_end >= 0) close(stream.write_end);
    stream.write_end = -1;
  }
}

void OutputPipes::forward(Stream& stream) {
  char bytes[65536];
  const ssize_t n = read(stream.read_end, bytes, sizeof bytes);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    close(stream.read_end);
    stream.read_end = -1;
    return;
  }
  stream.left -= static_cast<int>(n);
  // Whoever read this may be gone; the command goes on, unread.
  (void)write_all(stream.to, bytes, static_cast<size_t>(n));
}

void OutputPipes::end_command(pid_t command) { terminate_group(command, getpid()); }

int OutputPipes::forward_until_end(pid_t command) {
  const sigset_t signals = shim_signals();
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  int code = 0;
  bool ended = false;
  int64_t deadline = 0;
  while (true) {
    if (!ended && reap(command, &code)) {
      ended = true;
      deadline = monotonic_ms() + kDrainMs;
      for (Stream& stream : streams_)
        if (stream.read_end >= 0) ioctl(stream.read_end, FIONREAD, &stream.left);
    }
    const bool open = streams_[0].read_end >= 0 || streams_[1].read_end >= 0;
    int64_t wait = -1;
    if (ended) {
      const bool left = streams_[0].left > 0 || streams_[1].left > 0;
      wait = deadline - monotonic_ms();
      if (!open || (wait <= 0 && !left)) break;
      if (wait < 0) wait = 0;
    }
    pollfd fds[3] = {{signal_fd, POLLIN, 0},
                     {streams_[0].read_end, POLLIN, 0},
                     {streams_[1].read_end, POLLIN, 0}};
    if (poll(fds, 3, static_cast<int>(wait)) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i)
      if (fds[i + 1].revents != 0) forward(streams_[i]);
    signalfd_siginfo info;
    while (read(signal_fd, &info, sizeof info) == sizeof info)
      if (info.ssi_signo != SIGCHLD) end_command(command);
  }
  close(signal_fd);
  return code;
}

}  // namespace umpteenth::ump
