// `ump relay`: forwards TCP connections of sandboxes to the broker's Unix socket, each behind a
// PROXY v2 header that says who connected, and to which address. With --dns it does the same for
// questions to a resolver, by TCP and by UDP.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <initializer_list>

#include "ump/relay_connection.h"
#include "ump/relay_dns.h"
#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int kMaxConnections = 1024;
constexpr int kMaxPerSource = 320;
// epoll's data: 0 the listener, 1 the signals, 2 the listener for DNS, then the connections, two
// each, then what RelayDns has.
constexpr uint64_t kDnsListener = 2, kFirstConnection = 4;
constexpr uint64_t kDns = kFirstConnection + 2 * kMaxConnections;

RelayConnection connections[kMaxConnections];
RelayDns dns;

bool parse_listen(const char* text, sockaddr_storage* address, socklen_t* length) {
  const char* colon = strrchr(text, ':');
  long port = 0;
  if (!colon || !parse_number(colon + 1, 0, 65535, &port)) return false;
  char host[64] = "0.0.0.0";
  const char* from = text;
  size_t n = static_cast<size_t>(colon - text);
  if (n >= 2 && text[0] == '[' && colon[-1] == ']') {
    ++from;
    n -= 2;
  }
  if (n >= sizeof host) return false;
  if (n > 0) {
    memcpy(host, from, n);
    host[n] = '\0';
  }
  memset(address, 0, sizeof *address);
  auto* v4 = reinterpret_cast<sockaddr_in*>(address);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(address);
  if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    *length = sizeof *v4;
    return true;
  }
  if (inet_pton(AF_INET6, host, &v6->sin6_addr) != 1) return false;
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<uint16_t>(port));
  *length = sizeof *v6;
  return true;
}

sigset_t ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, s);
  return signals;
}

// kind: SOCK_STREAM or SOCK_DGRAM. -2 where the text is no address, -1 (said) where it cannot be
// had.
int bind_to(const char* text, int kind) {
  sockaddr_storage address;
  socklen_t length = 0;
  if (!parse_listen(text, &address, &length)) return -2;
  const int fd = socket(address.ss_family, kind | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      (kind == SOCK_STREAM && listen(fd, 256) != 0)) {
    complain_errno("cannot listen on %s", text);
    return -1;
  }
  return fd;
}

int listen_on(const char* text) {
  const int fd = bind_to(text, SOCK_STREAM);
  if (fd < 0) return fd;
  sockaddr_storage address;
  socklen_t length = sizeof address;
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  const auto* v4 = reinterpret_cast<sockaddr_in*>(&address);  // the port lies there in both
  fprintf(stderr, "ump: relay listens on port %d\n", ntohs(v4->sin_port));
  return fd;
}

class Relay {
 public:
  Relay(int listener, const char* socket_path) : listener_(listener), path_(socket_path) {}
  void serve_dns(int listener, int datagrams, const char* socket_path) {
    dns_listener_ = listener;
    datagrams_ = datagrams;
    dns_path_ = socket_path;
  }

  int run() {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    const sigset_t signals = ending_signals();
    const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (epoll_ < 0 || signal_fd < 0 || !watch(listener_, 0) || !watch(signal_fd, 1)) {
      complain_errno("cannot wait for connections");
      return kFailed;
    }
    if (dns_path_ &&
        (!watch(dns_listener_, kDnsListener) || !dns.open(epoll_, kDns, datagrams_, dns_path_)))
      return kFailed;
    epoll_event events[64];
    while (true) {
      const int n = epoll_wait(epoll_, events, 64, tick_ms());
      if (n < 0 && errno != EINTR) {
        complain_errno("cannot wait for connections");
        return kFailed;
      }
      for (int i = 0; i < n; ++i) {
        const uint64_t id = events[i].data.u64;
        if (id == 1) return kOk;
        if (id == 0)
          accept_some(listener_, path_);
        else if (id == kDnsListener)
          accept_some(dns_listener_, dns_path_);
        else if (dns.owns(id))
          dns.step(id);
        else
          step(connections[(id - kFirstConnection) / 2]);
      }
      dns.expire(monotonic_ms());
      for (RelayConnection& connection : connections)
        if (connection.in_use() && connection.overdue(monotonic_ms())) step(connection);
    }
  }

