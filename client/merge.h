// kubectl's three-way apply, with JSON merge patches: maps merge, lists are whole values. Pure.
#pragma once

#include "base/json.h"

namespace umpteenth::client {

// What turns `live` into `wanted`, removing what `last_applied` had and `wanted` lacks; an empty
// object where nothing is to be done.
json::Value three_way_patch(const json::Value& last_applied, const json::Value& live,
                            const json::Value& wanted);

// The document that apply keeps in the last-applied annotation.
std::string last_applied_text(json::Value manifest);

}  // namespace umpteenth::client
