#include "apis/selectors.h"

#include <algorithm>

#include "apis/formats.h"
#include "base/error.h"

namespace umpteenth::apis {
namespace {

constexpr size_t kMaxText = 16U << 10;
constexpr size_t kMaxTerms = 200;

[[noreturn]] void unparsable(const std::string& why) {
  throw Error(Code::bad_request, "unable to parse requirement: " + why);
}

// Words and the signs = == != ! ( ) , of a label selector.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::string next() {
    std::string token = peek();
    at_ = end_;
    return token;
  }
  std::string peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    end_ = at_;
    if (at_ == text_.size()) return "";
    if (sign(text_[at_])) {
      end_ = at_ + 1;
      const bool two =
          (text_[at_] == '=' || text_[at_] == '!') && end_ < text_.size() && text_[end_] == '=';
      end_ += two ? 1 : 0;
    } else {
      while (end_ < text_.size() && !sign(text_[end_]) && text_[end_] != ' ' && text_[end_] != '\t')
        ++end_;
    }
    return std::string(text_.substr(at_, end_ - at_));
  }

 private:
  static bool sign(char c) { return c == '=' || c == '!' || c == '(' || c == ')' || c == ','; }

  std::string_view text_;
  size_t at_ = 0, end_ = 0;
};

bool is_sign(const std::string& token) {
  return token.empty() || token == "=" || token == "==" || token == "!=" || token == "!" ||
         token == "(" || token == ")" || token == ",";
}

std::string key_of(const std::string& token) {
  if (is_sign(token)) unparsable("found '" + token + "', expected: identifier");
  if (!valid_qualified_name(token))
    unparsable("invalid label key " + json::quote(token.substr(0, 100)));
  return token;
}

std::string value_of(const std::string& token) {
  if (!valid_label_value(token))
    unparsable("invalid label value " + json::quote(token.substr(0, 100)));
  return token;
}

// ( a, b, c )
std::vector<std::string> value_list(Lexer& lexer) {
  std::vector<std::string> values;
  if (const std::string open = lexer.next(); open != "(")
    unparsable("found '" + open + "' expected: '('");
  for (;;) {
    std::string token = lexer.peek();
    if (token == "," || token == ")") {
      values.emplace_back();  // an empty value is a value
    } else {
      if (is_sign(token)) unparsable("found '" + token + "', expected: ',' or ')'");
      values.push_back(value_of(lexer.next()));
    }
    token = lexer.next();
    if (token == ")") return values;
    if (token != ",") unparsable("found '" + token + "', expected: ',' or ')'");
    if (values.size() >= kMaxTerms) unparsable("too many values");
  }
}

std::string value_at(const json::Value& object, std::string_view path) {
  const json::Value* v = &object;
  while (!path.empty()) {
    const size_t dot = std::min(path.find('.'), path.size());
    v = v->find(path.substr(0, dot));
    if (!v) return "";
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  if (v->is_string()) return v->as_string();
  return v->is_null() ? "" : v->dump();
}

}  // namespace

LabelSelector::LabelSelector(std::string_view text) {
  if (text.size() > kMaxText) unparsable("longer than " + std::to_string(kMaxText) + " bytes");
  Lexer lexer(text);
  if (lexer.peek().empty()) return;
  for (;;) {
    Requirement r;
    if (lexer.peek() == "!") {
      lexer.next();
      r = {key_of(lexer.next()), Op::not_exists, {}};
    } else {
      r.key = key_of(lexer.next());
      const std::string op = lexer.peek();
      if (op.empty() || op == ",") {
        r.op = Op::exists;
      } else if (op == "in" || op == "notin") {
        lexer.next();
        r.op = op == "in" ? Op::in : Op::not_in;
        r.values = value_list(lexer);
      } else if (op == "=" || op == "==" || op == "!=") {
        lexer.next();
        r.op = op == "!=" ? Op::not_in : Op::in;
        const std::string value = lexer.peek();
        if (!value.empty() && value != "," && is_sign(value))
          unparsable("found '" + value + "', expected: identifier");
        r.values = {value.empty() || value == "," ? "" : value_of(lexer.next())};
      } else {
        unparsable("found '" + op.substr(0, 100) + "', expected: in, notin, =, ==, !=");
      }
    }
    requirements_.push_back(std::move(r));
    const std::string separator = lexer.next();
    if (separator.empty()) return;
    if (separator != ",") unparsable("found '" + separator.substr(0, 100) + "', expected: ','");
    if (requirements_.size() >= kMaxTerms) unparsable("too many requirements");
  }
}

bool LabelSelector::matches(const json::Value& object) const {
  const json::Value& labels = object.get("metadata").get("labels");
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
    const json::Value* label = labels.find(r.key);
    const bool listed =
        label && label->is_string() &&
        std::find(r.values.begin(), r.values.end(), label->as_string()) != r.values.end();
    switch (r.op) {
      case Op::in:
        return listed;
      case Op::not_in:
        return !listed;
      case Op::exists:
        return label != nullptr;
      case Op::not_exists:
        return label == nullptr;
    }
    return false;
  });
}

FieldSelector::FieldSelector(std::string_view text, const std::vector<std::string>& supported) {
  if (text.size() > kMaxText)
    throw Error(Code::bad_request,
                "field selector longer than " + std::to_string(kMaxText) + " bytes");
  // Split at commas and at the first = or !=, a backslash takes the next character as it is.
  for (size_t at = 0; at < text.size();) {
    Term term{"", "", true};
    bool in_value = false;
    const size_t begin = at;
    for (; at < text.size() && text[at] != ','; ++at) {
      std::string& part = in_value ? term.value : term.path;
      if (text[at] == '\\' && at + 1 < text.size()) {
        part += text[++at];
      } else if (!in_value && (text[at] == '=' || text.substr(at, 2) == "!=")) {
        in_value = true;
        term.equal = text[at] == '=';
        if (text.substr(at, 2) == "==" || !term.equal) ++at;
      } else {
        part += text[at];
      }
    }
    const std::string_view whole = text.substr(begin, at - begin);
    if (at < text.size()) ++at;
    if (whole.empty()) continue;
    if (!in_value)
      throw Error(Code::bad_request, "invalid selector: " + json::quote(text.substr(0, 200)) +
                                         "; can't understand " + json::quote(whole.substr(0, 200)));
    if (term.path != "metadata.name" && term.path != "metadata.namespace" &&
        std::find(supported.begin(), supported.end(), term.path) == supported.end())
      throw Error(Code::bad_request, "field label not supported: " + term.path.substr(0, 200));
    if (terms_.size() >= kMaxTerms) throw Error(Code::bad_request, "too many field selectors");
    terms_.push_back(std::move(term));
  }
}

bool FieldSelector::matches(const json::Value& object) const {
  return std::all_of(terms_.begin(), terms_.end(), [&](const Term& t) {
    return (value_at(object, t.path) == t.value) == t.equal;
  });
}

std::string FieldSelector::exact(std::string_view path) const {
  for (const Term& t : terms_)
    if (t.equal && t.path == path) return t.value;
  return "";
}

}  // namespace umpteenth::apis
