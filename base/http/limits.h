// Every limit of our HTTP servers in one place. Sizes in bytes.
#pragma once

#include <chrono>
#include <cstddef>

namespace umpteenth::http {

struct Limits {
  std::chrono::milliseconds tls_handshake{5'000};
  std::chrono::milliseconds header{10'000};  // first byte to the end of the head
  std::chrono::milliseconds body{60'000};
  std::chrono::milliseconds write{60'000};  // without progress
  std::chrono::milliseconds idle{60'000};   // between requests
  size_t header_bytes = 16U << 10;
  size_t header_count = 100;
  size_t body_bytes = 3U << 20;  // where admit() names no other
  size_t connections = 1024;
  size_t connections_per_peer = 256;
  // Bodies of one peer in memory at once, those still coming among them; beyond: 503, Retry-After.
  size_t bodies_per_peer = 256U << 20;
  size_t handler_threads = 8;
  // Forward-proxy requests (CONNECT, absolute-form targets) reach admit() with an empty path
  // instead of a 400.
  bool proxy_targets = false;
  size_t handler_queue = 512;  // waiting requests beyond answer 503 with Retry-After
};

inline Limits api_limits() { return {}; }

// 8081 faces sandboxes.
inline Limits broker_limits() {
  Limits l;
  l.header_bytes = 8U << 10;
  l.header_count = 64;
  l.body_bytes = 8U << 20;
  l.connections_per_peer = 320;
  l.bodies_per_peer = 64U << 20;
  l.handler_threads = 16;
  l.proxy_targets = true;
  return l;
}

}  // namespace umpteenth::http
