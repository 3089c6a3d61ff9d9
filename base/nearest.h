// "Did you mean": the known word that a mistyped one is closest to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace umpteenth {

// "" where none is close: at most one typing error in three letters (a letter missing, added,
// wrong, or two in the wrong order), or the only one that begins with the word.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

// `; did you mean X?`, or "" where nothing is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

}  // namespace umpteenth
