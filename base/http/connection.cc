// Past 500 lines: the coroutines of a connection share its members, and splitting them would put
// Boost into a header.
#include "base/http/connection.h"

// Asio 1.74 uses std::exchange without including this.
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "base/http/parser.h"
#include "base/http/proxy_v2.h"
#include "base/http/response_text.h"
#include "base/http/site_answers.h"
#include "base/log.h"

namespace umpteenth::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Steady = std::chrono::steady_clock;
using Executor = asio::io_context::executor_type;
using Socket = asio::basic_stream_socket<asio::generic::stream_protocol, Executor>;
using Timer = asio::basic_waitable_timer<Steady, asio::wait_traits<Steady>, Executor>;
template <typename T>
using Task = asio::awaitable<T, Executor>;
using Buffers = std::vector<asio::const_buffer>;
constexpr asio::use_awaitable_t<Executor> kAwait;

// Buffers that Asio may copy for nothing.
struct Rest {
  using value_type = asio::const_buffer;
  using const_iterator = const asio::const_buffer*;
  const_iterator first, last;
  const_iterator begin() const { return first; }
  const_iterator end() const { return last; }
};

constexpr size_t kHeadRead = 4U << 10;
constexpr size_t kBodyRead = 64U << 10;
constexpr size_t kTlsRecord = 16U << 10;
// How long a client may go on sending what we refused to read, so that it sees our answer and not
// a reset.
constexpr std::chrono::milliseconds kLinger{2'000};

// Wakes the one coroutine that waits.
class Signal {
 public:
  explicit Signal(asio::io_context& io) : timer_(io, Steady::time_point::max()) {}
  void notify() {
    set_ = true;
    timer_.cancel();
  }
  Task<void> wait() {
    while (!set_) {
      error_code ignored;
      co_await timer_.async_wait(asio::redirect_error(kAwait, ignored));
    }
    set_ = false;
  }

 private:
  Timer timer_;
  bool set_ = false;
};

std::string_view view(const boost::beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

}  // namespace

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, int socket, Endpoint peer, Endpoint local)
      : shared_(shared),
        socket_(*shared.io),
        deadline_timer_(*shared.io),
        signal_(*shared.io),
        peer_(std::move(peer)),
        local_(std::move(local)) {
    socket_.assign(asio::generic::stream_protocol(local_.address.empty() ? AF_UNIX : AF_INET, 0),
                   socket);
    shared_.connections.insert(this);
    ++shared_.open;
  }
  ~Connection() {
    if (counted_) {
      (void)hold_body(0);
      const auto mine = shared_.per_peer.find(peer_.address);
      if (--mine->second.connections == 0) shared_.per_peer.erase(mine);
    }
    shared_.connections.erase(this);
    --shared_.open;
  }

  Task<void> serve(std::shared_ptr<Connection> self);
  void begin_with(const std::string& already_read);
  void wind_down();
  void cut();
  const Endpoint& local() const { return local_; }

 private:
  // Reading and writing; false = closed, failed, or past the deadline.
  Task<bool> read_some(size_t max);
  Task<bool> write(Buffers buffers);
  void set_deadline(std::chrono::milliseconds from_now);
  void clear_deadline() { deadline_ = Steady::time_point::max(); }
  void arm();

  Task<bool> open();
  Task<bool> read_proxy_header();
  bool admit_peer();
  Task<bool> exchange();
  Task<bool> read_head(RequestParser& parser);
  Task<bool> read_body(RequestParser& parser);
  bool hold_body(size_t bytes);
  Task<bool> run_handler();
  void handle();
  Task<bool> respond(bool keep);
  Task<bool> send_stream(bool chunked, Stream& stream);
  Task<void> watch_peer(std::shared_ptr<Connection> self);
  Task<void> finish();
  void refuse(Refusal refusal) { answer_ = refusal_answer(shared_.site, request_, refusal); }

  Shared& shared_;
  Socket socket_;
  std::shared_ptr<asio::ssl::context> tls_context_;
  std::optional<asio::ssl::stream<Socket&>> tls_;
  Timer deadline_timer_;
  Steady::time_point deadline_ = Steady::time_point::max();
  Steady::time_point armed_until_ = Steady::time_point::max();
  bool armed_ = false, timed_out_ = false;
  bool cut_ = false, ending_ = false, idle_ = false, linger_ = false, counted_ = false;
  bool adopted_ = false;

  boost::beast::flat_buffer in_;
  Signal signal_;
  Endpoint peer_, local_;
  Request request_;
  std::optional<Response> answer_;
  size_t body_held_ = 0;
  bool http_1_0_ = false;
  bool handled_ = false;  // set by the pool's thread's post
  bool watching_ = false, watcher_ended_ = false, peer_gone_ = false;
};

