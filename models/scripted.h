// The Scripted provider: answers by rules instead of a model, for demos and tests. docs/scripted.md
// says how a rule is written and chosen.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "apis/script.h"
#include "base/clock.h"
#include "models/model_client.h"

namespace umpteenth::models {

// Which rules were used is kept here: one client a run. Thread-safe.
class ScriptedClient : public ModelClient {
 public:
  ScriptedClient(std::string provider, std::vector<apis::ScriptRule> rules, Clock& clock)
      : provider_(std::move(provider)),
        rules_(std::move(rules)),
        used_(rules_.size()),
        clock_(clock) {}

  // ModelError(permanent) where no rule matches or a template has no value.
  Answer complete(const Prompt& prompt, const std::function<void(const Delta&)>& on_delta,
                  std::stop_token stop) override;

 private:
  struct Question;
  const apis::ScriptRule& choose(Question& question);

  std::string provider_;
  std::vector<apis::ScriptRule> rules_;
  std::mutex mutex_;
  std::vector<bool> used_;
  Clock& clock_;
};

}  // namespace umpteenth::models
