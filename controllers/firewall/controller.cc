#include "controllers/firewall/controller.h"

#include "base/error.h"
#include "controllers/sandbox_engine/plan.h"

namespace umpteenth::controllers::firewall {
namespace {

constexpr Duration kFullCheck{600'000};
constexpr Duration kAgainUnenforced{10'000};
constexpr Duration kProbeAfter{1'000};  // the last repair, so that many cost one probe
// Containers that start and end change interfaces and rules all the time.
constexpr Duration kShortest{300}, kShortestPolled{30'000};

}  // namespace

FirewallController::FirewallController(store::Store& store, Clock& clock, Engines& engines,
                                       Pokes pokes)
    : store_(store),
      clock_(clock),
      engines_(engines),
      pokes_(std::move(pokes)),
      events_(store, clock, "egress-firewall") {}

// Guards may outlive us, with the runs that have them.
FirewallController::~FirewallController() {
  for (const auto& handle : engines_.all())
    if (handle->parts().guard) handle->parts().guard->on_change(nullptr);
}

Controller FirewallController::controller() {
  Controller c;
  c.name = kController;
  c.sources = {{"sandboxengines", own_key}};
  c.reconcile = [this](const store::Key& key, const std::stop_token&) { return reconcile(key); };
  c.deadline = Duration(180'000);
  return c;
}

Outcome FirewallController::reconcile(const store::Key& key) {
  const auto record = store_.find(key);
  if (!record) return Outcome::done();
  const json::Value object = record->parse();
  const auto spec = apis::sandbox_engine_spec_from(object.get("spec"));
  if (!sandbox_engine::unsupported(spec).empty()) return Outcome::done();
  const auto guard = engines_.ensure(key.name, spec)->parts().guard;
  if (!guard) return Outcome::done();
  tell(key, object, guard->state());
  const Time now = clock_.now();
  if (const Looked* before = last(key.name); before && before->spec == spec) {
    const bool polled = guard->state().enforced() && guard->state().watch == "polled";
    const Duration shortest = polled ? kShortestPolled : kShortest;  // a helper container is dear
    if (now - before->at < shortest) return Outcome::look_again(shortest - (now - before->at));
  }
  guard->block_too(blocked_on(spec.endpoint));
  guard->on_change([this, key] { pokes_.look(key); });
  const Outcome outcome = look_at(*guard, key, object, spec);
  looked_[key.name] = {clock_.now(), spec};
  return outcome;
}

const FirewallController::Looked* FirewallController::last(const std::string& engine) const {
  const auto it = looked_.find(engine);
  return it == looked_.end() ? nullptr : &it->second;
}

// By all the SandboxEngines there.
std::vector<net::Cidr> FirewallController::blocked_on(const std::string& endpoint) const {
  std::vector<net::Cidr> blocked;
  for (const store::RecordPtr& record : store_.list({"sandboxengines", "", 0, ""}).items) {
    const auto spec = apis::sandbox_engine_spec_from(record->parse().get("spec"));
    if (spec.endpoint != endpoint) continue;
    for (const std::string& text : spec.blocked_targets)
      if (const auto cidr = net::parse_cidr(text)) blocked.push_back(*cidr);
  }
  return blocked;
}

Outcome FirewallController::look_at(Guard& guard, const store::Key& key, const json::Value& object,
                                    const apis::SandboxEngineSpec& spec) {
  const State before = guard.state();
  State now = guard.check(spec);
  const bool fresh = now.repairs == before.repairs;
  if (fresh && guard.probe_due()) now = guard.probe(spec);
  tell(key, object, now);
  if (guard.probe_due() && !now.off())
    return Outcome::look_again(fresh ? kAgainUnenforced : kProbeAfter);
  return Outcome::look_again(now.enforced() || now.off() ? kFullCheck : kAgainUnenforced);
}

FirewallController::Subject FirewallController::subject(const store::Key& key) {
  const auto record = store_.find(key);
  if (!record) throw Error(Code::not_found, "sandbox engine " + key.name + " does not exist");
  Subject s{apis::sandbox_engine_spec_from(record->parse().get("spec")), nullptr};
  if (sandbox_engine::unsupported(s.spec).empty())
    s.guard = engines_.ensure(key.name, s.spec)->parts().guard;
  return s;
}

// The sandbox-engine controller writes it into the status.
void FirewallController::tell(const store::Key& key, const json::Value& object, const State& now) {
  State& told = told_[key.name];
  if (now.repairs > told.repairs) events_.normal(object, "EgressFirewallRepaired", now.last_repair);
  if (now.kind == told.kind && now.reason == told.reason && now.repairs == told.repairs &&
      now.watch == told.watch && now.pending == told.pending)
    return;
  told = now;
  pokes_.published(key);
}

json::Value FirewallController::preview(const store::Key& key) {
  const Subject s = subject(key);
  json::Value actions = json::Value::array();
  json::Value shown = json::Value::object();
  if (s.guard && s.spec.egress_filter != "off") {
    s.guard->block_too(blocked_on(s.spec.endpoint));
    const Guard::Preview preview = s.guard->preview(s.spec);
    for (const Action& action : preview.plan.actions) actions.push_back(to_string(action));
    shown.set("rules", preview.rules);
  }
  shown.set("actions", std::move(actions));
  return shown;
}

json::Value FirewallController::remove(const store::Key& key) {
  const Subject s = subject(key);
  if (s.spec.egress_filter != "off")
    throw Error(Code::conflict, "sandbox engine " + key.name +
                                    " has egressFilter: " + s.spec.egress_filter +
                                    ", so its rules would be made again at once; set it to off");
  if (!s.guard) throw Error(Code::unavailable, "umpd has no way to this engine's host");
  return json::Value::object({{"removed", json::Value::strings(s.guard->remove(s.spec))}});
}

}  // namespace umpteenth::controllers::firewall
