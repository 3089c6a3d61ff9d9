#include "base/http/proxy_v2.h"

#include <algorithm>

#include "base/net/address.h"

namespace umpteenth::http {
namespace {

constexpr std::string_view kSignature("\r\n\r\n\0\r\nQUIT\n", 12);
constexpr size_t kFixed = 16;
constexpr size_t kMaxRest = 512;

uint8_t byte(std::string_view s, size_t at) { return static_cast<uint8_t>(s[at]); }
int port(std::string_view s, size_t at) { return byte(s, at) << 8 | byte(s, at + 1); }

Endpoint endpoint(std::string_view address, int port) {
  net::Address parsed;
  if (address.size() == 4) parsed.bytes[10] = parsed.bytes[11] = 0xff;
  std::copy(address.begin(), address.end(), parsed.bytes.end() - static_cast<long>(address.size()));
  return {net::format(parsed), port};
}

}  // namespace

ProxyHeader parse_proxy_v2(std::string_view bytes, bool datagrams_too) {
  using State = ProxyHeader::State;
  const std::string_view begin = bytes.substr(0, kSignature.size());
  if (begin != kSignature.substr(0, begin.size())) return {.state = State::bad};
  if (bytes.size() < kFixed) return {};
  const int version = byte(bytes, 12) >> 4;
  const int command = byte(bytes, 12) & 15;
  const int family = byte(bytes, 13) >> 4;
  const int transport = byte(bytes, 13) & 15;
  const auto rest = static_cast<size_t>(port(bytes, 14));
  if (version != 2 || command > 1 || rest > kMaxRest) return {.state = State::bad};

  const bool with_addresses = command == 1 && family != 0;
  const size_t width = family == 1 ? 4 : 16;
  const bool datagram = datagrams_too && transport == 2;
  if (with_addresses && (family > 2 || (transport != 1 && !datagram) || rest < 2 * width + 4))
    return {.state = State::bad};
  if (bytes.size() < kFixed + rest) return {};
  ProxyHeader header{.state = State::complete, .size = kFixed + rest, .datagram = datagram};
  if (with_addresses) {
    const std::string_view block = bytes.substr(kFixed, rest);
    header.peer = endpoint(block.substr(0, width), port(block, 2 * width));
    header.local = endpoint(block.substr(width, width), port(block, 2 * width + 2));
  }
  return header;
}

size_t proxy_v2_missing(std::string_view bytes) {
  if (bytes.size() < kFixed) return kFixed - bytes.size();
  return kFixed + static_cast<size_t>(port(bytes, 14)) - bytes.size();
}

}  // namespace umpteenth::http
