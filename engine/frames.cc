#include "engine/frames.h"

#include <algorithm>

#include "base/error.h"

namespace umpteenth::engine {

void FrameReader::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (left_ == 0) {
      header_[have_++] = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      if (have_ == header_.size()) begin_frame();
      continue;
    }
    const std::string_view part = bytes.substr(0, std::min<size_t>(left_, bytes.size()));
    bytes.remove_prefix(part.size());
    left_ -= static_cast<uint32_t>(part.size());
    if (sink_) sink_(stream_, part);
  }
}

void FrameReader::begin_frame() {
  have_ = 0;
  if (header_[0] > 3 || header_[1] != 0 || header_[2] != 0 || header_[3] != 0)
    throw Error(Code::bad_gateway, "the container engine's stream is not in frames");
  // 0 is stdin echoed back, 3 an error text of the engine.
  stream_ = header_[0] < 2 ? Output::out : Output::err;
  left_ = 0;
  for (size_t i = 4; i < 8; ++i) left_ = left_ << 8U | header_[i];
}

}  // namespace umpteenth::engine
