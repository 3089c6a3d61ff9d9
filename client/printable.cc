#include "client/printable.h"

namespace umpteenth::client {
namespace {

std::string shown(std::string_view text, bool lines) {
  std::string made;
  made.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (c == '\n' || c == '\t') {
      made += lines ? text[i] : ' ';
    } else if (c < 0x20 || c == 0x7f) {
      made += '^';
      made += static_cast<char>(c ^ 0x40);
    } else if (c == 0xC2 && next >= 0x80 &&
               next < 0xA0) {  // C1: one byte of it begins a sequence too
      constexpr char kHex[] = "0123456789abcdef";
      made += std::string("\\x") + kHex[next >> 4] + kHex[next & 15];
      ++i;
    } else {
      made += text[i];
    }
  }
  return made;
}

}  // namespace

std::string printable(std::string_view text) { return shown(text, true); }
std::string printable_line(std::string_view text) { return shown(text, false); }

}  // namespace umpteenth::client
