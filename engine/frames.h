// The engine's multiplexed streams: frames of 8 bytes (stream, three zeros, length) and payload.
// Payload is passed on as it comes, so nothing but a header is ever held.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "engine/engine.h"

namespace umpteenth::engine {

class FrameReader {
 public:
  explicit FrameReader(OutputSink sink) : sink_(std::move(sink)) {}
  // Error(bad_gateway) where the bytes are not frames; the reader is of no use afterwards.
  void feed(std::string_view bytes);
  bool at_boundary() const { return have_ == 0 && left_ == 0; }

 private:
  void begin_frame();

  OutputSink sink_;
  std::array<unsigned char, 8> header_{};
  size_t have_ = 0;    // bytes of the header
  uint32_t left_ = 0;  // bytes of the payload still to come
  Output stream_ = Output::out;
};

}  // namespace umpteenth::engine
