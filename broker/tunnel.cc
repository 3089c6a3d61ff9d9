// A session's tunnel: bytes both ways, unaltered, never more in memory than one read that the other
// side has not taken.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "broker/client_hello.h"
#include "broker/session.h"

namespace umpteenth::broker {
namespace {

constexpr int kReadsAtOnce = 4;  // then the others get their turn

bool would_block() { return errno == EAGAIN || errno == EINTR; }

bool is_ipv4_literal(const std::string& host) {
  const auto address = net::parse_address(host);
  return address && address->is_v4();
}

}  // namespace

bool Session::begin_relay() {
  phase_ = Phase::relaying;
  clear_deadline();
  addresses_ = {};
  const std::string early = std::exchange(in_, {});
  if (plain_http_) {
    set_deadline(core_.options.answer_timeout);
    name_checked_ = true;
    send_upwards(std::exchange(forward_, {}));
  } else {
    // A literal has no name that TLS could repeat.
    name_checked_ = is_ipv4_literal(host_);
    down_.pending += socks_ ? socks5::request_reply(socks5::Reply::granted)
                            : "HTTP/1.1 200 Connection established\r\n\r\n";
  }
  if (!early.empty() && !accept_upwards(early)) return false;
  return relay();
}

void Session::send_upwards(std::string_view bytes) { up_.pending.append(bytes); }

bool Session::relay() {
  if (!pump(client_.get(), server_.get(), up_, true)) return false;
  if (phase_ == Phase::closing) return true;
  if (!pump(server_.get(), client_.get(), down_, false)) return false;
  if (phase_ == Phase::closing) return true;
  if (down_.finished && (plain_http_ || up_.finished)) return false;
  return watch_both();
}

bool Session::pump(int from, int to, Pipe& pipe, bool upwards) {
  if (!flush(to, pipe)) return false;
  for (int i = 0; i < kReadsAtOnce && pipe.pending.empty() && !pipe.ended; ++i) {
    // What follows the one request on its connection goes nowhere.
    if (upwards && plain_http_ && body_.done()) break;
    const ssize_t n = recv(from, core_.scratch.data(), core_.scratch.size(), 0);
    if (n < 0 && would_block()) break;
    if (n < 0) return false;
    if (n == 0) {
      pipe.ended = true;
      if (upwards && !name_checked_ && !in_.empty()) return false;
      if (!upwards && plain_http_ && !answered_)
        return refuse_quietly(502, "the server closed without an answer") != Go::over;
      break;
    }
    const std::string_view bytes(core_.scratch.data(), static_cast<size_t>(n));
    if (!(upwards ? accept_upwards(bytes) : accept_downwards(bytes))) return false;
    if (phase_ == Phase::closing) return true;
    if (!flush(to, pipe)) return false;
    if (name_checked_ && deadline_ != Steady::time_point::max() && (up_.finished || down_.finished))
      set_deadline(core_.options.half_open_timeout);
    if (static_cast<size_t>(n) < core_.scratch.size()) break;
  }
  if (pipe.done() && !pipe.finished) {
    pipe.finished = true;
    shutdown(to, SHUT_WR);
    if (!plain_http_) set_deadline(core_.options.half_open_timeout);
  }
  return true;
}

bool Session::flush(int to, Pipe& pipe) {
  size_t sent = 0;
  while (sent < pipe.pending.size()) {
    const ssize_t n =
        send(to, pipe.pending.data() + sent, pipe.pending.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return false;
    if (n < 0) break;
    sent += static_cast<size_t>(n);
  }
  if (sent == pipe.pending.size())
    std::string().swap(pipe.pending);  // an idle tunnel holds no memory
  else
    pipe.pending.erase(0, sent);
  return true;
}

bool Session::accept_upwards(std::string_view bytes) {
  if (plain_http_) {
    const auto own = body_.take(bytes);
    if (!own) return false;
    if (!answered_) set_deadline(core_.options.answer_timeout);
    send_upwards(bytes.substr(0, *own));
    return true;
  }
  if (name_checked_) {
    send_upwards(bytes);
    return true;
  }
  in_.append(bytes);
  return check_hello();
}

// TLS must name the host that was asked for; other protocols pass.
bool Session::check_hello() {
  const ClientHello hello = parse_client_hello(in_);
  if (hello.state == ClientHello::State::need_more) {
    if (deadline_ == Steady::time_point::max()) set_deadline(core_.options.hello_timeout);
    return true;
  }
  std::string why;
  std::string_view name = hello.server_name;
  if (name.ends_with('.')) name.remove_suffix(1);
  if (hello.state == ClientHello::State::bad)
    why = "the TLS ClientHello is malformed or too large";
  else if (hello.state == ClientHello::State::complete && name.empty())
    why = "the TLS client names no server";
  else if (hello.state == ClientHello::State::complete && name != host_)
    why = "the TLS client asked for " + log::clip(std::string(name)) + ", not for " + host_;
  if (!why.empty()) {
    core_.record_refusal(run_uid_, host_, port_, why);
    return false;
  }
  name_checked_ = true;
  if (!up_.finished && !down_.finished) clear_deadline();
  send_upwards(std::exchange(in_, {}));
  return true;
}

bool Session::accept_downwards(std::string_view bytes) {
  if (!plain_http_ || answered_) {
    down_.pending.append(bytes);
    return true;
  }
  forward_.append(bytes);
  for (;;) {
    const AnswerHead head = parse_answer_head(forward_);
    if (head.state == AnswerHead::State::bad)
      return refuse_quietly(502, "the server's answer is no HTTP/1.1") != Go::over;
    if (head.state == AnswerHead::State::need_more) return true;
    down_.pending += head.forward;
    forward_.erase(0, head.size);
    if (head.interim) continue;
    answered_ = true;
    clear_deadline();
    down_.pending += std::exchange(forward_, {});
    return true;
  }
}

bool Session::watch_both() {
  const bool body_sent = plain_http_ && body_.done();
  const bool read_client = !up_.ended && up_.pending.empty() && !body_sent;
  const bool read_server = !down_.ended && down_.pending.empty();
  const uint32_t client = (read_client ? EPOLLIN : 0U) | (down_.pending.empty() ? 0U : EPOLLOUT);
  const uint32_t server = (read_server ? EPOLLIN : 0U) | (up_.pending.empty() ? 0U : EPOLLOUT);
  return core_.watch(client_.get(), id_ << 1, client, client_events_) &&
         core_.watch(server_.get(), id_ << 1 | 1, server, server_events_);
}

bool Session::drain_client() {
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const ssize_t n = recv(client_.get(), core_.scratch.data(), core_.scratch.size(), 0);
    if (n < 0 && would_block()) return true;
    if (n <= 0) return false;
  }
  return true;
}

}  // namespace umpteenth::broker
