// RFC 7386 merge patch, RFC 6902 JSON patch (≤ 10 000 operations), and a line diff for people.
// Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace umpteenth::apis {

void merge_patch(json::Value& target, const json::Value& patch);
// Error(invalid) names the operation's index; the target is unchanged then. `test` failing is
// Error(invalid, "…test failed…").
void json_patch(json::Value& target, const json::Value& operations);

}  // namespace umpteenth::apis
