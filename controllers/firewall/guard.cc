#include "controllers/firewall/guard.h"

#include <algorithm>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/overloaded.h"
#include "engine/names.h"

namespace umpteenth::controllers::firewall {
namespace {

constexpr char kNoProbeYet[] = "the probe sandbox has not run yet";
constexpr int kMostStages = 8, kMostFailures = 3;
constexpr Duration kOrphanFor{60'000};  // a network is listed a moment after its bridge is made
constexpr std::chrono::milliseconds kReopen{2'000};
constexpr Reach kEgress[] = {Reach::internet, Reach::internet_private};

std::string rules_text(const engine::firewall::Desired& desired) {
  std::string text = desired.instance;
  for (const auto& b : desired.bridges)
    text += "\n" + b.interface + " " + std::to_string(static_cast<int>(b.reach));
  for (const auto* ranges : {&desired.blocked, &desired.containers})
    for (const net::Cidr& c : *ranges) text += "\n" + net::format(c);
  return text;
}

std::string text_of(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& a : actions) text += (text.empty() ? "" : "; ") + to_string(a);
  return text;
}

}  // namespace

Guard::Guard(GuardOptions options, Clock& clock)
    : options_(std::move(options)), clock_(clock), probe_fault_(kNoProbeYet) {
  events_ = std::jthread([this](const std::stop_token& stop) { read_events(stop); });
}

Guard::~Guard() {
  on_change(nullptr);
  events_.request_stop();
  access_ = {};  // its watcher calls us
}

void Guard::on_change(std::function<void()> look) {
  const std::lock_guard lock(mutex_);
  look_ = std::move(look);
}

void Guard::block_too(std::vector<net::Cidr> ranges) {
  const std::lock_guard lock(mutex_);
  blocked_too_ = std::move(ranges);
}

State Guard::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

bool Guard::probe_due() const {
  const std::lock_guard lock(mutex_);
  return probe_due_ && options_.helper_image != nullptr;
}

Wanted Guard::wanted(const apis::SandboxEngineSpec& spec) const {
  Wanted w;
  w.instance = options_.instance;
  w.required = spec.egress_filter == "required";
  if (const auto pool = net::parse_cidr(spec.subnet_pool)) w.pools.push_back(*pool);
  const std::lock_guard lock(mutex_);
  std::set<net::Cidr> blocked(blocked_too_.begin(), blocked_too_.end());
  for (const std::string& text : spec.blocked_targets)
    if (const auto cidr = net::parse_cidr(text)) blocked.insert(*cidr);
  w.blocked.assign(blocked.begin(), blocked.end());
  for (const auto& [uid, admitted] : members_) w.members.push_back(admitted.member);
  return w;
}

void Guard::open_host() {
  if (access_.host) return;
  access_ = options_.open_host([this] {
    const std::lock_guard lock(mutex_);
    if (look_) look_();
  });
}

// The networks must be known; a host that is out of reach is a fact like any other.
Observed Guard::observe(const Wanted& w) {
  Observed o;
  o.networks = options_.engine->list_networks({});
  for (const Reach reach : kEgress)
    if (const engine::Network* n = engine::find_egress(o.networks, w.instance, reach))
      if (const auto whole = options_.engine->find_network(n->id))
        *std::ranges::find(o.networks, n->id, &engine::Network::id) = *whole;
  try {
    open_host();
    o.host = access_.host->read();
  } catch (const Error& e) {
    access_ = {};
    o.error = e.message();
  }
  const Time now = clock_.now();
  const std::set<std::string> orphans = orphan_links(w, o);
  std::erase_if(orphans_, [&](const auto& entry) { return !orphans.contains(entry.first); });
  for (const std::string& link : orphans)
    if (now - orphans_.try_emplace(link, now).first->second >= kOrphanFor)
      o.stale_links.insert(link);
  return o;
}

// Something that was enforced and is wanted still was changed by somebody.
bool Guard::is_repair(const Plan& p, const Wanted& w, const Observed& o) const {
  if (upheld_.empty()) return false;
  const bool same = rules_text(desired_rules(w, o.networks)) == upheld_;
  return std::ranges::any_of(p.actions, [&](const Action& action) {
    if (std::holds_alternative<CreateNetwork>(action)) return true;
    if (std::holds_alternative<Restore>(action)) return same;
    const auto* isolate = std::get_if<Isolate>(&action);
    if (!isolate) return false;
    const bool ipv6 = std::ranges::any_of(isolate->bridges, [&](const std::string& bridge) {
      return o.host->ipv6_interfaces.contains(bridge);
    });
    return (ipv6 && same) || std::ranges::any_of(o.host->ports, [&](const auto& port) {
             return !port.isolated && isolated_.contains(port.bridge + " " + port.interface);
           });
  });
}

void Guard::tell(const std::string& run_uid, const std::string& what) const {
  std::function<void(const std::string&)> told;
  {
    const std::lock_guard lock(mutex_);
    const auto it = members_.find(run_uid);
    if (it != members_.end()) told = it->second.told;
  }
  if (told) told(what);
}

void Guard::apply(const Action& action) {
  engine::Engine& engine = *options_.engine;
  const auto gone_is_fine = [](const auto& f) {
    try {
      f();
    } catch (const Error& e) {  // its run has ended meanwhile
      if (e.code() != Code::not_found && e.code() != Code::conflict) throw;
    }
  };
  std::visit(
      Overloaded{[&](const RemoveNetwork& a) { engine.remove_network(a.id); },
                 [&](const CreateNetwork& a) { engine.create_network(a.spec); },
                 [&](const Restore& a) {
                   access_.host->restore(a.backend, {a.ipv4, a.ipv6});
                 },
                 [&](const Isolate& a) { access_.host->isolate(a.bridges); },
                 [&](const Connect& a) {
                   gone_is_fine([&] { engine.connect_network(a.network, a.member.container, {}); });
                   tell(a.member.run_uid, "connected to " + a.network + " again");
                 },
                 [&](const CutOff& a) {
                   gone_is_fine([&] { engine.disconnect_network(a.network, a.member.container); });
                   tell(a.member.run_uid,
                        "cut off from " + a.network +
                            ": the egress firewall is required but not installed");
                 },
                 [&](const RemoveLink& a) { access_.host->remove_link(a.interface); }},
      action);
}

State Guard::check(const apis::SandboxEngineSpec& spec) {
  const std::lock_guard checking(checking_);
  State next = state();
  next.last_checked = clock_.now();
  if (spec.egress_filter == "off") {
    access_ = {};
    upheld_.clear();
    next.kind = State::Kind::off;
    next.reason = next.backend = next.watch = "";
    publish(next);
    return next;
  }
  const Wanted w = wanted(spec);
  next = settle(w, std::move(next));
  publish(next);
  return state();
}

// Stage by stage, until nothing is left to do or something fails.
State Guard::settle(Wanted w, State next) {
  next.kind = State::Kind::not_enforced;
  Observed o;
  int failures = 0;
  try {
    for (int stage = 0; stage < kMostStages; ++stage) {
      o = observe(w);
      if (o.host) next.backend = o.host->backend;
      next.watch = access_.watch && (next.backend != "legacy" || access_.watch->sees_legacy())
                       ? "events"
                       : "polled";
      const Plan p = plan(w, o);
      next.reason = p.verdict.reason;
      if (p.actions.empty()) {
        if (p.verdict.enforced) {
          next.kind = State::Kind::enforced;
          upheld_ = rules_text(desired_rules(w, o.networks));
          isolated_.clear();
          for (const auto& port : o.host->ports)
            if (port.isolated) isolated_.insert(port.bridge + " " + port.interface);
        }
        return next;
      }
      const std::string what = text_of(p.actions);
      if (is_repair(p, w, o)) {
        if (!fight_.may_repair(what, clock_.now())) {
          next.reason = "another program undoes the rules again and again (" +
                        std::to_string(fight_.times()) + " times): " + p.verdict.reason;
          break;
        }
        next.last_repaired = clock_.now();
        next.last_repair = what;
        ++next.repairs;
        const std::lock_guard lock(mutex_);
        probe_due_ = true;
      }
      log::info("egress firewall plan", {{"plan", log::clip(what)}});
      try {
        for (const Action& action : p.actions) {
          apply(action);
          // Once: one that has ended is no member of a network any more.
          if (const auto* c = std::get_if<Connect>(&action)) std::erase(w.members, c->member);
        }
      } catch (const Error& e) {  // somebody else changed the host between our look and this
        if (++failures == kMostFailures) throw;
        log::debug("egress firewall: once more", {{"error", log::clip(e.message())}});
      }
    }
    if (next.reason.empty()) next.reason = "the host changes faster than it can be read";
  } catch (const Error& e) {
    next.reason = log::clip(e.message());
    access_ = {};
  }
  try {
    for (const Action& action : plan_cut_off(w, o)) apply(action);
  } catch (const Error& e) {
    log::error("a sandbox could not be cut off", {{"error", log::clip(e.message())}});
  }
  return next;
}

void Guard::publish(const State& next) {
  const std::lock_guard lock(mutex_);
  State published = next;
  published.pending = false;
  if (published.enforced() && !probe_fault_.empty() && options_.helper_image) {
    published.kind = State::Kind::not_enforced;
    published.reason = probe_fault_;
    published.pending = probe_fault_ == kNoProbeYet;
  }
  const bool turned = published.kind != state_.kind || published.reason != state_.reason;
  if (turned)
    log::info("egress firewall state", {{"state", published.enforced() ? "Enforced"
                                                  : published.off()    ? "Off"
                                                                       : "NotEnforced"},
                                        {"reason", published.reason}});
  const bool repaired = published.repairs != state_.repairs;
  state_ = published;
  if ((turned || repaired) && look_) look_();  // it may have been a run's check
}

State Guard::probe(const apis::SandboxEngineSpec& spec) {
  const std::lock_guard probing(probing_);
  if (!probe_due() || spec.egress_filter == "off") return state();
  std::string fault;
  {
    const std::lock_guard lock(mutex_);
    fault = probe_fault_;
    probe_due_ = false;
  }
  try {
    const auto networks = options_.engine->list_networks({});
    const engine::Network* strict =
        engine::find_egress(networks, options_.instance, Reach::internet);
    if (!strict) throw Error(Code::unavailable, "there is no egress network");
    const std::string reached = run_probe(
        *options_.engine,
        {options_.instance, strict->name, options_.helper_image(), probe_targets(networks)});
    fault = reached.empty() ? "" : "a probe sandbox reached " + reached;
  } catch (const Error& e) {  // what the last probe said stands, until it can be tried again
    log::warn("the probe sandbox could not run", {{"error", log::clip(e.message())}});
    if (!fault.empty()) fault = "the probe sandbox could not run: " + log::clip(e.message());
    const std::lock_guard lock(mutex_);
    probe_due_ = true;
  }
  {
    const std::lock_guard lock(mutex_);
    probe_fault_ = fault;
  }
  return check(spec);
}

State Guard::admit(const apis::SandboxEngineSpec& spec, const Member& member,
                   std::function<void(const std::string&)> told) {
  {
    const std::lock_guard lock(mutex_);
    members_[member.run_uid] = {member, std::move(told)};
  }
  return check(spec);
}

void Guard::release(const std::string& run_uid) {
  const std::lock_guard lock(mutex_);
  members_.erase(run_uid);
}

Guard::Preview Guard::preview(const apis::SandboxEngineSpec& spec) {
  const std::lock_guard checking(checking_);
  const Wanted w = wanted(spec);
  const Observed o = observe(w);
  engine::firewall::Host bare;  // as if nothing of ours were there
  bare.ipv4.tables["filter"]["DOCKER-USER"].policy = "-";
  const auto rules = plan_rules(desired_rules(w, o.networks));
  return {plan(w, o), engine::firewall::restore_text(plan_restore(rules, bare))};
}

std::vector<std::string> Guard::remove(const apis::SandboxEngineSpec& spec) {
  const std::lock_guard checking(checking_);
  const Wanted w = wanted(spec);
  engine::firewall::Restore removal;
  for (int tries = 1;; ++tries) {
    const Observed o = observe(w);
    if (!o.host) throw Error(Code::unavailable, o.error);
    removal = plan_removal(plan_rules(desired_rules(w, o.networks)), *o.host);
    try {
      access_.host->restore(o.host->backend, removal);
      break;
    } catch (const Error&) {  // another installation may just have begun to use what we share
      if (tries == kMostFailures) throw;
    }
  }
  access_ = {};
  upheld_.clear();
  std::vector<std::string> lines;
  const std::string text = engine::firewall::restore_text(removal);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Networks that come and go, and an engine that was restarted.
void Guard::read_events(const std::stop_token& stop) {
  const auto look = [this] {
    const std::lock_guard lock(mutex_);
    if (look_) look_();
  };
  const std::string runs = engine::own_name(options_.instance, "");
  std::mutex mutex;
  std::condition_variable_any never;
  while (!stop.stop_requested()) {
    try {
      options_.engine->events(
          {},
          [&](const engine::EngineEvent& event) {
            // Our own run networks are in the rules as a family.
            const auto name = event.attributes.find("name");
            const bool of_a_run = name != event.attributes.end() && name->second.starts_with(runs);
            if (event.type == "network" && event.action != "connect" && !of_a_run) look();
          },
          stop);
    } catch (const Error& e) {
      log::debug("engine event stream ended", {{"error", log::clip(e.message())}});
    }
    std::unique_lock lock(mutex);
    if (never.wait_for(lock, stop, kReopen, [] { return false; })) return;
    if (!stop.stop_requested()) look();  // what happened meanwhile was not seen
  }
}

}  // namespace umpteenth::controllers::firewall
