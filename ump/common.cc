#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

void vcomplain(const char* format, va_list arguments, const char* cause) {
  // One write, so that lines of several processes do not mix.
  char line[2048];
  int n = vsnprintf(line, sizeof line - 256, format, arguments);
  if (n < 0) return;
  Buffer text;
  text.append("ump: ");
  text.append(line);
  if (cause) {
    text.append(": ");
    text.append(cause);
  }
  text.push_back('\n');
  write_all(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

void complain(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vcomplain(format, arguments, nullptr);
  va_end(arguments);
}

void complain_errno(const char* format, ...) {
  const char* cause = strerror(errno);
  va_list arguments;
  va_start(arguments, format);
  vcomplain(format, arguments, cause);
  va_end(arguments);
}

int usage(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vcomplain(format, arguments, nullptr);
  va_end(arguments);
  return kUsage;
}

int64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);  // goes on while the machine is suspended
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool parse_number(const char* text, long min, long max, long* number) {
  if (*text < '0' || *text > '9') return false;
  char* end = nullptr;
  errno = 0;
  *number = strtol(text, &end, 10);
  return errno == 0 && *end == '\0' && *number >= min && *number <= max;
}

bool parse_duration(const char* text, int64_t* ms) {
  static const struct {
    const char* unit;
    int64_t ms;
  } kUnits[] = {{"ms", 1}, {"h", 3600000}, {"m", 60000}, {"s", 1000}};
  constexpr int64_t kMost = 366LL * 86400000;
  *ms = 0;
  while (*text >= '0' && *text <= '9') {
    int64_t n = 0;
    for (; *text >= '0' && *text <= '9'; ++text)
      if (n <= kMost) n = n * 10 + (*text - '0');
    size_t length = 0;
    for (const auto& [unit, factor] : kUnits) {
      if (strncmp(text, unit, strlen(unit)) != 0) continue;
      length = strlen(unit);
      if (n > kMost / factor) return false;
      *ms += n * factor;
      break;
    }
    if (length == 0) return false;
    text += length;
  }
  return *text == '\0' && *ms > 0 && *ms <= kMost;
}

bool write_all(int fd, const char* bytes, size_t n) {
  while (n > 0) {
    const ssize_t wrote = write(fd, bytes, n);
    if (wrote < 0 && errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      poll(&ready, 1, -1);
      continue;
    }
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    bytes += wrote;
    n -= static_cast<size_t>(wrote);
  }
  return true;
}

bool read_all(int fd, size_t max, Buffer* into) {
  while (true) {
    const ssize_t got = read(fd, into->room(65536), 65536);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) return true;
    into->grow(static_cast<size_t>(got));
    if (into->size() > max) {
      errno = EFBIG;
      return false;
    }
  }
}

bool read_file(const char* path, size_t max, Buffer* into) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool read = read_all(fd, max, into);
  const int saved = errno;
  close(fd);
  errno = saved;
  return read;
}

}  // namespace umpteenth::ump
