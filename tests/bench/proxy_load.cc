// Measures egress proxies side by side against one origin on loopback:
//   proxy_load PAIRS REQUESTS MEBIBYTES TUNNELS SAMPLES NAME:PORT:PID[,PID…][:TOKENFILE] …
// The first proxy is compared with each other one. CPU is that of the proxy's processes.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/crypto.h"
#include "base/fd.h"

namespace umpteenth {
namespace {

using Steady = std::chrono::steady_clock;
constexpr char kBody[] = "0123456789abcdef";  // of a small answer
constexpr size_t kTunnelsPerRun = 200;        // below the limit of 256

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "proxy_load: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

sockaddr_in at(int last_byte, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(0x7F000000U | static_cast<uint32_t>(last_byte));
  return address;
}

Fd connect_to(int last_byte, int port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = at(last_byte, port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fail("connect to 127.0.0." + std::to_string(last_byte) + ":" + std::to_string(port));
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

void say(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) fail("send");
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::string read_head(int socket) {
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n")) {
    if (recv(socket, &byte, 1, 0) != 1) fail("the head of an answer; so far: " + head);
    head += byte;
  }
  return head;
}

size_t read_to_end(int socket) {
  static thread_local std::array<char, 256U << 10> bytes;
  size_t total = 0;
  for (ssize_t n = 0; (n = recv(socket, bytes.data(), bytes.size(), 0)) > 0;)
    total += static_cast<size_t>(n);
  return total;
}

// Answers `GET /small` with a few bytes and `GET /N` with N MiB, then closes; a connection that
// begins with a dot stays open.
class Origin {
 public:
  Origin() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = at(1, 0);
    socklen_t size = sizeof address;
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_.get(), 4096) != 0 ||
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      fail("listen");
    port_ = ntohs(address.sin_port);
    for (int i = 0; i < 4; ++i) std::thread([this] { accept_all(); }).detach();
  }
  int port() const { return port_; }

 private:
  void accept_all() {
    for (;;) {
      Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) continue;
      char first = 0;
      if (recv(socket.get(), &first, 1, MSG_PEEK) <= 0 || first == '.') {
        idle_.push(std::move(socket));
        continue;
      }
      answer(socket.get());
    }
  }
  static void answer(int socket) {
    const std::string head = read_head(socket);
    const std::string path = head.substr(5, head.find(' ', 5) - 5);
    const size_t mebibytes = static_cast<size_t>(std::atoi(path.c_str()));
    const size_t size = mebibytes > 0 ? mebibytes << 20 : sizeof kBody - 1;
    say(socket, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(size) +
                    "\r\n\r\n");
    if (mebibytes == 0) return say(socket, kBody);
    static const std::string block(256U << 10, 'x');
    for (size_t sent = 0; sent < size; sent += block.size()) say(socket, block);
  }

  struct Kept {
    void push(Fd socket) {
      const std::lock_guard lock(mutex);
      sockets.push_back(std::move(socket));
    }
    std::mutex mutex;
    std::vector<Fd> sockets;
  } idle_;
  Fd listener_;
  int port_ = 0;
};

struct Proxy {
  std::string name;
  int port = 0;
  std::vector<int> pids;
  std::vector<std::string> tokens;  // of the endpoints 127.0.0.1, 127.0.0.2, …; none: no login

  std::string login(size_t endpoint) const {
    if (tokens.empty()) return "";
    return "Proxy-Authorization: Basic " + crypto::base64("ump:" + tokens[endpoint]) + "\r\n";
  }
  double cpu_seconds() const {
    double sum = 0;
    for (const int pid : pids) {
      clockid_t clock{};
      timespec used{};
      if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        fail(name + "'s process");
      sum += static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
    }
    return sum;
  }
  double pss_mib() const {
    double kib = 0;
    for (const int pid : pids) {
      std::ifstream in("/proc/" + std::to_string(pid) + "/smaps_rollup");
      for (std::string line; std::getline(in, line);)
        if (line.starts_with("Pss:")) kib += std::atof(line.c_str() + 4);
    }
    return kib / 1024;
  }
};

