#include "runs/text.h"

#include <cstdint>

namespace umpteenth::runs {
namespace {

bool continuation(unsigned char c) { return (c & 0xC0) == 0x80; }

// Length of the well-formed sequence at the start, 0 where there is none: no overlong forms, no
// surrogates, nothing beyond U+10FFFF.
size_t sequence(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if (!continuation(byte(i))) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return n;
}

size_t after_characters(std::string_view s, size_t n) {
  size_t i = 0;
  while (i < s.size() && n > 0) {
    ++i;
    while (i < s.size() && continuation(static_cast<unsigned char>(s[i]))) ++i;
    --n;
  }
  return i;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t n = sequence(bytes);
    if (n == 0) return false;
    bytes.remove_prefix(n);
  }
  return true;
}

std::string to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t n = sequence(bytes);
    if (n == 0)
      text += "\xEF\xBF\xBD";
    else
      text += bytes.substr(0, n);
    bytes.remove_prefix(n == 0 ? 1 : n);
  }
  return text;
}

size_t count_characters(std::string_view utf8) {
  size_t n = 0;
  for (const char c : utf8) n += !continuation(static_cast<unsigned char>(c));
  return n;
}

std::string clip_characters(std::string_view utf8, size_t head, size_t tail) {
  if (utf8.size() <= head + tail) return std::string(utf8);
  if (tail == 0) {
    const size_t end = after_characters(utf8, head);
    return end == utf8.size() ? std::string(utf8) : std::string(utf8.substr(0, end)) + "…";
  }
  const size_t total = count_characters(utf8);
  if (total <= head + tail) return std::string(utf8);
  const std::string first(utf8.substr(0, after_characters(utf8, head)));
  const size_t left_out = total - head - tail;
  return first + "\n… " + std::to_string(left_out) + " characters left out …\n" +
         std::string(utf8.substr(after_characters(utf8, total - tail)));
}

}  // namespace umpteenth::runs
