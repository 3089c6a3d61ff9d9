#include "base/http/client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>

#include "base/error.h"
#include "base/http/parser.h"
#include "base/http/wire.h"

namespace umpteenth::http {
namespace {

using Steady = std::chrono::steady_clock;

constexpr size_t kReadBytes = 64U << 10;
constexpr size_t kPoolSize = 16;
constexpr std::chrono::seconds kPoolAge{30};
constexpr size_t kMaxErrorBody = 64U << 10;
constexpr std::chrono::milliseconds kErrorBodyTimeout{5'000};

std::string wire_text(const ClientTarget& target, const ClientRequest& request, bool upgrade) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\n";
  const auto field = [&](std::string_view name, std::string_view value) {
    if (name.find_first_of("\r\n: ") != std::string_view::npos ||
        value.find_first_of("\r\n") != std::string_view::npos)
      throw Error(Code::bad_request, "a request header has a line break");
    text.append(name).append(": ").append(value).append("\r\n");
  };
  if (request.method.find_first_of("\r\n ") != std::string::npos ||
      request.target.find_first_of("\r\n ") != std::string::npos)
    throw Error(Code::bad_request, "a request line has a blank or line break");
  if (!request.headers.has("Host"))
    field("Host",
          target.unix_path.empty() ? target.host + ":" + std::to_string(target.port) : "localhost");
  for (const auto& [name, value] : request.headers.fields()) field(name, value);
  if (upgrade) {
    field("Connection", "Upgrade");
    field("Upgrade", "tcp");
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT" ||
      request.method == "PATCH")
    field("Content-Length", std::to_string(request.body.size()));
  return text + "\r\n" + request.body;
}

bool idempotent(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE" ||
         method == "OPTIONS";
}

// One response on its way: wire, parser, and the bytes the parser has not taken yet.
struct Exchange {
  std::unique_ptr<Wire> wire;
  std::unique_ptr<ResponseParser> parser;
  std::string pending;
  bool answered = false;  // a first byte came

  // More bytes for the parser; false at the end of the connection.
  bool fill(Deadline deadline) {
    std::array<char, kReadBytes> buffer;
    const size_t n = wire->read(buffer.data(), buffer.size(), deadline);
    pending.append(buffer.data(), n);
    answered = answered || n > 0;
    return n > 0;
  }

  void feed() { pending.erase(0, parser->put(pending)); }

  void read_head(const ClientRequest& request, Deadline deadline) {
    for (;;) {
      parser = std::make_unique<ResponseParser>(request.method == "HEAD", request.max_body);
      while (!parser->head_done()) {
        feed();
        if (!parser->head_done() && !fill(deadline)) parser->put_eof();
      }
      const int status = parser->response().status;
      if (status / 100 != 1 || status == 101) return;
    }
  }

  // Reads until a part of the body is there; false when the response is whole.
  bool read_some_body(Deadline deadline) {
    std::string& body = parser->response().body;
    while (body.empty() && !parser->done()) {
      const size_t before = pending.size();
      feed();
      if (!body.empty() || parser->done() || pending.size() < before) continue;
      if (!fill(deadline)) parser->put_eof();
    }
    return !body.empty();
  }

  void read_body(Deadline deadline) {
    while (!parser->done()) {
      feed();
      if (!parser->done() && !fill(deadline)) parser->put_eof();
    }
  }
};

class WireDuplex : public Duplex {
 public:
  explicit WireDuplex(Exchange exchange)
      : wire_(std::move(exchange.wire)), first_(std::move(exchange.pending)) {}

  size_t read(char* into, size_t max, std::chrono::milliseconds timeout) override {
    if (first_.empty()) return wire_->read(into, max, deadline_in(timeout));
    const size_t n = first_.copy(into, max);
    first_.erase(0, n);
    return n;
  }
  void write(std::string_view bytes, std::chrono::milliseconds timeout) override {
    wire_->write(bytes, deadline_in(timeout));
  }
  void shutdown_write() override { wire_->shutdown_write(); }
  void cancel() override { wire_->cancel(); }

 private:
  std::unique_ptr<Wire> wire_;
  std::string first_;  // came with the head; the reader's alone
};

class ExchangeReader : public BodyReader {
 public:
  explicit ExchangeReader(Exchange exchange) : exchange_(std::move(exchange)) {
    head_.status = exchange_.parser->response().status;
    head_.headers = exchange_.parser->response().headers;
  }

  const Response& head() const override { return head_; }
  size_t read(char* into, size_t max, std::chrono::milliseconds timeout) override {
    if (!exchange_.read_some_body(deadline_in(timeout))) return 0;
    std::string& body = exchange_.parser->response().body;
    const size_t n = body.copy(into, max, at_);
    at_ += n;
    if (at_ == body.size()) {
      body.clear();
      at_ = 0;
    }
    return n;
  }
  void cancel() override { exchange_.wire->cancel(); }

 private:
  Exchange exchange_;
  Response head_;
  size_t at_ = 0;
};

}  // namespace

struct Client::Impl {
  struct Idle {
    std::unique_ptr<Wire> wire;
    Steady::time_point since;
  };

