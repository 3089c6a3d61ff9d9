#include "store/folder_tree.h"

#include <algorithm>

#include "base/error.h"
#include "store/layout.h"

namespace umpteenth::store {
namespace {

constexpr int kMaxDepth = 50;
constexpr char kFile[] = "100644";
constexpr char kFolder[] = "40000";
constexpr size_t kIdSize = 20;

// Git's order: by bytes, a folder as if its name ended in '/'.
int compare_names(std::string_view a, bool a_folder, std::string_view b, bool b_folder) {
  const size_t common = std::min(a.size(), b.size());
  if (const int c = a.substr(0, common).compare(b.substr(0, common)); c != 0) return c;
  const auto next = [common](std::string_view s, bool folder) -> int {
    if (s.size() > common) return static_cast<unsigned char>(s[common]);
    return folder ? '/' : 0;
  };
  const int ca = next(a, a_folder), cb = next(b, b_folder);
  if (ca != cb) return ca - cb;
  return static_cast<int>(a.size()) - static_cast<int>(b.size());
}

}  // namespace

Folder::Folder(std::string raw, Oid id) : raw_(std::move(raw)), id_(id), base_size_(raw_.size()) {
  for (size_t at = 0; at < raw_.size();) {
    starts_.push_back(static_cast<uint32_t>(at));
    const size_t space = raw_.find(' ', at);
    const size_t zero = space == std::string::npos ? space : raw_.find('\0', space);
    if (zero == std::string::npos || zero + 1 + kIdSize > raw_.size())
      throw Error(Code::internal, "store: tree " + id.hex() + " is malformed");
    at = zero + 1 + kIdSize;
    files_ += entry(starts_.size() - 1).file() ? 1 : 0;
    if (starts_.size() < 2) continue;
    const Entry last = entry(starts_.size() - 2), now = entry(starts_.size() - 1);
    if (compare_names(last.name, last.folder(), now.name, now.folder()) >= 0)
      throw Error(Code::internal, "store: tree " + id.hex() + " is not sorted");
  }
}

Folder::Entry Folder::entry(size_t i) const {
  const std::string_view raw = raw_;
  const size_t at = starts_[i];
  const size_t space = raw.find(' ', at);
  const size_t zero = raw.find('\0', space);
  return {raw.substr(at, space - at), raw.substr(space + 1, zero - space - 1),
          Oid::from_bytes(raw.substr(zero + 1, kIdSize))};
}

size_t Folder::position(std::string_view name, bool folder, bool& found) const {
  size_t low = 0, high = starts_.size();
  found = false;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const Entry e = entry(middle);
    const int c = compare_names(e.name, e.folder(), name, folder);
    if (c == 0) {
      found = true;
      return middle;
    }
    (c < 0 ? low : high) = c < 0 ? middle + 1 : middle;
  }
  return low;
}

std::optional<Folder::Entry> Folder::find(std::string_view name) const {
  bool found = false;
  for (const bool folder : {false, true})
    if (const size_t at = position(name, folder, found); found) return entry(at);
  return std::nullopt;
}

void Folder::splice(size_t offset, size_t removed, std::string_view inserted) {
  raw_.replace(offset, removed, inserted);
  ++edits_;
  edit_ = {offset, removed, std::string(inserted)};
}

void Folder::set(std::string_view name, std::string_view mode, const Oid& id) {
  const bool folder = mode == kFolder;
  bool found = false;
  // A file and a folder of one name exclude each other.
  if (const size_t other = position(name, !folder, found); found) {
    (void)other;
    erase(name);
  }
  const size_t at = position(name, folder, found);
  if (found) {
    const Entry old = entry(at);
    if (old.mode == mode) {
      if (old.id == id) return;
      const size_t offset = starts_[at] + old.mode.size() + 1 + old.name.size() + 1;
      splice(offset, kIdSize, id.view());
      return;
    }
    erase(name);
  }
  std::string bytes(mode);
  bytes += ' ';
  bytes.append(name);
  bytes += '\0';
  bytes.append(id.view());
  const size_t offset = at < starts_.size() ? starts_[at] : raw_.size();
  splice(offset, 0, bytes);
  files_ += mode.starts_with("100") ? 1 : 0;
  starts_.insert(starts_.begin() + static_cast<std::ptrdiff_t>(at), static_cast<uint32_t>(offset));
  for (size_t i = at + 1; i < starts_.size(); ++i)
    starts_[i] += static_cast<uint32_t>(bytes.size());
}

