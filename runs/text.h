// Foreign text made safe to keep: valid UTF-8, cut at whole characters. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace umpteenth::runs {

// Bytes that are not UTF-8 become U+FFFD, one each.
std::string to_utf8(std::string_view bytes);
bool is_utf8(std::string_view bytes);
size_t count_characters(std::string_view utf8);

// The first `head` and the last `tail` characters, a line between them saying how many are missing.
// With tail 0 an ellipsis ends the text.
std::string clip_characters(std::string_view utf8, size_t head, size_t tail = 0);

}  // namespace umpteenth::runs
