#include "cmd/umpd/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::umpd {

namespace fs = std::filesystem;

namespace {

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void check_owner_only(const fs::path& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) throw errno_error(Code::internal, "stat " + path.string());
  if (!S_ISDIR(st.st_mode))
    throw Error(Code::invalid, "app.data_dir " + path.string() + " is not a folder");
  if ((st.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", st.st_mode & 07777);
    throw Error(Code::invalid, "app.data_dir " + path.string() + " has mode " + mode +
                                   ": others can read it; it must be 0700 (chmod 700 it)");
  }
  if (st.st_uid != ::geteuid())
    throw Error(Code::invalid, "app.data_dir " + path.string() + " belongs to uid " +
                                   std::to_string(st.st_uid) + ", umpd runs as " +
                                   std::to_string(::geteuid()));
}

}  // namespace

DataDir::DataDir(const fs::path& path) : path_(fs::absolute(path)) {
  std::error_code ignored;
  fs::create_directories(path_.parent_path(), ignored);
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST)
    throw errno_error(Code::invalid, "make app.data_dir " + path_.string());
  check_owner_only(path_);
  lock_.reset(::open((path_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_) throw errno_error(Code::internal, "open " + (path_ / "lock").string());
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    throw Error(Code::conflict, "another umpd uses " + path_.string());
  if (::ftruncate(lock_.get(), 0) != 0) throw errno_error(Code::internal, "write the lock file");
  write_all(lock_.get(), std::to_string(::getpid()) + "\n");
  const fs::path id_file = path_ / "instance";
  if (!fs::exists(id_file)) write_file_durably(id_file, crypto::uuid4() + "\n", 0600);
  instance_id_ = trimmed(read_file(id_file, 256));
  if (instance_id_.size() != 36)
    throw Error(Code::invalid, id_file.string() + " does not hold a UUID");
}

std::optional<int> DataDir::running_pid(const fs::path& path) {
  Fd lock(::open((path / "lock").c_str(), O_RDWR | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return std::nullopt;
  const std::string text = trimmed(read_file(path / "lock", 64));
  int pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || pid <= 1)
    throw Error(Code::internal, (path / "lock").string() + " names no process");
  return pid;
}

std::vector<std::string> DataDir::master_keys(const std::string& configured) {
  const fs::path key_file = path_ / "encryption.key";
  std::vector<std::string> keys;
  if (!configured.empty()) keys.push_back(configured);
  if (fs::exists(key_file)) {
    keys.push_back(trimmed(read_file(key_file, 4096)));
  } else if (configured.empty()) {
    keys.push_back(crypto::base64url(crypto::random_bytes(32)));
    write_file_durably(key_file, keys.back() + "\n", 0600);
    made_key_ = true;
  }
  return keys;
}

}  // namespace umpteenth::umpd
