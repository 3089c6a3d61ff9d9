// kubectl's jsonpath templates: text, {.a.b}, ['k'], [0], [-1], [1:3], [*], .., [?(@.x=="y")],
// {range …}{end}, {"text"}, unions of expressions in one pair of braces.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace umpteenth::client {

// Missing keys print nothing. Error(bad_request) says where the template is wrong.
std::string jsonpath(std::string_view text, const json::Value& root);

}  // namespace umpteenth::client
