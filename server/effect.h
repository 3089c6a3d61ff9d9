// Whether a write changes anything that a person would call a change. Pure.
#pragma once

#include "base/json.h"

namespace umpteenth::server {

// Equal but for resourceVersion, and for the times in managedFields.
bool without_effect(const json::Value& old, const json::Value& now);

}  // namespace umpteenth::server
