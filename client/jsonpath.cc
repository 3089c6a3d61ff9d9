#include "client/jsonpath.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <vector>

#include "base/error.h"

namespace umpteenth::client {
namespace {

using Nodes = std::vector<const json::Value*>;
constexpr size_t kMaxNodes = 1'000'000;
constexpr int kMaxNesting = 32;
constexpr size_t kMaxOutput = 64U << 20;

class Template {
 public:
  explicit Template(std::string_view text) : text_(text) {}

  std::string render(const json::Value& root) {
    std::string out;
    root_ = &root;
    block({&root}, out, 0, true);
    if (at_ < text_.size()) fail("{end} without {range}");
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw Error(Code::bad_request, "jsonpath: " + why + " at character " + std::to_string(at_ + 1));
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  // Renders up to {end} or the end; `emit` false only skips.
  void block(const Nodes& current, std::string& out, int depth, bool emit) {
    if (depth > kMaxNesting) fail("ranges nested too deep");
    while (at_ < text_.size()) {
      if (text_[at_] != '{') {
        if (emit) out += text_[at_];
        ++at_;
        continue;
      }
      const size_t begin = at_++;
      spaces();
      if (take("end")) {
        spaces();
        if (!take("}")) fail("expected }");
        if (depth == 0) {
          at_ = begin;
          return;
        }
        return;
      }
      if (take("range")) {
        range(current, out, depth, emit);
        continue;
      }
      expressions(current, out, emit);
    }
    if (depth > 0) fail("{range} without {end}");
  }

  void range(const Nodes& current, std::string& out, int depth, bool emit) {
    spaces();
    const Nodes items = path(current);
    spaces();
    if (!take("}")) fail("expected }");
    const size_t body = at_;
    if (!emit || items.empty()) {
      block(current, out, depth + 1, false);
      return;
    }
    for (const json::Value* item : items) {
      at_ = body;
      block({item}, out, depth + 1, true);
    }
  }

  void expressions(const Nodes& current, std::string& out, bool emit) {
    bool first = true;
    for (spaces(); !take("}"); spaces(), first = false) {
      if (at_ >= text_.size()) fail("expected }");
      if (text_[at_] == '"' || text_[at_] == '\'') {
        const std::string text = quoted();
        if (emit) out += text;
        continue;
      }
      const Nodes found = path(current);
      if (!emit) continue;
      if (out.size() > kMaxOutput) fail("too much output");
      for (size_t i = 0; i < found.size(); ++i) {
        if (i > 0 || (!first && !found.empty())) out += ' ';
        out += found[i]->is_string() ? found[i]->as_string() : found[i]->dump();
      }
    }
  }

  std::string quoted() {
    const char quote = text_[at_++];
    std::string text;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size()) {
        c = text_[++at_];
        if (c == 'n') c = '\n';
        if (c == 't') c = '\t';
        if (c == 'r') c = '\r';
      }
      text += c;
    }
    if (at_ >= text_.size()) fail("a quote is not closed");
    ++at_;
    return text;
  }

