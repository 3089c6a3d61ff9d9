#include <git2.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/handle.h"
#include "base/log.h"
#include "store/repository.h"

namespace umpteenth::store {
namespace {

constexpr ssize_t kCacheBytes = 16 << 20;
constexpr size_t kMappedFiles = 128;
constexpr size_t kMappedBytes = size_t{512} << 20;

// Options of libgit2 are of the whole process.
void initialise() {
  static const bool kOnce = [] {
    git_libgit2_init();
    git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, kCacheBytes);
    git_libgit2_opts(GIT_OPT_SET_MWINDOW_FILE_LIMIT, kMappedFiles);
    git_libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, kMappedBytes);
    git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
    git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    return true;
  }();
  (void)kOnce;
}

void check(int code, std::string_view attempted) {
  if (code >= 0) return;
  const git_error* e = git_error_last();
  throw Error(code == GIT_ENOTFOUND ? Code::not_found : Code::internal,
              "git: " + std::string(attempted) + ": " + (e ? e->message : "unknown error"));
}

git_oid raw(const Oid& id) {
  git_oid out;
  std::memcpy(out.id, id.bytes.data(), id.bytes.size());
  return out;
}
Oid from_raw(const git_oid& id) {
  return Oid::from_bytes({reinterpret_cast<const char*>(id.id), GIT_OID_RAWSZ});
}

using Tree = Handle<git_tree, git_tree_free>;

}  // namespace

struct ObjectReader::State {
  Handle<git_repository, git_repository_free> repository;
  Handle<git_odb, git_odb_free> odb;

  Tree tree(const Oid& id) {
    Tree tree;
    const git_oid wanted = raw(id);
    check(git_tree_lookup(out(tree), repository.get(), &wanted), "read tree " + id.hex());
    return tree;
  }
};

ObjectReader::ObjectReader(const std::filesystem::path& repository)
    : state_(std::make_unique<State>()) {
  initialise();
  check(git_repository_open_bare(out(state_->repository), repository.c_str()),
        "open " + repository.string());
  check(git_repository_odb(out(state_->odb), state_->repository.get()), "open the object store");
}
ObjectReader::~ObjectReader() = default;

std::optional<std::string> ObjectReader::find(const Oid& id) {
  Handle<git_odb_object, git_odb_object_free> object;
  const git_oid wanted = raw(id);
  const int code = git_odb_read(out(object), state_->odb.get(), &wanted);
  if (code == GIT_ENOTFOUND) return std::nullopt;
  check(code, "read object " + id.hex());
  return std::string(static_cast<const char*>(git_odb_object_data(object.get())),
                     git_odb_object_size(object.get()));
}

std::string ObjectReader::get(const Oid& id, std::string_view what) {
  if (auto content = find(id)) return *std::move(content);
  throw Error(Code::internal,
              "store: " + std::string(what) + " " + id.hex() + " is missing in the repository");
}

ParsedCommit ObjectReader::commit(const Oid& id) { return parse_commit(get(id, "commit")); }

bool ObjectReader::is_ancestor(const Oid& older, const Oid& newer) {
  if (older == newer) return true;
  const git_oid from = raw(newer), to = raw(older);
  const int code = git_graph_descendant_of(state_->repository.get(), &from, &to);
  check(code, "compare commits");
  return code == 1;
}

std::optional<Oid> ObjectReader::resolve_prefix(std::string_view hex) {
  git_oid prefix, found;
  if (git_oid_fromstrn(&prefix, hex.data(), hex.size()) != 0) return std::nullopt;
  if (git_odb_exists_prefix(&found, state_->odb.get(), &prefix, hex.size()) != 0)
    return std::nullopt;
  return from_raw(found);
}

std::optional<Oid> ObjectReader::at_path(const Oid& commit_id, const std::string& path) {
  const Tree tree = state_->tree(commit(commit_id).tree);
  Handle<git_tree_entry, git_tree_entry_free> entry;
  const int code = git_tree_entry_bypath(out(entry), tree.get(), path.c_str());
  if (code == GIT_ENOTFOUND) return std::nullopt;
  check(code, "read " + path);
  if (git_tree_entry_type(entry.get()) != GIT_OBJECT_BLOB) return std::nullopt;
  return from_raw(*git_tree_entry_id(entry.get()));
}

std::vector<ObjectReader::Difference> ObjectReader::differences(const Oid& old_tree,
                                                                const Oid& new_tree) {
  const Tree before = state_->tree(old_tree), after = state_->tree(new_tree);
  git_diff_options options;
  check(git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION), "compare trees");
  options.flags = GIT_DIFF_SKIP_BINARY_CHECK | GIT_DIFF_INCLUDE_TYPECHANGE;
  Handle<git_diff, git_diff_free> diff;
  check(git_diff_tree_to_tree(out(diff), state_->repository.get(), before.get(), after.get(),
                              &options),
        "compare trees");
  std::vector<Difference> differences;
  for (size_t i = 0; i < git_diff_num_deltas(diff.get()); ++i) {
    const git_diff_delta* delta = git_diff_get_delta(diff.get(), i);
    Difference d;
    d.path = delta->new_file.path;
    if (delta->status != GIT_DELTA_ADDED) d.before = from_raw(delta->old_file.id);
    if (delta->status != GIT_DELTA_DELETED) d.after = from_raw(delta->new_file.id);
    differences.push_back(std::move(d));
  }
  return differences;
}

void ObjectReader::for_each(const std::function<bool(const Oid&)>& visit) {
  const auto call = [](const git_oid* id, void* payload) -> int {
    return (*static_cast<const std::function<bool(const Oid&)>*>(payload))(from_raw(*id)) ? 0 : 1;
  };
  const int code = git_odb_foreach(state_->odb.get(), call,
                                   const_cast<std::function<bool(const Oid&)>*>(&visit));
  if (code < 0) check(code, "list objects");
}

void rebuild_index(const std::filesystem::path& repository, const std::filesystem::path& pack) {
  namespace fs = std::filesystem;
  initialise();
  // Elsewhere: libgit2's indexer writes a copy of the pack over one of the same name.
  const fs::path beside = repository / "umpd/reindex";
  fs::remove_all(beside);
  fs::create_directories(beside);
  Defer clean([&] {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
  });
  Handle<git_indexer, git_indexer_free> indexer;
  check(git_indexer_new(out(indexer), beside.c_str(), 0444, nullptr, nullptr), "index a pack");
  git_indexer_progress progress{};
  const std::string bytes = read_file(pack, size_t{4} << 30);
  check(git_indexer_append(indexer.get(), bytes.data(), bytes.size(), &progress), "index a pack");
  check(git_indexer_commit(indexer.get(), &progress), "index " + pack.string());
  for (const auto& entry : fs::directory_iterator(beside)) {
    if (entry.path().extension() != ".idx") continue;
    fsync_path(entry.path());
    fs::path target = pack;
    fs::rename(entry.path(), target.replace_extension(".idx"));
    fsync_path(pack.parent_path());
    log::warn("the index of a pack is made again", {{"pack", pack.filename().string()}});
    return;
  }
  throw Error(Code::internal, "git: no index came out for " + pack.string());
}

}  // namespace umpteenth::store
