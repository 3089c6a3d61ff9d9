// Whether umpd can enter the network namespaces of an engine's sandboxes: by what is known of both,
// and then by trying it once on a sandbox of no run.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engine/sandbox_images.h"

namespace umpteenth::engine {

struct NamespaceFacts {
  std::string endpoint;    // how the engine is reached
  std::string engine;      // its name
  std::string runtime;     // of the sandbox
  std::string own_status;  // /proc/self/status
};
// Why it cannot be, or "" where trying makes sense. Pure.
std::string known_obstacle(const NamespaceFacts& facts);

class Namespaces {
 public:
  Namespaces(Engine& engine, SandboxImages& images, std::string instance, std::string endpoint)
      : engine_(engine),
        images_(images),
        instance_(std::move(instance)),
        endpoint_(std::move(endpoint)) {}

  // Why umpd cannot listen inside sandboxes with that runtime ("" = the engine's default one), or
  // "". Success is kept; a failure is looked into again after a minute. Error(unavailable) while
  // the engine does not answer.
  std::string obstacle(const std::string& runtime);

 private:
  struct Known {
    std::string obstacle;
    std::chrono::steady_clock::time_point again;
  };
  std::string find_out(const std::string& runtime);
  std::string try_it(const std::string& runtime);

  Engine& engine_;
  SandboxImages& images_;
  const std::string instance_, endpoint_;
  std::mutex mutex_;  // one trial at a time
  std::map<std::string, Known> by_runtime_;
};

}  // namespace umpteenth::engine
