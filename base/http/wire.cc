#include "base/http/wire.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/handle.h"

namespace umpteenth::http {
namespace {

using Steady = std::chrono::steady_clock;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Deadline deadline_in(std::chrono::milliseconds timeout) {
  // An hour-long stream is far below this, and now() + max() would overflow.
  return Steady::now() + std::min<std::chrono::milliseconds>(timeout, std::chrono::hours(24 * 365));
}

Wire::Wire() : cancel_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!cancel_) throw errno_error(Code::internal, "make an eventfd");
}

void Wire::wait_for(short events, Deadline deadline, const char* attempted) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Steady::now());
    std::array<pollfd, 2> polled{{{socket_.get(), events, 0}, {cancel_.get(), POLLIN, 0}}};
    const auto wait = std::clamp<int64_t>(left.count(), 0, 3'600'000);
    const int ready = poll(polled.data(), polled.size(), static_cast<int>(wait));
    if (ready < 0 && errno != EINTR) throw errno_error(Code::internal, attempted);
    if (ready > 0 && polled[1].revents != 0)
      throw Error(Code::unavailable, std::string(attempted) + ": cancelled");
    if (ready > 0 && polled[0].revents != 0) return;
    if (left.count() <= 0) throw Error(Code::timeout, std::string(attempted) + ": timed out");
  }
}

void Wire::connect_to(const ::sockaddr* address, unsigned size, Deadline deadline) {
  socket_.reset(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) throw errno_error(Code::unavailable, "connect");
  if (::connect(socket_.get(), address, size) != 0) {
    // A Unix socket whose backlog is full says EAGAIN and cannot be waited for.
    if (errno != EINPROGRESS) throw errno_error(Code::unavailable, "connect");
    wait_for(POLLOUT, deadline, "connect");
    socklen_t length = sizeof errno;
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &errno, &length);
    if (errno != 0) throw errno_error(Code::unavailable, "connect");
  }
  const int on = 1;
  if (address->sa_family != AF_UNIX)
    setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void Wire::connect(const ClientTarget& target, Deadline deadline) {
  if (!target.unix_path.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (target.unix_path.size() >= sizeof address.sun_path)
      throw Error(Code::invalid, "the socket's path is longer than 107 bytes");
    std::copy(target.unix_path.begin(), target.unix_path.end(), address.sun_path);
    connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address, deadline);
    return;
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  Handle<addrinfo, freeaddrinfo> found;
  const int failure =
      getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, out(found));
  if (failure != 0)
    throw Error(Code::unavailable, "resolve " + target.host + ": " + gai_strerror(failure));
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    try {
      return connect_to(at->ai_addr, at->ai_addrlen, deadline);
    } catch (const Error&) {  // the next address may work; the last one's failure is the answer
      if (at->ai_next == nullptr || cancelled() || Steady::now() >= deadline) throw;
    }
  }
}

size_t Wire::read(char* into, size_t max, Deadline deadline) {
  for (;;) {
    if (cancelled()) throw Error(Code::unavailable, "read: cancelled");
    const ssize_t n = recv(socket_.get(), into, max, 0);
    if (n >= 0) return static_cast<size_t>(n);
    if (!would_block()) throw errno_error(Code::unavailable, "read");
    wait_for(POLLIN, deadline, "read");
  }
}

void Wire::write(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    if (cancelled()) throw Error(Code::unavailable, "write: cancelled");
    const ssize_t n = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0)
      bytes.remove_prefix(static_cast<size_t>(n));
    else if (would_block())
      wait_for(POLLOUT, deadline, "write");
    else
      throw errno_error(Code::unavailable, "write");
  }
}

void Wire::shutdown_write() { ::shutdown(socket_.get(), SHUT_WR); }

void Wire::cancel() { eventfd_write(cancel_.get(), 1); }

bool Wire::cancelled() const {
  pollfd polled{cancel_.get(), POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

bool Wire::quiet() const {
  pollfd polled{socket_.get(), POLLIN | POLLRDHUP, 0};
  return poll(&polled, 1, 0) == 0;
}

}  // namespace umpteenth::http
