#include <algorithm>
#include <mutex>

#include "agent/tools.h"
#include "runs/text.h"

namespace umpteenth::agent {
namespace {

using json::Value;

constexpr int64_t kDefaultSeconds = 120;
constexpr int64_t kMaxSeconds = 600;
constexpr size_t kMaxCommand = 100'000;  // Linux takes at most 128 KiB in one argument
constexpr size_t kMaxLog = 8U << 20;     // what is kept for /ump/logs

// The first bytes of what a command prints, for its log file; the rest is only counted.
class CappedBuffer {
 public:
  void add(std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    total_ += bytes.size();
    text_.append(bytes.substr(0, kMaxLog - text_.size()));
  }
  std::string take() {
    const std::lock_guard lock(mutex_);
    if (total_ > text_.size())
      text_ += "\n… " + std::to_string(total_ - text_.size()) + " bytes left out …\n";
    return std::move(text_);
  }

 private:
  std::mutex mutex_;
  std::string text_;
  uint64_t total_ = 0;
};

// The id comes from the model's API: a file name only if it is a harmless one not used before.
std::string log_name(const std::string& call_id, std::set<std::string>& taken) {
  std::string base;
  for (char c : call_id.substr(0, 64))
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-') base += c;
  if (base.empty()) base = "call";
  std::string name = base;
  for (int n = 2; !taken.insert(name).second; ++n) name = base + "-" + std::to_string(n);
  return "/ump/logs/" + name + ".txt";
}

// Where it cannot be kept (the agent's uid has no room, say) the run goes on without.
bool write_log(const std::string& path, const std::string& text, Workbench& bench,
               std::stop_token stop) {
  try {
    bench.sandbox.write_file(path, text, 0644, stop);
    return true;
  } catch (const Error& e) {  // the command's own result matters more than its log
    if (sandbox_lost(e)) throw;
    return false;
  }
}

void add_note(std::string& text, const std::string& note) {
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += "[" + note + "]";
}

ToolResult run_bash(const models::ToolCall& call, Workbench& bench, std::stop_token stop) {
  const int64_t seconds = call.arguments.get_int("timeout_seconds", kDefaultSeconds);
  CappedBuffer log;
  runs::ExecRequest request;
  request.argv = {"bash", "-lc", call.arguments.get_string("command")};
  request.timeout = std::chrono::seconds(seconds);
  request.on_output = [&log](std::string_view chunk) { log.add(chunk); };
  const runs::ExecOutcome outcome = bench.sandbox.exec(request, stop);

  ToolResult result;
  result.text = runs::to_utf8(outcome.output);
  if (outcome.total_bytes > 0) {
    const std::string path = log_name(call.id, bench.log_names);
    const bool kept = write_log(path, log.take(), bench, stop);
    if (kept && outcome.total_bytes > request.keep_head + request.keep_tail)
      add_note(result.text, "the full output is in " + path);
  }
  if (outcome.timed_out)
    add_note(result.text, "timed out after " + std::to_string(seconds) +
                              " s: the command and all it started were killed");
  if (outcome.oom) add_note(result.text, "killed: the sandbox ran out of memory");
  if (!outcome.timed_out && outcome.exit_code != 0)
    add_note(result.text, "exit code " + std::to_string(outcome.exit_code));
  if (result.text.empty()) result.text = "(no output)";
  result.is_error = outcome.timed_out || outcome.oom || outcome.exit_code != 0;
  return result;
}

}  // namespace

ToolSpec bash_tool() {
  return {
      {"bash",
       "Runs a command with `bash -lc` in /workspace; each call is a new shell and stdin is "
       "empty. Long output is cut in the middle: the first 8000 and the last 22000 bytes are "
       "shown, and all of it is in /ump/logs.",
       arguments_schema(
           Value::object(
               {{"command",
                 Value::object({{"type", "string"}, {"minLength", 1}, {"maxLength", kMaxCommand}})},
                {"timeout_seconds", Value::object({{"type", "integer"},
                                                   {"minimum", 1},
                                                   {"maximum", kMaxSeconds},
                                                   {"description", "default 120"}})}}),
           {"command"})},
      false,
      run_bash};
}

}  // namespace umpteenth::agent
