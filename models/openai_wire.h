// The wire form of chat completions: request, streamed answer, errors. No I/O.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "models/model_client.h"
#include "models/sse.h"

namespace umpteenth::models {

json::Value chat_request(const Prompt& prompt, bool official);

// What an error answer means. body: the API's, quoted at most in part.
ModelError chat_error(int status, std::string_view body);

// Puts an answer together from a stream's bytes. ModelError as the stream's faults deserve.
class ChatStream {
 public:
  explicit ChatStream(const std::function<void(const Delta&)>& on_delta);
  void feed(std::string_view bytes);
  // The stream ended: the answer, or ModelError(transient) where it broke off.
  Answer finish();

 private:
  struct Call {
    std::string id, name, arguments;
  };
  void take(const SseEvent& event);
  void take_delta(const json::Value& delta);
  void take_call(const json::Value& fragment);
  void take_usage(const json::Value& usage);
  std::string take_text(const json::Value& value);
  void count(size_t bytes);

  const std::function<void(const Delta&)>& on_delta_;
  SseParser parser_;
  std::string text_, reasoning_;
  std::map<int64_t, Call> calls_;  // by the API's index
  size_t bytes_ = 0;
  std::string finish_reason_;
  bool refused_ = false, done_ = false;
  Usage usage_;
};

}  // namespace umpteenth::models
