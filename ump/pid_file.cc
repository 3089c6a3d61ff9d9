#include "ump/pid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

void print(const PidFile& what, char (&text)[128]) {
  if (what.content == PidFile::Content::cancelled)
    snprintf(text, sizeof text, "cancelled\n");
  else if (what.content == PidFile::Content::oom)
    snprintf(text, sizeof text, "oom\n");
  else
    snprintf(text, sizeof text, "%d %d %llu\n", what.group, what.shim, what.start);
}

// A file beside `path`, under a name nobody can have prepared a link for.
bool write_beside(const char* path, const PidFile& what, Buffer* name) {
  unsigned long random[2];
  if (getrandom(random, sizeof random, 0) != sizeof random) return false;
  char suffix[48];
  snprintf(suffix, sizeof suffix, ".%lx%lx", random[0], random[1]);
  name->append(path);
  name->append(suffix);
  const int fd = open(name->data(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  char text[128];
  print(what, text);
  const bool written = write_all(fd, text, strlen(text));
  const int saved = errno;
  close(fd);
  if (!written) unlink(name->data());
  errno = saved;
  return written;
}

bool is_ours(int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return false;
  return S_ISREG(about.st_mode) && (about.st_uid == geteuid() || about.st_uid == 0);
}

}  // namespace

Created create_pid_file(const char* path, const PidFile& what) {
  Buffer temporary;
  if (!write_beside(path, what, &temporary)) {
    complain_errno("cannot write beside %s", path);
    return Created::failed;
  }
  const bool linked = link(temporary.data(), path) == 0;
  const int saved = errno;
  unlink(temporary.data());
  if (linked) return Created::yes;
  if (saved == EEXIST) return Created::exists;
  errno = saved;
  complain_errno("cannot create %s", path);
  return Created::failed;
}

bool replace_pid_file(const char* path, const PidFile& what) {
  Buffer temporary;
  if (!write_beside(path, what, &temporary)) return false;
  if (rename(temporary.data(), path) == 0) return true;
  unlink(temporary.data());
  return false;
}

bool read_pid_file(const char* path, PidFile* into) {
  // O_NONBLOCK: a planted fifo must not hold us.
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    complain_errno("cannot read the pid file %s", path);
    return false;
  }
  char text[128];
  const bool ours = is_ours(fd);
  const ssize_t n = ours ? read(fd, text, sizeof text - 1) : 0;
  close(fd);
  if (!ours) {
    complain("%s is not a file of this user", path);
    return false;
  }
  text[n > 0 ? n : 0] = '\0';
  if (strcmp(text, "cancelled\n") == 0) {
    into->content = PidFile::Content::cancelled;
    return true;
  }
  if (strcmp(text, "oom\n") == 0) {
    into->content = PidFile::Content::oom;
    return true;
  }
  into->content = PidFile::Content::command;
  if (sscanf(text, "%d %d %llu", &into->group, &into->shim, &into->start) == 3) return true;
  complain("%s is not a pid file", path);
  return false;
}

}  // namespace umpteenth::ump
