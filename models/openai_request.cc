#include "base/log.h"
#include "models/openai_wire.h"

namespace umpteenth::models {
namespace {

using json::Value;

// Several servers parse the arguments of earlier calls: what was no JSON object is wrapped in one.
std::string arguments_text(const ToolCall& call) {
  if (call.bad_arguments.empty()) return call.arguments.is_object() ? call.arguments.dump() : "{}";
  return Value::object({{"notJSON", log::clip(call.bad_arguments, 1000)}}).dump();
}

Value call_value(const ToolCall& call) {
  return Value::object(
      {{"id", call.id},
       {"type", "function"},
       {"function", Value::object({{"name", call.name}, {"arguments", arguments_text(call)}})}});
}

// Reasoning is not sent back: chat completions have no field for it that all servers accept.
void add_assistant(Value& messages, const Message& message) {
  std::string text;
  Value calls = Value::array();
  for (const Part& part : message.parts) {
    if (part.type == Part::Type::text) text += part.text;
    if (part.type == Part::Type::tool_call) calls.push_back(call_value(part.call));
  }
  Value made = Value::object({{"role", "assistant"}, {"content", text}});
  if (!calls.empty()) made.set("tool_calls", calls);
  messages.push_back(made);
}

// Each result is a message of its own; text goes after them, as one user message.
void add_user(Value& messages, const Message& message) {
  std::string text;
  for (const Part& part : message.parts) {
    if (part.type == Part::Type::tool_result)
      messages.push_back(Value::object(
          {{"role", "tool"}, {"tool_call_id", part.result_of}, {"content", part.text}}));
    if (part.type == Part::Type::text) text += (text.empty() ? "" : "\n\n") + part.text;
  }
  if (!text.empty()) messages.push_back(Value::object({{"role", "user"}, {"content", text}}));
}

bool reasons(std::string_view model) {
  return model.starts_with("gpt-5") ||
         (model.size() > 1 && model[0] == 'o' && model[1] >= '1' && model[1] <= '9');
}

}  // namespace

Value chat_request(const Prompt& prompt, bool official) {
  Value messages = Value::array();
  std::string system;
  for (const std::string& block : prompt.system) system += (system.empty() ? "" : "\n\n") + block;
  if (!system.empty()) messages.push_back(Value::object({{"role", "system"}, {"content", system}}));
  for (const Message& message : prompt.messages)
    message.role == Message::Role::assistant ? add_assistant(messages, message)
                                             : add_user(messages, message);
  Value request = Value::object({{"model", prompt.model},
                                 {"messages", messages},
                                 {"stream", true},
                                 {"stream_options", Value::object({{"include_usage", true}})}});
  request.set(official ? "max_completion_tokens" : "max_tokens", prompt.max_tokens);
  if (official && prompt.low_effort && reasons(prompt.model))
    request.set("reasoning_effort", "low");
  if (!prompt.tools.empty()) {
    Value tools = Value::array();
    for (const Tool& tool : prompt.tools)
      tools.push_back(
          Value::object({{"type", "function"},
                         {"function", Value::object({{"name", tool.name},
                                                     {"description", tool.description},
                                                     {"parameters", tool.input_schema}})}}));
    request.set("tools", tools);
  }
  if (prompt.schema.is_object())
    request.set("response_format",
                Value::object({{"type", "json_schema"},
                               {"json_schema",
                                Value::object({{"name", "answer"}, {"schema", prompt.schema}})}}));
  return request;
}

}  // namespace umpteenth::models
