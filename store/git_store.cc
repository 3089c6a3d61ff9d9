// The real store: its parts put together, and reads.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>

#include "apis/kind.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/blobs.h"
#include "store/codec.h"
#include "store/hooks.h"
#include "store/indexed_store.h"
#include "store/keeper.h"
#include "store/layout.h"
#include "store/open.h"
#include "store/writer.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

const apis::Kind& kind_of(const Key& key) {
  if (const apis::Kind* kind = apis::find_stored_kind(key.kind)) return *kind;
  throw Error(Code::bad_request, "store: no kind has the plural " + json::quote(key.kind));
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

class GitStore : public IndexedStore {
 public:
  explicit GitStore(const Options& options);

  std::vector<RecordPtr> commit(const Commit& commit) override;

  std::vector<Revision> history(const Key& key, size_t limit) const override;
  json::Value object_at(const Key& key, std::string_view revision_or_commit) const override;

  uint64_t timeline_append(std::string_view owner, const std::vector<std::string>& json) override;
  std::vector<TimelineRow> timeline_read(std::string_view owner, uint64_t after,
                                         size_t limit) const override {
    return database_.read([&](Db& db) { return read_timeline(db, owner, after, limit); });
  }
  void timeline_remove(std::string_view owner) override {
    rows([&](Db& db) { db.prepare("DELETE FROM timeline WHERE owner=?").bind(1, owner).run(); });
  }

  std::optional<std::string> row_get(std::string_view space, std::string_view key) const override;
  void row_put(std::string_view space, std::string_view key, std::string_view value) override;
  bool row_remove(std::string_view space, std::string_view key) override;
  std::vector<std::pair<std::string, std::string>> row_list(std::string_view space) const override;

  std::string blob_put(std::string_view owner, std::string_view bytes) override {
    return blobs_->put(owner, bytes);
  }
  std::string blob_get(std::string_view digest) const override { return blobs_->get(digest); }
  void blobs_remove(std::string_view owner) override { blobs_->remove(owner); }

  Health health() const override { return writer_->health(); }

 private:
  Recovered start();
  void rows(std::function<void(Db&)> change);
  std::optional<Oid> commit_of(const Key& key, std::string_view which) const;

  const Options options_;
  const fs::path repository_;
  Fd instance_;
  mutable Database database_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Blobs> blobs_;
  std::unique_ptr<Keeper> keeper_;
};

// Two umpd on one folder would overwrite each other's journal.
Fd take_instance(const fs::path& data_dir) {
  if (fs::create_directories(data_dir)) {
    fs::permissions(data_dir, fs::perms::owner_all);
    fsync_path(fs::absolute(data_dir).parent_path());
  }
  const fs::path file = data_dir / "umpd.lock";
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) throw errno_error(Code::internal, "open " + file.string());
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    throw Error(Code::unavailable,
                "store: another umpd uses " + data_dir.string() + "; end it first");
  return fd;
}

GitStore::GitStore(const Options& options)
    : IndexedStore(options.watch_history),
      options_(options),
      repository_(options.data_dir / "store.git"),
      instance_(take_instance(options.data_dir)),
      database_(options.data_dir / "umpd.db") {
  Recovered recovered = start();
  std::vector<Index::Update> updates;
  updates.reserve(recovered.records.size());
  for (RecordPtr& record : recovered.records) updates.push_back({Verb::create, std::move(record)});
  recovered.records.clear();
  index_.apply(updates, recovered.revision);
  hub_.start_at(recovered.revision);
  writer_ = std::make_unique<Writer>(
      Writer::Parts{options_, repository_, database_, *journal_, index_, hub_},
      std::move(recovered));
  blobs_ = std::make_unique<Blobs>(options.data_dir / "blobs",
                                   [this](std::function<void(Db&)> f) { rows(std::move(f)); });
  database_.read([this](Db& db) { blobs_->sweep(db); });
  try {
    writer_->look();
  } catch (const Error& e) {  // health says it; the keeper tries again
    log::warn("edits by git are not taken over yet", {{"error", e.message()}});
  }
  keeper_ = std::make_unique<Keeper>(repository_, database_, *writer_);
}

Recovered GitStore::start() {
  ensure_repository(repository_);
  ensure_hooks(repository_);
  journal_ = std::make_unique<Journal>(repository_ / "umpd");
  Recovered recovered = recover(repository_, database_, *journal_);
  // Without the rows of a lost umpd.db, revisions may have been given that git does not know.
  const fs::path reserved = repository_ / "umpd/revisions";
  if (database_.fresh() && fs::exists(reserved)) {
    const std::string text = read_file(reserved);
    uint64_t revision = 0;
    std::from_chars(text.data(), text.data() + text.size(), revision);
    recovered.revision = std::max(recovered.revision, revision);
    database_.write([&](Db& db) { raise_revision(db, recovered.revision); });
  }
  return recovered;
}

