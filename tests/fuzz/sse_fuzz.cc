// models: a model's event stream, cut anywhere.
#include "models/sse.h"

#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

namespace {

std::pair<std::string, bool> read(std::string_view bytes, size_t step) {
  std::string events;
  models::SseParser parser(4096);
  const auto note = [&](const models::SseEvent& event) {
    events += event.event + "\x01" + event.data + "\x02";
  };
  const bool whole = fuzz::accepted([&] {
    for (size_t at = 0; at < bytes.size(); at += step) parser.feed(bytes.substr(at, step), note);
    parser.finish(note);
  });
  return {events, whole};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  const auto whole = read(bytes, size + 1), slowly = read(bytes, 1);
  if (whole.second && slowly.second)
    fuzz::require(whole == slowly, "events do not depend on how they arrive");
  return 0;
}
