// The server name in the first bytes of a TLS client. Pure; looks at untrusted bytes, changes none.
#pragma once

#include <string>
#include <string_view>

namespace umpteenth::broker {

inline constexpr size_t kMaxClientHello = 16U << 10;

struct ClientHello {
  // not_tls: whatever it is, it is no TLS handshake. bad: a handshake that is broken, longer than
  // kMaxClientHello, or not begun by a ClientHello.
  enum class State { need_more, not_tls, bad, complete };
  State state = State::need_more;
  std::string server_name;  // lower case, "" where there is none
};

// bytes: everything the client sent so far. The message may be spread over any number of records.
ClientHello parse_client_hello(std::string_view bytes);

}  // namespace umpteenth::broker
