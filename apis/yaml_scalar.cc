#include "apis/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "base/error.h"

namespace umpteenth::apis {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }
bool digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), digit);
}

std::string_view unsigned_part(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return text;
}

// A leading zero makes it a string: 010 is somebody's octal and somebody's ten.
bool decimal_integer(std::string_view text) {
  text = unsigned_part(text);
  return digits(text) && (text.size() == 1 || text.front() != '0');
}

bool decimal_float(std::string_view text) {
  text = unsigned_part(text);
  const size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    if (!digits(unsigned_part(text.substr(e + 1)))) return false;
    text = text.substr(0, e);
  }
  const size_t dot = text.find('.');
  const std::string_view whole = text.substr(0, dot);
  const std::string_view fraction =
      dot == std::string_view::npos ? std::string_view() : text.substr(dot + 1);
  if (whole.size() > 1 && whole.front() == '0') return false;
  if (whole.empty() && fraction.empty()) return false;
  return (whole.empty() || digits(whole)) && (fraction.empty() || digits(fraction));
}

// 0x1F and 0o17, without a sign; nullopt-like: false.
bool prefixed_integer(std::string_view text, int64_t& value) {
  if (text.size() < 3 || text[0] != '0' || (text[1] != 'x' && text[1] != 'o')) return false;
  const std::string_view rest = text.substr(2);
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), value, text[1] == 'x' ? 16 : 8);
  return error == std::errc() && end == rest.data() + rest.size() && rest.front() != '-';
}

// Bytes of the UTF-8 sequence at the beginning of text; 0 where it is none.
size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const size_t n = first < 0x80                    ? 1
                   : first >= 0xC2 && first < 0xE0 ? 2
                   : (first & 0xF0) == 0xE0        ? 3
                   : first >= 0xF0 && first < 0xF5 ? 4
                                                   : 0;
  if (n == 0 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (first == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
  if (first == 0xED && byte(1) > 0x9F) return 0;  // surrogates
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;  // beyond U+10FFFF
  return n;
}

}  // namespace

json::Value resolve_plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
    return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  const char c = text.front();
  if (!digit(c) && c != '-' && c != '+' && c != '.') return text;
  int64_t n = 0;
  if (decimal_integer(text)) {
    const std::string_view number = c == '+' ? std::string_view(text).substr(1) : text;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), n);
    if (error == std::errc() && end == number.data() + number.size()) return n;
    return std::strtod(text.c_str(), nullptr);  // as JSON: beyond 64 bits it is a double
  }
  if (prefixed_integer(text, n)) return n;
  if (decimal_float(text)) {
    const double d = std::strtod(text.c_str(), nullptr);
    if (d - d == 0) return d;  // finite: JSON has no infinity
  }
  return text;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t n = utf8_sequence(text);
    if (n == 0) return false;
    text.remove_prefix(n);
  }
  return true;
}

void check_yaml_text(std::string_view text) {
  size_t line = 1, line_begin = 0;
  const auto refuse = [&](size_t at, const char* why) {
    throw Error(Code::bad_request, "invalid YAML at line " + std::to_string(line) + ", column " +
                                       std::to_string(at - line_begin + 1) + ": " + why);
  };
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c >= 0x80) {
      const size_t n = utf8_sequence(text.substr(at));
      if (n == 0) refuse(at, "not UTF-8");
      at += n;
      continue;
    }
    // yaml-cpp takes 0x04 for the end of the text: what follows would be ignored in silence.
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
      refuse(at, "control characters are not accepted");
    if (c == 0x7F) refuse(at, "control characters are not accepted");
    ++at;
    if (c == '\n') {
      ++line;
      line_begin = at;
    }
  }
}

}  // namespace umpteenth::apis
