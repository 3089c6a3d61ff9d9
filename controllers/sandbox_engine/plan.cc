#include "controllers/sandbox_engine/plan.h"

#include <algorithm>

#include "apis/object.h"

namespace umpteenth::controllers::sandbox_engine {
namespace {

constexpr Duration kTellChecks{600'000};  // a status is no heartbeat

apis::Condition ready(const apis::SandboxEngineSpec& spec, const Observed& observed) {
  std::string why = unsupported(spec);
  if (!why.empty()) return {"Ready", "False", "Unsupported", why, 0};
  if (!observed.info) return {"Ready", "False", "EngineUnreachable", observed.error, 0};
  const engine::Info& info = *observed.info;
  if (info.arch != "amd64" && info.arch != "arm64") {
    return {"Ready", "False", "ArchitectureUnsupported",
            "the engine's architecture is " + info.arch + "; amd64 and arm64 are served", 0};
  }
  bool known = spec.runtime.empty() || std::ranges::count(info.runtimes, spec.runtime) > 0;
  if (!known) {
    std::string available;
    for (const auto& name : info.runtimes) available += (available.empty() ? "" : ", ") + name;
    return {"Ready", "False", "RuntimeMissing",
            "runtime \"" + spec.runtime +
                "\" is not configured in the container engine (available: " + available + ")",
            0};
  }
  const Attachment attachment = choose_attachment(spec.attachment, observed.namespace_obstacle);
  if (!attachment.refusal.empty())
    return {"Ready", "False", "AttachmentUnavailable", attachment.refusal, 0};
  return {"Ready", "True", "Reachable", info.engine + " " + info.version, 0};
}

// Whether the better of the two attachments is in use, and why not.
apis::Condition namespace_attachment(const apis::SandboxEngineSpec& spec,
                                     const Observed& observed) {
  constexpr char kType[] = "NamespaceAttachment";
  if (spec.attachment == kNetwork)
    return {kType, "False", "NotWanted", "spec.attachment is network", 0};
  if (!observed.info)
    return {kType, "Unknown", "EngineUnreachable", "the container engine does not answer", 0};
  if (!observed.namespace_obstacle.empty())
    return {kType, "False", "NotPossible", observed.namespace_obstacle, 0};
  return {kType, "True", "InUse", "the broker listens inside each sandbox's network namespace", 0};
}

apis::Condition firewall_condition(const apis::SandboxEngineSpec& spec,
                                   const firewall::State& state) {
  if (state.enforced())
    return {"EgressFirewall", "True", "Enforced", "Private networks are blocked", 0};
  if (spec.egress_filter == "off")
    return {"EgressFirewall", "False", "TurnedOff",
            "Turned off: Internet sandboxes reach private networks, the host and cloud metadata",
            0};
  if (state.pending) return {"EgressFirewall", "Unknown", "Pending", state.reason, 0};
  const bool required = spec.egress_filter == "required";
  return {"EgressFirewall", "False", "NotEnforced",
          state.reason + (required ? ": runs with Internet access are refused"
                                   : ": Internet sandboxes can reach private networks"),
          0};
}

json::Value firewall_status(const apis::SandboxEngineSpec& spec, const firewall::State& state,
                            const json::Value& before) {
  json::Value v = json::Value::object({{"state", state.enforced()              ? "Enforced"
                                                 : spec.egress_filter == "off" ? "Off"
                                                                               : "NotEnforced"}});
  if (!state.enforced() && spec.egress_filter != "off") v.set("reason", state.reason);
  if (!state.backend.empty()) v.set("backend", state.backend);
  if (!state.watch.empty()) v.set("watch", state.watch);
  if (state.repairs > 0) {
    v.set("lastRepaired", format_time(state.last_repaired));
    v.set("lastRepair", state.last_repair);
  }
  v.set("repairs", state.repairs);
  if (state.last_checked == Time{}) return v;
  std::string checked = before.get_string("lastChecked");
  const bool told = !checked.empty() && state.last_checked - parse_time(checked) < kTellChecks &&
                    parse_time(checked) <= state.last_checked;
  v.set("lastChecked", told ? checked : format_time(state.last_checked));
  return v;
}

}  // namespace

std::string unsupported(const apis::SandboxEngineSpec& spec) {
  if (spec.type != "Docker") {
    return "spec.type: " + spec.type + " is not served by this umpd; Docker is";
  }
  return "";
}

Attachment choose_attachment(const std::string& wanted, const std::string& obstacle) {
  if (wanted == kNetwork) return {kNetwork, ""};
  if (obstacle.empty()) return {kNamespace, ""};
  if (wanted != kNamespace) return {kNetwork, ""};
  return {"", "spec.attachment: namespace is not possible: " + obstacle +
                  "; set it to auto or network"};
}

json::Value plan_status(const json::Value& object, const Observed& observed, Time now) {
  auto spec = apis::sandbox_engine_spec_from(object.get("spec"));
  int64_t generation = apis::generation_of(object);
  json::Value status = json::Value::object({{"observedGeneration", generation}});
  const json::Value& old_conditions = object.at_path({"status", "conditions"});
  if (!old_conditions.is_null()) status.set("conditions", old_conditions);
  for (apis::Condition condition :
       {ready(spec, observed), firewall_condition(spec, observed.firewall),
        namespace_attachment(spec, observed)}) {
    condition.observed_generation = generation;
    apis::set_condition(status, condition, now);
  }
  status.set("egressFirewall", firewall_status(spec, observed.firewall,
                                               object.at_path({"status", "egressFirewall"})));
  if (observed.info) {
    const Attachment attachment = choose_attachment(spec.attachment, observed.namespace_obstacle);
    if (!attachment.how.empty()) status.set("attachment", attachment.how);
    const engine::Info& info = *observed.info;
    status.set("version",
               json::Value::object(
                   {{"name", info.engine}, {"engine", info.version}, {"api", info.api_version}}));
    status.set("architecture", info.arch);
    status.set("runtimes", json::Value::strings(info.runtimes));
    status.set("capacity",
               json::Value::object({{"cpus", info.cpus}, {"memoryMiB", info.memory_bytes >> 20}}));
    status.set("capabilities", json::Value::object({{"diskLimit", info.disk_limit}}));
  } else if (const json::Value& known = object.at_path({"status", "capabilities"});
             !known.is_null()) {
    status.set("capabilities", known);  // jobs go by them while the engine does not answer
  }
  status.set("sandboxes", json::Value::object({{"running", observed.running}, {"warm", 0}}));
  return status;
}

std::string internet_refusal(const apis::SandboxEngineSpec& spec, const firewall::State& firewall) {
  if (spec.egress_filter != "required" || firewall.enforced()) return "";
  return "the egress firewall is required but not installed: " + firewall.reason;
}

std::string disk_limit_refusal(const std::string& engine) {
  return "spec.sandbox.resources.diskMiB: sandbox engine " + engine +
         " cannot limit disk space; set it to 0";
}

}  // namespace umpteenth::controllers::sandbox_engine