void Connection::set_deadline(std::chrono::milliseconds from_now) {
  deadline_ = Steady::now() + from_now;
  arm();
}

// One timer that is moved only when it would fire too late: most deadlines never come.
void Connection::arm() {
  if (armed_ && armed_until_ <= deadline_) return;
  armed_ = true;
  armed_until_ = deadline_;
  deadline_timer_.expires_at(deadline_);
  deadline_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error) return;
    self->armed_ = false;
    if (self->deadline_ <= Steady::now()) {
      self->timed_out_ = true;
      error_code ignored;
      self->socket_.cancel(ignored);
    } else if (self->deadline_ != Steady::time_point::max()) {
      self->arm();
    }
  });
}

Task<bool> Connection::read_some(size_t max) {
  if (timed_out_ || cut_) co_return false;
  const asio::mutable_buffer space = in_.prepare(max);
  error_code error;
  size_t n = 0;
  if (tls_)
    n = co_await tls_->async_read_some(space, asio::redirect_error(kAwait, error));
  else
    n = co_await socket_.async_read_some(space, asio::redirect_error(kAwait, error));
  in_.commit(n);
  co_return !error && n > 0;
}

Task<bool> Connection::write(Buffers buffers) {
  std::string record;
  size_t at = 0;
  while (at < buffers.size()) {
    if (timed_out_ || cut_) co_return false;
    set_deadline(shared_.limits.write);
    error_code error;
    size_t n = 0;
    if (!tls_) {
      const Rest rest{buffers.data() + at, buffers.data() + buffers.size()};
      n = co_await socket_.async_write_some(rest, asio::redirect_error(kAwait, error));
    } else if (buffers[at].size() >= kTlsRecord || at + 1 == buffers.size()) {
      n = co_await tls_->async_write_some(buffers[at], asio::redirect_error(kAwait, error));
    } else {
      // A record and a system call for each small buffer would be waste.
      record.clear();
      for (size_t i = at; i < buffers.size() && record.size() < kTlsRecord; ++i)
        record.append(static_cast<const char*>(buffers[i].data()),
                      std::min(buffers[i].size(), kTlsRecord - record.size()));
      n = co_await tls_->async_write_some(asio::buffer(record),
                                          asio::redirect_error(kAwait, error));
    }
    if (error) co_return false;
    while (at < buffers.size() && n >= buffers[at].size()) n -= buffers[at++].size();
    if (at < buffers.size()) buffers[at] += n;
  }
  clear_deadline();
  co_return true;
}

Task<void> Connection::serve([[maybe_unused]] std::shared_ptr<Connection> self) {
  bool more = co_await open();
  while (more) more = co_await exchange();
  co_await finish();
  clear_deadline();
  deadline_timer_.cancel();
}

Task<bool> Connection::open() {
  if (shared_.proxy_v2 && !adopted_) {
    const bool told = co_await read_proxy_header();
    if (!told) co_return false;
  }
  if (!admit_peer()) {
    ++shared_.refused;
    co_return false;
  }
  if (!shared_.tls) co_return true;
  tls_context_ = shared_.tls;
  tls_.emplace(socket_, *tls_context_);
  set_deadline(shared_.limits.tls_handshake);
  error_code error;
  co_await tls_->async_handshake(asio::ssl::stream_base::server,
                                 asio::redirect_error(kAwait, error));
  clear_deadline();
  if (error) tls_.reset();
  co_return !error;
}

