// Files of the repository: YAML of everything but status and resourceVersion.
#pragma once

#include <string>

#include "base/json.h"
#include "store/store.h"

namespace umpteenth::store {

std::string file_text(const json::Value& file_part);
// Error(invalid) where the text is no object of that key; the message says which rule and line.
json::Value parse_file(const Key& key, std::string_view text);

}  // namespace umpteenth::store
