// A server on 127.0.0.1 that answers each connection's one request with literal bytes, as slowly
// and as brokenly as a test wants.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace umpteenth::support {

class LoopbackServer {
 public:
  class Connection {
   public:
    Connection(int fd, std::string request) : fd_(fd), request_(std::move(request)) {}
    const std::string& request() const { return request_; }  // head and body
    bool send(std::string_view bytes);                       // false once the peer is gone
    bool wait_for_hang_up();                                 // at most 20 s

   private:
    int fd_;
    std::string request_;
  };

  // serve is called on the server's thread, one connection after the other; then it is closed.
  explicit LoopbackServer(std::function<void(Connection&)> serve);
  ~LoopbackServer();
  int port() const { return port_; }
  std::string url(const std::string& path) const;
  std::vector<std::string> requests() const;

 private:
  void run();

  std::function<void(Connection&)> serve_;
  Fd listener_;
  int port_ = 0;
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::jthread thread_;
};

}  // namespace umpteenth::support
