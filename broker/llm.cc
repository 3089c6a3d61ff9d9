#include "broker/llm.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "broker/reply.h"

namespace umpteenth::broker {
namespace {

using models::Answer;
using models::Message;
using models::Part;

constexpr int kMaxTokens = 16'000;
constexpr size_t kRecordedBytes = 4096;      // the timeline keeps 500 characters of them
constexpr int64_t kPromptBytesPerToken = 2;  // fewer than any tokenizer needs: a worst case

// Stops when the run does, or when the time is over.
class Deadline {
 public:
  Deadline(std::stop_token outer, std::chrono::milliseconds timeout)
      : forward_(std::move(outer), [this] { stop_.request_stop(); }),
        timer_([this, timeout](const std::stop_token& done) {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, done, timeout, [] { return false; }) || done.stop_requested())
            return;
          passed_ = true;
          stop_.request_stop();
        }) {}
  std::stop_token token() { return stop_.get_token(); }
  bool passed() const { return passed_; }

 private:
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::atomic<bool> passed_{false};
  std::stop_callback<std::function<void()>> forward_;
  std::jthread timer_;  // the last: it uses the others
};

Message message(Message::Role role, std::string text) {
  Message m;
  m.role = role;
  m.parts.push_back(Part{.type = Part::Type::text,
                         .text = std::move(text),
                         .call = {},
                         .result_of = {},
                         .is_error = false});
  return m;
}

models::Prompt prompt_for(const LlmCall& call, const models::Model& model) {
  models::Prompt prompt;
  prompt.model = model.id;
  if (!call.system.empty()) prompt.system.push_back(call.system);
  prompt.messages.push_back(message(Message::Role::user, call.prompt));
  prompt.schema = call.schema;
  prompt.max_tokens = call.max_tokens;
  prompt.low_effort = true;
  return prompt;
}

// Models like to wrap JSON into a fence.
std::string_view without_fence(std::string_view text) {
  const auto trim = [&] {
    const size_t first = text.find_first_not_of(" \t\r\n");
    text = first == std::string_view::npos
               ? std::string_view()
               : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
  };
  trim();
  if (!text.starts_with("```") || !text.ends_with("```") || text.size() < 6) return text;
  text.remove_suffix(3);
  text.remove_prefix(std::min(text.size(), text.find('\n')));
  trim();
  return text;
}

// One exchange with the model, and a second where an answer that must be JSON is none.
class Conversation {
 public:
  Conversation(const LlmCall& call, models::Model model)
      : call_(call), model_(std::move(model)), prompt_(prompt_for(call, model_)) {}

  json::Value run(const std::stop_token& stop) {
    std::string text = ask(stop);
    if (!call_.schema.is_object()) return text;
    try {
      return json::parse(without_fence(text));
    } catch (const Error& e) {  // the model is told and gets one more try
      prompt_.messages.push_back(message(Message::Role::assistant, std::move(text)));
      prompt_.messages.push_back(message(
          Message::Role::user,
          "That is not valid JSON (" + e.message() + "). Answer with the JSON value alone."));
    }
    text = ask(stop);
    try {
      return json::parse(without_fence(text));
    } catch (const Error& e) {  // what the model wrote is not the caller's mistake
      throw Error(Code::bad_gateway, "the model did not answer with JSON: " + e.message());
    }
  }

  const models::Usage& usage() const { return usage_; }
  int64_t cost() const { return models::cost_micro_usd(usage_, model_.price); }

 private:
  std::string ask(const std::stop_token& stop) {
    Answer answer = model_.client->complete(prompt_, {}, stop);
    usage_.input_tokens += answer.usage.input_tokens;
    usage_.output_tokens += answer.usage.output_tokens;
    usage_.cache_read_tokens += answer.usage.cache_read_tokens;
    usage_.cache_write_tokens += answer.usage.cache_write_tokens;
    if (answer.stop == Answer::Stop::refusal)
      throw Error(Code::invalid, "The model refused to answer");
    return answer.text();
  }

  const LlmCall& call_;
  models::Model model_;
  models::Prompt prompt_;
  models::Usage usage_;
};

// Settles the reservation exactly once, and puts the call on the timeline.
class Account {
 public:
  Account(runs::LiveRun& run, const LlmCall& call, int64_t reserved)
      : run_(run), call_(call), reserved_(reserved) {
    if (!run_.budget().reserve(reserved_))
      throw Error(Code::forbidden,
                  "the run reached its cost limit, so ump llm is no longer available");
  }

