// YAML in and out. In: converted to JSON once, strictly: anchors, aliases, tags, duplicate keys and
// non-string keys are refused with line and column; nesting ≤ 64; scalars by the YAML 1.2 core
// schema (yes/no/on/off and 010 are strings); UTF-8 only; ≤ max_bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace umpteenth::apis {

struct YamlDocument {
  json::Value value;  // null for an empty document
  int line = 1;       // where it begins
};

std::vector<YamlDocument> parse_yaml(std::string_view text, size_t max_bytes = 3U << 20);
// One document or JSON; Error(bad_request) where there are several.
json::Value parse_yaml_one(std::string_view text, size_t max_bytes = 3U << 20);
std::string to_yaml(const json::Value& value);  // block style, literal blocks for multi-line text

}  // namespace umpteenth::apis
