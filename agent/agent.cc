#include "agent/agent.h"

#include <algorithm>
#include <cstdio>

#include "agent/calls.h"
#include "agent/prompt.h"
#include "agent/tools.h"

namespace umpteenth::agent {
namespace {

using models::Answer;
using models::ModelError;

constexpr int kMaxAnswerTokens = 16'000;
constexpr int kMaxRetryAfterSeconds = 60;

std::string dollars(int64_t micro_usd) {
  char text[32];
  std::snprintf(text, sizeof text, "$%.2f", static_cast<double>(micro_usd) / 1e6);
  return text;
}

class Loop {
 public:
  explicit Loop(const Params& params)
      : p_(params), bench_{p_.run, p_.sandbox, p_.clock, {}, {}, {}} {
    prompt_.model = p_.model.id;
    prompt_.system = system_blocks(p_);
    prompt_.tools = offered_tools();
    prompt_.max_tokens =
        static_cast<int>(std::clamp<int64_t>(p_.model.context_window / 4, 256, kMaxAnswerTokens));
    const runs::RunInfo& info = p_.run.info();
    prompt_.facts = json::Value::object(
        {{"job", info.job}, {"run", info.name}, {"trigger", p_.trigger}, {"input", p_.input}});
    say(first_message(p_, p_.clock.now()));
  }

  Result run() {
    while (!over()) turn();
    result_.turns = turns_;
    result_.remembered = bench_.remembered;
    if (result_.end == Result::End::failed && !bench_.finished)
      p_.run.record("error", json::Value::object({{"message", result_.message}}));
    return result_;
  }

 private:
  // Checked before each turn, so the last call may pass the cost limit. `ump llm` counts.
  bool over() {
    if (ended_) return true;
    if (stopped()) return true;
    if (p_.run.info().deadline != Time{} && p_.clock.now() >= p_.run.info().deadline)
      return end(Result::End::stopped, "the run exceeded its time limit");
    if (turns_ >= p_.max_turns)
      return fail("the run exceeded its limit of " + std::to_string(p_.max_turns) + " turns");
    if (p_.run.budget().exhausted())
      return fail("the run exceeded its cost limit of " + dollars(p_.run.budget().limit()));
    return false;
  }

  bool end(Result::End how, std::string message) {
    ended_ = true;
    result_.end = how;
    result_.message = std::move(message);
    return true;
  }
  bool fail(std::string message) { return end(Result::End::failed, std::move(message)); }
  bool stopped() { return stop_.stop_requested() && end(Result::End::stopped, ""); }

  void say(std::string text) {
    models::Part part;
    part.text = std::move(text);
    prompt_.messages.push_back({models::Message::Role::user, {std::move(part)}});
  }

  void turn() {
    const std::optional<Answer> answer = ask();
    if (!answer) return;
    ++turns_;
    if (stopped()) return;
    prompt_.messages.push_back({models::Message::Role::assistant, answer->parts});
    const auto calls = answer->tool_calls();
    if (answer->stop == Answer::Stop::refusal) {
      fail("the model refused to continue");
      return;
    }
    if (calls.empty()) return remind();
    reminded_ = false;
    if (calls.size() > models::kMaxToolCalls) {
      fail(models::kTooManyToolCalls);
      return;
    }
    prompt_.messages.push_back({models::Message::Role::user, carry_out(calls, bench_, stop_)});
    if (bench_.finished) finish(*bench_.finished);
  }

  void remind() {
    if (reminded_) {
      fail("the model stopped without calling finish");
      return;
    }
    reminded_ = true;
    say(kReminder);
  }

  void finish(const Finish& finish) {
    result_.summary = finish.summary;
    p_.run.record("finish", json::Value::object({{"status", finish.success ? "success" : "failure"},
                                                 {"summary", finish.summary},
                                                 {"outputs", p_.run.outputs()}}));
    if (finish.success)
      end(Result::End::succeeded, "");
    else
      fail(finish.summary);
  }

