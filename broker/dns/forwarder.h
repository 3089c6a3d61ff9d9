// The resolver of sandboxes with Internet access: answers by the rules of policy.h what an upstream
// resolver says. One thread, bounded memory; one run's questions do not take another's place.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/net/address.h"
#include "broker/dns/lookup.h"
#include "runs/registry.h"

namespace umpteenth::broker::dns {

struct ForwarderOptions {
  // The engines' networks and what is blocked; asked on a thread of its own, twice a minute.
  std::function<net::Topology()> topology;
  std::vector<sockaddr_in> upstreams;  // empty: those of the host's resolv.conf
  Lookup::Timing timing;
  std::chrono::milliseconds idle{10'000};  // of a client's connection
  size_t questions_a_second = 50;          // a run's
  size_t open_questions = 64;              // a run's
  size_t clients = 512;
  size_t recorded_names = 200;  // a run's, on its timeline
};

class Forwarder {
 public:
  Forwarder(runs::Registry& registry, ForwarderOptions options);
  ~Forwarder();

  // Before start(). Connections begin with a PROXY v2 header: the address that a sandbox asked is
  // its run's endpoint. Behind it questions follow as in DNS over TCP.
  void listen_unix(const std::string& path, int mode);
  // Where umpd is the endpoint itself: UDP and TCP on all of its addresses. A port that cannot be
  // had is said in the log, and then runs have no resolver.
  void listen(int port);
  void start();
  void stop();

  // Sockets inside a sandbox's network namespace, bound to its port 53: datagrams, and a listener.
  // Dropping what is returned closes them. Any thread.
  std::shared_ptr<void> adopt(Fd datagrams, Fd listener, std::string endpoint);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// The IPv4 name servers of a resolv.conf; 127.0.0.1 where it has none.
std::vector<sockaddr_in> upstreams_in(std::string_view resolv_conf);
sockaddr_in upstream(const net::Address& address, int port = 53);

}  // namespace umpteenth::broker::dns
