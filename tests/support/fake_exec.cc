#include "tests/support/fake_exec.h"

#include <algorithm>

namespace umpteenth::support {

using Shared = FakeProcess::Shared;

void Shared::output(engine::Output which, std::string_view bytes) {
  // Under the lock: once FakeExec is destroyed the sink is never called again.
  std::scoped_lock lock(mutex);
  if (!detached && !container_gone && !engine_lost && on_output) on_output(which, bytes);
}

FakeProcess::FakeProcess(FakeEngine& engine, std::shared_ptr<Shared> shared)
    : engine_(engine), shared_(std::move(shared)) {}

const std::vector<std::string>& FakeProcess::argv() const { return shared_->spec.argv; }
const engine::ExecSpec& FakeProcess::spec() const { return shared_->spec; }
const std::string& FakeProcess::container() const { return shared_->container; }
void FakeProcess::out(std::string_view bytes) { shared_->output(engine::Output::out, bytes); }
void FakeProcess::err(std::string_view bytes) { shared_->output(engine::Output::err, bytes); }

std::optional<std::string> FakeProcess::read_stdin() {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(
      lock, [&] { return !shared_->input.empty() || shared_->input_closed || shared_->ending(); });
  if (shared_->ending() || shared_->input.empty()) return std::nullopt;
  std::string chunk = std::move(shared_->input.front());
  shared_->input.pop_front();
  return chunk;
}

std::string FakeProcess::read_all_stdin() {
  std::string all;
  while (auto chunk = read_stdin()) all += *chunk;
  return all;
}

bool FakeProcess::sleep(Duration d) {
  std::unique_lock lock(shared_->mutex);
  return !shared_->changed.wait_for(lock, d, [&] { return shared_->ending(); });
}

bool FakeProcess::wait_until_killed() {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(lock, [&] { return shared_->ending(); });
  return false;
}

bool FakeProcess::killed() const {
  std::scoped_lock lock(shared_->mutex);
  return shared_->ending();
}

std::optional<std::string> FakeProcess::read_file(const std::string& path) const {
  const FakeFiles files = engine_.files_of(container());
  const auto it = files.find(path);
  if (it == files.end() || it->second.directory) return std::nullopt;
  return it->second.data;
}

void FakeProcess::write_file(const std::string& path, std::string_view data, int mode) {
  engine_.put_file(container(), path, {std::string(data), mode, 1000, 1000, false});
}

FakeExec::~FakeExec() {
  std::scoped_lock lock(shared_->mutex);
  shared_->detached = true;
  shared_->input_closed = true;
  shared_->changed.notify_all();
}

void FakeExec::write_stdin(std::string_view bytes) {
  std::scoped_lock lock(shared_->mutex);
  if (shared_->engine_lost) throw Error(Code::unavailable, "the engine's connection was lost");
  if (shared_->container_gone) throw Error(Code::not_found, "sandbox is gone");
  shared_->input.emplace_back(bytes);
  shared_->changed.notify_all();
}

void FakeExec::close_stdin() {
  std::scoped_lock lock(shared_->mutex);
  shared_->input_closed = true;
  shared_->changed.notify_all();
}

std::optional<int> FakeExec::wait(Duration timeout, std::stop_token stop) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, stop, timeout, [&] {
    return shared_->exit_code || shared_->container_gone || shared_->engine_lost;
  });
  if (shared_->engine_lost) throw Error(Code::unavailable, "the engine's connection was lost");
  if (shared_->container_gone) throw Error(Code::not_found, "sandbox is gone");
  return shared_->exit_code;
}

ArgvMatch argv_has(std::string part) {
  return [part = std::move(part)](const std::vector<std::string>& argv) {
    return std::any_of(argv.begin(), argv.end(),
                       [&](const std::string& a) { return a.find(part) != std::string::npos; });
  };
}

ArgvMatch argv_is(std::vector<std::string> want) {
  return [want = std::move(want)](const std::vector<std::string>& argv) { return argv == want; };
}

}  // namespace umpteenth::support
