// A connected socket with deadlines that another thread may cancel: what the client reads and
// writes. Reading and writing from two threads at once is fine.
#pragma once

#include <chrono>
#include <string_view>

#include "base/fd.h"
#include "base/http/client.h"

struct sockaddr;

namespace umpteenth::http {

using Deadline = std::chrono::steady_clock::time_point;
Deadline deadline_in(std::chrono::milliseconds timeout);

class Wire {
 public:
  // Connects to a target. Error(unavailable), Error(timeout).
  Wire();
  void connect(const ClientTarget& target, Deadline deadline);
  // Bytes read; 0 at the end. Error(timeout), Error(unavailable) reset or cancelled.
  size_t read(char* into, size_t max, Deadline deadline);
  void write(std::string_view bytes, Deadline deadline);
  void shutdown_write();
  void cancel();  // any thread; everything pending and later fails at once
  bool cancelled() const;
  // Nothing has come in and the peer has not closed.
  bool quiet() const;

 private:
  void wait_for(short events, Deadline deadline, const char* attempted) const;
  void connect_to(const ::sockaddr* address, unsigned size, Deadline deadline);

  Fd socket_, cancel_;
};

}  // namespace umpteenth::http
