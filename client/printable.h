// Text from a sandbox or a server on its way to a terminal: control characters are made visible, so
// that it can neither move the cursor, nor hide what was printed, nor type for the reader.
#pragma once

#include <string>
#include <string_view>

namespace umpteenth::client {

std::string printable(std::string_view text);       // line ends and tabs stay
std::string printable_line(std::string_view text);  // they become spaces

}  // namespace umpteenth::client
