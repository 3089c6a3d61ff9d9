#include "ump/relay_dns.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr int64_t kWithinMs = 6000;
constexpr uint16_t kPort = 53;

int connect_to(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

void proxy_header(const sockaddr_in& peer, in_addr local, unsigned char (&header)[28]) {
  static const unsigned char kBegin[] = {0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51,
                                         0x55, 0x49, 0x54, 0x0A, 0x21, 0x12, 0,    12};
  const uint16_t port = htons(kPort);
  memcpy(header, kBegin, sizeof kBegin);
  memcpy(header + 16, &peer.sin_addr, 4);
  memcpy(header + 20, &local, 4);
  memcpy(header + 24, &peer.sin_port, 2);
  memcpy(header + 26, &port, 2);
}

}  // namespace

bool RelayDns::open(int epoll, uint64_t id, int datagrams, const char* path) {
  const int on = 1;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (setsockopt(datagrams, IPPROTO_IP, IP_PKTINFO, &on, sizeof on) != 0 ||
      epoll_ctl(epoll, EPOLL_CTL_ADD, datagrams, &event) != 0) {
    complain_errno("relay: cannot wait for questions");
    return false;
  }
  epoll_ = epoll;
  id_ = id;
  datagrams_ = datagrams;
  path_ = path;
  return true;
}

void RelayDns::step(uint64_t id) {
  if (id == id_) return take_questions();
  Question& q = questions_[id - id_ - 1];
  if (q.fd > 0) read_answer(q);
}

bool RelayDns::has_deadline() const {
  for (const Question& q : questions_)
    if (q.fd > 0) return true;
  return false;
}

void RelayDns::expire(int64_t now) {
  for (Question& q : questions_)
    if (q.fd > 0 && now >= q.deadline) free_question(q);
}

void RelayDns::take_questions() {
  for (int i = 0; i < 64; ++i) {  // the others get their turn too
    unsigned char bytes[kMostQuestion];
    sockaddr_in peer{};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))];
    iovec part{bytes, sizeof bytes};
    msghdr message{};
    message.msg_name = &peer;
    message.msg_namelen = sizeof peer;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(datagrams_, &message, MSG_DONTWAIT);
    if (n < 0) return;
    if ((message.msg_flags & MSG_TRUNC) || peer.sin_family != AF_INET) continue;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO) continue;
      in_pktinfo info;
      memcpy(&info, CMSG_DATA(c), sizeof info);
      ask(peer, info.ipi_addr, bytes, static_cast<size_t>(n));
    }
  }
}

// Nothing waits for room: who gets no answer asks again.
void RelayDns::ask(const sockaddr_in& peer, in_addr local, const unsigned char* question,
                   size_t n) {
  Question* slot = nullptr;
  int of_source = 0;
  for (Question& q : questions_) {
    if (q.fd == 0)
      slot = &q;
    else if (q.peer.sin_addr.s_addr == peer.sin_addr.s_addr)
      ++of_source;
  }
  if (!slot || of_source >= kMostPerSource) return;
  const int fd = connect_to(path_);
  if (fd < 0) return;
  unsigned char header[28];
  proxy_header(peer, local, header);
  unsigned char length[2] = {static_cast<unsigned char>(n >> 8), static_cast<unsigned char>(n)};
  const iovec parts[] = {
      {header, sizeof header}, {length, sizeof length}, {const_cast<unsigned char*>(question), n}};
  const auto whole = static_cast<ssize_t>(sizeof header + sizeof length + n);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id_ + 1 + static_cast<uint64_t>(slot - questions_);
  if (writev(fd, parts, 3) != whole || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) {
    close(fd);
    return;
  }
  slot->fd = fd;
  slot->deadline = monotonic_ms() + kWithinMs;
  slot->peer = peer;
  slot->local = local;
  slot->got = 0;
}

void RelayDns::read_answer(Question& q) {
  const ssize_t n = read(q.fd, q.answer + q.got, sizeof q.answer - q.got);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return free_question(q);
  q.got += static_cast<size_t>(n);
  if (q.got < 2) return;
  const size_t length = static_cast<size_t>(q.answer[0]) << 8 | q.answer[1];
  if (length > kMostAnswer) return free_question(q);
  if (q.got < 2 + length) return;
  send_answer(q, length);
  free_question(q);
}

void RelayDns::send_answer(const Question& q, size_t n) {
  sockaddr_in peer = q.peer;
  iovec part{const_cast<unsigned char*>(q.answer) + 2, n};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(in_pktinfo))] = {};
  msghdr message{};
  message.msg_name = &peer;
  message.msg_namelen = sizeof peer;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  c->cmsg_level = IPPROTO_IP;
  c->cmsg_type = IP_PKTINFO;
  c->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
  in_pktinfo info{};
  info.ipi_spec_dst = q.local;
  memcpy(CMSG_DATA(c), &info, sizeof info);
  sendmsg(datagrams_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void RelayDns::free_question(Question& q) {
  close(q.fd);
  q.fd = 0;
}

}  // namespace umpteenth::ump
