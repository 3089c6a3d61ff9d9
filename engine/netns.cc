#include "engine/netns.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <optional>
#include <thread>

#include "base/error.h"

namespace umpteenth::engine {
namespace {

constexpr int kBacklog = 128, kDnsPort = 53;
constexpr char kOwnNamespace[] = "/proc/self/ns/net";
constexpr char kThreadsNamespace[] = "/proc/thread-self/ns/net";

struct stat identity_of(const char* path) {
  struct stat seen {};
  if (::stat(path, &seen) != 0) throw errno_error(Code::internal, std::string("look at ") + path);
  return seen;
}

// kind: SOCK_STREAM, which then listens, or SOCK_DGRAM.
Fd bind_here(int kind, int port) {
  Fd made(socket(AF_INET, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) throw errno_error(Code::internal, "make a socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // No SO_REUSEADDR and no SO_REUSEPORT: nobody may be there, and nobody may join.
  if (bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      (kind == SOCK_STREAM && listen(made.get(), kBacklog) != 0))
    throw errno_error(
        errno == EADDRINUSE ? Code::conflict : Code::internal,
        "listen on 127.0.0.1:" + std::to_string(port) + " in the sandbox's network namespace");
  return made;
}

Fd enter_and_bind(int pidfd, int kind, int port) {
  if (setns(pidfd, CLONE_NEWNET) != 0)
    throw errno_error(errno == ESRCH ? Code::not_found : Code::forbidden,
                      "enter the sandbox's network namespace");
  const struct stat own = identity_of(kOwnNamespace), entered = identity_of(kThreadsNamespace);
  if (own.st_dev == entered.st_dev && own.st_ino == entered.st_ino)
    throw Error(Code::forbidden, "the sandbox shares umpd's own network namespace");
  return bind_here(kind, port);
}

// On a thread of its own, which ends with the call.
Fd bind_in_namespace_of(int pidfd, int kind, int port) {
  Fd made;
  std::optional<Error> failure;
  std::thread([&] {
    try {
      made = enter_and_bind(pidfd, kind, port);
    } catch (const Error& e) {  // must not leave the thread
      failure = e;
    }
  }).join();
  if (failure) throw *failure;
  return made;
}

Error gone(const std::string& container) {
  return {Code::not_found,
          "sandbox is gone: container " + container.substr(0, 12) + " does not run"};
}

Container running(Engine& engine, const std::string& id) {
  auto seen = engine.find_container(id);
  if (!seen || seen->state != "running" || seen->pid <= 0) throw gone(id);
  return *std::move(seen);
}

bool ended(int pidfd) {
  pollfd process{pidfd, POLLIN, 0};
  return poll(&process, 1, 0) != 0;
}

}  // namespace

bool cgroup_names(std::string_view cgroup, std::string_view container_id) {
  if (container_id.empty()) return false;
  const auto joins = [&](size_t at) {
    return at < cgroup.size() && std::isalnum(static_cast<unsigned char>(cgroup[at])) != 0;
  };
  for (size_t at = 0; (at = cgroup.find(container_id, at)) != std::string_view::npos; ++at)
    if (!(at > 0 && joins(at - 1)) && !joins(at + container_id.size())) return true;
  return false;
}

Fd listen_in_namespace_of(int pidfd, int port) {
  return bind_in_namespace_of(pidfd, SOCK_STREAM, port);
}

Fd bind_datagrams_in_namespace_of(int pidfd, int port) {
  return bind_in_namespace_of(pidfd, SOCK_DGRAM, port);
}

NamespaceListener listen_in_sandbox(Engine& engine, const std::string& container, int port,
                                    bool resolver) {
  const Container first = running(engine, container);
  NamespaceListener made;
  made.process = Fd(static_cast<int>(syscall(SYS_pidfd_open, first.pid, 0)));
  const Error unopened =
      errno_error(Code::forbidden, "open process " + std::to_string(first.pid) +
                                       ", which the engine says is the sandbox's");
  const Container again = running(engine, container);
  if (again.pid != first.pid || again.started_at != first.started_at) throw gone(container);
  if (!made.process) throw unopened;
  std::string cgroup;
  try {
    cgroup = read_file("/proc/" + std::to_string(first.pid) + "/cgroup");
  } catch (const Error&) {  // it ended in this moment, or it is not ours to see: told below
  }
  if (ended(made.process.get())) throw gone(container);
  if (!cgroup_names(cgroup, first.id))
    throw Error(Code::forbidden, "process " + std::to_string(first.pid) +
                                     ", which the engine says is the sandbox's, is another one "
                                     "here: the engine runs on another host");
  made.socket = listen_in_namespace_of(made.process.get(), port);
  if (resolver) {
    made.dns_datagrams = bind_datagrams_in_namespace_of(made.process.get(), kDnsPort);
    made.dns_listener = listen_in_namespace_of(made.process.get(), kDnsPort);
  }
  if (ended(made.process.get())) throw gone(container);
  return made;
}

}  // namespace umpteenth::engine
