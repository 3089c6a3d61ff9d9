// The bare repository on disk: making it, reading objects (libgit2), the ref and its lock. Reading
// is for one thread at a time; so is the ref.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/git_object.h"

namespace umpteenth::store {

// Makes the repository with one empty commit, durably, all of it or nothing.
void ensure_repository(const std::filesystem::path& folder);

class ObjectReader {
 public:
  explicit ObjectReader(const std::filesystem::path& repository);
  ~ObjectReader();

  std::optional<std::string> find(const Oid& id);         // content, whatever the type
  std::string get(const Oid& id, std::string_view what);  // Error(internal) names what is missing
  ParsedCommit commit(const Oid& id);
  bool is_ancestor(const Oid& older, const Oid& newer);  // or the same
  std::optional<Oid> resolve_prefix(std::string_view hex);
  // The blob at that path of a commit.
  std::optional<Oid> at_path(const Oid& commit, const std::string& path);
  struct Difference {
    std::string path;
    std::optional<Oid> before, after;
  };
  std::vector<Difference> differences(const Oid& old_tree, const Oid& new_tree);
  // All objects; false of visit stops.
  void for_each(const std::function<bool(const Oid&)>& visit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Makes a pack's index again, durably; the pack itself is not touched.
void rebuild_index(const std::filesystem::path& repository, const std::filesystem::path& pack);

inline constexpr char kMainRef[] = "refs/heads/main";

// The value of a ref, loose or packed; nullopt where it is missing or unreadable.
std::optional<Oid> read_ref(const std::filesystem::path& repository, const std::string& name);
// Durable when it returns.
void write_ref(const std::filesystem::path& repository, const std::string& name, const Oid& id);

// refs/heads/main.lock, held while acknowledged commits are not sealed, so that git refuses a push
// that would fork history. Thread-safe.
class RefLock {
 public:
  // Left in place where commits are unsealed at the end: it keeps pushes out until the next start.
  explicit RefLock(const std::filesystem::path& repository);

  enum class Taken { now, before, busy };
  Taken hold(const Oid& head);  // one more holder, unless busy
  void drop();
  bool held() const;

  // Removes locks of git that nobody can still hold: our own, and any older than a minute. What it
  // could not yet remove, for health; "" where nothing is in the way.
  std::string recover(bool starting);

 private:
  bool remove_if_stale(const std::filesystem::path& lock, bool starting);

  std::filesystem::path repository_, path_;
  mutable std::mutex mutex_;
  size_t holders_ = 0;
};

}  // namespace umpteenth::store
