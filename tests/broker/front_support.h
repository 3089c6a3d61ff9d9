// A front door before a broker, and upstreams on loopback that a test's classifier lets through.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <map>
#include <thread>

#include "base/crypto.h"
#include "base/fd.h"
#include "base/http/listener.h"
#include "broker/front.h"
#include "broker/proxy_head.h"
#include "tests/broker/support.h"
#include "tests/support/raw_peer.h"

namespace umpteenth::broker {

// A server on 127.0.0.1 that handles each connection on a thread of its own. The handler ends when
// its socket does, at the latest with the object.
class Upstream {
 public:
  explicit Upstream(std::function<void(int socket)> serve) : serve_(std::move(serve)) {
    http::ListenOn where;
    where.host = "127.0.0.1";
    listener_ = http::listen_on(where);
    port_ = http::bound_port(listener_.get());
    fcntl(listener_.get(), F_SETFL, 0);
    thread_ = std::thread([this] { run(); });
  }
  ~Upstream() {
    ending_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    for (const Fd& socket : sockets_) shutdown(socket.get(), SHUT_RDWR);
    threads_.clear();
  }
  std::string at(const std::string& host) const { return host + ":" + std::to_string(port_); }
  int port() const { return port_; }
  int connections() const { return connections_; }

  static void echo(int socket) {
    std::array<char, 65536> bytes;
    for (ssize_t n = 0; (n = recv(socket, bytes.data(), bytes.size(), 0)) > 0;)
      say(socket, {bytes.data(), static_cast<size_t>(n)});
  }
  static void say(int socket, std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<size_t>(n));
    }
  }

 private:
  void run() {
    while (!ending_) {
      Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) continue;
      ++connections_;
      threads_.emplace_back([this, fd = socket.get()] {
        serve_(fd);
        shutdown(fd, SHUT_RDWR);
      });
      sockets_.push_back(std::move(socket));
    }
  }

  std::function<void(int)> serve_;
  Fd listener_;
  int port_ = 0;
  std::atomic<bool> ending_{false};
  std::atomic<int> connections_{0};
  std::vector<Fd> sockets_;
  std::vector<std::jthread> threads_;
  std::thread thread_;
};

class FrontTest : public BrokerTest {
 protected:
  FrontTest() {
    http::ListenOn none;
    none.adopt_only = true;
    api = std::make_unique<http::Server>(none, limits(2), site);
    api->start();
    options.resolve = [this](const std::string& host) {
      ++lookups;
      const std::lock_guard lock(names_mutex);
      const auto found = names.find(host);
      if (found == names.end()) throw Error(Code::bad_gateway, "no such name");
      std::vector<net::Address> addresses;
      for (const std::string& text : found->second) addresses.push_back(*net::parse_address(text));
      return addresses;
    };
    options.classify = [](const net::Address& address) {
      if (net::format(address) == "127.0.0.1") return net::Class::is_public;
      net::Topology topology;
      topology.known = true;
      return net::classify(address, topology);
    };
  }
  ~FrontTest() override {
    front.reset();
    api.reset();
  }

  void open_door() {
    front = std::make_unique<Front>(registry, *api, options);
    socket_path = (folder.path() / "broker.sock").string();
    front->listen_unix(socket_path, 0600);
    front->start();
  }
  // A run whose token is good for connections that say they were made to `endpoint`.
  std::string add_run_at(const std::string& endpoint, std::vector<std::string> domains,
                         bool allow_private = false) {
    runs::RunInfo info;
    info.ns = "default";
    info.name = "proxied";
    info.uid = "uid-" + endpoint;
    info.egress = {apis::NetworkMode::allowed_domains, std::move(domains), allow_private};
    live = std::make_shared<runs::LiveRun>(info, *store, clock);
    return registry.add(live, endpoint);
  }
  // As the relay does: behind a PROXY v2 header.
  std::unique_ptr<test::RawPeer> connect(const std::string& endpoint = "10.201.0.2") {
    auto peer = std::make_unique<test::RawPeer>(socket_path);
    peer->send(proxy_header(endpoint));
    return peer;
  }
  static std::string proxy_header(const std::string& to) {
    std::string header("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", 16);
    header += std::string("\x0a\xc9\x00\x03", 4);
    const net::Address address = *net::parse_address(to);
    header.append(address.bytes.begin() + 12, address.bytes.end());
    return header + std::string("\x30\x39\x1f\x91", 4);
  }
  static std::string credentials(const std::string& token) {
    return "Proxy-Authorization: Basic " + crypto::base64("ump:" + token) + "\r\n";
  }
  static std::string connect_head(const std::string& target, const std::string& token) {
    return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" + credentials(token) +
           "\r\n";
  }
  std::vector<std::string> recorded() const {
    std::vector<std::string> lines;
    for (const store::TimelineRow& row : store->timeline_read(live->info().uid, 0, 10'000)) {
      const json::Value event = json::parse(row.json);
      lines.push_back(event.get_string("name") + " " +
                      (event.get_bool("allowed") ? "allowed" : event.get_string("error")));
    }
    return lines;
  }

  TempDir folder;
  std::string socket_path;
  FrontOptions options;
  std::mutex names_mutex;
  std::map<std::string, std::vector<std::string>> names;
  std::atomic<int> lookups{0};
  std::shared_ptr<runs::LiveRun> live;
  std::unique_ptr<http::Server> api;
  std::unique_ptr<Front> front;
};

}  // namespace umpteenth::broker
