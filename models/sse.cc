#include "models/sse.h"

#include <algorithm>

#include "base/error.h"

namespace umpteenth::models {

void SseParser::feed(std::string_view bytes, const std::function<void(const SseEvent&)>& on_event) {
  while (!bytes.empty()) {
    if (after_cr_ && bytes[0] == '\n') bytes.remove_prefix(1);
    after_cr_ = false;
    const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    if (line_.size() + event_.data.size() + end > max_)
      throw Error(Code::too_large,
                  "an event of the stream is larger than " + std::to_string(max_) + " bytes");
    line_.append(bytes.substr(0, end));
    if (end == bytes.size()) return;
    after_cr_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
    end_line(on_event);
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
