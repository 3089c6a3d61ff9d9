#include "broker/reply.h"

#include <atomic>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::broker {
namespace {

constexpr size_t kMaxValues = 250'000;
constexpr size_t kSmallAnswer = 64U << 10;

// An upper bound, without building anything: a few bytes of text make a value of some forty.
size_t count_values(std::string_view text) {
  size_t values = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == ',' || c == '[' || c == '{') {
      ++values;
    }
  }
  return values;
}

}  // namespace

json::Value parse_body(std::string_view body) {
  if (count_values(body) > kMaxValues)
    throw Error(Code::invalid, "the body holds more than 250000 values");
  json::Value value = json::parse(body);
  if (!value.is_object()) throw Error(Code::invalid, "the body must be a JSON object");
  return value;
}

const std::string& required_string(const json::Value& body, std::string_view name) {
  const json::Value& value = body.get(name);
  if (!value.is_string()) throw Error(Code::invalid, std::string(name) + " must be a string");
  return value.as_string();
}

http::Response no_content() {
  http::Response response;
  response.status = 204;
  return response;
}

http::Response answer(runs::LiveRun::Turn turn, std::string body) {
  if (body.size() <= kSmallAnswer) return http::Response::json(200, std::move(body));
  http::Response response = http::Response::json(200, "");
  response.stream = std::make_shared<http::Stream>(body.size());
  response.stream->push(std::move(body));
  response.stream->close();
  const auto held = std::make_shared<std::optional<runs::LiveRun::Turn>>(std::move(turn));
  response.stream->on_end([held] { held->reset(); });
  return response;
}

Writers::~Writers() {
  std::vector<Writer> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(writers_);
  }
  for (Writer& writer : left) writer.stream->abort();
}

http::Response Writers::start(std::function<void(http::Stream& stream)> write) {
  Writer writer;
  writer.stream = std::make_shared<http::Stream>(256U << 10);
  writer.done = std::make_shared<std::atomic<bool>>(false);
  http::Response response = http::Response::json(200, "");
  response.stream = writer.stream;
  const std::lock_guard lock(mutex_);
  std::erase_if(writers_, [](const Writer& w) { return w.done->load(); });
  writer.thread =
      std::jthread([write = std::move(write), stream = writer.stream, done = writer.done] {
        try {
          write(*stream);
          stream->close();
        } catch (const std::exception& e) {  // a thread's end: nobody above could answer
          log::warn("an answer broke off", {{"error", log::clip(e.what())}});
          stream->abort();
        }
        done->store(true);
      });
  writers_.push_back(std::move(writer));
  return response;
}

}  // namespace umpteenth::broker
