#include "tests/support/engine_fixture.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "base/error.h"
#include "base/subprocess.h"
#include "tests/support/paths.h"

namespace umpteenth::support {
namespace {

const char kPrefix[] = "/tmp/ump-engine-";

CommandResult engine_sh(const std::string& verb, const std::string& dir) {
  Command c;
  c.argv = {support::source_dir() + "/tests/support/engine.sh", verb, dir};
  c.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  c.timeout = Duration{120'000};
  return system_runner().run(c);
}

bool on_path(const std::string& program) {
  for (const char* dir :
       {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"})
    if (access((std::string(dir) + "/" + program).c_str(), X_OK) == 0) return true;
  return false;
}

std::string reason_to_skip() {
  if (geteuid() != 0) return "an engine of its own needs root (or set UMPTEENTH_ENGINE)";
  for (const char* program : {"dockerd", "iptables", "nsenter", "curl", "busybox"})
    if (!on_path(program)) return std::string(program) + " is not installed";
  return "";
}

// Of test programs that were killed before they could end theirs.
void end_leftovers() {
  for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
    const std::string path = entry.path().string();
    if (!path.starts_with(kPrefix)) continue;
    const int pid = std::atoi(path.c_str() + sizeof(kPrefix) - 1);
    if (pid <= 0 || kill(pid, 0) == 0) continue;
    engine_sh("down", path);
    std::filesystem::remove(path);
  }
}

struct OwnEngine {
  TestEngine seen;

  OwnEngine() {
    if (const char* given = std::getenv("UMPTEENTH_ENGINE"); given != nullptr && *given != '\0') {
      seen.endpoint = given;
      const std::string tail = "/engine/docker.sock", head = "unix://";
      if (seen.endpoint.starts_with(head) && seen.endpoint.ends_with(tail))
        seen.dir =
            seen.endpoint.substr(head.size(), seen.endpoint.size() - head.size() - tail.size());
      return;
    }
    seen.skip = reason_to_skip();
    if (!seen.skip.empty()) {
      std::cerr << "\n*** NO ENGINE HERE: " << seen.skip << ": its tests are skipped ***\n\n";
      return;
    }
    end_leftovers();
    const std::string dir = kPrefix + std::to_string(getpid());
    const CommandResult up = engine_sh("up", dir);
    if (up.exit_code != 0) {
      std::filesystem::remove_all(dir);
      throw Error(Code::internal, "engine.sh up: " + up.err);
    }
    seen.dir = dir;
    seen.endpoint = "unix://" + dir + "/engine/docker.sock";
    owned_ = true;
  }

  ~OwnEngine() {
    if (!owned_) return;
    engine_sh("down", seen.dir);
    std::error_code ignored;
    std::filesystem::remove(seen.dir, ignored);
  }

 private:
  bool owned_ = false;
};

}  // namespace

const TestEngine& test_engine() {
  static const OwnEngine kEngine;
  return kEngine.seen;
}

}  // namespace umpteenth::support
