// What the server needs of the running system, declared here and wired in cmd/umpd.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/http/message.h"
#include "base/json.h"

namespace umpteenth::server {

// Starting runs: same path for API, webhook, retry and `umpctl run`.
class Trigger {
 public:
  virtual ~Trigger() = default;
  struct Request {
    std::string ns, job, trigger, actor;
    json::Value input;
    std::string instructions;
    std::string name;    // of the Run; "" = made by apis::make_run_name
    json::Value labels;  // an object or null: added to the Run's own
    json::Value annotations;
    bool dry_run = false;  // everything checked, nothing stored
  };
  // The Run object that was created. Error(not_found), Error(invalid), Error(already_exists).
  virtual json::Value start(const Request& request) = 0;
};

// By plural: finalizers of controllers that run beside the server. Empty where none would remove
// them.
using Finalizers = std::map<std::string, std::vector<std::string>, std::less<>>;

// What the controllers would do now, from the same pure plans.
class PlanPreview {
 public:
  virtual ~PlanPreview() = default;
  virtual json::Value preview(const std::string& kind, const std::string& ns,
                              const std::string& name) = 0;
};

// A live command in a sandbox (later: umpctl exec).
class Exec {
 public:
  virtual ~Exec() = default;
};

}  // namespace umpteenth::server
