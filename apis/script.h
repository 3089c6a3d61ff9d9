// spec.script of a ModelProvider of type Scripted: rules that answer in a model's place.
// What each field does: docs/scripted.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace umpteenth::apis {

struct ScriptRule {
  struct Match {
    std::vector<std::string> jobs, tools, contains;
    std::vector<int64_t> turns;
    std::optional<bool> failed, llm;
    std::string regex;
    json::Value input;  // a subset that the run's input must have; null = any
  } match;
  struct Call {
    std::string tool;
    json::Value arguments = json::Value::object();
  };
  struct Usage {
    int64_t input_tokens = 0, output_tokens = 0, cache_read_tokens = 0, cache_write_tokens = 0;
  };
  std::string say, think;
  std::vector<Call> calls;
  bool repeat = false, refuse = false;
  std::optional<Usage> usage;
  Duration delay{0};
  std::string error, message;  // error: transient | permanent | contextOverflow | quota
};

// {{name.path | filter}} in a text of a rule.
struct ScriptTemplate {
  size_t begin = 0, end = 0;  // of the whole {{…}}
  std::string root;           // input, result, …
  std::vector<std::string> path;
  std::string filter;  // "" | sh | json
};
// The next one at or after `from`; other uses of braces are plain text.
std::optional<ScriptTemplate> find_template(std::string_view text, size_t from);

// Appends a cause with its full path for everything that is wrong.
void check_script(const json::Value& script, const std::string& path, std::vector<Cause>& causes);
// Of a script that check_script finds nothing wrong with; else Error(invalid) with the causes.
std::vector<ScriptRule> script_from(const json::Value& script);

}  // namespace umpteenth::apis
