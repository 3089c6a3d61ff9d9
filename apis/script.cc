#include "apis/script.h"

#include <regex.h>

#include <algorithm>
#include <functional>

namespace umpteenth::apis {
namespace {

constexpr size_t kMaxRules = 1000;
constexpr size_t kMaxCalls = 1000;  // more than one answer may make: tests of that limit need it
constexpr Duration kMaxDelay{24 * 3600 * 1000};

const std::vector<std::string> kRuleFields{"match", "say",    "think", "call",  "calls",  "repeat",
                                           "usage", "refuse", "delay", "error", "message"};
const std::vector<std::string> kMatchFields{"job", "turn",     "tool",  "failed",
                                            "llm", "contains", "regex", "input"};
const std::vector<std::string> kUsageFields{"inputTokens", "outputTokens", "cacheReadTokens",
                                            "cacheWriteTokens"};
const std::vector<std::string> kErrors{"transient", "permanent", "contextOverflow", "quota"};
const std::vector<std::string> kRoots{"input", "result", "results", "match",  "text",
                                      "turn",  "job",    "run",     "trigger"};
const std::vector<std::string> kFilters{"", "sh", "json"};

bool contains(const std::vector<std::string>& set, std::string_view word) {
  return std::find(set.begin(), set.end(), word) != set.end();
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    if (!word.empty()) text += (text.empty() ? "\"" : ", \"") + word + "\"";
  return text;
}

std::optional<Duration> parse_delay(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0 || digits > 9) return std::nullopt;
  const int64_t n = std::stoll(text.substr(0, digits));
  const std::string unit = text.substr(digits);
  int64_t factor = 0;
  if (unit == "ms") factor = 1;
  if (unit == "s") factor = 1000;
  if (unit == "m") factor = 60'000;
  if (factor == 0 || Duration(n * factor) > kMaxDelay) return std::nullopt;
  return Duration(n * factor);
}

// One reader both checks and converts, so that the two can never disagree.
class Reader {
 public:
  explicit Reader(std::vector<Cause>& causes) : causes_(causes) {}

  ScriptRule rule(const json::Value& v, const std::string& path) {
    ScriptRule rule;
    if (!object(v, path, kRuleFields)) return rule;
    if (const auto* m = v.find("match")) match(*m, path + ".match", rule.match);
    rule.say = text(v, path, "say");
    rule.think = text(v, path, "think");
    if (const auto* c = v.find("call")) rule.calls.push_back(call(*c, path + ".call"));
    if (const auto* c = v.find("calls")) calls(*c, path + ".calls", rule.calls);
    rule.repeat = boolean(v, path, "repeat").value_or(false);
    rule.refuse = boolean(v, path, "refuse").value_or(false);
    if (const auto* u = v.find("usage")) rule.usage = usage(*u, path + ".usage");
    delay(v, path, rule.delay);
    rule.error = word(v, path, "error", kErrors);
    rule.message = text(v, path, "message");
    sense(v, path, rule);
    return rule;
  }

 private:
  void invalid(const std::string& field, const std::string& value, const std::string& rule) {
    causes_.push_back({field, "Invalid value: " + value + ": " + rule, "FieldValueInvalid"});
  }
  void wrong_type(const std::string& field, const json::Value& v, const std::string& wanted) {
    causes_.push_back({field,
                       "Invalid value: \"" + std::string(v.type_name()) + "\": must be " + wanted,
                       "FieldValueTypeInvalid"});
  }

  bool object(const json::Value& v, const std::string& path,
              const std::vector<std::string>& fields) {
    if (!v.is_object()) {
      wrong_type(path, v, "an object");
      return false;
    }
    for (const json::Member& m : v.members())
      if (!contains(fields, m.key))
        invalid(path + "." + m.key, json::quote(m.key.substr(0, 100)),
                "unknown field, use " + listed(fields));
    return true;
  }

  std::string text(const json::Value& v, const std::string& path, const char* name) {
    const json::Value* field = v.find(name);
    if (!field) return {};
    if (!field->is_string()) {
      wrong_type(path + "." + name, *field, "a string");
      return {};
    }
    templates(*field, path + "." + name);
    return field->as_string();
  }

  std::optional<bool> boolean(const json::Value& v, const std::string& path, const char* name) {
    const json::Value* field = v.find(name);
    if (!field) return std::nullopt;
    if (field->is_bool()) return field->as_bool();
    wrong_type(path + "." + name, *field, "true or false");
    return std::nullopt;
  }

  std::string word(const json::Value& v, const std::string& path, const char* name,
                   const std::vector<std::string>& allowed) {
    const json::Value* field = v.find(name);
    if (!field) return {};
    if (field->is_string() && contains(allowed, field->as_string())) return field->as_string();
    causes_.push_back({path + "." + name,
                       "Unsupported value: " + field->dump().substr(0, 100) +
                           ": supported values: " + listed(allowed),
                       "FieldValueNotSupported"});
    return {};
  }

