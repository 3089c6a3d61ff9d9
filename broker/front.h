// The front door of 8081: accepts, looks at the first bytes, and serves the egress proxy (SOCKS5,
// CONNECT, absolute-form HTTP) itself; everything else goes to the broker API's server. One io
// thread, a bounded resolver pool, bounded memory whatever clients do.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/http/server.h"
#include "broker/resolver_pool.h"
#include "runs/registry.h"

namespace umpteenth::broker {

struct FrontOptions {
  // The engines' networks and what is blocked, asked at each look-up on a resolver thread.
  std::function<net::Topology()> topology;
  ResolverPool::Resolve resolve;                        // default: the host's resolver, A only
  ResolverPool::Classify classify;                      // default: net::classify with the topology
  std::chrono::milliseconds handshake_timeout{10'000};  // first byte; then the whole handshake
  std::chrono::milliseconds dial_timeout{15'000};       // with the look-up
  std::chrono::milliseconds answer_timeout{60'000};     // for an HTTP server's first bytes
  std::chrono::milliseconds hello_timeout{10'000};      // a begun TLS ClientHello
  std::chrono::milliseconds half_open_timeout{60'000};  // one direction ended, the other is silent
  size_t connections = 8192;
  size_t connections_per_endpoint = 320;  // handshakes and tunnels
  size_t tunnels_per_run = 256;
};

struct FrontStats {
  size_t connections = 0, runs = 0;
  uint64_t accepted = 0, dropped = 0;
};

class Front {
 public:
  // broker outlives the front, is started by its owner, and has adopt_only set. The registry's
  // removal listener becomes the front's: a run's connections are closed when its token goes.
  Front(runs::Registry& registry, http::Server& broker, FrontOptions options);
  ~Front();

  // Before start(). With proxy_v2 the ends of connections are those of its header.
  void listen(const http::ListenOn& where);
  void listen_unix(const std::string& path, int mode);  // with PROXY v2
  void start();
  void stop();  // closes everything

  // For a listening socket inside a sandbox's namespace: its connections' local and peer address is
  // `endpoint`. Dropping what is returned closes the listener and all of them. Any thread.
  std::shared_ptr<void> adopt_listener(Fd listening, std::string endpoint);

  FrontStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace umpteenth::broker
