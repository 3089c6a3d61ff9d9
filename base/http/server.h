// The HTTP/1.1 server that people (8080) and sandboxes (8081) meet: one io thread, a bounded pool
// for handlers, a limit and a deadline for every phase. 413, 431 and 401 are sent before a body is
// read, then the connection closes. Host is required, obs-fold and TE+CL are refused.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/http/limits.h"
#include "base/http/message.h"

namespace umpteenth::http {

struct TlsFiles {
  std::string cert_chain_pem;  // the text, not a path
  std::string private_key_pem;
};

struct ListenOn {
  std::string host;  // literal address; "" with unix_path
  int port = 0;      // 0 = the kernel picks, see Server::port()
  std::string unix_path;
  int unix_mode = 0600;
  std::optional<TlsFiles> tls;
  // Each connection begins with a PROXY v2 header (a peer without one is dropped); its addresses
  // become Request::peer and Request::local.
  bool proxy_v2 = false;
  bool adopt_only = false;  // no listener at all: every connection comes by Server::adopt()
};

struct Admitted {
  size_t body_limit;
};

struct Site {
  // Called on the io thread with a request without its body: must not block. A Response refuses.
  std::function<std::variant<Admitted, Response>(const Request& head)> admit;
  // Called on a pool thread. What it throws as Error becomes error_response(error).
  std::function<Response(const Request& request)> handle;
  std::function<Response(const Request& request, const class ErrorView& error)> error_response;
  // False closes the connection at once (before TLS).
  std::function<bool(const Endpoint& peer, const Endpoint& local)> accept;
};

// What error_response is told; message and code of the Error that was thrown, or internal.
class ErrorView {
 public:
  explicit ErrorView(const std::exception& e) : error_(e) {}
  const std::exception& exception() const { return error_; }

 private:
  const std::exception& error_;
};

struct ServerStats {
  size_t connections = 0;
  size_t requests_in_flight = 0;
  uint64_t requests = 0;
  uint64_t refused_connections = 0;
};

class Server {
 public:
  // Binds at once (Error(unavailable) names address and cause), serves from start() on.
  Server(ListenOn listen, Limits limits, Site site);
  ~Server();  // stop(0)
  void start();
  // Stops accepting, ends streams, waits for handlers up to grace, then cuts.
  void stop(std::chrono::milliseconds grace);
  int port() const;
  // Serves a connected socket that somebody else accepted, and has read from: any thread. The
  // ends are what requests are told; no PROXY header is expected.
  void adopt(int socket, std::string already_read, Endpoint peer, Endpoint local);
  // Ends the connections that were adopted with this local address, at once. Any thread.
  void cut(const std::string& local_address);
  ServerStats stats() const;
  // New connections use the new certificate.
  void replace_tls(const TlsFiles& tls);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace umpteenth::http
