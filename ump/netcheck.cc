// `ump netcheck`: which addresses can be reached from here. All are tried at once.
//
// An address is ADDRESS:PORT ([v6]:PORT) for TCP, or icmp:ADDRESS for an echo, which every IPv4
// host answers unless something refuses it. Reached means answered: a refused connection is not.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int kMaxTargets = 64;
constexpr int64_t kMaxTimeout = 60'000;

struct Target {
  const char* text = "";
  bool expected = false, icmp = false, reached = false;
  sockaddr_storage address{};
  socklen_t length = 0;
};

Target targets[kMaxTargets];
pollfd polled[kMaxTargets];

bool parse_address(const char* host, int port, Target* t) {
  auto* four = reinterpret_cast<sockaddr_in*>(&t->address);
  auto* six = reinterpret_cast<sockaddr_in6*>(&t->address);
  if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    t->length = sizeof *four;
    return true;
  }
  if (t->icmp || inet_pton(AF_INET6, host, &six->sin6_addr) != 1) return false;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(static_cast<uint16_t>(port));
  t->length = sizeof *six;
  return true;
}

bool parse_target(const char* text, bool expected, Target* t) {
  *t = {};
  t->text = text;
  t->expected = expected;
  if (strncmp(text, "icmp:", 5) == 0) {
    t->icmp = true;
    return parse_address(text + 5, 0, t);
  }
  const char* colon = strrchr(text, ':');
  long port = 0;
  if (!colon || !parse_number(colon + 1, 1, 65535, &port)) return false;
  char host[INET6_ADDRSTRLEN];
  auto n = static_cast<size_t>(colon - text);
  if (n >= 2 && text[0] == '[' && colon[-1] == ']') {
    ++text;
    n -= 2;
  }
  if (n >= sizeof host) return false;
  memcpy(host, text, n);
  host[n] = '\0';
  return parse_address(host, static_cast<int>(port), t);
}

bool begin_echo(int fd, const Target& t) {
  icmphdr echo{};
  echo.type = ICMP_ECHO;  // the kernel fills in the identifier and the sum
  return connect(fd, reinterpret_cast<const sockaddr*>(&t.address), t.length) == 0 &&
         send(fd, &echo, sizeof echo, 0) == sizeof echo;
}

enum class Begun { pending, reached, unreachable, broken };

Begun begin(const Target& t, int* fd) {
  const int kind = SOCK_NONBLOCK | SOCK_CLOEXEC | (t.icmp ? SOCK_DGRAM : SOCK_STREAM);
  *fd = socket(t.address.ss_family, kind, t.icmp ? static_cast<int>(IPPROTO_ICMP) : 0);
  if (*fd < 0) {
    if (errno == EAFNOSUPPORT) return Begun::unreachable;
    complain_errno("cannot try %s", t.text);
    return Begun::broken;
  }
  if (t.icmp) return begin_echo(*fd, t) ? Begun::pending : Begun::unreachable;
  if (connect(*fd, reinterpret_cast<const sockaddr*>(&t.address), t.length) == 0)
    return Begun::reached;
  return errno == EINPROGRESS ? Begun::pending : Begun::unreachable;
}

// What a ready socket says: for TCP that the connection stands, for ICMP that an echo came back.
bool answered(int fd, bool icmp) {
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) return false;
  if (!icmp) return true;
  icmphdr reply{};
  return recv(fd, &reply, sizeof reply, 0) >= static_cast<ssize_t>(sizeof reply) &&
         reply.type == ICMP_ECHOREPLY;
}

bool try_all(int count, int64_t timeout) {
  const int64_t deadline = monotonic_ms() + timeout;
  int pending = 0;
  for (int i = 0; i < count; ++i) {
    int fd = -1;
    const Begun begun = begin(targets[i], &fd);
    if (begun == Begun::broken) return false;
    targets[i].reached = begun == Begun::reached;
    polled[i] = {begun == Begun::pending ? fd : -1,
                 static_cast<short>(targets[i].icmp ? POLLIN : POLLOUT), 0};
    if (begun == Begun::pending) ++pending;
  }
  for (int64_t left = timeout; pending > 0 && left > 0; left = deadline - monotonic_ms()) {
    if (poll(polled, static_cast<nfds_t>(count), static_cast<int>(left)) < 0 && errno != EINTR)
      break;
    for (int i = 0; i < count; ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      targets[i].reached = answered(polled[i].fd, targets[i].icmp);
      polled[i].fd = -1;
      --pending;
    }
  }
  return true;
}

}  // namespace

int command_netcheck(int argc, char** argv) {
  int64_t timeout = 3000;
  int count = 0, expecting = -1;
  for (int i = 0; i < argc; ++i) {
    if (strcmp(argv[i], "--reach") == 0) {
      expecting = 1;
    } else if (strcmp(argv[i], "--unreachable") == 0) {
      expecting = 0;
    } else if (strcmp(argv[i], "--timeout") == 0) {
      if (++i >= argc || !parse_duration(argv[i], &timeout) || timeout > kMaxTimeout)
        return usage("netcheck: --timeout needs a duration of at most 1m");
    } else if (expecting < 0) {
      return usage("netcheck: \"%s\" before --reach or --unreachable", argv[i]);
    } else if (count == kMaxTargets) {
      return usage("netcheck: more than %d addresses", kMaxTargets);
    } else if (!parse_target(argv[i], expecting == 1, &targets[count++])) {
      return usage("netcheck: \"%s\" is not ADDRESS:PORT or icmp:ADDRESS", argv[i]);
    }
  }
  if (count == 0) return usage("netcheck: no address");
  if (!try_all(count, timeout)) return kFailed;
  int result = kOk;
  for (int i = 0; i < count; ++i) {
    printf("%s %s\n", targets[i].reached ? "reachable" : "unreachable", targets[i].text);
    if (targets[i].reached != targets[i].expected) result = kFailed;
  }
  return result;
}

}  // namespace umpteenth::ump