  // `x` or `[x, y]`.
  void one_or_more(const json::Value& v, const std::string& path, const char* name,
                   const std::function<bool(const json::Value&)>& take, const char* wanted) {
    const json::Value* field = v.find(name);
    if (!field) return;
    if (!field->is_array()) {
      if (!take(*field)) wrong_type(path + "." + name, *field, wanted);
      return;
    }
    if (field->empty()) invalid(path + "." + name, "[]", "an empty list matches nothing");
    for (size_t i = 0; i < field->size(); ++i)
      if (!take(field->items()[i]))
        wrong_type(path + "." + name + "[" + std::to_string(i) + "]", field->items()[i], wanted);
  }

  void match(const json::Value& v, const std::string& path, ScriptRule::Match& match) {
    if (!object(v, path, kMatchFields)) return;
    const auto strings = [](std::vector<std::string>& into) {
      return [&into](const json::Value& item) {
        if (item.is_string()) into.push_back(item.as_string());
        return item.is_string();
      };
    };
    one_or_more(v, path, "job", strings(match.jobs), "a string or a list of strings");
    one_or_more(v, path, "tool", strings(match.tools), "a string or a list of strings");
    one_or_more(v, path, "contains", strings(match.contains), "a string or a list of strings");
    one_or_more(
        v, path, "turn",
        [&](const json::Value& item) {
          const bool good = item.is_int() && item.as_int() >= 1;
          if (good) match.turns.push_back(item.as_int());
          return good;
        },
        "a whole number from 1, or a list of them");
    match.failed = boolean(v, path, "failed");
    match.llm = boolean(v, path, "llm");
    if (const auto* input = v.find("input")) match.input = *input;
    if (const auto* r = v.find("regex")) regex(*r, path + ".regex", match.regex);
  }

  void regex(const json::Value& v, const std::string& path, std::string& into) {
    if (!v.is_string()) return wrong_type(path, v, "a string");
    if (v.as_string().size() > 1000 || v.as_string().find('\0') != std::string::npos)
      return invalid(path, "a string", "must be at most 1000 characters, without NUL");
    regex_t compiled;
    const int rc = regcomp(&compiled, v.as_string().c_str(), REG_EXTENDED | REG_NEWLINE);
    if (rc == 0) {
      regfree(&compiled);
      into = v.as_string();
      return;
    }
    char why[200];
    regerror(rc, &compiled, why, sizeof why);
    invalid(path, json::quote(v.as_string().substr(0, 100)),
            "not a POSIX extended regular expression: " + std::string(why));
  }

  ScriptRule::Call call(const json::Value& v, const std::string& path) {
    ScriptRule::Call call;
    if (!object(v, path, {"tool", "arguments"})) return call;
    const json::Value* tool = v.find("tool");
    if (!tool)
      causes_.push_back({path + ".tool", "Required value", "FieldValueRequired"});
    else if (!tool->is_string() || tool->as_string().empty())
      wrong_type(path + ".tool", *tool, "a tool's name");
    else
      call.tool = tool->as_string();
    // A string stands for what is not a JSON object: for tests of such answers.
    if (const auto* arguments = v.find("arguments")) {
      if (!arguments->is_object() && !arguments->is_string())
        wrong_type(path + ".arguments", *arguments, "an object");
      templates(*arguments, path + ".arguments");
      call.arguments = *arguments;
    }
    return call;
  }

  void calls(const json::Value& v, const std::string& path, std::vector<ScriptRule::Call>& into) {
    if (!v.is_array()) return wrong_type(path, v, "a list of calls");
    if (v.size() > kMaxCalls)
      return invalid(path, std::to_string(v.size()) + " calls",
                     "must be at most " + std::to_string(kMaxCalls));
    for (size_t i = 0; i < v.size(); ++i)
      into.push_back(call(v.items()[i], path + "[" + std::to_string(i) + "]"));
  }

