// Where in a YAML file a field is, for messages. Pure.
#pragma once

#include <string_view>

namespace umpteenth::store {

// The line, from 1, of the deepest part of `field` (spec.outputs[1].name) that the text has.
int line_of_field(std::string_view yaml, std::string_view field);

}  // namespace umpteenth::store