Proxy proxy_from(const std::string& text) {
  std::istringstream in(text);
  Proxy proxy;
  std::string port, pids, file;
  std::getline(in, proxy.name, ':');
  std::getline(in, port, ':');
  std::getline(in, pids, ':');
  std::getline(in, file);
  proxy.port = std::atoi(port.c_str());
  std::istringstream list(pids);
  for (std::string pid; std::getline(list, pid, ',');) proxy.pids.push_back(std::atoi(pid.c_str()));
  if (!file.empty()) {
    std::ifstream lines(file);
    for (std::string token; std::getline(lines, token);) proxy.tokens.push_back(token);
  }
  return proxy;
}

// One request on a connection of its own, as a command in a sandbox does it.
void small_request(const Proxy& proxy, int origin) {
  const std::string host = "localhost:" + std::to_string(origin);
  const Fd socket = connect_to(1, proxy.port);
  say(socket.get(), "GET http://" + host + "/small HTTP/1.1\r\nHost: " + host + "\r\n" +
                        proxy.login(0) + "Connection: close\r\n\r\n");
  const std::string head = read_head(socket.get());
  if (head.find(" 200 ") == std::string::npos) fail(proxy.name + " refused a request: " + head);
  if (read_to_end(socket.get()) != sizeof kBody - 1) fail(proxy.name + " altered an answer");
}

Fd tunnel(const Proxy& proxy, int origin, size_t endpoint) {
  const std::string host = "localhost:" + std::to_string(origin);
  Fd socket = connect_to(proxy.tokens.empty() ? 1 : static_cast<int>(endpoint) + 1, proxy.port);
  say(socket.get(),
      "CONNECT " + host + " HTTP/1.1\r\nHost: " + host + "\r\n" + proxy.login(endpoint) + "\r\n");
  const std::string head = read_head(socket.get());
  if (head.find(" 200 ") == std::string::npos) fail(proxy.name + " refused a tunnel: " + head);
  return socket;
}

double cpu_of_requests(const Proxy& proxy, int origin, int requests) {
  const double before = proxy.cpu_seconds();
  std::atomic<int> left{requests};
  std::vector<std::jthread> clients;
  for (int i = 0; i < 4; ++i)
    clients.emplace_back([&] {
      while (left-- > 0) small_request(proxy, origin);
    });
  clients.clear();
  return (proxy.cpu_seconds() - before) * 10'000 / requests;
}

double cpu_of_bytes(const Proxy& proxy, int origin, int mebibytes) {
  const double before = proxy.cpu_seconds();
  const Fd socket = tunnel(proxy, origin, 0);
  say(socket.get(), "GET /" + std::to_string(mebibytes) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  read_head(socket.get());
  if (read_to_end(socket.get()) != static_cast<size_t>(mebibytes) << 20)
    fail(proxy.name + " lost bytes");
  return (proxy.cpu_seconds() - before) * 1024 / mebibytes;
}

double milliseconds_of_request(const Proxy& proxy, int origin) {
  const auto begin = Steady::now();
  small_request(proxy, origin);
  return std::chrono::duration<double, std::milli>(Steady::now() - begin).count();
}

double milliseconds_direct(int origin) {
  const auto begin = Steady::now();
  const Fd socket = connect_to(1, origin);
  say(socket.get(), "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n");
  read_head(socket.get());
  read_to_end(socket.get());
  return std::chrono::duration<double, std::milli>(Steady::now() - begin).count();
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(q * static_cast<double>(values.size())))];
}