std::vector<RecordPtr> GitStore::commit(const Commit& commit) {
  check_shape(commit);
  const apis::Storage storage = kind_of(commit.changes.front().key).storage;
  auto request = std::make_shared<Request>();
  request->git = storage == apis::Storage::git;
  request->actor = commit.actor;
  request->message = commit.message;
  for (const Change& change : commit.changes) {
    check_key(change.key);
    if (kind_of(change.key).storage != storage)
      throw Error(Code::bad_request, "store: one commit for kinds of two storages");
    Prepared prepared = prepare(change, index_.find(change.key));
    if (request->git && prepared.file_changed) {
      request->files = true;
      if (change.verb != Verb::remove) prepared.yaml = file_text(prepared.texts.file);
    }
    request->prepared.push_back(std::move(prepared));
  }
  writer_->submit(request);
  return std::move(request->records);
}

void GitStore::rows(std::function<void(Db&)> change) {
  auto request = std::make_shared<Request>();
  request->what = Request::What::rows;
  request->rows = std::move(change);
  writer_->submit(request);
}

std::vector<Revision> GitStore::history(const Key& key, size_t limit) const {
  // In this order: a line that is sealed in between is seen twice, never missed.
  std::vector<Revision> lines = writer_->unsealed_history(key);
  const auto sealed = database_.read([&](Db& db) { return read_history(db, key, limit); });
  for (const Revision& line : sealed)
    if (lines.empty() || line.revision < lines.back().revision) lines.push_back(line);
  if (limit != 0 && lines.size() > limit) lines.resize(limit);
  return lines;
}

std::optional<Oid> GitStore::commit_of(const Key& key, std::string_view which) const {
  for (const Revision& line : history(key, 0))
    if ((all_digits(which) && std::to_string(line.revision) == which) ||
        (which.size() >= 7 && line.commit.starts_with(which)))
      return Oid::from_hex(line.commit);
  return std::nullopt;
}

json::Value GitStore::object_at(const Key& key, std::string_view which) const {
  const Error absent(Code::not_found,
                     to_string(key) + " has no revision " + json::quote(which) + " in its history");
  const auto commit = commit_of(key, which);
  if (!commit) throw absent;
  // A handle keeps the files of packs that were joined since, so none is kept.
  if (!ObjectReader(repository_).find(*commit)) writer_->flush();
  ObjectReader reader(repository_);
  for (const std::string& path : {flat_path(key), split_path(key)})
    if (const auto blob = reader.at_path(*commit, path))
      return parse_file(key, reader.get(*blob, "file"));
  throw absent;
}

uint64_t GitStore::timeline_append(std::string_view owner, const std::vector<std::string>& json) {
  uint64_t last = 0;
  rows([&](Db& db) { last = append_timeline(db, owner, json); });
  return last;
}

std::optional<std::string> GitStore::row_get(std::string_view space, std::string_view key) const {
  return database_.read([&](Db& db) -> std::optional<std::string> {
    Stmt read = db.prepare("SELECT value FROM row WHERE space=? AND key=?");
    read.bind(1, space).bind_blob(2, key);
    if (!read.step()) return std::nullopt;
    return read.text(0);
  });
}

void GitStore::row_put(std::string_view space, std::string_view key, std::string_view value) {
  rows([&](Db& db) {
    Stmt put = db.prepare("INSERT OR REPLACE INTO row VALUES (?,?,?)");
    put.bind(1, space).bind_blob(2, key).bind_blob(3, value).run();
  });
}

bool GitStore::row_remove(std::string_view space, std::string_view key) {
  bool removed = false;
  rows([&](Db& db) {
    Stmt remove = db.prepare("DELETE FROM row WHERE space=? AND key=?");
    remove.bind(1, space).bind_blob(2, key).run();
    removed = db.changes() > 0;
  });
  return removed;
}

std::vector<std::pair<std::string, std::string>> GitStore::row_list(std::string_view space) const {
  return database_.read([&](Db& db) {
    Stmt read = db.prepare("SELECT key, value FROM row WHERE space=? ORDER BY key");
    read.bind(1, space);
    std::vector<std::pair<std::string, std::string>> rows;
    while (read.step()) rows.emplace_back(read.text(0), read.text(1));
    return rows;
  });
}

}  // namespace

std::unique_ptr<Store> open_store(const Options& options) {
  return std::make_unique<GitStore>(options);
}

}  // namespace umpteenth::store
