#include "engine/firewall/watch.h"

#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.h"

namespace umpteenth::engine::firewall {
namespace {

constexpr char kLegacyLock[] = "/run/xtables.lock";
constexpr int kBuffer = 1 << 20;

Fd subscribe(int protocol, int group, const char* what) {
  Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  sockaddr_nl self{};
  self.nl_family = AF_NETLINK;
  const bool fine =
      fd && ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&self), sizeof self) == 0 &&
      ::setsockopt(fd.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) == 0;
  if (!fine) throw errno_error(Code::unavailable, std::string("listen for changes of ") + what);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer);
  return fd;
}

// The legacy tables tell nobody; who changes them takes this lock. It is made as iptables does.
// Empty where that cannot be: /run may be closed to us.
Fd watch_legacy_lock() {
  const Fd lock(::open(kLegacyLock, O_CREAT | O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
  Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!lock || !fd || ::inotify_add_watch(fd.get(), kLegacyLock, IN_CLOSE) < 0) return Fd();
  return fd;
}

// Whether anything was there. A full buffer (ENOBUFS) means that events were lost: look all the
// more.
bool drain(int fd) {
  std::array<char, 32768> bytes;
  bool any = false;
  for (;;) {
    const ssize_t n = ::read(fd, bytes.data(), bytes.size());
    if (n > 0 || (n < 0 && (errno == ENOBUFS || errno == EINTR)))
      any = true;
    else
      return any;
  }
}

}  // namespace

HostWatch::HostWatch(const HostNamespace& host, std::function<void()> changed)
    : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), changed_(std::move(changed)) {
  if (!wake_) throw errno_error(Code::internal, "make an eventfd");
  // A socket belongs for ever to the namespace that it was made in.
  host.run([this] {
    sources_.push_back(subscribe(NETLINK_NETFILTER, NFNLGRP_NFTABLES, "the firewall's rules"));
    sources_.push_back(subscribe(NETLINK_ROUTE, RTNLGRP_LINK, "network interfaces"));
    sources_.push_back(subscribe(NETLINK_ROUTE, RTNLGRP_IPV6_IFADDR, "IPv6 addresses"));
  });
  if (Fd lock = watch_legacy_lock()) {
    sources_.push_back(std::move(lock));
    sees_legacy_ = true;
  }
  thread_ = std::jthread([this] { read(); });
}

HostWatch::~HostWatch() {
  const uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) {
    // Cannot be: the counter is at 0.
  }
}

void HostWatch::read() {
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  for (const Fd& fd : sources_) polled.push_back({fd.get(), POLLIN, 0});
  for (;;) {
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    bool any = false;
    for (size_t i = 1; i < polled.size(); ++i)
      if (polled[i].revents != 0) any = drain(polled[i].fd) || any;
    if (any) changed_();
  }
}

}  // namespace umpteenth::engine::firewall
