#include "broker/dns/datagram.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/error.h"

namespace umpteenth::broker::dns {

void ask_for_addresses(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
}

bool receive_datagram(int fd, std::string& bytes, DatagramEnds& ends) {
  std::array<char, 4096> room;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in_pktinfo))> control{};
  iovec part{room.data(), room.size()};
  msghdr message{};
  message.msg_name = &ends.peer;
  message.msg_namelen = sizeof ends.peer;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t n = ::recvmsg(fd, &message, MSG_DONTWAIT);
  if (n < 0) return false;
  bytes.assign(room.data(), static_cast<size_t>(n));
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO) continue;
    in_pktinfo info;
    std::memcpy(&info, CMSG_DATA(c), sizeof info);
    ends.local = info.ipi_addr;
  }
  return true;
}

void send_datagram(int fd, const DatagramEnds& to, std::string text) {
  sockaddr_in peer = to.peer;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in_pktinfo))> control{};
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_name = &peer;
  message.msg_namelen = sizeof peer;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = IPPROTO_IP;
  c->cmsg_type = IP_PKTINFO;
  c->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info{};
  info.ipi_spec_dst = to.local;
  std::memcpy(CMSG_DATA(c), &info, sizeof info);
  ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);  // who got no answer asks again
}

std::string text_of(const in_addr& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET, &address, text.data(), text.size());
}

Fd bind_datagrams(int port) {
  Fd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<uint16_t>(port));
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0)
    throw errno_error(Code::unavailable, "bind UDP port " + std::to_string(port));
  return fd;
}

}  // namespace umpteenth::broker::dns
