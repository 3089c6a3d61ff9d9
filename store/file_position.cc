#include "store/file_position.h"

#include <charconv>
#include <string>
#include <vector>

namespace umpteenth::store {
namespace {

struct Line {
  size_t indent;
  std::string_view text;
};

std::vector<Line> lines_of(std::string_view yaml) {
  std::vector<Line> lines;
  while (!yaml.empty()) {
    const size_t end = std::min(yaml.find('\n'), yaml.size());
    std::string_view line = yaml.substr(0, end);
    yaml.remove_prefix(std::min(end + 1, yaml.size()));
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    lines.push_back({indent, line.substr(indent)});
  }
  return lines;
}

// "a.b[1].c" → a, b, 1, c; a number stands for an item.
std::vector<std::string> parts_of(std::string_view field) {
  std::vector<std::string> parts(1);
  for (const char c : field) {
    if (c == '.' || c == '[') {
      if (!parts.back().empty()) parts.emplace_back();
    } else if (c != ']' && c != '"') {
      parts.back() += c;
    }
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

bool names(std::string_view text, const std::string& key) {
  for (const std::string& form : {key + ":", "\"" + key + "\":"})
    if (text.starts_with(form)) return true;
  return false;
}

class Search {
 public:
  explicit Search(std::vector<Line> lines) : lines_(std::move(lines)) {}

  bool descend(const std::string& part) {
    int item = -1;
    const char* end = part.data() + part.size();
    const bool number = std::from_chars(part.data(), end, item).ptr == end;
    for (size_t i = next_; i < lines_.size(); ++i) {
      Line& line = lines_[i];
      const bool dash = line.text.starts_with("- ") || line.text == "-";
      if (line.text.empty() || line.text.front() == '#') continue;
      if (i != found_ && line.indent < floor_) return false;
      if (number ? dash && item-- == 0 : names(line.text, part)) {
        found_ = i;
        // An item's first key stands on the line of its dash.
        next_ = number ? i : i + 1;
        floor_ = number ? line.indent + 1 : line.indent + (line.text.back() == ':' ? 0 : 1);
        if (number)
          line = {line.indent + 2, line.text.substr(std::min<size_t>(2, line.text.size()))};
        return true;
      }
    }
    return false;
  }
  int line() const { return static_cast<int>(found_) + 1; }

 private:
  std::vector<Line> lines_;
  size_t found_ = 0, next_ = 0, floor_ = 0;
};

}  // namespace

int line_of_field(std::string_view yaml, std::string_view field) {
  Search search(lines_of(yaml));
  for (const std::string& part : parts_of(field))
    if (!search.descend(part)) break;
  return search.line();
}

}  // namespace umpteenth::store
