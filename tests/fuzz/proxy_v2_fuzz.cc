// base/http: the relay's PROXY header.
#include "base/http/proxy_v2.h"

#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using State = http::ProxyHeader::State;
  const std::string_view bytes = fuzz::text_of(data, size);
  const http::ProxyHeader header = http::parse_proxy_v2(bytes);
  if (header.state == State::complete) {
    fuzz::require(header.size <= bytes.size(), "a header is part of what came");
    fuzz::require(http::parse_proxy_v2(bytes.substr(0, header.size)).state == State::complete,
                  "its size is enough");
  }
  if (header.state == State::need_more)
    fuzz::require(http::proxy_v2_missing(bytes) > 0, "something is missing");
  return 0;
}
