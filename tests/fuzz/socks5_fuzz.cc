// broker: SOCKS5, each message from its first byte on.
#include "broker/socks5.h"

#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

namespace {

// A message that is complete is so with every longer input, and at the same size.
template <typename Parse>
void check(std::string_view bytes, Parse parse) {
  using broker::socks5::State;
  size_t complete = 0;
  for (size_t n = 0; n <= bytes.size(); ++n) {
    const auto message = parse(bytes.substr(0, n));
    fuzz::require(complete == 0 || message.state == State::complete, "complete stays complete");
    if (message.state != State::complete) continue;
    fuzz::require(message.size <= n && message.size > 0, "a message is part of what came");
    fuzz::require(complete == 0 || complete == message.size, "and its size does not change");
    complete = message.size;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, std::min<size_t>(size, 600));
  check(bytes, broker::socks5::parse_greeting);
  check(bytes, broker::socks5::parse_login);
  check(bytes, broker::socks5::parse_request);
  return 0;
}
