#include "base/http/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/net/address.h"

namespace umpteenth::http {
namespace {

union AnyAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_un local;
};

Fd new_socket(int family) {
  Fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) throw errno_error(Code::unavailable, "make a socket");
  return fd;
}

Fd listen_unix(const ListenOn& where) {
  const std::string attempted = "listen on " + where.unix_path;
  AnyAddress address{};
  address.local.sun_family = AF_UNIX;
  if (where.unix_path.size() >= sizeof address.local.sun_path)
    throw Error(Code::unavailable, attempted + ": the path is longer than 107 bytes");
  std::copy(where.unix_path.begin(), where.unix_path.end(), address.local.sun_path);

  struct stat found {};
  if (lstat(where.unix_path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) {
    const Fd probe = new_socket(AF_UNIX);
    if (connect(probe.get(), &address.any, sizeof address.local) == 0 || errno == EAGAIN)
      throw Error(Code::unavailable, attempted + ": another process listens there");
    unlink(where.unix_path.c_str());
  }
  Fd fd = new_socket(AF_UNIX);
  // Linux gives the file this mode when it is made, so it is never wider, not for a moment.
  fchmod(fd.get(), static_cast<mode_t>(where.unix_mode));
  if (bind(fd.get(), &address.any, sizeof address.local) != 0 ||
      chmod(where.unix_path.c_str(), static_cast<mode_t>(where.unix_mode)) != 0)
    throw errno_error(Code::unavailable, attempted);
  return fd;
}

Fd listen_tcp(const ListenOn& where) {
  const bool v6 = where.host.find(':') != std::string::npos;
  const std::string attempted =
      "listen on " + (v6 ? "[" + where.host + "]" : where.host) + ":" + std::to_string(where.port);
  const auto host = net::parse_address(where.host);
  if (!host) throw Error(Code::unavailable, attempted + ": not a literal IP address");
  AnyAddress address{};
  socklen_t size = sizeof address.v4;
  if (v6) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(static_cast<uint16_t>(where.port));
    std::copy(host->bytes.begin(), host->bytes.end(), address.v6.sin6_addr.s6_addr);
    size = sizeof address.v6;
  } else {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(static_cast<uint16_t>(where.port));
    std::copy(host->bytes.begin() + 12, host->bytes.end(),
              reinterpret_cast<uint8_t*>(&address.v4.sin_addr));
  }
  Fd fd = new_socket(address.any.sa_family);
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), &address.any, size) != 0) throw errno_error(Code::unavailable, attempted);
  return fd;
}

Endpoint endpoint_of(const AnyAddress& address) {
  net::Address ip;
  if (address.any.sa_family == AF_INET) {
    ip.bytes[10] = ip.bytes[11] = 0xff;
    const auto* octets = reinterpret_cast<const uint8_t*>(&address.v4.sin_addr);
    std::copy(octets, octets + 4, ip.bytes.begin() + 12);
    return {net::format(ip), ntohs(address.v4.sin_port)};
  }
  if (address.any.sa_family != AF_INET6) return {};
  std::copy(address.v6.sin6_addr.s6_addr, address.v6.sin6_addr.s6_addr + 16, ip.bytes.begin());
  return {net::format(ip), ntohs(address.v6.sin6_port)};
}

Endpoint local_end(int socket) {
  AnyAddress address{};
  socklen_t size = sizeof address;
  return getsockname(socket, &address.any, &size) == 0 ? endpoint_of(address) : Endpoint{};
}

}  // namespace

Fd listen_on(const ListenOn& where) {
  Fd fd = where.unix_path.empty() ? listen_tcp(where) : listen_unix(where);
  if (listen(fd.get(), SOMAXCONN) != 0) throw errno_error(Code::unavailable, "listen");
  return fd;
}

int bound_port(int listener) { return local_end(listener).port; }

std::optional<Accepted> accept_from(int listener, bool& exhausted) {
  AnyAddress address{};
  socklen_t size = sizeof address;
  int fd = -1;
  do {
    fd = accept4(listener, &address.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
  exhausted = fd < 0 && errno != EAGAIN && errno != EWOULDBLOCK;
  if (fd < 0) return std::nullopt;
  Accepted accepted{Fd(fd), endpoint_of(address), local_end(fd)};
  const int on = 1;
  if (!accepted.peer.address.empty()) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return accepted;
}

}  // namespace umpteenth::http
