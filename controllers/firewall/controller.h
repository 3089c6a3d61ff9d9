// The egress firewall of each SandboxEngine's host: checked at the start, whenever something there
// changed, and every ten minutes. What was found is published by the sandbox-engine controller.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "controllers/runtime/events.h"
#include "controllers/runtime/manager.h"
#include "controllers/sandbox_engine/engines.h"

namespace umpteenth::controllers::firewall {

inline constexpr char kController[] = "firewall";

class FirewallController {
 public:
  struct Pokes {
    std::function<void(const store::Key&)> look;       // this controller is to look at an engine
    std::function<void(const store::Key&)> published;  // an engine's state changed
  };
  FirewallController(store::Store& store, Clock& clock, Engines& engines, Pokes pokes);
  ~FirewallController();
  FirewallController(const FirewallController&) = delete;
  FirewallController& operator=(const FirewallController&) = delete;

  Controller controller();  // valid while this object lives
  Outcome reconcile(const store::Key& key);
  // What a check would do, as `umpctl plan` shows it.
  json::Value preview(const store::Key& key);
  // Takes the rules out. Error(conflict) while they are wanted.
  json::Value remove(const store::Key& key);

 private:
  struct Subject {
    apis::SandboxEngineSpec spec;
    std::shared_ptr<Guard> guard;  // null where there is none
  };
  struct Looked {
    Time at;
    apis::SandboxEngineSpec spec;
  };
  void tell(const store::Key& key, const json::Value& object, const State& now);
  const Looked* last(const std::string& engine) const;
  Subject subject(const store::Key& key);
  std::vector<net::Cidr> blocked_on(const std::string& endpoint) const;
  Outcome look_at(Guard& guard, const store::Key& key, const json::Value& object,
                  const apis::SandboxEngineSpec& spec);

  store::Store& store_;
  Clock& clock_;
  Engines& engines_;
  const Pokes pokes_;
  Events events_;
  // Of the one worker.
  std::map<std::string, Looked> looked_;
  std::map<std::string, State> told_;
};

}  // namespace umpteenth::controllers::firewall