  // Transient failures are tried again within the turn. nullopt: the run is over.
  std::optional<Answer> ask() {
    for (size_t attempt = 0;; ++attempt) {
      const Time began = p_.clock.now();
      try {
        Answer answer = p_.model.client->complete(prompt_, {}, stop_);
        charge(answer, began);
        return answer;
      } catch (const ModelError& e) {  // what kind of failure it is decides what happens
        if (stopped()) return std::nullopt;
        if (e.maybe_billed()) charge_lost();
        const bool again =
            e.failure() == models::Failure::transient && attempt < p_.transient_retries.size();
        record_failure(e, attempt, began, again);
        if (!again) {
          fail(explain(e));
          return std::nullopt;
        }
        Duration wait = p_.transient_retries[attempt];
        if (const auto asked = e.retry_after_seconds())
          wait = std::max<Duration>(
              wait, std::chrono::seconds(std::clamp(*asked, 0, kMaxRetryAfterSeconds)));
        if (!p_.clock.sleep_for(wait, stop_) || stopped()) {
          stopped();
          return std::nullopt;
        }
      }
    }
  }

  static std::string explain(const ModelError& e) {
    switch (e.failure()) {
      case models::Failure::context_overflow:
        return "the conversation no longer fits the model's context window: " + e.message();
      case models::Failure::quota:
        return "the model API's quota is used up: " + e.message();
      default:
        return "the model call failed: " + e.message();
    }
  }

  void charge(const Answer& answer, Time began) {
    const models::Usage& used = answer.usage;
    const int64_t cost = models::cost_micro_usd(used, p_.model.price);
    const int64_t input = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens;
    p_.run.budget().charge(cost, input, used.output_tokens);
    std::string reasoning;
    for (const models::Part& part : answer.parts)
      if (part.type == models::Part::Type::reasoning) reasoning += part.text;
    json::Value event = json::Value::object({{"turn", turns_ + 1},
                                             {"model", p_.model.name},
                                             {"provider", p_.model.provider},
                                             {"inputTokens", used.input_tokens},
                                             {"cacheReadTokens", used.cache_read_tokens},
                                             {"cacheWriteTokens", used.cache_write_tokens},
                                             {"outputTokens", used.output_tokens},
                                             {"costUSD", static_cast<double>(cost) / 1e6},
                                             {"durationMs", (p_.clock.now() - began).count()},
                                             {"toolCalls", answer.tool_calls().size()},
                                             {"text", answer.text()}});
    if (!reasoning.empty()) event.set("reasoning", reasoning);
    p_.run.record("llm.call", std::move(event));
  }

  // A call that broke off after it had begun may have cost what was sent: counted as such, so that
  // an API that always breaks off cannot pass the limit unseen.
  void charge_lost() {
    size_t bytes = 0;
    for (const std::string& block : prompt_.system) bytes += block.size();
    for (const models::Message& message : prompt_.messages)
      for (const models::Part& part : message.parts) bytes += part.text.size();
    const int64_t tokens = static_cast<int64_t>(bytes / 4);
    p_.run.budget().charge(models::cost_micro_usd({tokens, 0, 0, 0}, p_.model.price), tokens, 0);
  }

  void record_failure(const ModelError& e, size_t attempt, Time began, bool again) {
    p_.run.record("llm.call", json::Value::object({{"turn", turns_ + 1},
                                                   {"model", p_.model.name},
                                                   {"provider", p_.model.provider},
                                                   {"attempt", attempt + 1},
                                                   {"durationMs", (p_.clock.now() - began).count()},
                                                   {"retried", again},
                                                   {"error", e.message()}}));
  }

  const Params& p_;
  Workbench bench_;
  models::Prompt prompt_;
  std::stop_token stop_ = p_.run.stop().get_token();
  Result result_;
  int turns_ = 0;
  bool reminded_ = false, ended_ = false;
};

}  // namespace

Result run_agent(const Params& params) { return Loop(params).run(); }

}  // namespace umpteenth::agent
