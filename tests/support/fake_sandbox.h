// A sandbox in memory: files in a map, commands answered by what a test lined up.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "runs/sandbox_io.h"

namespace umpteenth::support {

class FakeSandbox : public runs::SandboxIO {
 public:
  using Command = std::function<runs::ExecOutcome(const runs::ExecRequest&, std::stop_token)>;

  // The next command prints this (through on_output too, cut as the request says) and exits so.
  FakeSandbox& prints(std::string output, int exit_code = 0);
  FakeSandbox& then(Command command);
  // From now on everything throws this.
  void lose(Error error);
  // Called at the start of each read_file, on the caller's thread.
  std::function<void(const std::string& path, std::stop_token stop)> on_read;

  runs::ExecOutcome exec(const runs::ExecRequest& request, std::stop_token stop) override;
  std::string read_file(const std::string& path, size_t max_bytes, std::stop_token stop) override;
  void write_file(const std::string& path, std::string_view bytes, int mode,
                  std::stop_token stop) override;

  void put(const std::string& path, std::string bytes, int mode = 0644);
  std::string file(const std::string& path) const;  // "" where absent
  bool has(const std::string& path) const;
  int mode(const std::string& path) const;
  std::vector<runs::ExecRequest> commands() const;

 private:
  struct File {
    std::string bytes;
    int mode = 0644;
  };
  void check_alive() const;

  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
  std::deque<Command> lined_up_;
  std::vector<runs::ExecRequest> commands_;
  std::optional<Error> lost_;
};

// What a real sandbox keeps of a command's output.
std::string cut(const std::string& output, size_t head, size_t tail);

}  // namespace umpteenth::support
