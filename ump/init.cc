// `ump init`: the first process of a sandbox. It reaps what others leave behind, and ends the
// sandbox when it is told to or its time is over.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

void reap() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

// Nothing of the sandbox may read this process's memory or environment, hold it back through a
// descriptor, or have the kernel pick it first when memory is short.
bool protect_itself() {
  if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    complain_errno("cannot protect the init process");
    return false;
  }
  syscall(SYS_close_range, 3U, ~0U, 0U);
  // Lowering it takes a capability that most sandboxes have not: then the default stays.
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    (void)!write(fd, "-999", 4);
    close(fd);
  }
  return chdir("/") == 0;
}

}  // namespace

int command_init(int argc, char** argv) {
  int64_t ttl = 0;
  const char* ttl_text = nullptr;
  for (int i = 0; i < argc; ++i) {
    if (strcmp(argv[i], "--ttl") != 0) return usage("init: unknown argument \"%s\"", argv[i]);
    if (++i == argc) return usage("init: --ttl needs a duration, e.g. 20m");
    ttl_text = argv[i];
    if (!parse_duration(ttl_text, &ttl))
      return usage("init: --ttl: \"%s\" is no duration, e.g. 90s, 20m, 1h30m", ttl_text);
  }

  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, s);
  // As PID 1 a signal without a handler is dropped by the kernel, unless it is blocked.
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    complain_errno("cannot become a subreaper");
    return kFailed;
  }
  if (!protect_itself()) return kFailed;

  const int64_t deadline = monotonic_ms() + ttl;
  while (true) {
    reap();
    timespec wait{3600, 0};
    if (ttl_text) {
      const int64_t left = deadline - monotonic_ms();
      if (left <= 0) {
        complain("sandbox reached its time limit of %s", ttl_text);
        return kFailed;
      }
      if (left < 3600000) wait = {left / 1000, (left % 1000) * 1000000};
    }
    const int signal = sigtimedwait(&signals, nullptr, &wait);
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) return kOk;
  }
}

}  // namespace umpteenth::ump
