#include <algorithm>

#include "agent/time_limit.h"
#include "agent/tools.h"
#include "runs/text.h"

namespace umpteenth::agent {
namespace {

using json::Value;

constexpr size_t kMaxRead = 2U << 20;
constexpr size_t kMaxEdited = 4U << 20;
constexpr int64_t kMaxRows = 2000;
constexpr size_t kMaxLine = 2000;  // characters
constexpr Duration kFileTime{30'000};

std::string path_of(const Value& arguments) {
  const std::string path = arguments.get_string("path");
  return path.starts_with('/') ? path : "/workspace/" + path;
}

Value path_property() {
  return Value::object({{"type", "string"},
                        {"minLength", 1},
                        {"maxLength", 4096},
                        {"description", "absolute, or relative to /workspace"}});
}

std::string read_text(const std::string& path, Workbench& bench, std::stop_token stop) {
  TimeLimit limit(bench.clock, kFileTime, stop);
  std::string bytes = bench.sandbox.read_file(path, kMaxRead, limit.token());
  if (bytes.find('\0') != std::string::npos)
    throw Error(Code::invalid, path + " is a binary file of " + std::to_string(bytes.size()) +
                                   " bytes: look at it with commands such as od or file");
  return bytes;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

ToolResult run_read_file(const models::ToolCall& call, Workbench& bench, std::stop_token stop) {
  const std::string path = path_of(call.arguments);
  const std::string bytes = read_text(path, bench, stop);
  const auto lines = lines_of(bytes);
  const int64_t count = static_cast<int64_t>(lines.size());
  const int64_t first = call.arguments.get_int("offset", 1);
  const int64_t rows = std::min(call.arguments.get_int("limit", kMaxRows), kMaxRows);
  if (lines.empty()) return {"(" + path + " is empty)", false};
  if (first > count)
    throw Error(Code::invalid, "offset " + std::to_string(first) + " is beyond the end: " + path +
                                   " has " + std::to_string(count) + " lines");
  const int64_t end = std::min(count, first - 1 + rows);
  std::string text;
  for (int64_t i = first - 1; i < end; ++i) {
    const std::string number = std::to_string(i + 1);
    text += std::string(number.size() < 6 ? 6 - number.size() : 0, ' ') + number + "\t";
    text += runs::clip_characters(runs::to_utf8(lines[i]), kMaxLine) + "\n";
  }
  if (end < count)
    text += "[lines " + std::to_string(end + 1) + " to " + std::to_string(count) +
            " are not shown: read on with offset " + std::to_string(end + 1) + "]\n";
  return {text, false};
}

ToolResult run_write_file(const models::ToolCall& call, Workbench& bench, std::stop_token stop) {
  const std::string path = path_of(call.arguments);
  const std::string content = call.arguments.get_string("content");
  TimeLimit limit(bench.clock, kFileTime, stop);
  bench.sandbox.write_file(path, content, 0644, limit.token());
  return {"wrote " + std::to_string(content.size()) + " bytes to " + path, false};
}

std::vector<size_t> find_all(const std::string& text, const std::string& words) {
  std::vector<size_t> found;
  for (size_t at = text.find(words); at != std::string::npos;
       at = text.find(words, at + words.size()))
    found.push_back(at);
  return found;
}

// A script that was executable stays so.
int mode_of(const std::string& path, Workbench& bench, std::stop_token stop) {
  runs::ExecRequest request;
  request.argv = {"stat", "-L", "-c", "%a", "--", path};
  request.timeout = kFileTime;
  const runs::ExecOutcome outcome = bench.sandbox.exec(request, stop);
  const std::string& digits = outcome.stdout_only;
  if (outcome.exit_code != 0 || digits.empty() || digits[0] < '0' || digits[0] > '7') return 0644;
  return static_cast<int>(std::strtol(digits.c_str(), nullptr, 8)) & 0777;
}

ToolResult run_edit_file(const models::ToolCall& call, Workbench& bench, std::stop_token stop) {
  const std::string path = path_of(call.arguments);
  const std::string old_text = call.arguments.get_string("old_text");
  const std::string new_text = call.arguments.get_string("new_text");
  const bool all = call.arguments.get_bool("replace_all");
  if (old_text == new_text)
    throw Error(Code::invalid, "old_text and new_text are the same: nothing to change");
  const std::string before = read_text(path, bench, stop);
  const std::vector<size_t> places = find_all(before, old_text);
  if (places.empty())
    throw Error(Code::invalid, "old_text is not in " + path +
                                   ": it must match exactly, spaces and line ends included");
  if (places.size() > 1 && !all)
    throw Error(Code::invalid, "old_text is in " + path + " " + std::to_string(places.size()) +
                                   " times: give more of its surroundings, or replace_all");
  // Counted before anything is built: a short text found a million times must not fill memory.
  if (before.size() + places.size() * new_text.size() >
      kMaxEdited + places.size() * old_text.size())
    throw Error(Code::too_large, "the edited file would be larger than 4 MiB");
  std::string after;
  size_t done = 0;
  for (const size_t at : places) {
    after.append(before, done, at - done).append(new_text);
    done = at + old_text.size();
  }
  after.append(before, done);
  const int mode = mode_of(path, bench, stop);
  TimeLimit limit(bench.clock, kFileTime, stop);
  bench.sandbox.write_file(path, after, mode, limit.token());
  return {"replaced " + std::to_string(places.size()) +
              (places.size() == 1 ? " place in " : " places in ") + path,
          false};
}

Value text_property() { return Value::object({{"type", "string"}}); }

}  // namespace

ToolSpec read_file_tool() {
  const auto whole = [](int64_t most, const char* description) {
    return Value::object(
        {{"type", "integer"}, {"minimum", 1}, {"maximum", most}, {"description", description}});
  };
  return {{"read_file",
           "Reads a text file of at most 2 MiB, with line numbers; at most 2000 lines a call and "
           "2000 characters a line.",
           arguments_schema(Value::object({{"path", path_property()},
                                           {"offset", whole(100'000'000, "first line, from 1")},
                                           {"limit", whole(kMaxRows, "number of lines")}}),
                            {"path"})},
          true,
          run_read_file};
}

ToolSpec write_file_tool() {
  return {
      {"write_file", "Writes a text file, replacing what was there.",
       arguments_schema(Value::object({{"path", path_property()}, {"content", text_property()}}),
                        {"path", "content"})},
      false,
      run_write_file};
}

ToolSpec edit_file_tool() {
  return {{"edit_file",
           "Replaces old_text by new_text in a file. old_text must be there exactly once, unless "
           "replace_all is true.",
           arguments_schema(
               Value::object({{"path", path_property()},
                              {"old_text", Value::object({{"type", "string"}, {"minLength", 1}})},
                              {"new_text", text_property()},
                              {"replace_all", Value::object({{"type", "boolean"}})}}),
               {"path", "old_text", "new_text"})},
          false,
          run_edit_file};
}

}  // namespace umpteenth::agent
