#include "store/repository.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/pack.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

constexpr char kConfig[] = R"([core]
	repositoryformatversion = 0
	filemode = true
	bare = true
	logAllRefUpdates = false
	fsync = committed
[gc]
	auto = 0
	autoDetach = false
[maintenance]
	auto = false
[receive]
	autogc = false
	denyDeletes = true
	denyNonFastForwards = true
[transfer]
	fsckObjects = true
[pack]
	writeReverseIndex = false
)";
constexpr char kLockMark[] = "umpd holds this while writes are being sealed\n";
constexpr time_t kStaleAfterSeconds = 60;

void make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0)
    throw errno_error(Code::internal, "mkdir " + folder.string());
}

void sync_folders(const fs::path& root) {
  for (const auto& entry : fs::recursive_directory_iterator(root))
    if (entry.is_directory()) fsync_path(entry.path());
  fsync_path(root);
}

std::optional<Oid> id_in(std::string_view text) {
  if (text.size() > 40 && text[40] != '\n' && text[40] != ' ') return std::nullopt;
  return Oid::from_hex(text.substr(0, 40));
}

std::string read_or_empty(const fs::path& path) {
  try {
    return read_file(path);
  } catch (const Error& e) {
    if (e.code() == Code::not_found) return {};
    throw;
  }
}

}  // namespace

void ensure_repository(const fs::path& folder) {
  if (fs::exists(folder)) return;
  const fs::path fresh = folder.string() + ".new";
  fs::remove_all(fresh);
  make_folder(fresh);
  for (const char* below : {"objects", "objects/pack", "objects/info", "refs", "refs/heads",
                            "refs/tags", "info", "umpd", "umpd/quarantine"})
    make_folder(fresh / below);
  write_file_durably(fresh / "config", kConfig, 0600);
  write_file_durably(fresh / "description", "umpteenth: what is declared\n", 0600);

  PackObject tree{ObjectType::tree, hash_object(ObjectType::tree, ""), "", false, {}, 0, 0, 0};
  CommitText text;
  text.tree = tree.id;
  text.actor = "system:umpd";
  text.seconds = std::time(nullptr);
  text.message = "an empty store";
  PackObject commit;
  commit.type = ObjectType::commit;
  commit.data = to_string(text);
  commit.id = hash_object(ObjectType::commit, commit.data);
  write_pack(fresh / "objects/pack", build_pack({tree, commit}));
  write_file_durably(fresh / kMainRef, commit.id.hex() + "\n", 0600);
  write_file_durably(fresh / "HEAD", std::string("ref: ") + kMainRef + "\n", 0600);
  sync_folders(fresh);
  fs::rename(fresh, folder);
  fsync_path(folder.parent_path());
}

std::optional<Oid> read_ref(const fs::path& repository, const std::string& name) {
  if (const std::string loose = read_or_empty(repository / name); !loose.empty())
    return id_in(loose);
  if (fs::exists(repository / name)) return std::nullopt;  // empty: torn by a power loss
  const std::string packed = read_or_empty(repository / "packed-refs");
  const size_t at = packed.find(" " + name + "\n");
  if (at == std::string::npos || at < 40) return std::nullopt;
  return Oid::from_hex(std::string_view(packed).substr(at - 40, 40));
}

void write_ref(const fs::path& repository, const std::string& name, const Oid& id) {
  const fs::path target = repository / name, temporary = repository / "umpd/ref.tmp";
  if (!fs::exists(target.parent_path())) {
    fs::create_directories(target.parent_path());
    sync_folders(repository / "refs");
  }
  {
    Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd)
      throw errno_error(errno == ENOSPC ? Code::unavailable : Code::internal, "write " + name);
    write_all(fd.get(), id.hex() + "\n");
    if (::fsync(fd.get()) != 0)
      throw errno_error(errno == ENOSPC ? Code::unavailable : Code::internal, "sync " + name);
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    throw errno_error(errno == ENOSPC ? Code::unavailable : Code::internal, "rename to " + name);
  fsync_path(target.parent_path());
}

RefLock::RefLock(const fs::path& repository)
    : repository_(repository), path_(repository / (std::string(kMainRef) + ".lock")) {}

RefLock::Taken RefLock::hold(const Oid& head) {
  std::lock_guard lock(mutex_);
  if (holders_ > 0) {
    ++holders_;
    return Taken::before;
  }
  Fd fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd && errno == EEXIST) return Taken::busy;
  if (!fd)
    throw errno_error(errno == ENOSPC ? Code::unavailable : Code::internal,
                      "create " + path_.string());
  try {
    // A git whose lock was taken from it would rename ours over the ref: then this is its value.
    write_all(fd.get(), head.hex() + "\n" + kLockMark);
  } catch (Error&) {
    ::unlink(path_.c_str());
    throw;
  }
  ++holders_;
  return Taken::now;
}

void RefLock::drop() {
  std::lock_guard lock(mutex_);
  if (--holders_ == 0) ::unlink(path_.c_str());
}

bool RefLock::held() const {
  std::lock_guard lock(mutex_);
  return holders_ > 0;
}

bool RefLock::remove_if_stale(const fs::path& lock, bool starting) {
  struct stat st {};
  if (::lstat(lock.c_str(), &st) != 0) return true;
  const std::string text = lock == path_ ? read_or_empty(lock) : std::string();
  const bool ours = starting && text.size() > 41 && text.substr(41) == kLockMark;
  if (!ours && std::time(nullptr) - st.st_mtime < kStaleAfterSeconds) return false;
  log::warn("removed a stale git lock", {{"path", lock.string()}, {"ours", ours ? "yes" : "no"}});
  ::unlink(lock.c_str());
  return true;
}

std::string RefLock::recover(bool starting) {
  std::lock_guard lock(mutex_);
  std::string waiting;
  for (const char* name :
       {"refs/heads/main.lock", "HEAD.lock", "packed-refs.lock", "config.lock"}) {
    const fs::path file = repository_ / name;
    if (file == path_ && holders_ > 0) continue;
    if (!remove_if_stale(file, starting) && waiting.empty())
      waiting = "store: another git process holds " + file.string() +
                "; it is removed when it is a minute old, end that process if it hangs";
  }
  return waiting;
}

}  // namespace umpteenth::store
