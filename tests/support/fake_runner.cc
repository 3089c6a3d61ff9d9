#include "tests/support/fake_runner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace umpteenth::test {

void FakeRunner::answer(std::vector<std::string> argv_prefix, CommandResult result) {
  answer(std::move(argv_prefix), [result = std::move(result)](const Command&) { return result; });
}

void FakeRunner::answer(std::vector<std::string> argv_prefix, Answer answer) {
  const std::lock_guard lock(mutex_);
  rules_.push_back({std::move(argv_prefix), std::move(answer)});
}

CommandResult FakeRunner::run(const Command& command, std::stop_token stop) {
  if (stop.stop_requested())
    throw Error(Code::unavailable, "run " + command.argv.at(0) + ": stopped");
  Answer answer;
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(command);
    for (const Rule& rule : rules_) {
      if (rule.prefix.size() <= command.argv.size() &&
          std::equal(rule.prefix.begin(), rule.prefix.end(), command.argv.begin())) {
        answer = rule.answer;
        break;
      }
    }
  }
  return answer ? answer(command) : CommandResult{};
}

std::vector<Command> FakeRunner::commands() const {
  const std::lock_guard lock(mutex_);
  return commands_;
}

std::vector<std::string> FakeRunner::lines() const {
  std::vector<std::string> lines;
  for (const Command& command : commands()) {
    std::string line;
    for (const std::string& word : command.argv) line += (line.empty() ? "" : " ") + word;
    lines.push_back(std::move(line));
  }
  return lines;
}

void FakeRunner::forget() {
  const std::lock_guard lock(mutex_);
  commands_.clear();
}

}  // namespace umpteenth::test
