// {{name.path | filter}} in the texts of a scripted answer.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace umpteenth::models {

// What the names stand for. Strings are as they came; `results` are those of the last message.
struct Scope {
  json::Value facts;  // {job, run, trigger, input}
  std::string text;   // of the last message: what the user said, or the results joined
  std::vector<std::string> results;
  std::vector<std::string> match;  // the regex's whole match and its groups
  int64_t turn = 1;
};

// A string that is one template alone becomes the value itself, so that a number stays a number.
// Error(invalid) says which template has no value.
json::Value render(const json::Value& value, const Scope& scope);
std::string render_text(const std::string& text, const Scope& scope);

}  // namespace umpteenth::models