  ClientTarget target;
  std::mutex mutex;
  std::vector<Idle> idle;  // the last one is the youngest

  std::unique_ptr<Wire> take_idle() {
    const std::lock_guard lock(mutex);
    while (!idle.empty()) {
      Idle candidate = std::move(idle.back());
      idle.pop_back();
      if (Steady::now() - candidate.since < kPoolAge && candidate.wire->quiet())
        return std::move(candidate.wire);
    }
    return nullptr;
  }

  void give_back(std::unique_ptr<Wire> wire) {
    const std::lock_guard lock(mutex);
    if (idle.size() == kPoolSize) idle.erase(idle.begin());
    idle.push_back({std::move(wire), Steady::now()});
  }

  std::string name() const {
    return target.unix_path.empty() ? target.host + ":" + std::to_string(target.port)
                                    : target.unix_path;
  }

  // Up to the head of the response. A kept connection that died meanwhile is tried once more on a
  // new one, where asking twice does no harm.
  Exchange begin(const ClientRequest& request, bool upgrade, Deadline deadline,
                 std::stop_token stop) {
    const std::string text = wire_text(target, request, upgrade);
    std::unique_ptr<Wire> kept = upgrade ? nullptr : take_idle();
    for (;;) {
      Exchange exchange;
      const bool reused = kept != nullptr;
      exchange.wire = reused ? std::move(kept) : std::make_unique<Wire>();
      const std::stop_callback on_stop(stop, [&] { exchange.wire->cancel(); });
      try {
        if (!reused) exchange.wire->connect(target, deadline);
        exchange.wire->write(text, deadline);
        exchange.read_head(request, deadline);
        return exchange;
      } catch (Error& e) {
        const bool died = e.code() == Code::unavailable || e.code() == Code::bad_gateway;
        if (reused && died && !exchange.answered && !exchange.wire->cancelled() &&
            idempotent(request.method))
          continue;
        if (e.code() == Code::bad_gateway && !exchange.answered)
          throw Error(Code::unavailable, e.message()).in(name());
        throw e.in(name());
      }
    }
  }
};

ClientTarget parse_client_target(std::string_view endpoint) {
  if (endpoint.starts_with("unix://")) {
    const std::string_view path = endpoint.substr(7);
    if (path.starts_with('/') && path.size() < 108 && path.find('\0') == std::string_view::npos)
      return {.unix_path = std::string(path), .host = "", .port = 0};
  } else if (endpoint.starts_with("tcp://")) {
    std::string_view rest = endpoint.substr(6);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    const size_t colon = rest.rfind(':');
    if (colon != std::string_view::npos && colon > 0) {
      std::string_view host = rest.substr(0, colon);
      if (host.size() > 2 && host.starts_with('[') && host.ends_with(']'))
        host = host.substr(1, host.size() - 2);
      int port = 0;
      const char* end = rest.data() + rest.size();
      const auto [stopped, error] = std::from_chars(rest.data() + colon + 1, end, port);
      if (error == std::errc() && stopped == end && port > 0 && port < 65536 &&
          host.find_first_of("/@[] ") == std::string_view::npos)
        return {.unix_path = "", .host = std::string(host), .port = port};
    }
  }
  throw Error(Code::bad_request, "\"" + std::string(endpoint) +
                                     "\" is not an endpoint: unix:///PATH or tcp://HOST:PORT");
}

Client::Client(ClientTarget target) : impl_(std::make_unique<Impl>()) {
  impl_->target = std::move(target);
}
Client::~Client() = default;

Response Client::send(const ClientRequest& request, std::stop_token stop) {
  const Deadline deadline = deadline_in(request.timeout);
  Exchange exchange = impl_->begin(request, false, deadline, stop);
  {
    const std::stop_callback on_stop(stop, [&] { exchange.wire->cancel(); });
    try {
      exchange.read_body(deadline);
    } catch (Error& e) {
      throw e.in(impl_->name());
    }
  }
  if (exchange.parser->keep_alive() && exchange.pending.empty() && !exchange.wire->cancelled())
    impl_->give_back(std::move(exchange.wire));
  return std::move(exchange.parser->response());
}

std::unique_ptr<BodyReader> Client::open(const ClientRequest& request, std::stop_token stop) {
  return std::make_unique<ExchangeReader>(
      impl_->begin(request, false, deadline_in(request.timeout), std::move(stop)));
}

std::unique_ptr<Duplex> Client::upgrade(const ClientRequest& request, std::stop_token stop) {
  ClientRequest limited = request;
  limited.max_body = kMaxErrorBody;
  Exchange exchange = impl_->begin(limited, true, deadline_in(request.timeout), std::move(stop));
  const int status = exchange.parser->response().status;
  if (status == 101 || status == 200) return std::make_unique<WireDuplex>(std::move(exchange));
  try {
    exchange.read_body(deadline_in(kErrorBodyTimeout));
  } catch (const Error&) {  // the status matters more than a torn explanation
  }
  throw Error(code_from_http_status(status), exchange.parser->response().body);
}

}  // namespace umpteenth::http
