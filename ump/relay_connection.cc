#include "ump/relay_connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int64_t kDialMs = 10000;
constexpr int64_t kLingerMs = 30000;  // for a client that does not read, after the target is done

bool would_block() { return errno == EAGAIN || errno == EINTR; }

struct Side {
  const uint8_t* address;
  uint16_t port;  // network order
};

// IPv4 also where a dual-stack socket wraps it.
Side side_of(const sockaddr_storage& from, bool as_v4) {
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&from);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&from);
  if (from.ss_family == AF_INET)
    return {reinterpret_cast<const uint8_t*>(&v4->sin_addr), v4->sin_port};
  return {v6->sin6_addr.s6_addr + (as_v4 ? 12 : 0), v6->sin6_port};
}

bool is_v4(const sockaddr_storage& from) {
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&from);
  return from.ss_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
}

}  // namespace

void Pipe::reset() {
  begin_ = end_ = 0;
  ended_ = finished_ = false;
}

bool Pipe::put(const void* bytes, size_t n) {
  if (end_ + n > sizeof bytes_) return false;
  memcpy(bytes_ + end_, bytes, n);
  end_ += n;
  return true;
}

bool Pipe::read_from(int fd) {
  const ssize_t n = read(fd, bytes_ + end_, sizeof bytes_ - end_);
  if (n < 0) return would_block();
  if (n == 0) ended_ = true;
  end_ += static_cast<size_t>(n);
  return true;
}

bool Pipe::write_to(int fd) {
  const ssize_t n = send(fd, bytes_ + begin_, end_ - begin_, MSG_NOSIGNAL);
  if (n < 0) return would_block();
  begin_ += static_cast<size_t>(n);
  if (begin_ == end_) begin_ = end_ = 0;
  return true;
}

bool Pipe::move(int from, int to) {
  if (wants_to_read() && !read_from(from)) return false;
  if (wants_to_write() && !write_to(to)) return false;
  if (ended_ && !wants_to_write()) finished_ = true;
  return true;
}

bool RelayConnection::is_from(const sockaddr_storage& peer) const {
  const bool v4 = is_v4(peer);
  if (v4 != is_v4(peer_)) return false;
  return memcmp(side_of(peer, v4).address, side_of(peer_, v4).address, v4 ? 4 : 16) == 0;
}

void RelayConnection::open(int epoll, uint64_t id, int client, const sockaddr_storage& peer,
                           const char* path) {
  epoll_ = epoll;
  id_ = id;
  client_ = client;
  in_use_ = true;
  dialled_ = half_closed_ = false;
  client_events_ = target_events_ = 0;
  path_ = path;
  peer_ = peer;
  deadline_ = monotonic_ms() + kDialMs;
  up_.reset();
  down_.reset();
}

RelayConnection::Dial RelayConnection::dial() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path_, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Dial::failed;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    target_ = fd;
    dialled_ = true;
    return Dial::done;
  }
  const bool full = errno == EAGAIN;  // the broker's backlog
  if (!full) complain_errno("relay: cannot reach %s", path_);
  close(fd);
  return full ? Dial::again : Dial::failed;
}

bool RelayConnection::greet() {
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  if (getsockname(client_, reinterpret_cast<sockaddr*>(&local), &length) != 0) return false;
  const bool v4 = is_v4(peer_) && is_v4(local);
  const size_t size = v4 ? 4 : 16;
  const Side from = side_of(peer_, v4), to = side_of(local, v4);
  uint8_t header[52] = {0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A,
                        0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, static_cast<uint8_t>(v4 ? 0x11 : 0x21)};
  header[15] = static_cast<uint8_t>(2 * size + 4);
  uint8_t* at = header + 16;
  memcpy(at, from.address, size);
  memcpy(at + size, to.address, size);
  memcpy(at + 2 * size, &from.port, 2);
  memcpy(at + 2 * size + 2, &to.port, 2);
  return up_.put(header, 16 + 2 * size + 4);
}

// A descriptor that nothing is wanted of leaves epoll, which would report its hang-up endlessly.
bool RelayConnection::watch(int fd, uint64_t id, uint32_t wanted, uint32_t* have) {
  if (wanted == *have) return true;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = id;
  const int how = *have == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  *have = wanted;
  return epoll_ctl(epoll_, how, fd, &event) == 0;
}

void RelayConnection::step(int64_t now) {
  if (deadline_ != 0 && now >= deadline_) return close_both();
  if (!dialled_) {
    const Dial result = dial();
    if (result == Dial::again) return;
    if (result == Dial::failed || !greet()) return close_both();
    deadline_ = 0;
  }
  if (!down_.move(target_, client_)) return close_both();
  // A target that has answered may be gone before it has read everything: what it said still
  // reaches the client.
  if (!half_closed_ && !up_.move(client_, target_)) {
    if (!down_.ended() && !down_.wants_to_write()) return close_both();
    up_.reset();
    half_closed_ = true;
  }
  if (down_.done()) return close_both();
  if (up_.done() && !half_closed_) {
    shutdown(target_, SHUT_WR);
    half_closed_ = true;
  }
  if (down_.ended() && deadline_ == 0) deadline_ = now + kLingerMs;
  const bool read_client = !half_closed_ && up_.wants_to_read() && !down_.ended();
  const bool write_target = !half_closed_ && up_.wants_to_write();
  const uint32_t client = (read_client ? EPOLLIN : 0U) | (down_.wants_to_write() ? EPOLLOUT : 0U);
  const uint32_t target = (down_.wants_to_read() ? EPOLLIN : 0U) | (write_target ? EPOLLOUT : 0U);
  if (!watch(client_, id_, client, &client_events_) ||
      !watch(target_, id_ + 1, target, &target_events_))
    close_both();
}

void RelayConnection::close_both() {
  if (dialled_) close(target_);
  close(client_);
  in_use_ = dialled_ = false;
  deadline_ = 0;
}

}  // namespace umpteenth::ump
