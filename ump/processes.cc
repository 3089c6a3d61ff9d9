#include "ump/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int64_t kGraceMs = 1500;
constexpr int64_t kAfterKillMs = 2000;
constexpr int64_t kPollMs = 25;

struct Process {
  pid_t pid = 0, parent = 0, group = 0;
  unsigned long long start = 0;
  char state = 0;
  bool wanted = false;
};

bool read_stat(pid_t pid, Process* into) {
  char path[40], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return false;
  text[n] = '\0';
  into->pid = pid;
  const char* rest = strrchr(text, ')');  // the name before it may hold anything
  return rest && sscanf(rest + 1,
                        " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                        "%*d %llu",
                        &into->state, &into->parent, &into->group, &into->start) == 4;
}

// The living members of a group and the living descendants of a process, as /proc shows them now.
// Zombies are left out: they end when their parent gets round to it.
class Targets {
 public:
  Targets(pid_t group, pid_t ancestor) {
    list_all();
    for (size_t i = 0; i < count_; ++i) all_[i].wanted = all_[i].group == group;
    // A child may have a lower pid than its parent: repeat until nothing is added.
    for (bool added = ancestor > 1; added;) {
      added = false;
      for (size_t i = 0; i < count_; ++i) {
        if (all_[i].wanted || !below(all_[i].parent, ancestor)) continue;
        all_[i].wanted = true;
        added = true;
      }
    }
  }
  Targets(const Targets&) = delete;
  Targets& operator=(const Targets&) = delete;
  ~Targets() { free(all_); }

  bool any() const {
    for (size_t i = 0; i < count_; ++i)
      if (lives(all_[i])) return true;
    return false;
  }
  void signal_all(int signal) const {
    for (size_t i = 0; i < count_; ++i)
      if (lives(all_[i])) kill(all_[i].pid, signal);
  }

 private:
  static bool lives(const Process& p) {
    return p.wanted && p.state != 'Z' && p.state != 'X' && p.pid != getpid();
  }

  bool below(pid_t parent, pid_t ancestor) const {
    if (parent == ancestor) return true;
    const Process key{parent, 0, 0, 0, 0, false};
    const void* found = bsearch(&key, all_, count_, sizeof(Process), by_pid);
    return found && static_cast<const Process*>(found)->wanted;
  }

  static int by_pid(const void* a, const void* b) {
    return static_cast<const Process*>(a)->pid - static_cast<const Process*>(b)->pid;
  }

  void list_all() {
    DIR* proc = opendir("/proc");
    if (!proc) return;
    size_t capacity = 0;
    while (const dirent* entry = readdir(proc)) {
      const pid_t pid = atoi(entry->d_name);
      Process process;
      if (pid <= 1 || !read_stat(pid, &process)) continue;
      if (count_ == capacity) {
        capacity = capacity ? capacity * 2 : 256;
        void* grown = realloc(all_, capacity * sizeof(Process));
        if (!grown) break;
        all_ = static_cast<Process*>(grown);
      }
      all_[count_++] = process;
    }
    closedir(proc);
    if (count_ > 0) qsort(all_, count_, sizeof(Process), by_pid);
  }

  Process* all_ = nullptr;
  size_t count_ = 0;
};

bool gone_within(pid_t group, pid_t ancestor, int64_t ms) {
  const int64_t deadline = monotonic_ms() + ms;
  while (Targets(group, ancestor).any()) {
    if (monotonic_ms() >= deadline) return false;
    const timespec pause{0, kPollMs * 1000000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

long counter_in(const char* path) {
  Buffer text;
  if (!read_file(path, 65536, &text)) return -1;
  const char* line = strstr(text.data(), "oom_kill ");
  return line ? atol(line + strlen("oom_kill ")) : -1;
}

}  // namespace

unsigned long long start_of(pid_t pid) {
  Process process;
  return read_stat(pid, &process) ? process.start : 0;
}

bool terminate_group(pid_t group, pid_t ancestor) {
  if (group <= 1) {
    complain("refusing to signal the process group %d", group);
    return false;
  }
  const auto signal_all = [&](int signal) {
    kill(-group, signal);
    Targets(group, ancestor).signal_all(signal);
  };
  signal_all(SIGTERM);
  signal_all(SIGCONT);  // a stopped process takes SIGTERM only when it goes on
  if (gone_within(group, ancestor, kGraceMs)) return true;
  const int64_t deadline = monotonic_ms() + kAfterKillMs;
  do {
    signal_all(SIGKILL);  // again and again: what is being forked meanwhile is not in one listing
    if (gone_within(group, ancestor, 2 * kPollMs)) return true;
  } while (monotonic_ms() < deadline);
  complain("processes of the group %d outlive SIGKILL", group);
  return false;
}

long oom_kills() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}) {
    const long kills = counter_in(path);
    if (kills >= 0) return kills;
  }
  return 0;
}

}  // namespace umpteenth::ump
