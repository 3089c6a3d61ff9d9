#include "broker/dns/lookup.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/crypto.h"

namespace umpteenth::broker::dns {
namespace {

constexpr size_t kMostByTcp = 16'384;

uint16_t random_id() {
  const std::string two = crypto::random_bytes(2);
  uint16_t id = 0;
  std::memcpy(&id, two.data(), 2);
  return id;
}

bool later() { return errno == EAGAIN || errno == EINTR || errno == EINPROGRESS; }

}  // namespace

Lookup::Lookup(Question question, std::vector<sockaddr_in> upstreams, Timing timing,
               Clock::time_point now)
    : question_(std::move(question)),
      upstreams_(std::move(upstreams)),
      timing_(timing),
      begun_(now) {
  --at_;
  next(now);
}

Lookup::Clock::time_point Lookup::deadline() const {
  return std::min(asked_ + timing_.each, begun_ + timing_.all);
}

// Every question has a socket, a port and a number of its own, so that nobody else can answer.
void Lookup::next(Clock::time_point now) {
  asked_ = now;
  tcp_ = false;
  for (++at_; at_ < upstreams_.size(); ++at_)
    if (ask_by_udp()) return;
  fd_.reset();
  events_ = 0;
}

bool Lookup::ask_by_udp() {
  const sockaddr_in& to = upstreams_[at_];
  fd_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_ || ::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return false;
  id_ = random_id();
  const std::string text = query_text(id_, question_);
  events_ = POLLIN;
  return ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

bool Lookup::ask_by_tcp() {
  const sockaddr_in& to = upstreams_[at_];
  tcp_ = true;
  fd_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_ ||
      (::connect(fd_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && !later()))
    return false;
  id_ = random_id();
  const std::string text = query_text(id_, question_);
  out_.clear();
  out_ += static_cast<char>(text.size() >> 8);
  out_ += static_cast<char>(text.size());
  out_ += text;
  in_.clear();
  events_ = POLLOUT;
  return true;
}

// Whether it is the answer to what was asked.
bool Lookup::take(std::string_view message) {
  auto answer = parse_answer(message);
  if (!answer || answer->id != id_ || answer->question.type != question_.type ||
      answer->question.name() != question_.name())
    return false;
  answer_ = std::move(answer);
  return true;
}

bool Lookup::step(Clock::time_point now) {
  if (now >= begun_ + timing_.all || at_ >= upstreams_.size()) return true;
  if (tcp_) {
    if (!step_tcp()) next(now);
  } else {
    std::array<char, 4096> bytes;
    const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (n >= 0 && take({bytes.data(), static_cast<size_t>(n)}) && answer_->truncated) {
      answer_.reset();
      asked_ = now;
      if (!ask_by_tcp()) next(now);
    } else if (n < 0 && !later()) {
      next(now);  // nobody listens there
    }
  }
  if (!answer_ && at_ < upstreams_.size() && now >= asked_ + timing_.each) next(now);
  return answer_.has_value() || at_ >= upstreams_.size();
}

bool Lookup::step_tcp() {
  if (!out_.empty()) {
    const ssize_t n = ::send(fd_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (n < 0) return later();
    out_.erase(0, static_cast<size_t>(n));
    if (out_.empty()) events_ = POLLIN;
    return true;
  }
  std::array<char, 4096> bytes;
  const ssize_t n = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
  if (n < 0) return later();
  if (n == 0) return false;
  in_.append(bytes.data(), static_cast<size_t>(n));
  if (in_.size() < 2) return true;
  const size_t length =
      static_cast<size_t>(static_cast<uint8_t>(in_[0])) * 256 + static_cast<uint8_t>(in_[1]);
  if (length > kMostByTcp) return false;
  if (in_.size() < 2 + length) return true;
  return take(std::string_view(in_).substr(2, length)) && !answer_->truncated;
}

}  // namespace umpteenth::broker::dns
