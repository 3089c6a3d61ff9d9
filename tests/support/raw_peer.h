// A client that sends literal bytes: for what no real HTTP client would do.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/http/wire.h"

namespace umpteenth::test {

class RawPeer {
 public:
  explicit RawPeer(int port);
  explicit RawPeer(const std::string& unix_path);

  void send(std::string_view bytes);
  // What came, up to and with the marker; Error(timeout) after five seconds.
  std::string read_until(std::string_view marker);
  std::string read_response();  // one response with Content-Length, or a bodiless one
  std::string read_all();       // to the end of the connection
  bool ended();                 // the peer closes or resets within five seconds
  void hang_up() { wire_.reset(); }
  http::Wire& wire() { return *wire_; }

 private:
  bool more();

  std::unique_ptr<http::Wire> wire_ = std::make_unique<http::Wire>();
  std::string came_;
};

// Polls until the condition holds; false after the limit.
template <typename F>
bool becomes(F condition, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace umpteenth::test
