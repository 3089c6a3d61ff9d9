// What Ctrl-C says.
#pragma once

#include <csignal>
#include <string>

namespace umpteenth::umpctl {

// While it lives, SIGINT writes the text and a line break to stderr and ends the program with 130;
// where SIGINT was ignored (a shell's background job) it stays so. One at a time.
class OnInterrupt {
 public:
  explicit OnInterrupt(const std::string& text);
  ~OnInterrupt();
  OnInterrupt(const OnInterrupt&) = delete;
  OnInterrupt& operator=(const OnInterrupt&) = delete;

 private:
  struct sigaction before_;
};

}  // namespace umpteenth::umpctl
