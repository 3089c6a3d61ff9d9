// What the agent may do inside a sandbox. Implemented over engine exec by controllers/run, faked in
// tests. Throws Error(not_found, "sandbox is gone…") when the sandbox died, unavailable when the
// engine cannot be reached.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace umpteenth::runs {

enum class Role { agent, mcp, root };

struct ExecRequest {
  std::vector<std::string> argv;
  std::vector<std::string> env;  // added to the run's own (secrets, UMP_*)
  std::string stdin_bytes;
  std::string working_dir = "/workspace";
  Role role = Role::agent;
  Duration timeout{120'000};
  // stdout and stderr as they come, interleaved; called on another thread.
  std::function<void(std::string_view chunk)> on_output;
  // What is kept of the output: the first head and the last tail bytes.
  size_t keep_head = 8'000;
  size_t keep_tail = 22'000;
};

struct ExecOutcome {
  int exit_code = 0;
  bool timed_out = false;  // killed with its whole process group
  bool oom = false;
  std::string output;       // head, a line "… N bytes left out …", tail
  std::string stdout_only;  // same bounds
  uint64_t total_bytes = 0;
};

class SandboxIO {
 public:
  virtual ~SandboxIO() = default;
  virtual ExecOutcome exec(const ExecRequest& request, std::stop_token stop) = 0;
  // As the agent's uid; follows what that uid may follow. Error: not_found, too_large, invalid (not
  // a regular file).
  virtual std::string read_file(const std::string& path, size_t max_bytes,
                                std::stop_token stop) = 0;
  virtual void write_file(const std::string& path, std::string_view bytes, int mode,
                          std::stop_token stop) = 0;
};

}  // namespace umpteenth::runs