  ScriptRule::Usage usage(const json::Value& v, const std::string& path) {
    ScriptRule::Usage usage;
    if (!object(v, path, kUsageFields)) return usage;
    int64_t* const into[] = {&usage.input_tokens, &usage.output_tokens, &usage.cache_read_tokens,
                             &usage.cache_write_tokens};
    for (size_t i = 0; i < kUsageFields.size(); ++i) {
      const json::Value* field = v.find(kUsageFields[i]);
      if (!field) continue;
      if (field->is_int() && field->as_int() >= 0 && field->as_int() <= 1'000'000'000)
        *into[i] = field->as_int();
      else
        invalid(path + "." + kUsageFields[i], field->dump().substr(0, 100),
                "must be a whole number from 0 to 1000000000");
    }
    return usage;
  }

  void delay(const json::Value& v, const std::string& path, Duration& into) {
    const json::Value* field = v.find("delay");
    if (!field) return;
    const auto parsed = field->is_string() ? parse_delay(field->as_string()) : std::nullopt;
    if (parsed)
      into = *parsed;
    else
      invalid(path + ".delay", field->dump().substr(0, 100),
              "must be a duration of at most 24 hours such as 500ms, 2s or 1m");
  }

  // Templates of all strings below v.
  void templates(const json::Value& v, const std::string& path) {
    if (v.is_array())
      for (size_t i = 0; i < v.size(); ++i)
        templates(v.items()[i], path + "[" + std::to_string(i) + "]");
    if (v.is_object())
      for (const json::Member& m : v.members()) templates(m.value, path + "." + m.key);
    if (!v.is_string()) return;
    const std::string& text = v.as_string();
    for (auto t = find_template(text, 0); t; t = find_template(text, t->end)) {
      const std::string shown = json::quote(text.substr(t->begin, t->end - t->begin));
      if (!contains(kRoots, t->root))
        invalid(path, shown, "unknown name, use " + listed(kRoots));
      else if (!contains(kFilters, t->filter))
        invalid(path, shown, "unknown filter, use " + listed(kFilters));
    }
  }

  void sense(const json::Value& v, const std::string& path, const ScriptRule& rule) {
    if (v.find("call") && v.find("calls"))
      invalid(path + ".calls", "a list", "give call or calls, not both");
    if (!v.find("error") && v.find("message"))
      invalid(path + ".message", "a string", "only goes with error");
    const bool answers = v.find("say") || v.find("think") || !rule.calls.empty() || rule.refuse;
    if (v.find("error") && answers)
      invalid(path + ".error", "a string", "a rule that fails cannot answer as well");
    if (!v.find("error") && !answers && !v.find("calls"))
      causes_.push_back(
          {path, "Required value: say, call, calls, refuse or error", "FieldValueRequired"});
  }

  std::vector<Cause>& causes_;
};

std::vector<ScriptRule> read(const json::Value& script, const std::string& path,
                             std::vector<Cause>& causes) {
  std::vector<ScriptRule> rules;
  if (!script.is_array()) {
    causes.push_back(
        {path,
         "Invalid value: \"" + std::string(script.type_name()) + "\": must be a list of rules",
         "FieldValueTypeInvalid"});
    return rules;
  }
  if (script.size() > kMaxRules) {
    causes.push_back({path,
                      "Too many: " + std::to_string(script.size()) + ": must have at most " +
                          std::to_string(kMaxRules) + " rules",
                      "FieldValueTooMany"});
    return rules;
  }
  Reader reader(causes);
  for (size_t i = 0; i < script.size(); ++i)
    rules.push_back(reader.rule(script.items()[i], path + "[" + std::to_string(i) + "]"));
  return rules;
}

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

std::optional<ScriptTemplate> find_template(std::string_view text, size_t from) {
  for (size_t open = text.find("{{", from); open != std::string_view::npos;
       open = text.find("{{", open + 1)) {
    size_t at = open + 2;
    const auto spaces = [&] {
      while (at < text.size() && text[at] == ' ') ++at;
    };
    const auto name = [&] {
      const size_t begin = at;
      while (at < text.size() && name_char(text[at])) ++at;
      return std::string(text.substr(begin, at - begin));
    };
    ScriptTemplate found;
    spaces();
    found.root = name();
    bool good = !found.root.empty();
    while (good && at < text.size() && text[at] == '.') {
      ++at;
      found.path.push_back(name());
      good = !found.path.back().empty();
    }
    spaces();
    if (good && at < text.size() && text[at] == '|') {
      ++at;
      spaces();
      found.filter = name();
      good = !found.filter.empty();
      spaces();
    }
    if (!good || text.substr(at, 2) != "}}") continue;
    found.begin = open;
    found.end = at + 2;
    return found;
  }
  return std::nullopt;
}

void check_script(const json::Value& script, const std::string& path, std::vector<Cause>& causes) {
  read(script, path, causes);
}

std::vector<ScriptRule> script_from(const json::Value& script) {
  std::vector<Cause> causes;
  std::vector<ScriptRule> rules = read(script, "spec.script", causes);
  if (causes.empty()) return rules;
  std::string message = causes.front().field + ": " + causes.front().message;
  if (causes.size() > 1) message += " (and " + std::to_string(causes.size() - 1) + " more)";
  throw Error(Code::invalid, message, causes);
}

}  // namespace umpteenth::apis
