#include "tests/support/fake_sandbox.h"

#include <cstdio>

namespace umpteenth::support {

std::string cut(const std::string& output, size_t head, size_t tail) {
  if (output.size() <= head + tail) return output;
  return output.substr(0, head) + "\n… " + std::to_string(output.size() - head - tail) +
         " bytes left out …\n" + output.substr(output.size() - tail);
}

FakeSandbox& FakeSandbox::prints(std::string output, int exit_code) {
  return then([output, exit_code](const runs::ExecRequest& request, const std::stop_token&) {
    if (request.on_output) request.on_output(output);
    runs::ExecOutcome outcome;
    outcome.exit_code = exit_code;
    outcome.total_bytes = output.size();
    outcome.output = cut(output, request.keep_head, request.keep_tail);
    outcome.stdout_only = outcome.output;
    return outcome;
  });
}

FakeSandbox& FakeSandbox::then(Command command) {
  const std::lock_guard lock(mutex_);
  lined_up_.push_back(std::move(command));
  return *this;
}

void FakeSandbox::lose(Error error) {
  const std::lock_guard lock(mutex_);
  lost_ = std::move(error);
}

void FakeSandbox::check_alive() const {
  if (lost_) throw *lost_;
}

// `stat -c %a` is answered from the files; everything else must have been lined up.
runs::ExecOutcome FakeSandbox::exec(const runs::ExecRequest& request, std::stop_token stop) {
  Command command;
  {
    const std::lock_guard lock(mutex_);
    check_alive();
    commands_.push_back(request);
    if (request.argv.at(0) == "stat") {
      runs::ExecOutcome outcome;
      const auto found = files_.find(request.argv.back());
      outcome.exit_code = found == files_.end() ? 1 : 0;
      if (found != files_.end()) {
        char digits[16];
        std::snprintf(digits, sizeof digits, "%o\n", static_cast<unsigned>(found->second.mode));
        outcome.stdout_only = digits;
      }
      return outcome;
    }
    if (lined_up_.empty()) throw Error(Code::internal, "the fake sandbox has no command lined up");
    command = std::move(lined_up_.front());
    lined_up_.pop_front();
  }
  return command(request, std::move(stop));
}

std::string FakeSandbox::read_file(const std::string& path, size_t max_bytes,
                                   std::stop_token stop) {
  if (on_read) on_read(path, stop);
  const std::lock_guard lock(mutex_);
  check_alive();
  const auto found = files_.find(path);
  if (found == files_.end()) throw Error(Code::not_found, "no such file: " + path);
  if (found->second.bytes.size() > max_bytes)
    throw Error(Code::too_large, path + " is larger than " + std::to_string(max_bytes) + " bytes");
  return found->second.bytes;
}

void FakeSandbox::write_file(const std::string& path, std::string_view bytes, int mode,
                             std::stop_token) {
  const std::lock_guard lock(mutex_);
  check_alive();
  files_[path] = {std::string(bytes), mode};
}

void FakeSandbox::put(const std::string& path, std::string bytes, int mode) {
  const std::lock_guard lock(mutex_);
  files_[path] = {std::move(bytes), mode};
}

std::string FakeSandbox::file(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(path);
  return found == files_.end() ? "" : found->second.bytes;
}

bool FakeSandbox::has(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  return files_.count(path) > 0;
}

int FakeSandbox::mode(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(path);
  return found == files_.end() ? -1 : found->second.mode;
}

std::vector<runs::ExecRequest> FakeSandbox::commands() const {
  const std::lock_guard lock(mutex_);
  return commands_;
}

}  // namespace umpteenth::support
