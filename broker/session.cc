#include "broker/session.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/http/proxy_v2.h"
#include "base/log.h"
#include "broker/host_rules.h"

namespace umpteenth::broker {
namespace {

constexpr size_t kMaxHandshake = kMaxProxyHead + 1024;  // and a PROXY header
constexpr std::chrono::milliseconds kLinger{2'000};
constexpr std::chrono::milliseconds kOneDial{5'000};

socks5::Reply reply_for(int status) {
  switch (status) {
    case 403:
      return socks5::Reply::not_allowed;
    case 502:
    case 504:
      return socks5::Reply::unreachable;
    default:
      return socks5::Reply::failure;
  }
}

}  // namespace

Session::Session(Core& core, uint64_t id, Fd client, Origin origin)
    : core_(core), id_(id), client_(std::move(client)), origin_(std::move(origin)) {
  phase_ = origin_.proxy_v2 ? Phase::proxy_header : Phase::first_bytes;
}

Session::~Session() {
  if (!run_uid_.empty()) core_.leave(run_uid_, id_);
  if (!counted_) return;
  const auto mine = core_.per_endpoint.find(origin_.local.address);
  if (--mine->second == 0) core_.per_endpoint.erase(mine);
}

bool Session::begin() {
  set_deadline(core_.options.handshake_timeout);
  if (!origin_.proxy_v2 && !count_endpoint()) return false;
  return core_.watch(client_.get(), id_ << 1, EPOLLIN, client_events_);
}

bool Session::count_endpoint() {
  size_t& open = core_.per_endpoint[origin_.local.address];
  if (open >= core_.options.connections_per_endpoint) {
    ++core_.dropped;
    return false;
  }
  ++open;
  return counted_ = true;
}

bool Session::on_client(uint32_t events) {
  if (phase_ == Phase::relaying) return relay();
  if (phase_ == Phase::closing) return drain_client();
  if (phase_ == Phase::resolving || phase_ == Phase::dialling)
    return (events & (EPOLLHUP | EPOLLERR)) == 0;
  return read_handshake();
}

bool Session::on_server(uint32_t) {
  if (phase_ == Phase::dialling) return dialled();
  return phase_ != Phase::relaying || relay();
}

bool Session::on_time(Steady::time_point now) {
  if (now < deadline_) return true;
  if (phase_ == Phase::http_head)
    return refuse_quietly(408, "the request's head did not come in time") != Go::over;
  if (phase_ == Phase::resolving)
    return refuse_quietly(504, "the name's look-up took too long") != Go::over;
  if (phase_ == Phase::dialling) {
    dial_error_ = ETIMEDOUT;
    server_.reset();
    return dial_next();
  }
  if (phase_ == Phase::relaying && plain_http_ && !answered_ && down_.pending.empty())
    return refuse_quietly(504, "the server did not answer in time") != Go::over;
  return false;
}

bool Session::read_handshake() {
  char* into = core_.scratch.data();
  const size_t room = kMaxHandshake - std::min(kMaxHandshake, in_.size());
  if (room == 0) return false;
  const ssize_t n = recv(client_.get(), into, room, 0);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  in_.append(into, static_cast<size_t>(n));
  for (Go go = Go::on; go == Go::on;) {
    go = step();
    if (go == Go::over) return false;
  }
  return true;
}

Session::Go Session::step() {
  switch (phase_) {
    case Phase::proxy_header:
      return read_proxy_header();
    case Phase::first_bytes:
      return choose();
    case Phase::socks_greeting:
      return greet();
    case Phase::socks_login:
      return login();
    case Phase::socks_request:
      return socks_request();
    case Phase::http_head:
      return http_head();
    default:
      return Go::wait;
  }
}

Session::Go Session::read_proxy_header() {
  const http::ProxyHeader header = http::parse_proxy_v2(in_);
  if (header.state == http::ProxyHeader::State::bad) return Go::over;
  if (header.state == http::ProxyHeader::State::need_more) return Go::wait;
  if (header.peer) origin_.peer = *header.peer;
  if (header.local) origin_.local = *header.local;
  in_.erase(0, header.size);
  phase_ = Phase::first_bytes;
  return count_endpoint() ? Go::on : Go::over;
}

Session::Go Session::choose() {
  switch (first_bytes(in_)) {
    case Speaks::need_more:
      return Go::wait;
    case Speaks::broker_api:
      return hand_over();
    case Speaks::socks5:
      socks_ = true;
      phase_ = Phase::socks_greeting;
      break;
    case Speaks::proxy:
      phase_ = Phase::http_head;
      break;
  }
  set_deadline(core_.options.handshake_timeout);
  return Go::on;
}

Session::Go Session::hand_over() {
  epoll_ctl(core_.epoll.get(), EPOLL_CTL_DEL, client_.get(), nullptr);
  core_.broker.adopt(client_.release(), std::move(in_), origin_.peer, origin_.local);
  return Go::over;
}

Session::Go Session::greet() {
  const socks5::Greeting greeting = socks5::parse_greeting(in_);
  if (greeting.state == socks5::State::bad) return Go::over;
  if (greeting.state == socks5::State::need_more) return Go::wait;
  in_.erase(0, greeting.size);
  if (!greeting.offers_password) return close_after(socks5::method_reply(false));
  phase_ = Phase::socks_login;
  down_.pending += socks5::method_reply(true);
  return flush(client_.get(), down_) ? Go::on : Go::over;
}

Session::Go Session::login() {
  const socks5::Login login = socks5::parse_login(in_);
  if (login.state == socks5::State::bad) return Go::over;
  if (login.state == socks5::State::need_more) return Go::wait;
  in_.erase(0, login.size);
  const auto run = core_.registry.find(login.password, origin_.local.address);
  if (!run) return close_after(socks5::login_reply(false));
  down_.pending += socks5::login_reply(true);
  phase_ = Phase::socks_request;
  if (!flush(client_.get(), down_)) return Go::over;
  return authorise(login.password);
}

Session::Go Session::socks_request() {
  const socks5::Request request = socks5::parse_request(in_);
  if (request.state == socks5::State::need_more) return Go::wait;
  if (request.state == socks5::State::bad)
    return close_after(socks5::request_reply(socks5::Reply::failure));
  in_.erase(0, request.size);
  if (!request.connect) return close_after(socks5::request_reply(socks5::Reply::command));
  return open(request.host, request.port);
}

Session::Go Session::http_head() {
  ProxyHead head = parse_proxy_head(in_);
  if (head.state == ProxyHead::State::need_more) return Go::wait;
  if (head.refusal_status != 0) return refuse_quietly(head.refusal_status, head.refusal);
  in_.erase(0, head.size);
  const Go go = authorise(head.password);
  if (go != Go::on) return go;
  plain_http_ = !head.connect;
  forward_ = std::move(head.forward);
  body_ = head.body;
  if (!head.host_problem.empty()) {
    host_ = normal_host(head.host).value_or("");
    port_ = head.port;
    return refuse(403, head.host_problem);
  }
  return open(head.host, head.port);
}

Session::Go Session::authorise(const std::string& password) {
  const auto run = core_.registry.find(password, origin_.local.address);
  if (!run) return refuse_quietly(407, "proxy authentication required");
  if (!core_.enter(run, id_))
    return refuse_quietly(429, "the sandbox has too many open proxy connections");
  run_uid_ = run->info().uid;
  return Go::on;
}

Session::Go Session::open(const std::string& host, int port) {
  port_ = port;
  const auto normal = normal_host(host);
  host_ = normal.value_or(log::clip(host, 100));
  if (!normal || port == 0) return refuse(400, "the target host is malformed");
  const auto& grant = core_.runs.at(run_uid_).run->info().egress;
  const std::string refusal = host_refusal(grant, host_);
  if (!refusal.empty()) return refuse(403, refusal);
  phase_ = Phase::resolving;
  set_deadline(core_.options.dial_timeout);
  core_.resolver.submit(run_uid_, host_, [inbox = core_.inbox, id = id_](Resolved answer) {
    inbox->post([id, answer = std::move(answer)](Core& core) {
      const auto session = core.sessions.find(id);
      if (session != core.sessions.end() && !session->second->on_resolved(answer))
        core.sessions.erase(session);
    });
  });
  // Only its end is of interest until there is somebody to pass bytes to.
  return core_.watch(client_.get(), id_ << 1, EPOLLERR, client_events_) ? Go::wait : Go::over;
}

bool Session::on_resolved(Resolved answer) {
  if (phase_ != Phase::resolving) return true;
  if (!answer.error.empty() || answer.addresses.empty())
    return refuse_quietly(502, "cannot resolve " + host_ + ": " + answer.error) != Go::over;
  const auto& grant = core_.runs.at(run_uid_).run->info().egress;
  for (const net::Class found : answer.classes)
    if (!address_allowed(grant, found))
      return refuse(403, "the egress proxy does not connect to this address") != Go::over;
  core_.record_use(run_uid_, host_, port_);
  addresses_ = std::move(answer.addresses);
  phase_ = Phase::dialling;
  return dial_next();
}

// The next address that was checked; none left: the client is told.
bool Session::dial_next() {
  while (next_address_ < addresses_.size()) {
    const net::Address& to = addresses_[next_address_++];
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    std::memcpy(&address.sin_addr, to.bytes.data() + 12, 4);
    server_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    server_events_ = Core::kAbsent;
    if (!server_) {
      dial_error_ = errno;
      continue;
    }
    const int on = 1;
    setsockopt(server_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    const bool last = next_address_ == addresses_.size();
    set_deadline(last ? core_.options.dial_timeout
                      : std::min(core_.options.dial_timeout, kOneDial));
    if (connect(server_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      return begin_relay();
    if (errno == EINPROGRESS)
      return core_.watch(server_.get(), id_ << 1 | 1, EPOLLOUT, server_events_);
    dial_error_ = errno;
  }
  server_.reset();
  const std::string why = std::strerror(dial_error_);
  if (socks_ && dial_error_ == ECONNREFUSED)
    return close_after(socks5::request_reply(socks5::Reply::refused)) != Go::over;
  return refuse_quietly(502, "cannot connect to " + host_ + ": " + why) != Go::over;
}

bool Session::dialled() {
  socklen_t size = sizeof dial_error_;
  getsockopt(server_.get(), SOL_SOCKET, SO_ERROR, &dial_error_, &size);
  if (dial_error_ == 0) return begin_relay();
  server_.reset();
  return dial_next();
}

Session::Go Session::refuse(int status, const std::string& text) {
  core_.record_refusal(run_uid_, host_, port_, text);
  return refuse_quietly(status, text);
}

Session::Go Session::refuse_quietly(int status, const std::string& text) {
  return close_after(socks_ ? socks5::request_reply(reply_for(status))
                            : proxy_refusal(status, text));
}

// Reads on for a moment, so that the client sees the answer and no reset.
Session::Go Session::close_after(const std::string& answer) {
  server_.reset();
  phase_ = Phase::closing;
  set_deadline(kLinger);
  in_.clear();
  down_.pending += answer;
  if (!flush(client_.get(), down_) || !down_.pending.empty()) return Go::over;
  shutdown(client_.get(), SHUT_WR);
  return core_.watch(client_.get(), id_ << 1, EPOLLIN, client_events_) ? Go::wait : Go::over;
}

}  // namespace umpteenth::broker