// Reads not a byte more: what follows may be TLS.
Task<bool> Connection::read_proxy_header() {
  set_deadline(shared_.limits.header);
  for (;;) {
    const ProxyHeader header = parse_proxy_v2(view(in_));
    if (header.state == ProxyHeader::State::bad) co_return false;
    if (header.state == ProxyHeader::State::complete) {
      if (header.peer) peer_ = *header.peer;
      if (header.local) local_ = *header.local;
      in_.clear();
      clear_deadline();
      co_return true;
    }
    const size_t missing = proxy_v2_missing(view(in_));
    const bool came = co_await read_some(missing);
    if (!came) co_return false;
  }
}

bool Connection::admit_peer() {
  if (!peer_.address.empty()) {
    size_t& open = shared_.per_peer[peer_.address].connections;
    if (open >= shared_.limits.connections_per_peer) return false;
    ++open;
    counted_ = true;
  }
  return !shared_.site.accept || shared_.site.accept(peer_, local_);
}

// One request and its answer; false ends the connection.
Task<bool> Connection::exchange() {
  RequestParser parser(shared_.limits);
  request_ = Request{};
  answer_.reset();
  const bool head = co_await read_head(parser);
  if (!head) {
    if (answer_) co_await respond(false);
    co_return false;
  }
  bool keep = parser.keep_alive();
  http_1_0_ = parser.http_1_0();
  request_.peer = peer_;
  request_.local = local_;
  request_.tls = tls_.has_value();
  size_t body_limit = shared_.limits.body_bytes;
  answer_ = judge_head(shared_.site, request_, parser.content_length(), body_limit);
  if (!answer_) {
    ++shared_.requests;
    parser.limit_body(body_limit);
    bool whole = !parser.has_body();
    if (!whole) whole = co_await read_body(parser);
    if (!whole && !answer_) co_return false;
    if (!whole) linger_ = true;
    if (whole) {
      const bool handled = co_await run_handler();
      if (!handled) refuse({503, "too many requests are waiting"});
    }
    std::string().swap(request_.body);  // the answer may take its time
    (void)hold_body(0);
  } else if (parser.has_body()) {
    linger_ = true;
  }
  // An old client would have to be told that the connection stays; it gets by without.
  keep = keep && !http_1_0_ && !linger_ && !ending_ && !cut_;
  co_return co_await respond(keep);
}

Task<bool> Connection::read_head(RequestParser& parser) {
  if (in_.size() == 0) in_.shrink_to_fit();
  idle_ = true;
  set_deadline(shared_.limits.idle);
  for (;;) {
    // Empty lines between requests are tolerated, as RFC 9112 asks.
    while (view(in_).starts_with("\r\n")) in_.consume(2);
    if (in_.size() > 0 && idle_) {
      idle_ = false;
      set_deadline(shared_.limits.header);
    }
    std::optional<Refusal> refusal;
    const size_t size = parser.find_head(view(in_), refusal);
    if (!refusal && size > 0) {
      clear_deadline();
      refusal = parser.put_head(view(in_).substr(0, size), request_);
      in_.consume(size);
    }
    if (refusal) {
      linger_ = true;
      refuse(*refusal);
      co_return false;
    }
    if (size > 0) co_return true;
    if (ending_ && idle_) co_return false;
    const bool came = co_await read_some(kHeadRead);
    if (came) continue;
    if (timed_out_ && !idle_) {
      timed_out_ = false;
      refuse({408, "the request's head did not come in time"});
    }
    co_return false;
  }
}