 private:
  bool watch(int fd, uint64_t what) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = what;
    return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
  }

  // Connections that wait for the target or for a slow client have a deadline.
  int tick_ms() const {
    for (const RelayConnection& connection : connections)
      if (connection.in_use() && connection.has_deadline()) return 100;
    return dns.has_deadline() ? 500 : -1;
  }

  void step(RelayConnection& connection) {
    if (connection.in_use()) connection.step(monotonic_ms());
  }

  void accept_some(int listener, const char* path) {
    for (int i = 0; i < 64; ++i) {  // the others get their turn too
      sockaddr_storage peer{};
      socklen_t length = sizeof peer;
      const int fd = accept4(listener, reinterpret_cast<sockaddr*>(&peer), &length,
                             SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) return;
      RelayConnection* slot = place_for(peer);
      if (!slot) {
        close(fd);
        continue;
      }
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      const auto index = static_cast<uint64_t>(slot - connections);
      slot->open(epoll_, kFirstConnection + 2 * index, fd, peer, path);
      step(*slot);
    }
  }

  // A source never has more places than are free, so that however many sources flood, another one
  // still finds some.
  RelayConnection* place_for(const sockaddr_storage& peer) {
    RelayConnection* free_slot = nullptr;
    int of_source = 0, free_slots = 0;
    for (RelayConnection& connection : connections) {
      if (!connection.in_use()) {
        free_slot = &connection;
        ++free_slots;
      } else if (connection.is_from(peer)) {
        ++of_source;
      }
    }
    return of_source < kMaxPerSource && of_source < free_slots ? free_slot : nullptr;
  }

  const int listener_;
  const char* const path_;
  int epoll_ = -1, dns_listener_ = -1, datagrams_ = -1;
  const char* dns_path_ = nullptr;
};

bool allow_descriptors() {
  constexpr rlim_t kNeeded = 2 * kMaxConnections + RelayDns::kMostQuestions + 16;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_cur >= kNeeded) return true;
  if (limit.rlim_max < kNeeded) limit.rlim_max = kNeeded;
  limit.rlim_cur = kNeeded;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace

int command_relay(int argc, char** argv) {
  const char* listen = nullptr;
  const char* path = nullptr;
  const char* dns_address = nullptr;
  const char* dns_path = nullptr;
  for (int i = 0; i < argc; i += 2) {
    const char** value = strcmp(argv[i], "--listen") == 0       ? &listen
                         : strcmp(argv[i], "--socket") == 0     ? &path
                         : strcmp(argv[i], "--dns") == 0        ? &dns_address
                         : strcmp(argv[i], "--dns-socket") == 0 ? &dns_path
                                                                : nullptr;
    if (!value) return usage("relay: unknown argument \"%s\"", argv[i]);
    if (i + 1 == argc) return usage("relay: %s needs a value", argv[i]);
    *value = argv[i + 1];
  }
  if (!listen || !path) return usage("relay: --listen ADDRESS:PORT and --socket PATH are needed");
  if (!dns_address != !dns_path) return usage("relay: --dns and --dns-socket go together");
  for (const char* p : {path, dns_path})
    if (p && strlen(p) >= sizeof(sockaddr_un::sun_path))
      return usage("relay: a socket's path is longer than 107 bytes");
  if (!allow_descriptors()) {
    complain_errno("relay: cannot raise the limit of open files");
    return kFailed;
  }
  const sigset_t signals = ending_signals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int fd = listen_on(listen);
  if (fd == -2) return usage("relay: --listen: \"%s\" is no ADDRESS:PORT", listen);
  if (fd < 0) return kFailed;
  Relay relay(fd, path);
  if (dns_address) {
    const int stream = bind_to(dns_address, SOCK_STREAM);
    if (stream == -2) return usage("relay: --dns: \"%s\" is no ADDRESS:PORT", dns_address);
    const int datagrams = stream < 0 ? -1 : bind_to(dns_address, SOCK_DGRAM);
    if (datagrams < 0) return kFailed;
    relay.serve_dns(stream, datagrams, dns_path);
  }
  return relay.run();
}

}  // namespace umpteenth::ump