bool Folder::erase(std::string_view name) {
  bool found = false;
  size_t at = position(name, false, found);
  if (!found) at = position(name, true, found);
  if (!found) return false;
  if (const auto it = children_.find(name); it != children_.end()) children_.erase(it);
  files_ -= entry(at).file() ? 1 : 0;
  const size_t begin = starts_[at];
  const size_t end = at + 1 < starts_.size() ? starts_[at + 1] : raw_.size();
  splice(begin, end - begin, "");
  starts_.erase(starts_.begin() + static_cast<std::ptrdiff_t>(at));
  for (size_t i = at; i < starts_.size(); ++i) starts_[i] -= static_cast<uint32_t>(end - begin);
  return true;
}

Folder* Folder::child(std::string_view name) {
  const auto it = children_.find(name);
  return it == children_.end() ? nullptr : it->second.get();
}

Folder& Folder::make_child(std::string_view name) {
  if (Folder* there = child(name)) return *there;
  return adopt_child(name, std::make_unique<Folder>());
}

Folder& Folder::adopt_child(std::string_view name, std::unique_ptr<Folder> child) {
  return *(children_[std::string(name)] = std::move(child));
}

void Folder::emit(uint64_t generation, const Oid& id, std::vector<PackObject>& out) {
  PackObject object;
  object.type = ObjectType::tree;
  object.id = id;
  // git refuses a delta of under four bytes, which one that leaves nothing can be.
  const bool whole =
      edits_ != 1 || generation_ != generation || depth_ >= kMaxDepth || raw_.empty();
  if (!whole) {
    object.delta = true;
    object.base = id_;
    object.base_size = base_size_;
    object.offset = edit_.offset;
    object.removed = edit_.removed;
    object.data = std::move(edit_.inserted);
    ++depth_;
  } else {
    object.data = raw_;
    depth_ = 0;
  }
  generation_ = generation;
  out.push_back(std::move(object));
}

Oid Folder::finish(uint64_t generation, std::vector<PackObject>& out) {
  for (const std::string& name : dirty_) {
    Folder* below = child(name);
    if (!below) continue;
    const Oid id = below->finish(generation, out);
    if (below->size() == 0) {
      erase(name);
      children_.erase(name);
    } else {
      set(name, kFolder, id);
    }
  }
  dirty_.clear();
  if (edits_ == 0 && !id_.is_null()) return id_;
  const Oid id = hash_object(ObjectType::tree, raw_);
  if (id != id_) emit(generation, id, out);
  id_ = id;
  base_size_ = raw_.size();
  edits_ = 0;
  return id_;
}

FolderTree::FolderTree(const Oid& root, const ReadTree& read) {
  const auto load = [&read](const Oid& id) { return std::make_unique<Folder>(read(id), id); };
  const auto load_children = [&load](Folder& parent, auto&& wanted, auto&& then) {
    for (size_t i = 0; i < parent.size(); ++i) {
      const Folder::Entry e = parent.entry(i);
      if (e.folder() && wanted(e.name)) then(parent.adopt_child(e.name, load(e.id)));
    }
  };
  const auto any = [](std::string_view name) { return name.front() != '.'; };
  root_ = Folder(read(root), root);
  load_children(root_, any, [&](Folder& workspace) {
    load_children(workspace, any,
                  [&](Folder& kind) { load_children(kind, is_shard_name, [](Folder&) {}); });
  });
}

Folder* FolderTree::find_folder(const Key& key) const {
  Folder* workspace = root_.child(workspace_folder(key));
  return workspace ? workspace->child(key.kind) : nullptr;
}

