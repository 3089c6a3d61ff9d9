// The header of the PROXY protocol, version 2, that the relay puts before each connection. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/http/message.h"

namespace umpteenth::http {

struct ProxyHeader {
  enum class State { need_more, bad, complete };
  State state = State::need_more;
  size_t size = 0;  // of the header, where complete
  // Absent for LOCAL (a health check of the proxy's own) and for unspecified families.
  std::optional<Endpoint> peer = std::nullopt;
  std::optional<Endpoint> local = std::nullopt;
  bool datagram = false;  // what follows came in one
};

// bytes: what came so far. Only streams over IPv4 and IPv6 are accepted, at most 512 bytes of
// addresses and TLVs; TLVs are skipped. Datagrams only where they are asked for.
ProxyHeader parse_proxy_v2(std::string_view bytes, bool datagrams_too = false);

// How many bytes of a header that is not whole yet are known to be missing.
size_t proxy_v2_missing(std::string_view bytes);

}  // namespace umpteenth::http
