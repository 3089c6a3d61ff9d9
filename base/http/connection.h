// One client of a server. Lives on the io thread, but for Site::handle.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/http/handler_pool.h"
#include "base/http/server.h"

namespace boost::asio {
class io_context;
namespace ssl {
class context;
}
}  // namespace boost::asio

namespace umpteenth::http {

class Connection;

// What all connections of a server share. Counters are read by other threads, the rest belongs to
// the io thread.
struct Shared {
  Shared(Limits l, Site s, bool proxy)
      : limits(l), site(std::move(s)), proxy_v2(proxy), pool(l.handler_threads, l.handler_queue) {}

  const Limits limits;
  const Site site;
  const bool proxy_v2;
  HandlerPool pool;
  boost::asio::io_context* io = nullptr;
  std::shared_ptr<boost::asio::ssl::context> tls;  // null = plain
  std::unordered_set<Connection*> connections;
  struct Peer {
    size_t connections = 0, body_bytes = 0;
  };
  std::unordered_map<std::string, Peer> per_peer;
  bool stopping = false;

  std::atomic<size_t> open{0}, in_flight{0};
  std::atomic<uint64_t> requests{0}, refused{0};

  std::string_view date();

 private:
  int64_t date_second_ = 0;
  std::string date_;
};

// Takes the socket. The connection keeps itself alive until it ends, then leaves
// shared.connections.
void begin_connection(Shared& shared, int socket, Endpoint peer, Endpoint local);
// The same for one whose ends are known and of which something has been read already.
void begin_adopted(Shared& shared, int socket, const std::string& already_read, Endpoint peer,
                   Endpoint local);
// Ends it as soon as the request under way has been answered; streams end properly.
void wind_down(Connection& connection);
void cut(Connection& connection);
void cut(Connection& connection, const std::string& local_address);  // where that is its own

}  // namespace umpteenth::http