  void settle(int64_t charged, const models::Usage& usage, const json::Value& result,
              const std::string& error) {
    run_.budget().settle(reserved_, charged,
                         usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
                         usage.output_tokens);
    json::Value data = json::Value::object({{"model", call_.which},
                                            {"prompt", call_.prompt.substr(0, kRecordedBytes)},
                                            {"inputTokens", usage.input_tokens},
                                            {"outputTokens", usage.output_tokens},
                                            {"costMicroUSD", charged}});
    if (!result.is_null()) data.set("result", result);
    if (!error.empty()) data.set("error", error);
    run_.record_call("llm", std::move(data), true);
  }
  int64_t reserved() const { return reserved_; }

 private:
  runs::LiveRun& run_;
  const LlmCall& call_;
  const int64_t reserved_;
};

}  // namespace

LlmCall parse_llm_call(const json::Value& body) {
  LlmCall call;
  if (body.find("model")) call.which = required_string(body, "model");
  if (call.which != "utility" && call.which != "agent")
    throw Error(Code::invalid, "model must be utility or agent");
  call.prompt = required_string(body, "prompt");
  if (call.prompt.empty()) throw Error(Code::invalid, "prompt must not be empty");
  if (const json::Value* system = body.find("system"); system && !system->is_null())
    call.system = required_string(body, "system");
  if (const json::Value* schema = body.find("schema"); schema && !schema->is_null()) {
    if (!schema->is_object()) throw Error(Code::invalid, "schema must be a JSON object");
    call.schema = *schema;
  }
  if (const json::Value* tokens = body.find("maxTokens"); tokens && !tokens->is_null()) {
    if (!tokens->is_int() || tokens->as_int() < 1 || tokens->as_int() > kMaxTokens)
      throw Error(Code::invalid, "maxTokens must be a whole number from 1 to 16000");
    call.max_tokens = static_cast<int>(tokens->as_int());
  }
  return call;
}

int64_t worst_case(const LlmCall& call, const models::Price& price) {
  const bool with_schema = call.schema.is_object();
  const size_t bytes =
      call.prompt.size() + call.system.size() + (with_schema ? call.schema.dump().size() : 0);
  models::Usage usage;
  usage.input_tokens = static_cast<int64_t>(bytes) / kPromptBytesPerToken + 1;
  usage.output_tokens = call.max_tokens;
  return models::cost_micro_usd(usage, price) * (with_schema ? 2 : 1);
}

json::Value run_llm_call(const LlmCall& call, const Options& options, runs::LiveRun& run) {
  const models::Model model = options.model(run, call.which);
  Account account(run, call, worst_case(call, model.price));
  Conversation conversation(call, model);
  Deadline deadline(run.stop().get_token(), options.llm_timeout);
  json::Value result;
  try {
    result = conversation.run(deadline.token());
  } catch (const models::ModelError& e) {  // whatever happened is paid for, then passed on
    const int64_t charged =
        e.maybe_billed() ? std::max(account.reserved(), conversation.cost()) : conversation.cost();
    account.settle(charged, conversation.usage(), {}, e.message());
    if (deadline.passed())
      throw Error(Code::timeout, "the model did not answer within " +
                                     std::to_string(options.llm_timeout.count() / 1000) +
                                     " seconds");
    throw;
  } catch (const Error& e) {  // an answer came, but it is of no use
    account.settle(conversation.cost(), conversation.usage(), {}, e.message());
    throw;
  } catch (const std::exception& e) {  // nothing is known of the call
    account.settle(account.reserved(), conversation.usage(), {}, e.what());
    throw;
  }
  const models::Usage& usage = conversation.usage();
  account.settle(conversation.cost(), usage, result, "");
  json::Value reply = json::Value::object();
  reply.set(call.schema.is_object() ? "json" : "text", std::move(result));
  reply.set("usage", json::Value::object({{"inputTokens", usage.input_tokens},
                                          {"outputTokens", usage.output_tokens},
                                          {"cacheReadTokens", usage.cache_read_tokens},
                                          {"cacheWriteTokens", usage.cache_write_tokens}}));
  reply.set("cost", static_cast<double>(conversation.cost()) / 1e6);
  return reply;
}

}  // namespace umpteenth::broker
