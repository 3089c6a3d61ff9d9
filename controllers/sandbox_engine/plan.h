// The status of a SandboxEngine, honest about what is not enforced. Pure.
#pragma once

#include <optional>
#include <string>

#include "apis/sandbox_engine.h"
#include "base/clock.h"
#include "base/json.h"
#include "controllers/firewall/state.h"
#include "engine/types.h"

namespace umpteenth::controllers::sandbox_engine {

struct Observed {
  std::optional<engine::Info> info;  // none: the engine did not answer
  std::string error;                 // why not
  std::string namespace_obstacle;    // why the broker cannot listen inside sandboxes, or ""
  int64_t running = 0;               // sandboxes of runs in execution here
  firewall::State firewall;
};

// How sandboxes meet the broker: it listens inside their network namespaces, or each has a network
// with the broker's endpoint in it.
inline constexpr char kNamespace[] = "namespace";
inline constexpr char kNetwork[] = "network";
struct Attachment {
  std::string how;      // kNamespace or kNetwork; "" where what is wanted is not possible
  std::string refusal;  // why not
  bool operator==(const Attachment&) const = default;
};
// wanted: spec.attachment; obstacle: what stands in the way of namespace, or "".
Attachment choose_attachment(const std::string& wanted, const std::string& obstacle);

// Why the spec cannot be served by this umpd whatever the engine answers, or "".
std::string unsupported(const apis::SandboxEngineSpec& spec);

json::Value plan_status(const json::Value& object, const Observed& observed, Time now);

// Why a run with Internet access must not start, or goes no further, or "".
std::string internet_refusal(const apis::SandboxEngineSpec& spec, const firewall::State& firewall);

// Why a job that limits its disk space cannot run on an engine that has no such limit.
std::string disk_limit_refusal(const std::string& engine);

}  // namespace umpteenth::controllers::sandbox_engine