// Interleaved: each round measures every proxy once. The first against each other one: both
// medians, the median of the rounds' ratios and its 95 % interval (6th and 15th of 20).
template <typename Measure>
void compare(const char* what, const std::vector<Proxy>& proxies, int pairs, Measure measure) {
  std::vector<std::vector<double>> seen(proxies.size());
  for (const Proxy& proxy : proxies) measure(proxy);  // warm
  for (int i = 0; i < pairs; ++i)
    for (size_t p = 0; p < proxies.size(); ++p) seen[p].push_back(measure(proxies[p]));
  for (size_t p = 1; p < proxies.size(); ++p) {
    std::vector<double> ratios;
    for (int i = 0; i < pairs; ++i)
      ratios.push_back(seen[p][static_cast<size_t>(i)] > 0
                           ? seen[0][static_cast<size_t>(i)] / seen[p][static_cast<size_t>(i)]
                           : 0);
    std::printf("%-34s %8.3f s    %-22s %8.3f s    ratio %.2f  [%.2f, %.2f]  n=%d\n", what,
                quantile(seen[0], 0.5), proxies[p].name.c_str(), quantile(seen[p], 0.5),
                quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.7), pairs);
  }
  std::fflush(stdout);
}

// What a request takes longer than without a proxy; p99 of SAMPLES, interleaved.
void latency(const std::vector<Proxy>& proxies, int origin, int samples) {
  std::vector<double> direct;
  std::vector<std::vector<double>> seen(proxies.size());
  for (int i = 0; i < samples; ++i) {
    direct.push_back(milliseconds_direct(origin));
    for (size_t p = 0; p < proxies.size(); ++p)
      seen[p].push_back(milliseconds_of_request(proxies[p], origin));
  }
  for (size_t p = 0; p < proxies.size(); ++p)
    std::printf(
        "added latency, %-19s p50 %.2f ms   p99 %.2f ms   (direct p50 %.2f, p99 %.2f)  n=%d\n",
        proxies[p].name.c_str(), quantile(seen[p], 0.5) - quantile(direct, 0.5),
        quantile(seen[p], 0.99) - quantile(direct, 0.99), quantile(direct, 0.5),
        quantile(direct, 0.99), samples);
  std::fflush(stdout);
}

void memory(const std::vector<Proxy>& proxies, int origin, int tunnels) {
  for (const Proxy& proxy : proxies) {
    const double before = proxy.pss_mib();
    std::vector<Fd> open;
    for (int i = 0; i < tunnels; ++i) {
      open.push_back(tunnel(proxy, origin, static_cast<size_t>(i) / kTunnelsPerRun));
      say(open.back().get(), ".");
    }
    std::printf("PSS at %d tunnels, %-16s %.1f MiB (idle %.1f)\n", tunnels, proxy.name.c_str(),
                proxy.pss_mib(), before);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace umpteenth

int main(int argc, char** argv) {
  using namespace umpteenth;  // NOLINT(google-build-using-namespace): main only
  if (argc < 7) {
    std::fprintf(stderr,
                 "usage: proxy_load PAIRS REQUESTS MEBIBYTES TUNNELS SAMPLES NAME:PORT:PIDS …\n");
    return 2;
  }
  rlimit files{16384, 16384};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const int pairs = std::atoi(argv[1]), requests = std::atoi(argv[2]);
  const int mebibytes = std::atoi(argv[3]), tunnels = std::atoi(argv[4]);
  std::vector<Proxy> proxies;
  for (int i = 6; i < argc; ++i) proxies.push_back(proxy_from(argv[i]));
  const Origin origin;
  compare("CPU of 10 000 requests", proxies, pairs,
          [&](const Proxy& p) { return cpu_of_requests(p, origin.port(), requests); });
  compare("CPU of 1 GiB of CONNECT", proxies, pairs,
          [&](const Proxy& p) { return cpu_of_bytes(p, origin.port(), mebibytes); });
  latency(proxies, origin.port(), std::atoi(argv[5]));
  memory(proxies, origin.port(), tunnels);
}
