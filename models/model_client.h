// The seam to a model API, provider-neutral.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace umpteenth::models {

struct Tool {
  std::string name, description;
  json::Value input_schema;
};

struct ToolCall {
  std::string id, name;
  json::Value arguments;
  std::string bad_arguments;  // what the model sent where it is not a JSON object
};

struct Part {
  enum class Type { text, tool_call, tool_result, reasoning } type = Type::text;
  std::string text;  // text, a result's content, or reasoning passed back opaque
  ToolCall call;
  std::string result_of;  // tool_result: the call's id
  bool is_error = false;
};

struct Message {
  enum class Role { user, assistant } role = Role::user;
  std::vector<Part> parts;
};

struct Prompt {
  std::string model;                // the provider's id
  std::vector<std::string> system;  // blocks, cache breakpoint after each
  std::vector<Message> messages;
  std::vector<Tool> tools;
  json::Value schema;  // object: the answer must be JSON of it
  int max_tokens = 4096;
  bool low_effort = false;
  // What the call is about: {job, run, trigger, input}. Scripted matches on it; never sent.
  json::Value facts;
};

// Of text, reasoning and arguments together, and of tool calls in one answer.
inline constexpr size_t kMaxAnswerBytes = 4U << 20;
inline constexpr size_t kMaxToolCalls = 128;
inline constexpr char kAnswerTooLarge[] = "the answer is larger than 4 MiB";
inline constexpr char kTooManyToolCalls[] =
    "the answer makes more tool calls than any model makes in one call";

struct Usage {
  int64_t input_tokens = 0, output_tokens = 0, cache_read_tokens = 0, cache_write_tokens = 0;
};

struct Answer {
  std::vector<Part> parts;
  enum class Stop { end, tool_use, max_tokens, refusal } stop = Stop::end;
  Usage usage;
  std::string text() const;  // the text parts, joined
  std::vector<ToolCall> tool_calls() const;
};

// How a failed call is treated. Thrown as ModelError.
enum class Failure { transient, permanent, context_overflow, quota };

class ModelError : public Error {
 public:
  ModelError(Failure failure, std::string message, bool billed)
      : Error(failure == Failure::transient ? Code::unavailable : Code::bad_gateway,
              std::move(message)),
        failure_(failure),
        billed_(billed) {}
  Failure failure() const { return failure_; }
  bool maybe_billed() const { return billed_; }

 private:
  Failure failure_;
  bool billed_;
};

struct Delta {
  enum class Type { text, reasoning } type;
  std::string_view text;
};

class ModelClient {
 public:
  virtual ~ModelClient() = default;
  // Answers are capped: 4 MiB of text, reasoning and arguments; 128 tool calls (`the answer makes
  // more tool calls than any model makes in one call`). on_delta may be empty.
  virtual Answer complete(const Prompt& prompt, const std::function<void(const Delta&)>& on_delta,
                          std::stop_token stop) = 0;
};

struct Price {  // USD per million tokens
  double input = 0, output = 0, cache_read = 0, cache_write = 0;
};
int64_t cost_micro_usd(const Usage& usage, const Price& price);

// A model ready to be called.
struct Model {
  std::shared_ptr<ModelClient> client;
  std::string provider, name, id;
  int64_t context_window = 128'000;
  Price price;
};

}  // namespace umpteenth::models