void FolderTree::put(const Key& key, const Oid& blob) {
  const std::string workspace_name = workspace_folder(key), file = file_name(key);
  Folder& workspace = root_.make_child(workspace_name);
  Folder& folder = workspace.make_child(key.kind);
  root_.mark(workspace_name);
  workspace.mark(key.kind);
  Folder* target = &folder;
  if (!folder.children().empty()) {
    const std::string shard = shard_of(key.name);
    folder.erase(file);  // where a person put it flat into a split folder
    target = &folder.make_child(shard);
    folder.mark(shard);
  }
  const size_t before = target->files();
  target->set(file, kFile, blob);
  if (target->files() != before) resized_.insert({workspace_name, key.kind});
}

bool FolderTree::erase(const Key& key) {
  Folder* folder = find_folder(key);
  if (!folder) return false;
  const std::string workspace_name = workspace_folder(key), file = file_name(key);
  const std::string shard = shard_of(key.name);
  bool erased = folder->erase(file);
  if (Folder* below = folder->child(shard); below && below->erase(file)) {
    folder->mark(shard);
    erased = true;
  }
  if (!erased) return false;
  root_.mark(workspace_name);
  root_.child(workspace_name)->mark(key.kind);
  resized_.insert({workspace_name, key.kind});
  return true;
}

std::optional<Oid> FolderTree::find(const Key& key) const {
  Folder* folder = find_folder(key);
  if (!folder) return std::nullopt;
  const std::string file = file_name(key);
  if (Folder* below = folder->child(shard_of(key.name)))
    if (const auto e = below->find(file)) return e->id;
  if (const auto e = folder->find(file)) return e->id;
  return std::nullopt;
}

void FolderTree::settle(Folder& folder) {
  const bool split = !folder.children().empty();
  size_t files = folder.files();
  for (const auto& [name, child] : folder.children()) files += child->files();
  if (split ? files >= kJoinBelow : files <= kSplitAbove) return;

  std::vector<std::pair<std::string, Oid>> moving;
  const auto collect = [&moving](Folder& from) {
    for (size_t i = 0; i < from.size(); ++i) {
      const Folder::Entry e = from.entry(i);
      if (e.file() && e.name.ends_with(kSuffix)) moving.emplace_back(std::string(e.name), e.id);
    }
  };
  if (!split) collect(folder);
  for (const auto& [name, child] : folder.children()) collect(*child);
  for (const auto& [file, id] : moving) {
    const std::string shard = shard_of(std::string_view(file).substr(0, file.size() - 5));
    if (split) {
      if (Folder* below = folder.child(shard)) below->erase(file);
      if (!folder.find(file)) folder.set(file, kFile, id);
    } else {
      folder.erase(file);
      folder.make_child(shard).set(file, kFile, id);
    }
    folder.mark(shard);
  }
}

Oid FolderTree::finish(uint64_t generation, std::vector<PackObject>& out) {
  for (const auto& [workspace_name, plural] : resized_)
    if (Folder* workspace = root_.child(workspace_name))
      if (Folder* folder = workspace->child(plural)) settle(*folder);
  resized_.clear();
  return root_.finish(generation, out);
}

void FolderTree::for_each(const std::function<void(Key, const File&)>& visit) const {
  const auto files = [&visit](const std::string& prefix, const Folder& folder) {
    for (size_t i = 0; i < folder.size(); ++i) {
      const Folder::Entry e = folder.entry(i);
      if (e.folder()) continue;
      if (auto key = key_of_path(prefix + std::string(e.name)))
        visit(std::move(*key), {e.id, e.file()});
    }
  };
  for (const auto& [workspace_name, workspace] : root_.children())
    for (const auto& [plural, folder] : workspace->children()) {
      const std::string prefix = workspace_name + "/" + plural + "/";
      for (const auto& [shard, below] : folder->children()) files(prefix + shard + "/", *below);
      files(prefix, *folder);
    }
}

}  // namespace umpteenth::store
