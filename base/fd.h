// Owned file descriptors and small file helpers. Errors carry the path.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace umpteenth {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Runs a function when the scope ends.
class Defer {
 public:
  explicit Defer(std::function<void()> f) : f_(std::move(f)) {}
  Defer(const Defer&) = delete;
  Defer& operator=(const Defer&) = delete;
  ~Defer() {
    if (f_) f_();
  }
  void cancel() { f_ = nullptr; }

 private:
  std::function<void()> f_;
};

std::string read_file(const std::filesystem::path& path, size_t max_bytes = 64U << 20);
// Written beside, fsynced, renamed, folder fsynced: whole or not at all.
void write_file_durably(const std::filesystem::path& path, std::string_view bytes, int mode);
void write_all(int fd, std::string_view bytes);  // Error(internal)/no space → Error(unavailable)
void fsync_path(const std::filesystem::path& path);

// A folder below $TMPDIR that goes with the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace umpteenth
