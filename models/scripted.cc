#include "models/scripted.h"

#include <regex.h>

#include <algorithm>
#include <memory>

#include "base/log.h"
#include "models/template.h"

namespace umpteenth::models {
namespace {

using apis::ScriptRule;

// A regex looks at no more than this of a text, from its start: what it costs is bounded.
constexpr size_t kSearched = 64U << 10;

// nullopt where it does not match; else the whole match and the groups.
std::optional<std::vector<std::string>> search(const std::string& pattern,
                                               const std::string& text) {
  regex_t compiled;
  if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NEWLINE) != 0) return std::nullopt;
  std::vector<regmatch_t> at(std::min<size_t>(compiled.re_nsub + 1, 20));
  at[0].rm_so = 0;
  at[0].rm_eo = static_cast<regoff_t>(std::min(text.size(), kSearched));
  const int rc = regexec(&compiled, text.data(), at.size(), at.data(), REG_STARTEND);
  regfree(&compiled);
  if (rc != 0) return std::nullopt;
  std::vector<std::string> groups;
  for (const regmatch_t& m : at)
    groups.push_back(m.rm_so < 0 ? "" : text.substr(m.rm_so, m.rm_eo - m.rm_so));
  return groups;
}

// Every member and item that `wanted` names is there and equal.
bool has_subset(const json::Value& value, const json::Value& wanted) {
  if (!wanted.is_object()) return value == wanted;
  return std::all_of(wanted.members().begin(), wanted.members().end(), [&](const json::Member& m) {
    const json::Value* below = value.find(m.key);
    return below && has_subset(*below, m.value);
  });
}

bool one_of(const std::vector<std::string>& allowed, const std::string& word) {
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), word) != allowed.end();
}

Failure failure_of(const std::string& word) {
  if (word == "transient") return Failure::transient;
  if (word == "contextOverflow") return Failure::context_overflow;
  if (word == "quota") return Failure::quota;
  return Failure::permanent;
}

// A token is about four bytes: so that a script without `usage` still shows plausible figures.
int64_t tokens_of(size_t bytes) { return static_cast<int64_t>((bytes + 3) / 4); }

size_t bytes_of(const Prompt& prompt) {
  size_t bytes = 0;
  for (const std::string& block : prompt.system) bytes += block.size();
  for (const Message& message : prompt.messages)
    for (const Part& part : message.parts)
      bytes += part.text.size() +
               (part.type == Part::Type::tool_call ? part.call.arguments.dump().size() : 0);
  return bytes;
}

}  // namespace

// The state of the conversation that rules are matched against.
struct ScriptedClient::Question {
  Scope scope;
  std::string tool;     // whose result came last; "" = none did
  bool failed = false;  // that result, or one of those given with it, is an error
  bool llm = false;     // asked by `ump llm`: no tools are offered

  explicit Question(const Prompt& prompt) {
    scope.facts = prompt.facts;
    llm = prompt.tools.empty();
    for (const Message& message : prompt.messages)
      if (message.role == Message::Role::assistant) ++scope.turn;
    if (prompt.messages.empty()) return;
    for (const Part& part : prompt.messages.back().parts) {
      if (part.type != Part::Type::text && part.type != Part::Type::tool_result) continue;
      scope.text += (scope.text.empty() ? "" : "\n") + part.text;
      if (part.type != Part::Type::tool_result) continue;
      scope.results.push_back(part.text);
      failed = failed || part.is_error;
      tool = name_of_call(prompt, part.result_of);
    }
  }

  static std::string name_of_call(const Prompt& prompt, const std::string& id) {
    for (auto m = prompt.messages.rbegin(); m != prompt.messages.rend(); ++m)
      for (const Part& part : m->parts)
        if (part.type == Part::Type::tool_call && part.call.id == id) return part.call.name;
    return {};
  }

  // Keeps the groups of a regex that matches, for {{match.1}}.
  bool fits(const ScriptRule::Match& match) {
    if (!one_of(match.jobs, scope.facts.get_string("job"))) return false;
    if (!match.turns.empty() &&
        std::find(match.turns.begin(), match.turns.end(), scope.turn) == match.turns.end())
      return false;
    if (!one_of(match.tools, tool)) return false;
    if (match.failed && (*match.failed != failed || scope.results.empty())) return false;
    if (match.llm && *match.llm != llm) return false;
    if (!match.input.is_null() && !has_subset(scope.facts.get("input"), match.input)) return false;
    for (const std::string& words : match.contains)
      if (scope.text.find(words) == std::string::npos) return false;
    scope.match.clear();
    if (match.regex.empty()) return true;
    auto groups = search(match.regex, scope.text);
    if (groups) scope.match = std::move(*groups);
    return groups.has_value();
  }

