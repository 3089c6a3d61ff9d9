// SandboxIO over the engine's exec: every command runs under `ump exec`, which makes it a process
// group of its own that a second exec can kill, whatever it forked.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "runs/sandbox_io.h"

namespace umpteenth::controllers::run {

inline constexpr char kUmp[] = "/usr/local/bin/ump";
inline constexpr char kSandboxGone[] = "sandbox is gone";

struct SandboxTarget {
  std::string container;
  bool root_job = false;         // the agent's commands run as uid 0
  std::vector<std::string> env;  // of every command: UMP_*, secrets. Not kept by the engine.
  // Requested once the sandbox as a whole is about to end: commands are given up at once, what they
  // started ends with the sandbox. Killing one by one would use up the time that a stop has.
  std::stop_token ending;
};

std::string user_of(runs::Role role, bool root_job);

class SandboxExec : public runs::SandboxIO {
 public:
  SandboxExec(engine::Engine& engine, Clock& clock, SandboxTarget target)
      : engine_(engine), clock_(clock), target_(std::move(target)) {}

  runs::ExecOutcome exec(const runs::ExecRequest& request, std::stop_token stop) override;
  std::string read_file(const std::string& path, size_t max_bytes, std::stop_token stop) override;
  void write_file(const std::string& path, std::string_view bytes, int mode,
                  std::stop_token stop) override;
  Duration busy() const { return Duration(busy_ms_.load()); }  // in commands, all together

 private:
  struct Ended {
    int exit_code = 0;
    bool timed_out = false;
    bool lost = false;  // the connection broke: how the command ended is unknown
  };
  Ended run(const runs::ExecRequest& request, const std::string& pid_file,
            const engine::OutputSink& sink, const std::stop_token& stop);
  std::unique_ptr<engine::Exec> start(const engine::ExecSpec& spec, const engine::OutputSink& sink,
                                      const std::stop_token& stop);
  void kill(const std::string& pid_file, const std::string& user);
  // Throws when the sandbox as a whole has ended: the engine may say so only a moment later.
  void expect_alive(const std::string& user, const std::stop_token& stop);
  bool marked_oom(const std::string& pid_file, const std::string& user);
  // Blocks until the engine answers again. Throws when the container is not running any more.
  void wait_for_engine(const std::stop_token& stop);

  engine::Engine& engine_;
  Clock& clock_;
  SandboxTarget target_;
  std::atomic<int64_t> busy_ms_{0};
};

}  // namespace umpteenth::controllers::run
