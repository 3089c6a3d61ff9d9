#include "models/template.h"

#include <charconv>

#include "apis/script.h"
#include "base/error.h"

namespace umpteenth::models {
namespace {

using apis::ScriptTemplate;

std::string shown(const ScriptTemplate& t) {
  std::string text = t.root;
  for (const std::string& step : t.path) text += "." + step;
  return "{{" + text + "}}";
}

[[noreturn]] void no_value(const ScriptTemplate& t, const std::string& why) {
  throw Error(Code::invalid, shown(t) + " has no value: " + why);
}

std::optional<size_t> as_index(const std::string& step) {
  size_t n = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), n);
  if (error != std::errc() || end != step.data() + step.size()) return std::nullopt;
  return n;
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// Down from v by t.path, which begins at `from`.
json::Value descend(const json::Value& v, const ScriptTemplate& t, size_t from) {
  const json::Value* at = &v;
  for (size_t i = from; i < t.path.size(); ++i) {
    const std::string& step = t.path[i];
    const json::Value* below = at->find(step);
    if (at->is_array()) {
      const auto index = as_index(step);
      if (index && *index < at->size()) below = &at->items()[*index];
    }
    if (!below) no_value(t, "there is no " + json::quote(step));
    at = below;
  }
  return *at;
}

json::Value of_result(const std::string& result, const ScriptTemplate& t, size_t from) {
  const std::string text = trimmed(result);
  if (from == t.path.size()) return text;
  json::Value parsed;
  try {
    parsed = json::parse(text);
  } catch (const Error& e) {  // anything may stand there; the reader needs to know which template
    no_value(t, "the result is not JSON: " + e.message());
  }
  return descend(parsed, t, from);
}

template <typename T>
const T& nth(const std::vector<T>& list, const ScriptTemplate& t, const std::string& step) {
  const auto index = as_index(step);
  if (!index || *index >= list.size())
    no_value(t, "there are " + std::to_string(list.size()) + ", counted from 0");
  return list[*index];
}

json::Value look_up(const ScriptTemplate& t, const Scope& scope) {
  if (t.root == "turn") return scope.turn;
  if (t.root == "text") return trimmed(scope.text);
  if (t.root == "match") {
    if (t.path.empty()) return nth(scope.match, t, "0");
    return nth(scope.match, t, t.path[0]);
  }
  if (t.root == "results") {
    if (t.path.empty()) return json::Value::strings(scope.results);
    return of_result(nth(scope.results, t, t.path[0]), t, 1);
  }
  if (t.root == "result") {
    if (scope.results.empty()) no_value(t, "no tool was called before");
    return of_result(scope.results.back(), t, 0);
  }
  const json::Value* fact = scope.facts.find(t.root);
  if (!fact) no_value(t, "the call has none");
  return descend(*fact, t, 0);
}

std::string plain(const json::Value& v) { return v.is_string() ? v.as_string() : v.dump(); }

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string filtered(const ScriptTemplate& t, const json::Value& v) {
  if (t.filter == "sh") return shell_quoted(plain(v));
  if (t.filter == "json") return v.dump();
  return plain(v);
}

}  // namespace

std::string render_text(const std::string& text, const Scope& scope) {
  std::string made;
  size_t done = 0;
  for (auto t = apis::find_template(text, 0); t; t = apis::find_template(text, t->end)) {
    made.append(text, done, t->begin - done);
    made += filtered(*t, look_up(*t, scope));
    done = t->end;
  }
  return made.append(text, done);
}

json::Value render(const json::Value& value, const Scope& scope) {
  if (value.is_array()) {
    json::Value made = json::Value::array();
    for (const json::Value& item : value.items()) made.push_back(render(item, scope));
    return made;
  }
  if (value.is_object()) {
    json::Value made = json::Value::object();
    for (const json::Member& m : value.members()) made.set(m.key, render(m.value, scope));
    return made;
  }
  if (!value.is_string()) return value;
  const std::string& text = value.as_string();
  const auto first = apis::find_template(text, 0);
  if (first && first->begin == 0 && first->end == text.size() && first->filter.empty())
    return look_up(*first, scope);
  return render_text(text, scope);
}

}  // namespace umpteenth::models
