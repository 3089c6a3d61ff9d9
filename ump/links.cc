#include "ump/links.h"

#include <errno.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

struct Link {
  int index = 0, bridge = 0;  // bridge: 0 where it is no bridge's port
  bool isolated = false;
  char name[IF_NAMESIZE] = {};
};

// Calls found(attribute) for each in the bytes.
template <typename Found>
void for_each_attribute(const rtattr* first, size_t n, Found found) {
  int left = static_cast<int>(n);
  for (const rtattr* a = first; RTA_OK(a, left); a = RTA_NEXT(a, left)) found(a);
}

Link link_of(const nlmsghdr* message) {
  Link link;
  const auto* head = static_cast<const ifinfomsg*>(NLMSG_DATA(message));
  link.index = head->ifi_index;
  int master = 0;
  bool port = false;
  const auto slave_data = [&](const rtattr* a) {
    if ((a->rta_type & NLA_TYPE_MASK) == IFLA_BRPORT_ISOLATED && RTA_PAYLOAD(a) >= 1)
      link.isolated = *static_cast<const unsigned char*>(RTA_DATA(a)) != 0;
  };
  const auto info = [&](const rtattr* a) {
    const int type = a->rta_type & NLA_TYPE_MASK;
    if (type == IFLA_INFO_SLAVE_KIND)
      port = strncmp(static_cast<const char*>(RTA_DATA(a)), "bridge", RTA_PAYLOAD(a)) == 0;
    if (type == IFLA_INFO_SLAVE_DATA)
      for_each_attribute(static_cast<const rtattr*>(RTA_DATA(a)), RTA_PAYLOAD(a), slave_data);
  };
  for_each_attribute(IFLA_RTA(head), IFLA_PAYLOAD(message), [&](const rtattr* a) {
    const int type = a->rta_type & NLA_TYPE_MASK;
    if (type == IFLA_IFNAME) {
      const size_t n = RTA_PAYLOAD(a) < IF_NAMESIZE ? RTA_PAYLOAD(a) : IF_NAMESIZE - 1;
      memcpy(link.name, RTA_DATA(a), n);
    }
    if (type == IFLA_MASTER) memcpy(&master, RTA_DATA(a), sizeof master);
    if (type == IFLA_LINKINFO)
      for_each_attribute(static_cast<const rtattr*>(RTA_DATA(a)), RTA_PAYLOAD(a), info);
  });
  if (port) link.bridge = master;
  return link;
}

int open_netlink() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) complain_errno("cannot open a netlink socket");
  return fd;
}

template <typename Found>
bool for_each_link(Found found) {
  const int fd = open_netlink();
  if (fd < 0) return false;
  struct {
    nlmsghdr head;
    ifinfomsg link;
  } request = {};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_GETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  bool done = false, fine = send(fd, &request, sizeof request, 0) == sizeof request;
  alignas(nlmsghdr) static char bytes[65536];
  while (fine && !done) {
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    fine = got > 0;
    auto left = static_cast<unsigned>(fine ? got : 0);
    for (auto* m = reinterpret_cast<nlmsghdr*>(bytes); fine && NLMSG_OK(m, left);
         m = NLMSG_NEXT(m, left)) {
      // The list changed while it was read: it may lack one.
      if (m->nlmsg_type == NLMSG_ERROR || (m->nlmsg_flags & NLM_F_DUMP_INTR)) {
        errno = EINTR;
        fine = false;
      } else if (m->nlmsg_type == NLMSG_DONE) {
        done = true;
      } else if (m->nlmsg_type == RTM_NEWLINK) {
        found(link_of(m));
      }
    }
  }
  const int saved = errno;
  close(fd);
  errno = saved;
  if (!fine) complain_errno("cannot list the network interfaces");
  return fine;
}

// Sends a request that asks for an answer; errno is what the kernel answered.
bool acknowledged(int fd, const void* request, size_t n) {
  alignas(nlmsghdr) char answer[512];
  if (send(fd, request, n, 0) != static_cast<ssize_t>(n)) return false;
  if (recv(fd, answer, sizeof answer, 0) < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr))))
    return false;
  const auto* m = reinterpret_cast<nlmsghdr*>(answer);
  errno = EPROTO;
  if (m->nlmsg_type == NLMSG_ERROR) errno = -static_cast<const nlmsgerr*>(NLMSG_DATA(m))->error;
  return errno == 0;
}

bool isolate(int fd, const Link& port) {
  struct {
    nlmsghdr head;
    ifinfomsg link;
    rtattr nest;
    rtattr isolated;
    unsigned char value[4];
  } request = {};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_SETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request.link.ifi_family = AF_BRIDGE;
  request.link.ifi_index = port.index;
  request.nest.rta_type = IFLA_PROTINFO | NLA_F_NESTED;
  request.nest.rta_len = RTA_LENGTH(sizeof(rtattr) + sizeof request.value);
  request.isolated.rta_type = IFLA_BRPORT_ISOLATED;
  request.isolated.rta_len = RTA_LENGTH(1);
  request.value[0] = 1;
  return acknowledged(fd, &request, sizeof request) || errno == ENODEV;  // it went meanwhile
}

constexpr int kMaxPorts = 1024;  // a bridge has no more
Link ports_found[kMaxPorts];

}  // namespace

bool list_links(Buffer* into) {
  return for_each_link([&](const Link& link) {
    into->append(link.name);
    char bridge[IF_NAMESIZE];
    if (link.bridge != 0 && if_indextoname(static_cast<unsigned>(link.bridge), bridge)) {
      into->append(" ");
      into->append(bridge);
      into->append(link.isolated ? " isolated" : " open");
    }
    into->push_back('\n');
  });
}

bool isolate_ports(const char* bridge, int* ports) {
  const auto index = static_cast<int>(if_nametoindex(bridge));
  if (index == 0) {
    complain_errno("bridge %s", bridge);
    return false;
  }
  *ports = 0;
  if (!for_each_link([&](const Link& link) {
        if (link.bridge == index && *ports < kMaxPorts) ports_found[(*ports)++] = link;
      }))
    return false;
  const int fd = open_netlink();
  if (fd < 0) return false;
  bool fine = true;
  for (int i = 0; i < *ports; ++i)
    if (!ports_found[i].isolated && !isolate(fd, ports_found[i])) {
      complain_errno("cannot isolate port %s of bridge %s", ports_found[i].name, bridge);
      fine = false;
    }
  close(fd);
  return fine;
}

bool remove_link(const char* interface) {
  struct {
    nlmsghdr head;
    ifinfomsg link;
  } request = {};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_DELLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request.link.ifi_index = static_cast<int>(if_nametoindex(interface));
  if (request.link.ifi_index == 0) return true;
  const int fd = open_netlink();
  if (fd < 0) return false;
  const bool fine = acknowledged(fd, &request, sizeof request) || errno == ENODEV;
  if (!fine) complain_errno("cannot remove interface %s", interface);
  close(fd);
  return fine;
}

}  // namespace umpteenth::ump
