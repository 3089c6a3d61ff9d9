// A Runner that records what it was asked to run and answers from a script.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/subprocess.h"

namespace umpteenth::test {

class FakeRunner : public Runner {
 public:
  using Answer = std::function<CommandResult(const Command&)>;

  // The first rule whose words begin argv answers; without one, exit code 0 and no output.
  void answer(std::vector<std::string> argv_prefix, CommandResult result);
  void answer(std::vector<std::string> argv_prefix, Answer answer);

  CommandResult run(const Command& command, std::stop_token stop = {}) override;

  std::vector<Command> commands() const;
  std::vector<std::string> lines() const;  // argv joined by blanks, one a command
  void forget();

 private:
  struct Rule {
    std::vector<std::string> prefix;
    Answer answer;
  };
  mutable std::mutex mutex_;
  std::vector<Rule> rules_;
  std::vector<Command> commands_;
};

}  // namespace umpteenth::test
