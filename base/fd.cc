#include "base/fd.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace umpteenth {

namespace fs = std::filesystem;

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) reset(other.release());
  return *this;
}

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

std::string read_file(const fs::path& path, size_t max_bytes) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    throw errno_error(errno == ENOENT ? Code::not_found : Code::internal, "read " + path.string());
  std::string text;
  char chunk[65536];
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw errno_error(Code::internal, "read " + path.string());
    if (n == 0) return text;
    text.append(chunk, static_cast<size_t>(n));
    if (text.size() > max_bytes)
      throw Error(Code::too_large, "read " + path.string() + ": larger than " +
                                       std::to_string(max_bytes) + " bytes");
  }
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw errno_error(errno == ENOSPC || errno == EDQUOT ? Code::unavailable : Code::internal,
                        "write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void fsync_path(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) throw errno_error(Code::internal, "fsync " + path.string());
}

void write_file_durably(const fs::path& path, std::string_view bytes, int mode) {
  const fs::path temporary = path.string() + ".tmp" + std::to_string(::getpid());
  try {
    Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!fd) throw errno_error(Code::internal, "create");
    if (::fchmod(fd.get(), static_cast<mode_t>(mode)) != 0)
      throw errno_error(Code::internal, "chmod");
    write_all(fd.get(), bytes);
    if (::fsync(fd.get()) != 0) throw errno_error(Code::internal, "fsync");
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw errno_error(Code::internal, "rename");
    fsync_path(path.has_parent_path() ? path.parent_path() : fs::path("."));
  } catch (Error& e) {
    ::unlink(temporary.c_str());
    throw e.in("write " + path.string());
  }
}

TempDir::TempDir() {
  std::string name = (fs::temp_directory_path() / "umpteenth-XXXXXX").string();
  if (!::mkdtemp(name.data())) throw errno_error(Code::internal, "make a temporary folder");
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace umpteenth