  std::string word() {
    std::string name;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size()) {
        name += text_[++at_];
        continue;
      }
      if (std::string_view(".[]{}() \t\n=!<>&|,'\"?@").find(c) != std::string_view::npos) break;
      name += c;
    }
    return name;
  }

  Nodes path(const Nodes& from) {
    Nodes nodes = from;
    const bool at_root = take("$"), at_current = !at_root && take("@");
    if (at_root) nodes = {root_};
    const size_t begin = at_;
    for (;;) {
      if (take("..")) {
        Nodes all;
        for (const json::Value* n : nodes) descend(*n, all);
        nodes = std::move(all);
        if (at_ < text_.size() && text_[at_] != '[') child(nodes, word());
      } else if (take(".")) {
        if (at_ < text_.size() && text_[at_] == '[') continue;
        if (take("*"))
          wildcard(nodes);
        else if (std::string name = word(); !name.empty())
          child(nodes, name);
        else
          break;  // a lone dot: the object itself
      } else if (take("[")) {
        subscript(nodes);
      } else if (at_ == begin && at_ < text_.size() &&
                 (std::isalpha(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
        child(nodes, word());
      } else {
        break;
      }
      if (nodes.size() > kMaxNodes) fail("too many results");
    }
    if (at_ == begin && !at_root && !at_current) fail("expected a path");
    return nodes;
  }

  static void child(Nodes& nodes, const std::string& name) {
    Nodes found;
    for (const json::Value* n : nodes)
      if (const json::Value* v = n->find(name)) found.push_back(v);
    nodes = std::move(found);
  }
  static void wildcard(Nodes& nodes) {
    Nodes found;
    for (const json::Value* n : nodes) {
      if (n->is_array())
        for (const json::Value& v : n->items()) found.push_back(&v);
      if (n->is_object())
        for (const json::Member& m : n->members()) found.push_back(&m.value);
    }
    nodes = std::move(found);
  }
  static void descend(const json::Value& v, Nodes& out) {
    if (out.size() > kMaxNodes) return;
    out.push_back(&v);
    if (v.is_array())
      for (const json::Value& item : v.items()) descend(item, out);
    if (v.is_object())
      for (const json::Member& m : v.members()) descend(m.value, out);
  }

  std::optional<int64_t> number() {
    int64_t n = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
    if (error != std::errc()) return std::nullopt;
    at_ = static_cast<size_t>(end - text_.data());
    return n;
  }

  void subscript(Nodes& nodes) {
    spaces();
    if (take("*")) {
      wildcard(nodes);
    } else if (take("?(")) {
      filter(nodes);
    } else if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
      Nodes found;
      do {
        spaces();
        Nodes one = nodes;
        child(one, quoted());
        found.insert(found.end(), one.begin(), one.end());
        spaces();
      } while (take(","));
      nodes = std::move(found);
    } else {
      indices(nodes);
    }
    spaces();
    if (!take("]")) fail("expected ]");
  }

  void indices(Nodes& nodes) {
    Nodes found;
    do {
      spaces();
      const size_t begin = at_;
      const auto first = number();
      if (take(":")) {
        const auto last = number();
        for (const json::Value* n : nodes) slice(*n, first, last, found);
      } else if (first) {
        for (const json::Value* n : nodes) {
          if (!n->is_array()) continue;
          const int64_t size = static_cast<int64_t>(n->size());
          const int64_t i = *first < 0 ? size + *first : *first;
          if (i >= 0 && i < size) found.push_back(&n->items()[static_cast<size_t>(i)]);
        }
      } else {
        at_ = begin;
        fail("expected an index, a key in quotes, * or ?(…)");
      }
      spaces();
    } while (take(","));
    nodes = std::move(found);
  }

  static void slice(const json::Value& v, std::optional<int64_t> first, std::optional<int64_t> last,
                    Nodes& out) {
    if (!v.is_array()) return;
    const int64_t size = static_cast<int64_t>(v.size());
    int64_t from = first.value_or(0), to = last.value_or(size);
    if (from < 0) from += size;
    if (to < 0) to += size;
    for (int64_t i = std::max<int64_t>(from, 0); i < std::min(to, size); ++i)
      out.push_back(&v.items()[static_cast<size_t>(i)]);
  }

  json::Value operand(const json::Value& item, bool& present) {
    spaces();
    present = true;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted();
    if (at_ < text_.size() && (text_[at_] == '@' || text_[at_] == '$' || text_[at_] == '.')) {
      const Nodes found = path({&item});
      present = !found.empty();
      return present ? *found.front() : json::Value();
    }
    const std::string literal = word_with_dots();
    if (literal.empty()) fail("expected a value");
    try {
      return json::parse(literal);
    } catch (const Error&) {
      fail("not a value: " + literal);
    }
  }
  std::string word_with_dots() {
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '.' || text_[at_] == '-'))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  void filter(Nodes& nodes) {
    wildcard(nodes);
    const size_t begin = at_;
    Nodes found;
    if (nodes.empty()) nodes.push_back(nullptr);  // still parse the condition once
    static const json::Value kNull;
    for (const json::Value* item : nodes) {
      at_ = begin;
      if (condition(item ? *item : kNull) && item) found.push_back(item);
    }
    nodes = std::move(found);
  }

  bool condition(const json::Value& item) {
    bool left_there = false;
    const json::Value left = operand(item, left_there);
    spaces();
    bool result = left_there;
    for (std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (!take(op)) continue;
      bool right_there = false;
      const json::Value right = operand(item, right_there);
      result = left_there && right_there && compare(left, op, right);
      break;
    }
    spaces();
    if (!take(")")) fail("expected )");
    return result;
  }

  static bool compare(const json::Value& a, std::string_view op, const json::Value& b) {
    if (op == "==") return a == b;
    if (op == "!=") return !(a == b);
    int order = 0;
    if (a.is_number() && b.is_number())
      order = a.as_double() < b.as_double() ? -1 : a.as_double() > b.as_double();
    else if (a.is_string() && b.is_string())
      order = a.as_string().compare(b.as_string());
    else
      return false;
    if (op == "<") return order < 0;
    if (op == "<=") return order <= 0;
    if (op == ">") return order > 0;
    return order >= 0;
  }

  std::string_view text_;
  size_t at_ = 0;
  const json::Value* root_ = nullptr;
};

}  // namespace

std::string jsonpath(std::string_view text, const json::Value& root) {
  return Template(text).render(root);
}

}  // namespace umpteenth::client
