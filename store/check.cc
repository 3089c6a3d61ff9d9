// `umpd fsck`: everything that can be looked at without changing it.
#include <set>

#include "apis/kind.h"
#include "base/crypto.h"
#include "base/error.h"
#include "base/fd.h"
#include "store/blobs.h"
#include "store/codec.h"
#include "store/folder_tree.h"
#include "store/layout.h"
#include "store/open.h"
#include "store/pack.h"
#include "store/repository.h"
#include "store/tables.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMaxFindings = 100;

class Check {
 public:
  explicit Check(const fs::path& data_dir)
      : data_dir_(data_dir), repository_(data_dir / "store.git") {}

  std::vector<std::string> run() {
    for (const auto& part :
         {&Check::packs, &Check::objects, &Check::files, &Check::database, &Check::blobs}) {
      try {
        (this->*part)();
      } catch (const Error& e) {  // what stops one part is a finding; the others still run
        found(e.message());
      }
    }
    return std::move(findings_);
  }

 private:
  void found(std::string finding) {
    if (findings_.size() < kMaxFindings) findings_.push_back(std::move(finding));
  }

  void packs() {
    for (const auto& entry : fs::directory_iterator(repository_ / "objects/pack")) {
      if (entry.path().extension() != ".pack") continue;
      const PackState state = check_pack(entry.path());
      if (state != PackState::good)
        found("pack " + entry.path().filename().string() +
              (state == PackState::broken ? " is damaged: its bytes do not fit its checksum"
                                          : " has no sound index; a start of umpd makes it again"));
    }
  }

  // Reading one checks its hash.
  void objects() {
    ObjectReader reader(repository_);
    reader.for_each([&](const Oid& id) {
      try {
        if (!reader.find(id)) found("object " + id.hex() + " is missing");
      } catch (const Error& e) {
        found("object " + id.hex() + ": " + e.message());
      }
      return findings_.size() < kMaxFindings;
    });
  }

  void files() {
    const auto head = read_ref(repository_, kMainRef);
    if (!head) return found("refs/heads/main names no commit");
    ObjectReader reader(repository_);
    const FolderTree tree(reader.commit(*head).tree,
                          [&reader](const Oid& id) { return reader.get(id, "tree"); });
    tree.for_each([&](const Key& key, const FolderTree::File& file) {
      const apis::Kind* kind = apis::find_stored_kind(key.kind);
      if (!kind || kind->storage != apis::Storage::git) return;
      try {
        if (!seen_.insert(key).second) found(to_string(key) + " has two files");
        parse_file(key, reader.get(file.id, "file"));
      } catch (const Error& e) {
        found(flat_path(key) + ": " + e.message());
      }
    });
    for (std::optional<Oid> at = head; at; at = reader.commit(*at).parent)
      if (!reader.find(reader.commit(*at).tree)) found("commit " + at->hex() + " has no tree");
  }

  void database() {
    Db db(data_dir_ / "umpd.db", Db::Mode::read_only);
    {
      Stmt verdict = db.prepare("PRAGMA integrity_check(20)");
      while (verdict.step())
        if (verdict.text(0) != "ok") found("umpd.db: " + verdict.text(0));
    }
    for_each_object(db, [&](const ObjectRow& row) {
      try {
        json::parse(row.json);
      } catch (const Error& e) {
        found("umpd.db: " + to_string(row.key) + ": " + e.message());
      }
      const apis::Kind* kind = apis::find_stored_kind(row.key.kind);
      if (kind && kind->storage == apis::Storage::git && !seen_.contains(row.key))
        found("umpd.db: " + to_string(row.key) + " has no file in git");
    });
  }

  void blobs() {
    Db db(data_dir_ / "umpd.db", Db::Mode::read_only);
    Stmt rows = db.prepare("SELECT DISTINCT digest FROM blob");
    while (rows.step()) {
      const std::string digest = rows.text(0);
      const fs::path file = data_dir_ / "blobs" / digest.substr(0, 2) / digest;
      if (!valid_digest(digest) || !fs::exists(file))
        found("blob " + digest + " is missing");
      else if (crypto::hex(crypto::sha256(read_file(file, size_t{1} << 30))) != digest)
        found("blob " + digest + " is damaged");
    }
  }

  const fs::path data_dir_, repository_;
  std::set<Key> seen_;
  std::vector<std::string> findings_;
};

}  // namespace

std::vector<std::string> check_store(const fs::path& data_dir) {
  if (!fs::exists(data_dir / "store.git"))
    return {data_dir.string() + " holds no store: store.git is missing"};
  return Check(data_dir).run();
}

}  // namespace umpteenth::store
