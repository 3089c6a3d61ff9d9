#include "engine/firewall/host_namespace.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <exception>
#include <thread>

#include "base/error.h"

namespace umpteenth::engine::firewall {
namespace {

constexpr char kUnix[] = "unix://";

Error cannot(const std::string& why) {
  return Error(Code::unavailable, "umpd cannot act on the engine's host itself: " + why);
}

// Who listens there, as the kernel noted it at listen().
pid_t listener_of(const std::string& path) {
  const Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!fd || path.size() >= sizeof address.sun_path) throw cannot("no socket for " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw errno_error(Code::unavailable, "connect to " + path);
  ucred peer{};
  socklen_t n = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &n) != 0)
    throw errno_error(Code::unavailable, "ask who serves " + path);
  if (peer.pid <= 0) throw cannot("the engine's process is not visible from here");
  return peer.pid;
}

bool ended(const Fd& pidfd) {
  pollfd p{pidfd.get(), POLLIN, 0};
  return ::poll(&p, 1, 0) != 0;
}

bool same_file(const Fd& fd, const char* path) {
  struct stat a {
  }, b{};
  return ::fstat(fd.get(), &a) == 0 && ::stat(path, &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

}  // namespace

HostNamespace HostNamespace::find(const std::string& endpoint) {
  if (!endpoint.starts_with(kUnix)) throw cannot("its endpoint is " + endpoint);
  if (::geteuid() != 0) throw cannot("umpd is not root");
  const std::string path = endpoint.substr(sizeof kUnix - 1);
  const pid_t pid = listener_of(path);
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) throw errno_error(Code::unavailable, "find the engine's process");
  const std::string file = "/proc/" + std::to_string(pid) + "/ns/net";
  Fd name_space(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!name_space) throw errno_error(Code::unavailable, "open " + file);
  // The number was the engine's when we asked, and it still is: what was opened was the engine's.
  if (ended(pidfd) || listener_of(path) != pid) throw cannot("the engine is being restarted");
  HostNamespace found;
  if (!same_file(name_space, "/proc/self/ns/net")) {
    found.other_ = std::move(name_space);
    found.run([] {});  // whether umpd may
  }
  return found;
}

void HostNamespace::run(const std::function<void()>& f) const {
  if (!other_) return f();
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      if (::setns(other_.get(), CLONE_NEWNET) != 0)
        throw errno_error(Code::unavailable, "enter the network namespace of the engine's host");
      f();
    } catch (...) {  // carried over to the caller's thread
      thrown = std::current_exception();
    }
  }).join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace umpteenth::engine::firewall
