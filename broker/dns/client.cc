#include "broker/dns/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/http/proxy_v2.h"

namespace umpteenth::broker::dns {
namespace {

constexpr size_t kMostUnread = 8'192, kMostUnsent = 65'536;

bool later() { return errno == EAGAIN || errno == EINTR; }

}  // namespace

Client::Client(Fd socket, std::string endpoint, std::chrono::steady_clock::time_point now)
    : socket_(std::move(socket)), endpoint_(std::move(endpoint)), heard_(now) {}

// Nothing is read while answers wait to be taken.
short Client::events() const { return out_.empty() ? POLLIN : POLLOUT; }

bool Client::take_header() {
  if (!endpoint_.empty()) return true;
  const http::ProxyHeader header = http::parse_proxy_v2(in_, true);
  if (header.state == http::ProxyHeader::State::need_more) return true;
  if (header.state == http::ProxyHeader::State::bad || !header.local) return false;
  endpoint_ = header.local->address;
  datagram_ = header.datagram;
  in_.erase(0, header.size);
  return !endpoint_.empty();
}

bool Client::read(std::chrono::steady_clock::time_point now) {
  std::array<char, 4096> bytes;
  const ssize_t n = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (n < 0) return later();
  if (n == 0 || in_.size() + static_cast<size_t>(n) > kMostUnread) return false;
  heard_ = now;
  in_.append(bytes.data(), static_cast<size_t>(n));
  return take_header();
}

bool Client::write() {
  const ssize_t n = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
  if (n < 0) return later();
  out_.erase(0, static_cast<size_t>(n));
  return true;
}

std::optional<std::string> Client::next_question() {
  if (endpoint_.empty() || in_.size() < 2) return std::nullopt;
  const size_t length =
      static_cast<size_t>(static_cast<uint8_t>(in_[0])) * 256 + static_cast<uint8_t>(in_[1]);
  if (in_.size() < 2 + length) return std::nullopt;
  std::string question = in_.substr(2, length);
  in_.erase(0, 2 + length);
  return question;
}

void Client::answer(std::string_view message) {
  if (out_.size() + message.size() > kMostUnsent) return;  // it does not read
  out_ += static_cast<char>(message.size() >> 8);
  out_ += static_cast<char>(message.size());
  out_ += message;
}

}  // namespace umpteenth::broker::dns
