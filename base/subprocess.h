// Runs a program: argv vector, never a shell, its own process group, killed with the object.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace umpteenth {

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH unless it has a slash
  std::vector<std::string> env;   // NAME=value, the whole environment; empty = a minimal PATH
  std::string stdin_bytes;
  std::string working_dir;
  Duration timeout{30'000};
  size_t max_output = 1U << 20;  // a stream's bytes beyond are dropped and `truncated` is set
};

struct CommandResult {
  int exit_code = 0;  // 128+signal where a signal ended it
  bool timed_out = false;
  bool truncated = false;
  std::string out;
  std::string err;
};

// The seam: FakeRunner in tests/support records argv.
class Runner {
 public:
  virtual ~Runner() = default;
  // A program that cannot be started is Error(not_found) or Error(internal); a bad exit is a
  // result.
  virtual CommandResult run(const Command& command, std::stop_token stop = {}) = 0;
};

Runner& system_runner();

}  // namespace umpteenth
