#include "engine/namespaces.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/names.h"
#include "engine/netns.h"

namespace umpteenth::engine {
namespace {

constexpr auto kTryAgain = std::chrono::minutes(1);
constexpr int kAnyPort = 8081;
constexpr int kSysPtrace = 19, kSysAdmin = 21;  // bits of CapEff
constexpr std::array<std::string_view, 5> kSharedKernel{
    "runc", "crun", "youki", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux"};

// What setns() on another process's namespace takes.
bool may_enter(std::string_view status) {
  constexpr std::string_view kField = "CapEff:\t";
  const size_t at = status.find(kField);
  if (at == std::string_view::npos) return false;
  const char* digits = status.data() + at + kField.size();
  uint64_t effective = 0;
  if (std::from_chars(digits, status.data() + status.size(), effective, 16).ec != std::errc())
    return false;
  return (effective >> kSysAdmin & 1) != 0 && (effective >> kSysPtrace & 1) != 0;
}

}  // namespace

std::string known_obstacle(const NamespaceFacts& facts) {
  if (!facts.endpoint.starts_with("unix://"))
    return "the engine at " + facts.endpoint + " may run on another host";
  if (facts.engine != "Docker") return facts.engine + " is served with attachment network";
  if (std::ranges::find(kSharedKernel, facts.runtime) == kSharedKernel.end())
    return "runtime " + facts.runtime +
           " is not known to share the host's network namespaces with its sandboxes";
  if (!may_enter(facts.own_status))
    return "umpd may not enter namespaces: it lacks CAP_SYS_ADMIN or CAP_SYS_PTRACE (run it as "
           "root on the engine's host)";
  return "";
}

std::string Namespaces::obstacle(const std::string& runtime) {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  const auto known = by_runtime_.find(runtime);
  if (known != by_runtime_.end() && (known->second.obstacle.empty() || now < known->second.again))
    return known->second.obstacle;
  const std::string found = find_out(runtime);
  by_runtime_[runtime] = {found, now + kTryAgain};
  return found;
}

std::string Namespaces::find_out(const std::string& runtime) {
  const Info info = engine_.info();
  NamespaceFacts facts{endpoint_, info.engine, runtime.empty() ? info.default_runtime : runtime,
                       read_file("/proc/self/status")};
  if (std::string known = known_obstacle(facts); !known.empty()) return known;
  return try_it(runtime);
}

std::string Namespaces::try_it(const std::string& runtime) {
  ContainerSpec spec;
  spec.name = own_name(instance_, "namespace-probe");
  spec.entrypoint = {kHelperUmpPath, "init", "--ttl", "1m"};
  spec.user = "65534:65534";
  spec.labels = {{kLabelInstance, instance_}, {kLabelRole, "namespace-probe"}};
  spec.cap_drop = {"ALL"};
  spec.memory_bytes = 32 << 20;
  spec.pids = 16;
  spec.runtime = runtime;
  spec.network_mode = "none";
  std::string container;
  const Defer remove([&] {
    try {
      if (!container.empty()) engine_.remove_container(container);
    } catch (const Error& e) {  // the next trial begins with removing it
      log::warn("probe sandbox not removed", {{"error", log::clip(e.message())}});
    }
  });
  try {
    spec.image = images_.ensure_helper();
    engine_.remove_container(spec.name);
    container = engine_.create_container(spec);
    engine_.start_container(container);
    listen_in_sandbox(engine_, container, kAnyPort);
    return "";
  } catch (const Error& e) {
    if (e.code() == Code::unavailable) throw;
    return "a sandbox made to try it could not be entered: " + log::clip(e.message());
  }
}

}  // namespace umpteenth::engine