Task<bool> Connection::read_body(RequestParser& parser) {
  if (request_.headers.has("Expect") && in_.size() == 0 && !http_1_0_) {
    const Buffers go_on{asio::buffer(std::string_view("HTTP/1.1 100 Continue\r\n\r\n"))};
    const bool told = co_await write(go_on);
    if (!told) co_return false;
  }
  set_deadline(shared_.limits.body);
  while (!parser.done()) {
    std::optional<Refusal> refusal;
    in_.consume(parser.put_body(view(in_), request_.body, refusal));
    if (refusal) {
      refuse(*refusal);
      co_return false;
    }
    if (!hold_body(request_.body.size())) {
      refuse({503, "too many request bodies are waiting"});
      co_return false;
    }
    if (parser.done()) break;
    const bool came = co_await read_some(kBodyRead);
    if (came) continue;
    if (timed_out_) {
      timed_out_ = false;
      refuse({408, "the request's body did not come in time"});
    }
    co_return false;
  }
  clear_deadline();
  co_return true;
}

// Counts what this request's body takes; false where its peer has too much in memory already.
bool Connection::hold_body(size_t bytes) {
  if (!counted_) return true;
  size_t& all = shared_.per_peer[peer_.address].body_bytes;
  all += bytes - body_held_;
  body_held_ = bytes;
  return all <= shared_.limits.bodies_per_peer;
}

Task<bool> Connection::run_handler() {
  handled_ = false;
  // No shared pointer goes along: the last one must not be dropped by the pool's thread, and the
  // coroutine that owns us waits right here.
  if (!shared_.pool.submit([this] { handle(); })) co_return false;
  ++shared_.in_flight;
  while (!handled_) co_await signal_.wait();
  --shared_.in_flight;
  co_return true;
}

// On a thread of the pool: the coroutine stands still meanwhile, so request_ and answer_ are ours.
void Connection::handle() {
  try {
    answer_ = shared_.site.handle(request_);
  } catch (const std::exception& e) {  // HTTP dispatch: every failure becomes an answer
    answer_ = error_answer(shared_.site, request_, e);
  }
  asio::post(*shared_.io, [this] {
    handled_ = true;
    signal_.notify();
  });
}

Task<bool> Connection::respond(bool keep) {
  const bool head_request = request_.method == "HEAD";
  const bool with_body = !head_request && status_has_body(answer_->status);
  const std::shared_ptr<Stream> stream = answer_->stream;
  const bool chunked = stream && with_body && !http_1_0_;
  if (answer_->headers.get("Connection") == "close" || (stream && with_body && http_1_0_))
    keep = false;
  const std::string head = response_head(
      *answer_,
      {.head_request = head_request, .chunked = chunked, .close = !keep, .date = shared_.date()});
  Buffers buffers{asio::buffer(head)};
  std::string chunk_size;
  if (with_body && !answer_->body.empty()) {
    if (chunked) {
      chunk_size = chunk_line(answer_->body.size());
      buffers.push_back(asio::buffer(chunk_size));
    }
    buffers.push_back(asio::buffer(answer_->body));
    if (chunked) buffers.push_back(asio::buffer(std::string_view("\r\n")));
  }
  bool sent = co_await write(std::move(buffers));
  if (stream && sent && with_body) sent = co_await send_stream(chunked, *stream);
  if (stream) {
    stream->on_readable(nullptr);
    stream->peer_gone();
  }
  if (!sent) linger_ = false;
  co_return sent&& keep && !ending_ && !cut_;
}

