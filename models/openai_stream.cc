#include <algorithm>

#include "base/log.h"
#include "models/openai_wire.h"

namespace umpteenth::models {
namespace {

// JSON writes a byte as at most six (\u00XX), and an event has some members around its text.
constexpr size_t kMaxEvent = 6 * kMaxAnswerBytes + (64U << 10);
constexpr int64_t kMaxTokens = 1'000'000'000'000;  // a figure beyond is a lie

int64_t tokens(const json::Value& usage, std::string_view name) {
  const json::Value& v = usage.get(name);
  return v.is_int() ? std::clamp<int64_t>(v.as_int(), 0, kMaxTokens) : 0;
}

}  // namespace

ChatStream::ChatStream(const std::function<void(const Delta&)>& on_delta)
    : on_delta_(on_delta), parser_(kMaxEvent) {}

void ChatStream::feed(std::string_view bytes) {
  try {
    parser_.feed(bytes, [this](const SseEvent& event) { take(event); });
  } catch (const ModelError&) {
    throw;
  } catch (const Error& e) {  // foreign bytes: too large an event, not JSON, a wrong type
    if (e.code() == Code::too_large) throw ModelError(Failure::permanent, kAnswerTooLarge, true);
    throw ModelError(Failure::transient, "the model API sent what it should not: " + e.message(),
                     true);
  }
}

void ChatStream::take(const SseEvent& event) {
  if (done_) return;
  if (event.data == "[DONE]") {
    done_ = true;
    return;
  }
  if (event.data.empty()) return;
  const json::Value chunk = json::parse(event.data);
  if (!chunk.is_object()) throw Error(Code::bad_request, "an event that is not an object");
  if (const json::Value* error = chunk.find("error"); error && !error->is_null())
    throw chat_error(200, event.data);
  take_usage(chunk.get("usage"));
  const json::Value& choices = chunk.get("choices");
  if (!choices.is_array() || choices.empty()) return;
  const json::Value& choice = choices.items()[0];
  take_delta(choice.get("delta"));
  const json::Value& reason = choice.get("finish_reason");
  if (reason.is_string()) finish_reason_ = reason.as_string();
}

void ChatStream::take_delta(const json::Value& delta) {
  const std::string text = take_text(delta.get("content"));
  text_ += text;
  if (on_delta_ && !text.empty()) on_delta_({Delta::Type::text, text});
  for (const char* name : {"reasoning_content", "reasoning"}) {
    const std::string reasoning = take_text(delta.get(name));
    if (reasoning.empty()) continue;
    reasoning_ += reasoning;
    if (on_delta_) on_delta_({Delta::Type::reasoning, reasoning});
    break;  // some servers send both names with the same words
  }
  if (!take_text(delta.get("refusal")).empty()) refused_ = true;
  const json::Value& calls = delta.get("tool_calls");
  if (calls.is_null()) return;
  for (const json::Value& fragment : calls.items()) take_call(fragment);
}

std::string ChatStream::take_text(const json::Value& value) {
  if (!value.is_string()) return {};
  count(value.as_string().size());
  return value.as_string();
}

// The first fragment of a call carries id and name; arguments come in pieces. Servers that leave
// the index out give an id with each new call.
void ChatStream::take_call(const json::Value& fragment) {
  const json::Value& id = fragment.get("id");
  const bool has_id = id.is_string() && !id.as_string().empty();
  const int64_t last = calls_.empty() ? -1 : calls_.rbegin()->first;
  int64_t index = fragment.get("index").is_int() ? fragment.get("index").as_int()
                  : has_id                       ? last + 1
                                                 : std::max<int64_t>(last, 0);
  Call& call = calls_[index];
  if (calls_.size() > kMaxToolCalls) throw ModelError(Failure::permanent, kTooManyToolCalls, true);
  if (has_id && call.id.empty()) call.id = take_text(id);
  const json::Value& function = fragment.get("function");
  if (call.name.empty()) call.name = take_text(function.get("name"));
  const json::Value& arguments = function.get("arguments");
  // An object instead of its text is what some servers send; it counts the same.
  if (arguments.is_object()) {
    call.arguments = arguments.dump();
    count(call.arguments.size());
  } else {
    call.arguments += take_text(arguments);
  }
}

// prompt_tokens includes the cached ones, completion_tokens the reasoning.
void ChatStream::take_usage(const json::Value& usage) {
  if (!usage.is_object()) return;
  const int64_t prompt = tokens(usage, "prompt_tokens");
  usage_.cache_read_tokens =
      std::min(prompt, tokens(usage.get("prompt_tokens_details"), "cached_tokens"));
  usage_.input_tokens = prompt - usage_.cache_read_tokens;
  usage_.output_tokens = tokens(usage, "completion_tokens");
}

void ChatStream::count(size_t bytes) {
  bytes_ += bytes;
  if (bytes_ > kMaxAnswerBytes) throw ModelError(Failure::permanent, kAnswerTooLarge, true);
}

Answer ChatStream::finish() {
  feed("\n\n");  // an event whose empty line is missing is complete none the less
  if (finish_reason_.empty())
    throw ModelError(Failure::transient, "the model API's stream ended before the answer did",
                     true);
  Answer answer;
  const auto add = [&](Part::Type type, std::string& text) {
    if (text.empty()) return;
    Part part;
    part.type = type;
    part.text = std::move(text);
    answer.parts.push_back(std::move(part));
  };
  add(Part::Type::reasoning, reasoning_);
  add(Part::Type::text, text_);
  for (auto& [index, call] : calls_) {
    Part part;
    part.type = Part::Type::tool_call;
    part.call.id = call.id.empty() ? "call_" + std::to_string(index) : call.id;
    part.call.name = call.name;
    part.call.arguments = json::Value::object();
    if (!call.arguments.empty()) try {
        part.call.arguments = json::parse(call.arguments);
      } catch (const Error&) {  // the model's slip: it is told so by the tool's result
        part.call.bad_arguments = call.arguments;
      }
    if (!part.call.arguments.is_object()) {
      part.call.bad_arguments = call.arguments;
      part.call.arguments = json::Value::object();
    }
    answer.parts.push_back(std::move(part));
  }
  answer.usage = usage_;
  answer.stop = refused_ || finish_reason_ == "content_filter" ? Answer::Stop::refusal
                : finish_reason_ == "length"                   ? Answer::Stop::max_tokens
                : !calls_.empty()                              ? Answer::Stop::tool_use
                                                               : Answer::Stop::end;
  return answer;
}

}  // namespace umpteenth::models
