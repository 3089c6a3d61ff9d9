// Scalars of YAML 1.2's core schema, and which bytes a YAML text may contain.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace umpteenth::apis {

// null, booleans, numbers; all else is a string (yes, no, on, off, 010, 1_000, 12:30 too).
json::Value resolve_plain_scalar(const std::string& text);

bool is_utf8(std::string_view text);

// Error(bad_request) with line and column for bytes that are not UTF-8 and for control characters.
void check_yaml_text(std::string_view text);

}  // namespace umpteenth::apis
