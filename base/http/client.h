// A blocking HTTP/1.1 client over TCP or a Unix socket, for the container engine's API. (Calls to
// the outside world are outbound.h's.) Safe to use from several threads: a connection a call, kept
// alive in a small pool. No environment proxies, no redirects, no TLS.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/http/message.h"

namespace umpteenth::http {

struct ClientTarget {
  std::string unix_path;  // or
  std::string host;
  int port = 0;
};
ClientTarget parse_client_target(std::string_view endpoint);  // unix:///…, tcp://host:port

// The raw connection after an upgrade (101 or 200). Read and write from two threads at once is
// fine.
class Duplex {
 public:
  virtual ~Duplex() = default;
  // Bytes read; 0 at the end. Error(timeout) at the deadline (the stream stays usable),
  // Error(unavailable) where the peer reset.
  virtual size_t read(char* into, size_t max, std::chrono::milliseconds timeout) = 0;
  virtual void write(std::string_view bytes, std::chrono::milliseconds timeout) = 0;
  virtual void shutdown_write() = 0;
  virtual void cancel() = 0;  // from any thread: pending and later calls fail or end at once
};

// A response whose body is read as it comes.
class BodyReader {
 public:
  virtual ~BodyReader() = default;
  virtual const Response& head() const = 0;  // body empty
  virtual size_t read(char* into, size_t max, std::chrono::milliseconds timeout) = 0;
  virtual void cancel() = 0;
};

struct ClientRequest {
  std::string method = "GET";
  std::string target;
  Headers headers;
  std::string body;
  std::chrono::milliseconds timeout{60'000};  // for the whole exchange, or until the head
  size_t max_body = 64U << 20;
};

class Client {
 public:
  explicit Client(ClientTarget target);
  ~Client();
  // stop ends send() at once, open() and upgrade() until they return: then it is their cancel().
  // Error(unavailable) cannot connect or the peer went away, Error(timeout), Error(too_large),
  // Error(bad_gateway) not HTTP. Any status is a Response.
  Response send(const ClientRequest& request, std::stop_token stop = {});
  std::unique_ptr<BodyReader> open(const ClientRequest& request, std::stop_token stop = {});
  // Sends Connection: Upgrade, Upgrade: tcp. A status other than 101 and 200 is thrown as Error
  // with the body's text.
  std::unique_ptr<Duplex> upgrade(const ClientRequest& request, std::stop_token stop = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace umpteenth::http
