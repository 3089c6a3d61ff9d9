// DNS messages made by hand, and an upstream resolver that answers as it is told.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "broker/dns/message.h"

namespace umpteenth::broker::dns {

inline std::string word(size_t n) { return {static_cast<char>(n >> 8), static_cast<char>(n)}; }
inline std::string wire(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const size_t n = std::min(name.find('.'), name.size());
    out += static_cast<char>(n);
    out += name.substr(0, n);
    name.remove_prefix(std::min(n + 1, name.size()));
  }
  return out + '\0';
}
inline std::string asks(std::string_view name, uint16_t type, uint16_t id = 7) {
  return word(id) + word(0x0100) + word(1) + word(0) + word(0) + word(0) + wire(name) + word(type) +
         word(1);
}
inline std::string record(uint16_t type, std::string_view data, uint32_t ttl = 60) {
  return "\xc0\x0c" + word(type) + word(1) + word(ttl >> 16) + word(ttl & 0xFFFF) +
         word(data.size()) + std::string(data);
}
inline std::string a(const char* address) {
  in_addr four{};
  inet_pton(AF_INET, address, &four);
  return record(kA, {reinterpret_cast<const char*>(&four), 4});
}
// An answer to a question as asks() makes it, or as the forwarder sends it (with EDNS).
inline std::string says(std::string_view question, const std::vector<std::string>& records,
                        uint16_t flags = 0x8180) {
  size_t end = 12;
  while (question[end] != 0) end += static_cast<uint8_t>(question[end]) + 1U;
  std::string text(question.substr(0, 2));
  text += word(flags) + word(1) + word(records.size()) + word(0) + word(0);
  text += question.substr(12, end + 5 - 12);
  for (const std::string& r : records) text += r;
  return text;
}

// On 127.0.0.1, by UDP and TCP on one port.
class FakeResolver {
 public:
  using Reply = std::function<std::string(const std::string& question, bool tcp)>;  // "" = none
  explicit FakeResolver(Reply reply) : reply_(std::move(reply)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof at;
    for (int tries = 0; tries < 50; ++tries) {
      at.sin_port = 0;
      udp_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      tcp_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      ::bind(udp_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at);
      ::getsockname(udp_.get(), reinterpret_cast<sockaddr*>(&at), &n);
      if (::bind(tcp_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) break;
    }
    ::listen(tcp_.get(), 16);
    address_ = at;
    thread_ = std::thread([this] { run(); });
  }
  ~FakeResolver() {
    ending_ = true;
    thread_.join();
  }
  sockaddr_in address() const { return address_; }
  int questions() const { return questions_; }

 private:
  void run() {
    while (!ending_) {
      std::array<pollfd, 2> p{pollfd{udp_.get(), POLLIN, 0}, pollfd{tcp_.get(), POLLIN, 0}};
      if (::poll(p.data(), 2, 20) <= 0) continue;
      std::array<char, 4096> bytes;
      if (p[0].revents != 0) {
        sockaddr_in peer{};
        socklen_t size = sizeof peer;
        const ssize_t n = ::recvfrom(udp_.get(), bytes.data(), bytes.size(), 0,
                                     reinterpret_cast<sockaddr*>(&peer), &size);
        if (n <= 0) continue;
        ++questions_;
        const std::string text = reply_({bytes.data(), static_cast<size_t>(n)}, false);
        if (!text.empty())
          ::sendto(udp_.get(), text.data(), text.size(), 0, reinterpret_cast<sockaddr*>(&peer),
                   size);
      }
      if (p[1].revents != 0) {
        const Fd c(::accept(tcp_.get(), nullptr, nullptr));
        const ssize_t n = ::recv(c.get(), bytes.data(), bytes.size(), 0);
        if (n <= 2) continue;
        const std::string text = reply_({bytes.data() + 2, static_cast<size_t>(n) - 2}, true);
        const std::string framed = word(text.size()) + text;
        if (!text.empty()) ::send(c.get(), framed.data(), framed.size(), MSG_NOSIGNAL);
      }
    }
  }

  Reply reply_;
  Fd udp_, tcp_;
  sockaddr_in address_{};
  std::atomic<bool> ending_{false};
  std::atomic<int> questions_{0};
  std::thread thread_;
};

}  // namespace umpteenth::broker::dns
