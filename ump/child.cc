#include "ump/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

// The bytes in a file of no name, so that a child which does not read cannot block us.
int stdin_with(const char* input, size_t n) {
  if (!input) return open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int fd = memfd_create("stdin", MFD_CLOEXEC);
  if (fd >= 0 && write_all(fd, input, n) && lseek(fd, 0, SEEK_SET) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

[[noreturn]] void become(const char* const argv[], int in, int out, int err) {
  static char path[] =
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/"
      "bin";
  static char language[] = "LC_ALL=C";
  static char* environment[] = {path, language, nullptr};
  signal(SIGPIPE, SIG_DFL);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  environ = environment;
  execvp(argv[0], const_cast<char* const*>(argv));
  if (errno != ENOENT) complain_errno("cannot execute %s", argv[0]);
  _exit(errno == ENOENT ? 127 : 126);
}

void pass_on(int err) {
  Buffer text;
  if (lseek(err, 0, SEEK_SET) == 0 && read_all(err, 64 << 10, &text))
    write_all(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

int run_child(const char* const argv[], const char* input, size_t n, Buffer* out, size_t max) {
  int pipe_ends[2];
  const int in = stdin_with(input, n);
  const int err = memfd_create("stderr", MFD_CLOEXEC);
  if (in < 0 || err < 0 || pipe2(pipe_ends, O_CLOEXEC) != 0) {
    complain_errno("cannot run %s", argv[0]);
    if (in >= 0) close(in);
    if (err >= 0) close(err);
    return -1;
  }
  const pid_t child = fork();
  if (child < 0) complain_errno("cannot run %s", argv[0]);
  if (child == 0) become(argv, in, out ? pipe_ends[1] : err, err);
  close(in);
  close(pipe_ends[1]);
  bool fine = child > 0;
  if (fine && out && !read_all(pipe_ends[0], out->size() + max, out)) {
    complain_errno("cannot read what %s prints", argv[0]);
    kill(child, SIGKILL);
    fine = false;
  }
  close(pipe_ends[0]);
  int status = 0;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (child > 0 && code != 0 && code != 127) pass_on(err);
  close(err);
  return fine ? code : -1;
}

}  // namespace umpteenth::ump
