// Keeps one engine's host in the state that plan.h wants: observes, plans, acts, reads back. State
// is what was read back. Thread-safe; checks are one at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "apis/sandbox_engine.h"
#include "base/clock.h"
#include "controllers/firewall/fight.h"
#include "controllers/firewall/plan.h"
#include "controllers/firewall/probe.h"
#include "controllers/firewall/state.h"
#include "engine/engine.h"
#include "engine/firewall/host_access.h"
#include "engine/firewall/watch.h"

namespace umpteenth::controllers::firewall {

// How the host is reached now. Found anew after a failure: the engine may have come back elsewhere.
struct Access {
  std::unique_ptr<engine::firewall::HostFirewall> host;
  std::unique_ptr<engine::firewall::HostWatch> watch;  // null: changes are not told, host is polled
};

struct GuardOptions {
  std::string instance;
  std::shared_ptr<engine::Engine> engine;
  // changed: something on the host may have changed. Error(unavailable): why it is out of reach.
  std::function<Access(std::function<void()> changed)> open_host;
  std::function<std::string()> helper_image;  // for the probe; empty: no probe is made
};

class Guard {
 public:
  Guard(GuardOptions options, Clock& clock);
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Ranges that other SandboxEngines on the same engine block: rules are an installation's, so that
  // all of its engines want the same.
  void block_too(std::vector<net::Cidr> ranges);

  // Called from any thread, soon after something that concerns the firewall happened.
  void on_change(std::function<void()> look);

  // Observes and repairs; what comes back was read back. Never throws Error: what fails is the
  // state's reason. With egressFilter: off it touches nothing.
  State check(const apis::SandboxEngineSpec& spec);
  // The probe sandbox, where one is due; on its verdict the state rests as well.
  State probe(const apis::SandboxEngineSpec& spec);
  bool probe_due() const;
  State state() const;

  // A sandbox that was connected to an egress network and executes nothing of the run yet: its port
  // is isolated and the state checked. told: what happens to its access later, for its timeline.
  State admit(const apis::SandboxEngineSpec& spec, const Member& member,
              std::function<void(const std::string&)> told);
  void release(const std::string& run_uid);

  // What a check would do now, the verdict, and the rules that are wanted; changes nothing.
  struct Preview {
    Plan plan;
    std::string rules;  // as iptables-restore takes them, IPv6's behind a line "== ipv6"
  };
  Preview preview(const apis::SandboxEngineSpec& spec);
  // Takes this installation's rules out, the shared ones only where nobody else uses them; the
  // lines that did it.
  std::vector<std::string> remove(const apis::SandboxEngineSpec& spec);

 private:
  struct Admitted {
    Member member;
    std::function<void(const std::string&)> told;
  };

  Wanted wanted(const apis::SandboxEngineSpec& spec) const;
  Observed observe(const Wanted& wanted);
  void open_host();
  bool is_repair(const Plan& plan, const Wanted& wanted, const Observed& observed) const;
  void apply(const Action& action);
  void tell(const std::string& run_uid, const std::string& what) const;
  State settle(Wanted wanted, State state);
  void publish(const State& state);
  void read_events(const std::stop_token& stop);

  const GuardOptions options_;
  Clock& clock_;
  std::mutex checking_;  // a whole check
  // Of checks only.
  Access access_;
  Fight fight_;
  std::string upheld_;                   // the rules that were last enforced, as text
  std::set<std::string> isolated_;       // ports then
  std::map<std::string, Time> orphans_;  // since when
  std::mutex probing_;

  mutable std::mutex mutex_;
  State state_;
  std::map<std::string, Admitted> members_;
  std::function<void()> look_;
  std::vector<net::Cidr> blocked_too_;
  bool probe_due_ = true;
  std::string probe_fault_;

  std::jthread events_;
};

}  // namespace umpteenth::controllers::firewall
