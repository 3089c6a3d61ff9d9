#include "tests/support/fake_model.h"

namespace umpteenth::support {

FakeModel& FakeModel::then(Step step) {
  const std::lock_guard lock(mutex_);
  steps_.push_back(std::move(step));
  return *this;
}

FakeModel& FakeModel::then(models::Answer answer) {
  return then([answer](const models::Prompt&, const std::stop_token&) { return answer; });
}

FakeModel& FakeModel::then_fail(models::ModelError error) {
  return then(
      [error](const models::Prompt&, const std::stop_token&) -> models::Answer { throw error; });
}

models::Answer FakeModel::complete(const models::Prompt& prompt,
                                   const std::function<void(const models::Delta&)>&,
                                   std::stop_token stop) {
  Step step;
  {
    const std::lock_guard lock(mutex_);
    prompts_.push_back(prompt);
    if (steps_.empty())
      throw models::ModelError(models::Failure::permanent, "the fake model has no answer left",
                               false);
    step = std::move(steps_.front());
    steps_.pop_front();
  }
  return step(prompt, std::move(stop));
}

std::vector<models::Prompt> FakeModel::prompts() const {
  const std::lock_guard lock(mutex_);
  return prompts_;
}

models::Answer says(std::string text) {
  models::Answer answer;
  models::Part part;
  part.text = std::move(text);
  answer.parts.push_back(std::move(part));
  return answer;
}

models::Answer calls(std::vector<models::ToolCall> made) {
  models::Answer answer;
  answer.stop = models::Answer::Stop::tool_use;
  for (models::ToolCall& one : made) {
    models::Part part;
    part.type = models::Part::Type::tool_call;
    part.call = std::move(one);
    answer.parts.push_back(std::move(part));
  }
  return answer;
}

models::ToolCall call(std::string id, std::string name, std::string_view arguments) {
  return {std::move(id), std::move(name), json::parse(arguments), ""};
}

}  // namespace umpteenth::support
