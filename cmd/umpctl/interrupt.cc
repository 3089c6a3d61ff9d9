#include "cmd/umpctl/interrupt.h"

#include <algorithm>

#include <unistd.h>

namespace umpteenth::umpctl {
namespace {

// A signal handler may neither allocate nor lock: what it says is laid out before.
constexpr size_t kMostText = 1024;
char said[kMostText];
size_t said_size = 0;

void say_and_end(int) {
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, said, said_size);
  _exit(128 + SIGINT);
}

}  // namespace

OnInterrupt::OnInterrupt(const std::string& text) {
  sigaction(SIGINT, nullptr, &before_);
  said_size = std::min(text.size(), kMostText - 1);
  std::copy_n(text.begin(), said_size, said);
  said[said_size++] = '\n';
  if (before_.sa_handler == SIG_IGN) return;
  struct sigaction say = {};
  say.sa_handler = say_and_end;
  sigaction(SIGINT, &say, nullptr);
}

OnInterrupt::~OnInterrupt() { sigaction(SIGINT, &before_, nullptr); }

}  // namespace umpteenth::umpctl
