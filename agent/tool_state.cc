#include "agent/tools.h"
#include "runs/text.h"

namespace umpteenth::agent {
namespace {

using json::Value;

constexpr size_t kMaxShown = 30'000;  // of a state value, as of a command's output
constexpr size_t kMaxNote = 2'000;
constexpr size_t kMaxNotes = 100;

Value key_property() {
  return Value::object({{"type", "string"}, {"minLength", 1}, {"maxLength", 200}});
}

ToolResult list_keys(Workbench& bench) {
  const Value all = bench.run.state_all();
  if (all.empty()) return {"the job keeps no state yet", false};
  std::string text;
  for (const json::Member& m : all.members()) {
    const size_t size = m.value.is_string() ? m.value.as_string().size() : m.value.dump().size();
    text += m.key + " (" + std::to_string(size) + " bytes)\n";
  }
  return {runs::clip_characters(text, kMaxShown), false};
}

ToolResult run_state_get(const models::ToolCall& call, Workbench& bench, std::stop_token) {
  const std::string key = call.arguments.get_string("key");
  if (key.empty()) return list_keys(bench);
  const auto value = bench.run.state_get(key);
  if (!value) return {"nothing is kept under " + json::quote(key), false};
  return {runs::clip_characters(runs::to_utf8(*value), 8'000, 22'000), false};
}

ToolResult run_state_set(const models::ToolCall& call, Workbench& bench, std::stop_token) {
  const Value& value = call.arguments.get("value");
  const std::string text = value.is_string() ? value.as_string() : value.dump();
  bench.run.state_set(call.arguments.get_string("key"), text);
  return {"kept " + std::to_string(text.size()) + " bytes under " +
              json::quote(call.arguments.get_string("key")),
          false};
}

ToolResult run_remember(const models::ToolCall& call, Workbench& bench, std::stop_token) {
  if (bench.remembered.size() >= kMaxNotes)
    throw Error(Code::invalid, "a run remembers at most 100 notes");
  bench.remembered.push_back(call.arguments.get_string("note"));
  return {"noted", false};
}

std::string missing_outputs(const runs::LiveRun& run, const Value& given) {
  const Value set = run.outputs();
  std::string missing;
  for (const std::string& name : run.info().declared_outputs)
    if (!set.find(name) && !given.find(name)) missing += (missing.empty() ? "" : ", ") + name;
  return missing;
}

ToolResult run_finish(const models::ToolCall& call, Workbench& bench, std::stop_token) {
  const bool success = call.arguments.get_string("status") == "success";
  const Value& outputs = call.arguments.get("outputs");
  if (success) {
    const std::string missing = missing_outputs(bench.run, outputs);
    if (!missing.empty())
      throw Error(Code::invalid,
                  "the job declares outputs that are not set: " + missing +
                      "; give them in outputs, or finish with status failure and say why");
  }
  if (outputs.is_object())
    for (const json::Member& m : outputs.members()) bench.run.set_output(m.key, m.value);
  const std::string summary = call.arguments.get_string("summary");
  bench.run.set_summary(summary);
  bench.finished = Finish{success, summary};
  return {"finished", false};
}

}  // namespace

ToolSpec state_get_tool() {
  return {{"state_get",
           "Reads the job's state, which is kept from run to run: the value of a key, or without "
           "a key the list of keys.",
           arguments_schema(Value::object({{"key", key_property()}}), {})},
          true,
          run_state_get};
}

ToolSpec state_set_tool() {
  return {{"state_set",
           "Keeps a value of at most 1 MiB in the job's state, for later runs. Anything else than "
           "a string is kept as JSON.",
           arguments_schema(Value::object({{"key", key_property()}, {"value", Value::object()}}),
                            {"key", "value"})},
          false,
          run_state_set};
}

ToolSpec remember_tool() {
  return {{"remember",
           "Notes something about this job that later runs should know: what worked, what did not.",
           arguments_schema(Value::object({{"note", Value::object({{"type", "string"},
                                                                   {"minLength", 1},
                                                                   {"maxLength", kMaxNote}})}}),
                            {"note"})},
          false,
          run_remember};
}

ToolSpec finish_tool() {
  return {{"finish",
           "Ends the run. Call it once the work is done, or when it cannot be done. outputs are "
           "the run's results by name; files to keep belong in /ump/outputs.",
           arguments_schema(
               Value::object(
                   {{"status", Value::object({{"type", "string"},
                                              {"enum", Value::array({"success", "failure"})}})},
                    {"summary",
                     Value::object({{"type", "string"}, {"minLength", 1}, {"maxLength", 16'000}})},
                    {"outputs", Value::object({{"type", "object"}})}}),
               {"status", "summary"})},
          false,
          run_finish};
}

}  // namespace umpteenth::agent
