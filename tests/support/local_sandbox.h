// A sandbox that is a folder: commands really run, under busybox's sh with busybox's tools only,
// with /workspace and /ump of their text and output standing for folders below it. For scripts of
// trust (the examples), not a containment. `ump step|output set` are recorded for the test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/subprocess.h"
#include "runs/sandbox_io.h"

namespace umpteenth::support {

class LocalSandbox : public runs::SandboxIO {
 public:
  explicit LocalSandbox(const json::Value& input);
  ~LocalSandbox() override;

  runs::ExecOutcome exec(const runs::ExecRequest& request, std::stop_token stop) override;
  std::string read_file(const std::string& path, size_t max_bytes, std::stop_token stop) override;
  void write_file(const std::string& path, std::string_view bytes, int mode,
                  std::stop_token stop) override;

  // "step load", "output set rows 4": what commands asked `ump` for, in order.
  std::vector<std::string> ump_calls() const;
  std::filesystem::path workspace() const { return root_ / "workspace"; }
  std::string artifact(const std::string& name) const;  // "" where absent

 private:
  std::filesystem::path host_path(const std::string& path) const;
  std::string inward(std::string text) const;   // sandbox paths to host paths
  std::string outward(std::string text) const;  // and back
  std::filesystem::path root_;
};

}  // namespace umpteenth::support