  std::string describe() const {
    std::string text = "turn " + std::to_string(scope.turn);
    const std::string job = scope.facts.get_string("job");
    if (!job.empty()) text += " of job " + json::quote(job);
    if (!tool.empty()) text += " after " + std::string(failed ? "a failed " : "") + tool;
    if (llm) text += " asked by ump llm";
    return text + ", last text " + json::quote(log::clip(scope.text, 120));
  }
};

const ScriptRule& ScriptedClient::choose(Question& question) {
  std::lock_guard lock(mutex_);
  size_t spent = 0;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (used_[i] && !rules_[i].repeat) {
      ++spent;
      continue;
    }
    if (!question.fits(rules_[i].match)) continue;
    used_[i] = true;
    return rules_[i];
  }
  throw ModelError(Failure::permanent,
                   "the script of ModelProvider " + json::quote(provider_) + " has no rule for " +
                       question.describe() + " (" + std::to_string(spent) + " of " +
                       std::to_string(rules_.size()) +
                       " rules are used up; add one, or repeat: true)",
                   false);
}

Answer ScriptedClient::complete(const Prompt& prompt,
                                const std::function<void(const Delta&)>& on_delta,
                                std::stop_token stop) {
  Question question(prompt);
  const ScriptRule& rule = choose(question);
  if (rule.delay.count() > 0 && !clock_.sleep_for(rule.delay, stop))
    throw ModelError(Failure::permanent, "the call was stopped", false);

  Answer answer;
  size_t bytes = 0;
  const auto add = [&](Part::Type type, Delta::Type delta, const std::string& source) {
    if (source.empty()) return;
    Part part;
    part.type = type;
    part.text = render_text(source, question.scope);
    bytes += part.text.size();
    if (on_delta) on_delta({delta, part.text});
    answer.parts.push_back(std::move(part));
  };
  try {
    if (!rule.error.empty())
      throw ModelError(failure_of(rule.error),
                       rule.message.empty() ? "the script says: " + rule.error
                                            : render_text(rule.message, question.scope),
                       false);
    add(Part::Type::reasoning, Delta::Type::reasoning, rule.think);
    add(Part::Type::text, Delta::Type::text, rule.say);
    for (const ScriptRule::Call& call : rule.calls) {
      Part part;
      part.type = Part::Type::tool_call;
      part.call.name = call.tool;
      part.call.id =
          "call_" + std::to_string(question.scope.turn) + "_" + std::to_string(answer.parts.size());
      const json::Value arguments = render(call.arguments, question.scope);
      bytes += arguments.dump().size();
      if (arguments.is_object())
        part.call.arguments = arguments;
      else
        part.call.bad_arguments = arguments.is_string() ? arguments.as_string() : arguments.dump();
      answer.parts.push_back(std::move(part));
    }
  } catch (const ModelError&) {
    throw;
  } catch (const Error& e) {  // a template without a value: say whose script it is
    throw ModelError(Failure::permanent,
                     "the script of ModelProvider " + json::quote(provider_) + ", rule " +
                         std::to_string(&rule - rules_.data() + 1) + ", " + question.describe() +
                         ": " + e.message(),
                     false);
  }
  if (rule.calls.size() > kMaxToolCalls)
    throw ModelError(Failure::permanent, kTooManyToolCalls, true);
  if (bytes > kMaxAnswerBytes) throw ModelError(Failure::permanent, kAnswerTooLarge, true);
  answer.stop = rule.refuse          ? Answer::Stop::refusal
                : rule.calls.empty() ? Answer::Stop::end
                                     : Answer::Stop::tool_use;
  if (rule.usage)
    answer.usage = {rule.usage->input_tokens, rule.usage->output_tokens,
                    rule.usage->cache_read_tokens, rule.usage->cache_write_tokens};
  else
    answer.usage = {tokens_of(bytes_of(prompt)), tokens_of(bytes), 0, 0};
  return answer;
}

}  // namespace umpteenth::models
