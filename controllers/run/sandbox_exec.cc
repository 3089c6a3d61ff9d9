#include "controllers/run/sandbox_exec.h"

#include <mutex>
#include <thread>

#include "base/crypto.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "controllers/run/capture.h"

namespace umpteenth::controllers::run {
namespace {

constexpr Duration kKillTimeout{10'000};
constexpr Duration kStreamGrace{2'000};
constexpr Duration kFileTimeout{30'000};
constexpr Duration kEnginePoll{250};
constexpr Duration kNotice{100};  // an engine notices within 200 ms that a container has ended
constexpr int kLooks = 20;
constexpr int kLostExit = 125;
constexpr int kKilledExit = 137;
constexpr char kLostNote[] =
    "\n[the connection to the container engine broke while this command ran; it was killed]\n";

Error gone() { return Error(Code::not_found, kSandboxGone); }

// Feeds stdin beside the wait: a command that never reads must still meet its timeout.
class StdinWriter {
 public:
  StdinWriter(engine::Exec& exec, const std::string& bytes) {
    if (bytes.empty()) return;
    thread_ = std::thread([&exec, &bytes] {
      try {
        exec.write_stdin(bytes);
        exec.close_stdin();
      } catch (const Error&) {  // the command ended without reading all: wait() tells how
      }
    });
  }
  ~StdinWriter() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace

std::string user_of(runs::Role role, bool root_job) {
  switch (role) {
    case runs::Role::mcp:
      return "1001:1001";
    case runs::Role::root:
      return "0:0";
    case runs::Role::agent:
      break;
  }
  return root_job ? "0:0" : "1000:1000";
}

void SandboxExec::wait_for_engine(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      auto container = engine_.find_container(target_.container);
      if (!container || container->state != "running") throw gone();
      return;
    } catch (const Error& e) {
      if (e.code() != Code::unavailable) throw;
    }
    clock_.sleep_for(kEnginePoll, stop);
  }
}

std::unique_ptr<engine::Exec> SandboxExec::start(const engine::ExecSpec& spec,
                                                 const engine::OutputSink& sink,
                                                 const std::stop_token& stop) {
  while (true) {
    try {
      return engine_.exec(target_.container, spec, sink);
    } catch (const Error& e) {
      if (e.code() == Code::not_found || e.code() == Code::conflict) throw gone();
      if (e.code() != Code::unavailable || stop.stop_requested()) throw;
    }
    wait_for_engine(stop);
  }
}

void SandboxExec::kill(const std::string& pid_file, const std::string& user) {
  try {
    engine::ExecSpec spec;
    spec.argv = {kUmp, "exec", "--kill", pid_file};
    spec.user = user;
    auto killer = engine_.exec(target_.container, spec, [](engine::Output, std::string_view) {});
    killer->wait(kKillTimeout);
  } catch (const Error& e) {
    if (e.code() == Code::not_found || e.code() == Code::conflict) throw gone();
    log::warn("killing a command failed",
              {{"container", target_.container}, {"error", log::clip(e.message())}});
  }
}

bool SandboxExec::marked_oom(const std::string& pid_file, const std::string& user) {
  std::mutex mutex;
  std::string text;
  engine::ExecSpec spec;
  spec.argv = {"cat", pid_file};
  spec.user = user;
  try {
    auto exec = engine_.exec(target_.container, spec, [&](engine::Output, std::string_view bytes) {
      std::lock_guard lock(mutex);
      if (text.size() < 64) text.append(bytes.substr(0, 64));
    });
    exec->wait(kKillTimeout);
  } catch (const Error& e) {
    if (e.code() == Code::unavailable) return false;
    Error lost = gone();  // memory ran out for the whole sandbox
    throw Error(lost.code(), lost.message() + ": it may have run out of memory");
  }
  std::lock_guard lock(mutex);
  return text == "oom\n";
}

void SandboxExec::expect_alive(const std::string& user, const std::stop_token& stop) {
  engine::ExecSpec spec;
  spec.argv = {kUmp, "version"};
  spec.user = user;
  for (int look = 0; look < kLooks && !stop.stop_requested(); ++look) {
    try {
      auto exec = engine_.exec(target_.container, spec, [](engine::Output, std::string_view) {});
      if (exec->wait(kKillTimeout, stop) == 0) return;
      auto container = engine_.find_container(target_.container);
      if (!container || container->state != "running") throw gone();
    } catch (const Error& e) {
      if (e.code() == Code::unavailable) return;  // the next command waits for it
      throw gone();
    }
    clock_.sleep_for(kNotice, stop);
  }
}

SandboxExec::Ended SandboxExec::run(const runs::ExecRequest& request, const std::string& pid_file,
                                    const engine::OutputSink& sink, const std::stop_token& stop) {
  if (target_.ending.stop_requested()) return {kKilledExit};
  engine::ExecSpec spec;
  spec.argv = {kUmp, "exec", "--pidfile", pid_file, "--"};
  spec.argv.insert(spec.argv.end(), request.argv.begin(), request.argv.end());
  spec.env = target_.env;
  spec.env.insert(spec.env.end(), request.env.begin(), request.env.end());
  spec.user = user_of(request.role, target_.root_job);
  spec.working_dir = request.working_dir;
  spec.attach_stdin = !request.stdin_bytes.empty();
  auto exec = start(spec, sink, stop);
  StdinWriter writer(*exec, request.stdin_bytes);
  try {
    if (auto code = exec->wait(request.timeout, stop)) return {*code};
    if (target_.ending.stop_requested()) return {kKilledExit};
    kill(pid_file, spec.user);
    auto code = exec->wait(kStreamGrace);
    return {code.value_or(kKilledExit), !stop.stop_requested()};
  } catch (const Error& e) {
    if (e.code() != Code::unavailable) throw;
    if (target_.ending.stop_requested()) return {kKilledExit};
  }
  // The engine went away in the middle. The sandbox may well live on: the run goes on with it.
  wait_for_engine(stop);
  kill(pid_file, spec.user);
  return {.exit_code = kLostExit, .timed_out = false, .lost = true};
}

runs::ExecOutcome SandboxExec::exec(const runs::ExecRequest& request, std::stop_token stop) {
  const std::string pid_file = "/run/ump/" + crypto::hex(crypto::random_bytes(6)) + ".pid";
  std::mutex mutex;
  Capture all(request.keep_head, request.keep_tail);
  Capture out(request.keep_head, request.keep_tail);
  auto sink = [&](engine::Output stream, std::string_view bytes) {
    {
      std::lock_guard lock(mutex);
      all.add(bytes);
      if (stream == engine::Output::out) out.add(bytes);
    }
    if (request.on_output) request.on_output(bytes);
  };
  Time from = clock_.now();
  Defer timed([&] { busy_ms_ += (clock_.now() - from).count(); });
  Ended ended = run(request, pid_file, sink, stop);
  runs::ExecOutcome outcome;
  outcome.exit_code = ended.exit_code;
  outcome.timed_out = ended.timed_out;
  if (ended.exit_code == kKilledExit && !ended.timed_out && !stop.stop_requested() &&
      !target_.ending.stop_requested()) {
    const std::string user = user_of(request.role, target_.root_job);
    outcome.oom = marked_oom(pid_file, user);
    if (!outcome.oom) expect_alive(user, stop);
  }
  std::lock_guard lock(mutex);
  outcome.output = all.text() + (ended.lost ? kLostNote : "");
  outcome.stdout_only = out.text();
  outcome.total_bytes = all.total();
  return outcome;
}

// The shell exits 3 where nothing is, 5 where it is no regular file.
std::string SandboxExec::read_file(const std::string& path, size_t max_bytes,
                                   std::stop_token stop) {
  runs::ExecRequest request;
  request.argv = {"sh",
                  "-c",
                  "[ -e \"$1\" ] || exit 3; [ -f \"$1\" ] || exit 5; exec head -c \"$2\" -- \"$1\"",
                  "read",
                  path,
                  std::to_string(max_bytes + 1)};
  request.working_dir = "/workspace";
  request.timeout = kFileTimeout;
  request.keep_head = max_bytes + 1;
  request.keep_tail = 4096;
  runs::ExecOutcome outcome = exec(request, stop);
  if (outcome.timed_out) throw Error(Code::timeout, "reading " + path + " took too long");
  if (outcome.exit_code == 3) throw Error(Code::not_found, path + " does not exist");
  if (outcome.exit_code == 5) throw Error(Code::invalid, path + " is not a regular file");
  if (outcome.exit_code != 0) {
    throw Error(Code::invalid, "reading " + path + " failed: " + log::clip(outcome.output));
  }
  if (outcome.stdout_only.size() > max_bytes) {
    throw Error(Code::too_large, path + " is larger than " + std::to_string(max_bytes) + " bytes");
  }
  return outcome.stdout_only;
}

void SandboxExec::write_file(const std::string& path, std::string_view bytes, int mode,
                             std::stop_token stop) {
  constexpr char kOctal[] = "01234567";
  std::string octal;
  for (int shift = 9; shift >= 0; shift -= 3) octal += kOctal[(mode >> shift) & 7];
  runs::ExecRequest request;
  // An empty file has no stdin to wait for.
  std::string fill = bytes.empty() ? ": > \"$1\"" : "cat > \"$1\"";
  request.argv = {"sh",
                  "-c",
                  "mkdir -p -- \"$(dirname -- \"$1\")\" && " + fill + " && chmod \"$2\" -- \"$1\"",
                  "write",
                  path,
                  octal};
  request.stdin_bytes = std::string(bytes);
  request.working_dir = "/workspace";
  request.timeout = kFileTimeout;
  runs::ExecOutcome outcome = exec(request, stop);
  if (outcome.timed_out) throw Error(Code::timeout, "writing " + path + " took too long");
  if (outcome.exit_code != 0) {
    throw Error(Code::invalid, "writing " + path + " failed: " + log::clip(outcome.output));
  }
}

}  // namespace umpteenth::controllers::run
