// Server-sent events, parsed as bytes come. Bounded: a line or event over the limit is an error.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace umpteenth::models {

struct SseEvent {
  std::string event;  // "" = message
  std::string data;   // the data lines, joined by newlines
};

class SseParser {
 public:
  explicit SseParser(size_t max_event_bytes) : max_(max_event_bytes) {}
  // Calls on_event for each event that `bytes` completes; events without data are left out.
  // Error(too_large) beyond the limit.
  void feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event);
  // The stream ended: an event that only its empty line lacks is still given.
  void finish(const std::function<void(const SseEvent&)>& on_event);

 private:
  void end_line(const std::function<void(const SseEvent&)>& on_event);
  void dispatch(const std::function<void(const SseEvent&)>& on_event);

  size_t max_;
  std::string line_;
  SseEvent event_;
  bool has_data_ = false, after_cr_ = false, first_line_ = true;
};

}  // namespace umpteenth::models
