// Shared by FakeEngine's parts: one running command.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "tests/support/fake_engine.h"

namespace umpteenth::support {

struct FakeProcess::Shared {
  engine::ExecSpec spec;
  std::string container;
  engine::OutputSink on_output;

  std::recursive_mutex mutex;  // a sink may write to its own command
  std::condition_variable_any changed;
  std::deque<std::string> input;
  bool input_closed = false;
  bool detached = false;  // nobody listens any more
  bool container_gone = false;
  bool engine_lost = false;
  std::optional<int> killed_with;
  std::optional<int> exit_code;
  std::thread thread;

  bool ending() const { return container_gone || killed_with; }
  void output(engine::Output which, std::string_view bytes);
};

class FakeExec : public engine::Exec {
 public:
  explicit FakeExec(std::shared_ptr<FakeProcess::Shared> shared) : shared_(std::move(shared)) {}
  ~FakeExec() override;
  void write_stdin(std::string_view bytes) override;
  void close_stdin() override;
  std::optional<int> wait(Duration timeout, std::stop_token stop) override;

 private:
  std::shared_ptr<FakeProcess::Shared> shared_;
};

}  // namespace umpteenth::support
