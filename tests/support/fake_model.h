// A model that answers what a test lined up, and keeps the prompts it was asked with.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "models/model_client.h"

namespace umpteenth::support {

class FakeModel : public models::ModelClient {
 public:
  using Step = std::function<models::Answer(const models::Prompt&, std::stop_token)>;

  FakeModel& then(Step step);
  FakeModel& then(models::Answer answer);
  FakeModel& then_fail(models::ModelError error);

  // ModelError(permanent) where nothing is lined up any more.
  models::Answer complete(const models::Prompt& prompt,
                          const std::function<void(const models::Delta&)>& on_delta,
                          std::stop_token stop) override;

  std::vector<models::Prompt> prompts() const;

 private:
  mutable std::mutex mutex_;
  std::deque<Step> steps_;
  std::vector<models::Prompt> prompts_;
};

models::Answer says(std::string text);
models::Answer calls(std::vector<models::ToolCall> calls);
// arguments is JSON text.
models::ToolCall call(std::string id, std::string name, std::string_view arguments);

}  // namespace umpteenth::support