Task<bool> Connection::send_stream(bool chunked, Stream& stream) {
  stream.on_readable([weak = weak_from_this(), io = shared_.io] {
    asio::post(*io, [weak] {
      if (const auto self = weak.lock()) self->signal_.notify();
    });
  });
  peer_gone_ = watcher_ended_ = false;
  watching_ = true;
  asio::co_spawn(shared_.io->get_executor(), watch_peer(shared_from_this()), asio::detached);
  bool ok = true;
  for (bool ended = false; ok && !ended;) {
    const Stream::Drain drain = stream.drain();
    ended = drain.ended || ending_;
    if (drain.aborted || peer_gone_ || cut_) {
      ok = false;
      break;
    }
    size_t total = 0;
    for (const std::string& chunk : drain.chunks) total += chunk.size();
    const std::string size_line = chunk_line(total);
    Buffers buffers;
    if (total > 0) {
      if (chunked) buffers.push_back(asio::buffer(size_line));
      for (const std::string& chunk : drain.chunks) buffers.push_back(asio::buffer(chunk));
      if (chunked) buffers.push_back(asio::buffer(std::string_view("\r\n")));
    }
    if (ended && chunked) buffers.push_back(asio::buffer(std::string_view("0\r\n\r\n")));
    if (!buffers.empty())
      ok = co_await write(std::move(buffers));
    else if (!ended)
      co_await signal_.wait();
  }
  watching_ = false;
  error_code ignored;
  socket_.cancel(ignored);
  while (!watcher_ended_) co_await signal_.wait();
  co_return ok;
}

// Keeps a read pending, the only way to learn that the client of a silent stream left. What comes
// is the next request's.
Task<void> Connection::watch_peer([[maybe_unused]] std::shared_ptr<Connection> self) {
  bool reading = true;
  while (watching_ && reading && in_.size() < shared_.limits.header_bytes)
    reading = co_await read_some(kHeadRead);
  if (watching_ && !reading) {
    peer_gone_ = true;
    error_code ignored;
    socket_.cancel(ignored);
  }
  watcher_ended_ = true;
  signal_.notify();
}

Task<void> Connection::finish() {
  if (cut_) co_return;
  error_code ignored;
  timed_out_ = false;
  if (linger_) {
    socket_.shutdown(Socket::shutdown_send, ignored);
    tls_.reset();  // what still comes is only counted down, not understood
    set_deadline(kLinger);
    for (bool more = true; more;) {
      in_.clear();
      more = co_await read_some(kBodyRead);
    }
  } else if (tls_) {
    set_deadline(kLinger);
    co_await tls_->async_shutdown(asio::redirect_error(kAwait, ignored));
  }
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.close(ignored);
}

void Connection::wind_down() {
  ending_ = true;
  signal_.notify();
  error_code ignored;
  if (idle_) socket_.cancel(ignored);
}

void Connection::cut() {
  cut_ = true;
  error_code ignored;
  socket_.close(ignored);
  signal_.notify();
}

void Connection::begin_with(const std::string& already_read) {
  adopted_ = true;
  const asio::mutable_buffer space = in_.prepare(already_read.size());
  std::copy(already_read.begin(), already_read.end(), static_cast<char*>(space.data()));
  in_.commit(already_read.size());
}

namespace {

void begin(Shared& shared, const std::shared_ptr<Connection>& connection) {
  asio::co_spawn(shared.io->get_executor(), connection->serve(connection),
                 [](const std::exception_ptr& failure) {
                   try {
                     if (failure) std::rethrow_exception(failure);
                   } catch (const std::exception& e) {  // one client must not end the others'
                     log::error("a connection failed", {{"error", log::clip(e.what())}});
                   }
                 });
}

}  // namespace

void begin_connection(Shared& shared, int socket, Endpoint peer, Endpoint local) {
  begin(shared, std::make_shared<Connection>(shared, socket, std::move(peer), std::move(local)));
}

void begin_adopted(Shared& shared, int socket, const std::string& already_read, Endpoint peer,
                   Endpoint local) {
  const auto connection =
      std::make_shared<Connection>(shared, socket, std::move(peer), std::move(local));
  connection->begin_with(already_read);
  begin(shared, connection);
}

void wind_down(Connection& connection) { connection.wind_down(); }
void cut(Connection& connection) { connection.cut(); }
void cut(Connection& connection, const std::string& local_address) {
  if (connection.local().address == local_address) connection.cut();
}

std::string_view Shared::date() {
  const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  if (now != date_second_) {
    date_second_ = now;
    date_ = http_date(now);
  }
  return date_;
}

}  // namespace umpteenth::http
