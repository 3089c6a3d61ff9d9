// What a call's body may be, and how its answer goes out without piling up in memory.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/http/message.h"
#include "base/json.h"
#include "runs/live_run.h"

namespace umpteenth::broker {

// The body as a JSON object. Error(bad_request); Error(invalid) where it holds so many values that
// reading it would take many times its size in memory.
json::Value parse_body(std::string_view body);

// Error(invalid, "<name> must be a string") and the like.
const std::string& required_string(const json::Value& body, std::string_view name);

http::Response no_content();
// A large body keeps its run's turn until it is sent, so that slow readers cannot collect answers.
http::Response answer(runs::LiveRun::Turn turn, std::string body);

// Threads that write answers too large to be held whole; joined with the object.
class Writers {
 public:
  ~Writers();
  http::Response start(std::function<void(http::Stream& stream)> write);

 private:
  struct Writer {
    std::jthread thread;
    std::shared_ptr<http::Stream> stream;
    std::shared_ptr<std::atomic<bool>> done;
  };
  std::mutex mutex_;
  std::vector<Writer> writers_;
};

}  // namespace umpteenth::broker
