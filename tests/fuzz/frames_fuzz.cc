// engine: the streams of a command in a sandbox; no byte is invented or lost by how they arrive.
#include "engine/frames.h"

#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

namespace {

std::pair<std::string, bool> read(std::string_view bytes, size_t step) {
  std::string out;
  engine::FrameReader reader([&](engine::Output stream, std::string_view text) {
    for (const char c : text) (out += static_cast<char>('0' + static_cast<int>(stream))) += c;
  });
  const bool whole = fuzz::accepted([&] {
    for (size_t at = 0; at < bytes.size(); at += step) reader.feed(bytes.substr(at, step));
  });
  return {out, whole};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  fuzz::require(read(bytes, size + 1) == read(bytes, 3), "frames do not depend on how they arrive");
  return 0;
}
