// Validation, defaulting and pruning by OpenAPI v3 structural schemas (type, properties, required,
// enum, minimum/maximum, minLength/maxLength, pattern, minItems/maxItems, items,
// additionalProperties, format, nullable, default, x-kubernetes-preserve-unknown-fields,
// x-kubernetes-list-map-keys for duplicates). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace umpteenth::apis {

// Adds defaults in place, deep.
void apply_defaults(const json::Value& schema, json::Value& value);
// Removes what the schema does not know, in place; the removed paths.
std::vector<std::string> prune_unknown(const json::Value& schema, json::Value& value,
                                       const std::string& path);
// Messages as Kubernetes words them: `Invalid value: "x": must be …`, `Required value`,
// `Unsupported value: "x": supported values: "a", "b"`.
void validate(const json::Value& schema, const json::Value& value, const std::string& path,
              std::vector<Cause>& causes);

// spec + name → spec.name; spec + odd/name → spec[odd/name].
std::string join_path(const std::string& path, std::string_view key);

}  // namespace umpteenth::apis
