#include "base/http/server.h"

// Asio 1.74 uses std::exchange without including this.
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <openssl/ssl.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/http/connection.h"
#include "base/http/listener.h"
#include "base/log.h"

namespace umpteenth::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kAcceptsAtOnce = 64;
constexpr std::chrono::milliseconds kExhaustedPause{100};

int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, chosen_size, kOurs, sizeof kOurs - 1, offered, offered_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

std::shared_ptr<asio::ssl::context> make_tls(const TlsFiles& files) {
  try {
    auto context = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
    SSL_CTX* raw = context->native_handle();
    SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
    SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
    context->use_certificate_chain(asio::buffer(files.cert_chain_pem));
    context->use_private_key(asio::buffer(files.private_key_pem), asio::ssl::context::pem);
    if (SSL_CTX_check_private_key(raw) != 1)
      throw Error(Code::invalid, "the private key does not belong to the certificate");
    return context;
  } catch (const boost::system::system_error& e) {  // Asio's exceptions stay in base/http
    throw Error(Code::invalid, std::string("read certificate and key: ") + e.what());
  }
}

}  // namespace

struct Server::Impl {
  Impl(ListenOn where, Limits limits, Site site)
      : shared(limits, std::move(site), where.proxy_v2),
        listen(std::move(where)),
        listener(io),
        pause(io) {
    shared.io = &io;
    if (listen.tls) shared.tls = make_tls(*listen.tls);
    if (listen.adopt_only) return;
    Fd fd = listen_on(listen);
    port = bound_port(fd.get());
    listener.assign(fd.release());
  }

  void accept_more() {
    listener.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
      if (error || shared.stopping) return;
      for (int i = 0; i < kAcceptsAtOnce; ++i) {
        bool exhausted = false;
        auto accepted = accept_from(listener.native_handle(), exhausted);
        if (exhausted) return accept_later();
        if (!accepted) break;
        told_exhausted = false;
        admit(std::move(*accepted));
      }
      accept_more();
    });
  }

  // Without a free descriptor the listener stays readable: waiting beats spinning.
  void accept_later() {
    if (!std::exchange(told_exhausted, true))
      log::warn("cannot accept connections", {{"error", "out of file descriptors"}});
    pause.expires_after(kExhaustedPause);
    pause.async_wait([this](const error_code& error) {
      if (!error) accept_more();
    });
  }

  void admit(Accepted accepted) {
    if (shared.open >= shared.limits.connections) {
      ++shared.refused;
      return;
    }
    begin_connection(shared, accepted.socket.release(), std::move(accepted.peer),
                     std::move(accepted.local));
  }

  void adopt(Fd socket, const std::string& already_read, Endpoint peer, Endpoint local) {
    if (shared.stopping || shared.open >= shared.limits.connections) {
      ++shared.refused;
      return;
    }
    begin_adopted(shared, socket.release(), already_read, std::move(peer), std::move(local));
  }

  void cut_local(const std::string& address) {
    for (Connection* connection : shared.connections) http::cut(*connection, address);
  }

  void start() {
    shared.pool.start();
    if (!listen.adopt_only) accept_more();
    thread = std::thread([this] { io.run(); });
  }

  void stop(std::chrono::milliseconds grace) {
    if (stopped) return;
    stopped = true;
    if (thread.joinable()) {
      asio::post(io, [this] { begin_stop(); });
      {
        std::unique_lock lock(mutex);
        ended.wait_for(lock, grace, [this] { return quiet; });
      }
      asio::post(io, [this] { cut_all(); });
      // What the handlers answer now goes nowhere, but each connection waits for it.
      shared.pool.finish();
      asio::post(io, [this] { work.reset(); });
      thread.join();
    }
    error_code ignored;
    listener.close(ignored);
    if (!listen.unix_path.empty()) unlink(listen.unix_path.c_str());
  }

  void begin_stop() {
    shared.stopping = true;
    error_code ignored;
    listener.close(ignored);
    pause.cancel();
    for (Connection* connection : shared.connections) wind_down(*connection);
    watch_the_end();
  }

  // Until the last connection is gone; stop() has the deadline.
  void watch_the_end() {
    if (shared.connections.empty()) {
      const std::lock_guard lock(mutex);
      quiet = true;
      ended.notify_all();
      return;
    }
    pause.expires_after(std::chrono::milliseconds(2));
    pause.async_wait([this](const error_code& error) {
      if (!error) watch_the_end();
    });
  }

  void cut_all() {
    pause.cancel();
    for (Connection* connection : shared.connections) http::cut(*connection);
  }

  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  Shared shared;
  ListenOn listen;
  asio::posix::stream_descriptor listener;
  asio::steady_timer pause;
  int port = 0;
  std::thread thread;
  bool stopped = false;
  bool told_exhausted = false;  // since the last connection that was accepted

  std::mutex mutex;
  std::condition_variable ended;
  bool quiet = false;
};

Server::Server(ListenOn listen, Limits limits, Site site)
    : impl_(std::make_unique<Impl>(std::move(listen), limits, std::move(site))) {}
Server::~Server() { stop(std::chrono::milliseconds(0)); }
void Server::start() { impl_->start(); }
void Server::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }
int Server::port() const { return impl_->port; }

void Server::adopt(int socket, std::string already_read, Endpoint peer, Endpoint local) {
  asio::post(impl_->io, [impl = impl_.get(), held = std::make_shared<Fd>(socket),
                         read = std::move(already_read), from = std::move(peer),
                         to = std::move(local)] { impl->adopt(std::move(*held), read, from, to); });
}

void Server::cut(const std::string& local_address) {
  asio::post(impl_->io, [impl = impl_.get(), local_address] { impl->cut_local(local_address); });
}

ServerStats Server::stats() const {
  return {.connections = impl_->shared.open,
          .requests_in_flight = impl_->shared.in_flight,
          .requests = impl_->shared.requests,
          .refused_connections = impl_->shared.refused};
}

void Server::replace_tls(const TlsFiles& tls) {
  asio::post(impl_->io, [impl = impl_.get(), fresh = make_tls(tls)] { impl->shared.tls = fresh; });
}

}  // namespace umpteenth::http
