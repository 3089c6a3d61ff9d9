#include "models/sse.h"

#include "base/error.h"

namespace umpteenth::models {

void SseParser::feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event) {
  for (char c : bytes) {
    const bool second_of_crlf = after_cr_ && c == '\n';
    after_cr_ = c == '\r';
    if (second_of_crlf) continue;
    if (c == '\r' || c == '\n') {
      end_line(on_event);
      continue;
    }
    if (line_.size() + event_.data.size() >= max_)
      throw Error(Code::too_large,
                  "an event of the stream is larger than " + std::to_string(max_) + " bytes");
    line_ += c;
  }
}

void SseParser::finish(const std::function<void(const SseEvent&)>& on_event) {
  if (!line_.empty()) end_line(on_event);
  dispatch(on_event);
}

void SseParser::end_line(const std::function<void(const SseEvent&)>& on_event) {
  if (first_line_ && line_.starts_with("\xEF\xBB\xBF")) line_.erase(0, 3);
  first_line_ = false;
  const std::string line = std::move(line_);
  line_.clear();
  if (line.empty()) return dispatch(on_event);
  const size_t colon = line.find(':');
  const std::string field = line.substr(0, colon);
  std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
  if (value.starts_with(' ')) value.erase(0, 1);
  if (field == "event") event_.event = value;
  if (field != "data") return;
  if (has_data_) event_.data += '\n';
  event_.data += value;
  has_data_ = true;
}

void SseParser::dispatch(const std::function<void(const SseEvent&)>& on_event) {
  const SseEvent event = std::move(event_);
  const bool give = has_data_;
  event_ = {};
  has_data_ = false;
  if (give) on_event(event);
}

}  // namespace umpteenth::models
