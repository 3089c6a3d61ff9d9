// to_yaml: written by hand, because every write of a resource passes here and yaml-cpp's emitter is
// slow. What it writes, parse_yaml reads back to the same value.
#include <algorithm>
#include <cstdio>

#include "apis/yaml.h"
#include "apis/yaml_scalar.h"

namespace umpteenth::apis {
namespace {

// Characters that begin something in YAML, or end a plain scalar.
bool plain_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
         c == '_' || c == '.' || c == '$' || c == '(' || c == '+' || c == '^' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool plain(const std::string& text) {
  if (text.empty() || text.size() > 1000 || !plain_start(text.front())) return false;
  if (text.back() == ' ' || text.back() == ':') return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 || c == 0x7F) return false;
    // U+0085, U+00A0, U+2028, U+2029, U+FEFF: breaks and blanks to some parsers.
    if (c == 0xC2 || c == 0xE2 || c == 0xEF) return false;
    if (c == ':' && (i + 1 == text.size() || text[i + 1] == ' ')) return false;
    if (c == '#' && text[i - 1] == ' ') return false;
    if (c == ',' || c == '[' || c == ']' || c == '{' || c == '}' || c == '"' || c == '`')
      return false;
  }
  if (text == "y" || text == "n" || text == "Y" || text == "N") return false;
  for (const char* word :
       {"yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF", "..."})
    if (text == word) return false;
  // What other (YAML 1.1) readers take for numbers and times is quoted too.
  if ((text.front() >= '0' && text.front() <= '9') || text.front() == '.' || text.front() == '+') {
    if (text.find_first_not_of("0123456789._:-+eExXoabcdfABCDFTZ") == std::string::npos)
      return false;
  }
  return resolve_plain_scalar(text).is_string();
}

void quoted(const std::string& text, std::string& out) {
  out += '"';
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[i];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c < 0x20 || c == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02X", c);
      out += escape;
    } else if (c == 0xC2 && i + 1 < text.size() &&
               static_cast<unsigned char>(text[i + 1]) == 0x85) {
      out += "\\x85";
      ++i;
    } else if (text.compare(i, 3, "\xE2\x80\xA8") == 0 || text.compare(i, 3, "\xE2\x80\xA9") == 0) {
      out += static_cast<unsigned char>(text[i + 2]) == 0xA8 ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (text.compare(i, 3, "\xEF\xBB\xBF") == 0) {
      out += "\\uFEFF";
      i += 2;
    } else {
      out += text[i];
    }
  }
  out += '"';
}

// Several lines that a literal block says as they are.
bool literal(const std::string& text) {
  if (text.find('\n') == std::string::npos || text.front() == ' ' || text.front() == '\t' ||
      text.front() == '\n')
    return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\n') {
      if (i > 0 && (text[i - 1] == ' ' || text[i - 1] == '\t')) return false;
    } else if (c < 0x20 || c == 0x7F || c == 0xC2 || c == 0xEF ||
               text.compare(i, 2, "\xE2\x80") == 0) {
      if (c != '\t') return false;
    }
  }
  return text.back() != ' ' && text.back() != '\t';
}

class Writer {
 public:
  std::string write(const json::Value& value) {
    if (composite(value))
      block(value, 0);
    else
      scalar(value, 0);
    if (out_.empty() || out_.back() != '\n') out_ += '\n';
    return std::move(out_);
  }

 private:
  static bool composite(const json::Value& v) {
    return (v.is_object() || v.is_array()) && !v.empty();
  }
  void indent(size_t depth) { out_.append(depth * 2, ' '); }

  void scalar(const json::Value& v, size_t depth) {
    if (v.is_object()) {
      out_ += "{}";
    } else if (v.is_array()) {
      out_ += "[]";
    } else if (!v.is_string()) {
      out_ += v.dump();
    } else if (literal(v.as_string())) {
      block_text(v.as_string(), depth);
    } else if (plain(v.as_string())) {
      out_ += v.as_string();
    } else {
      quoted(v.as_string(), out_);
    }
  }

  void block_text(const std::string& text, size_t depth) {
    size_t last = text.size();
    while (last > 0 && text[last - 1] == '\n') --last;
    const size_t newlines = text.size() - last;
    out_ += newlines == 0 ? "|-\n" : newlines == 1 ? "|\n" : "|+\n";
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (end > at) {
        indent(depth + 1);
        out_.append(text, at, end - at);
      }
      out_ += '\n';
      at = end + 1;
    }
  }

  void key(const std::string& text) {
    if (plain(text) && text.size() <= 100)
      out_ += text;
    else
      quoted(text, out_);
    out_ += ':';
  }

  void member(const json::Member& m, size_t depth) {
    // A key longer than 1024 characters needs the explicit form.
    const bool explicit_key = m.key.size() > 100;
    if (explicit_key) {
      out_ += "? ";
      quoted(m.key, out_);
      out_ += '\n';
      indent(depth);
      out_ += ':';
    } else {
      key(m.key);
    }
    if (composite(m.value)) {
      out_ += '\n';
      // As kubectl writes: a list stands under its key without further indentation.
      block(m.value, m.value.is_array() ? depth : depth + 1);
      return;
    }
    out_ += ' ';
    scalar(m.value, depth);
    if (out_.back() != '\n') out_ += '\n';
  }

  // `first` : the position is already behind "- ".
  void block(const json::Value& v, size_t depth, bool first = false) {
    if (v.is_object()) {
      for (const json::Member& m : v.members()) {
        if (!first) indent(depth);
        first = false;
        member(m, depth);
      }
      return;
    }
    for (const json::Value& item : v.items()) {
      if (!first) indent(depth);
      first = false;
      out_ += "- ";
      if (composite(item)) {
        block(item, depth + 1, true);
      } else {
        scalar(item, depth);
        if (out_.back() != '\n') out_ += '\n';
      }
    }
  }

  std::string out_;
};

}  // namespace

std::string to_yaml(const json::Value& value) { return Writer().write(value); }

}  // namespace umpteenth::apis
