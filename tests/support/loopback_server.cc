#include "tests/support/loopback_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/error.h"

namespace umpteenth::support {
namespace {

bool readable(int fd, int timeout_ms) {
  pollfd wait{fd, POLLIN, 0};
  return poll(&wait, 1, timeout_ms) > 0;
}

size_t content_length(const std::string& head) {
  const size_t at = head.find("Content-Length: ");
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
}

std::string read_request(int fd) {
  std::string text;
  char buffer[16'384];
  for (size_t head = std::string::npos;;) {
    if (head == std::string::npos) head = text.find("\r\n\r\n");
    if (head != std::string::npos && text.size() >= head + 4 + content_length(text)) return text;
    if (!readable(fd, 20'000)) return text;
    const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

bool LoopbackServer::Connection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool LoopbackServer::Connection::wait_for_hang_up() {
  char byte;
  return readable(fd_, 20'000) && recv(fd_, &byte, 1, 0) <= 0;
}

LoopbackServer::LoopbackServer(std::function<void(Connection&)> serve)
    : serve_(std::move(serve)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_.get(), generic, size) != 0 || listen(listener_.get(), 16) != 0 ||
      getsockname(listener_.get(), generic, &size) != 0)
    throw errno_error(Code::internal, "listening on the loopback");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] { run(); });
}

LoopbackServer::~LoopbackServer() {
  ending_ = true;
  shutdown(listener_.get(), SHUT_RDWR);  // accept returns
}

std::string LoopbackServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<std::string> LoopbackServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void LoopbackServer::run() {
  while (!ending_) {
    const Fd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (peer.get() < 0) continue;
    const int on = 1;
    setsockopt(peer.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection connection(peer.get(), read_request(peer.get()));
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(connection.request());
    }
    serve_(connection);
  }
}

}  // namespace umpteenth::support
