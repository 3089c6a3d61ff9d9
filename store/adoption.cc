// Edits that others made in git: by a push, or by a commit in the repository itself.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "apis/kind.h"
#include "apis/lifecycle.h"
#include "apis/object.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/codec.h"
#include "store/file_position.h"
#include "store/layout.h"
#include "store/writer.h"

namespace umpteenth::store {
namespace {

constexpr char kActor[] = "system:git";
constexpr char kDeclared[] = "Declared";
constexpr size_t kMaxRule = 500;
constexpr size_t kMaxListed = 20;

json::Value with_declared(json::Value object, bool valid, const std::string& message) {
  apis::Condition condition;
  condition.type = kDeclared;
  condition.status = valid ? "True" : "False";
  condition.reason = valid ? "Valid" : "InvalidFile";
  condition.message = message;
  condition.observed_generation = apis::generation_of(object);
  apis::set_condition(object["status"], condition, system_clock().now());
  return object;
}

// What others wrote may not be on the disk yet; what umpd builds on it will be.
void sync_repository(const std::filesystem::path& repository) {
  Fd fd(::open(repository.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::syncfs(fd.get()) != 0)
    throw errno_error(Code::internal, "sync " + repository.string());
}

std::string rule_of(const Error& e, std::string_view text) {
  std::string rule;
  if (!e.causes().empty()) {
    const Cause& cause = e.causes().front();
    rule = "line " + std::to_string(line_of_field(text, cause.field)) + ": " + cause.field + ": " +
           cause.message;
  } else if (e.message().find("line ") != std::string::npos) {
    rule = e.message();
  } else {
    const size_t colon = e.message().find(':');
    rule = "line " + std::to_string(line_of_field(text, e.message().substr(0, colon))) + ": " +
           e.message();
  }
  return log::clip(rule, kMaxRule);
}

bool kept_in_git(const std::string& plural) {
  const apis::Kind* kind = apis::find_kind(plural);
  return kind && kind->storage == apis::Storage::git;
}

Change to_change(const RecordPtr& record, const Key& key, json::Value object) {
  return {record ? Verb::update : Verb::create, key, std::move(object), {}};
}

}  // namespace

struct Writer::Admission {
  FileEdit edit;
  std::optional<Prepared> change;  // none: nothing to do but to note the file
  bool write_back = false;         // the file has to be completed
  std::string refused;             // why the file is not in force
  RecordPtr record;                // what is in force then
};

// A write over a file that is refused: one of the file heals it, others keep saying so.
void Writer::keep_condition(Prepared& prepared, const RecordPtr& record) {
  if (prepared.verb == Verb::remove || !record) return;
  compare(prepared, record);
  json::Value object = prepared.texts.file;
  object.set("status",
             prepared.texts.status.is_null() ? json::Value::object() : prepared.texts.status);
  if (prepared.file_changed) {
    object = with_declared(std::move(object), true, "replaced through the API");
  } else {
    const auto old = apis::find_condition(prepared.base->parse(), kDeclared);
    object = with_declared(std::move(object), false, old ? old->message : "");
  }
  prepared.texts = texts_of(std::move(object));
  compare(prepared, record);
}

// Where others moved the ref to. Commits that are not sealed hold the lock: then they cannot have.
std::optional<Oid> Writer::moved_ref() {
  Oid published;
  {
    std::lock_guard lock(mutex_);
    published = published_;
  }
  if (ledger_.head() != published) return std::nullopt;
  const auto now = read_ref(parts_.repository, kMainRef);
  if (now == published) return std::nullopt;
  if (!now) write_ref(parts_.repository, kMainRef, published);
  return now;
}

void Writer::adopt_pending() {
  if (const auto theirs = moved_ref()) adopt(*theirs);
  if (pending_.empty()) return;
  ObjectReader reader(parts_.repository);
  admit(pending_, std::nullopt, ledger_.head(), {}, reader);
  pending_.clear();
}

void Writer::adopt(const Oid& theirs) {
  ObjectReader reader(parts_.repository);
  if (restore_ours(theirs, reader)) return;
  sync_repository(parts_.repository);
  const auto read_tree = [&reader](const Oid& id) { return reader.get(id, "tree"); };
  FolderTree tree(reader.commit(theirs).tree, read_tree);

  std::map<Key, FolderTree::File> before;
  ledger_.tree().for_each(
      [&](Key key, const FolderTree::File& file) { before[std::move(key)] = file; });
  std::vector<FileEdit> edits;
  tree.for_each([&](Key key, const FolderTree::File& file) {
    const auto node = before.extract(key);
    if (!node.empty() && node.mapped().id == file.id) return;
    if (!kept_in_git(key.kind)) return;
    edits.push_back({std::move(key), file.regular ? file.id : Oid{}, theirs});
  });
  for (const auto& [key, file] : before)
    if (kept_in_git(key.kind)) edits.push_back({key, std::nullopt, theirs});
  // With those still to be admitted from before: their commit of ours would have to stand on this.
  std::set<Key> edited;
  for (const FileEdit& edit : edits) edited.insert(edit.key);
  for (const FileEdit& edit : pending_)
    if (!edited.contains(edit.key)) edits.push_back(edit);
  log::info("taking over an edit by git", {{"commit", theirs.hex()}, {"files", edits.size()}});
  admit(std::move(edits), std::move(tree), theirs, ledger_.head(), reader);
  pending_.clear();
}

// True where the ref's new value does not stand on ours: ours is put back, theirs kept aside.
bool Writer::restore_ours(const Oid& theirs, ObjectReader& reader) {
  const bool readable = reader.find(theirs).has_value();
  if (readable && reader.is_ancestor(ledger_.head(), theirs)) return false;
  const std::string kept = readable ? keep_recovered(parts_.repository, theirs) : "";
  write_ref(parts_.repository, kMainRef, ledger_.head());
  log::error("refs/heads/main was moved to a commit without acknowledged writes; it is put back",
             {{"commit", theirs.hex()}, {"kept as", kept}});
  return true;
}

Writer::Admission Writer::admit_one(const FileEdit& edit, ObjectReader& reader) {
  Admission admission;
  admission.edit = edit;
  const RecordPtr record = parts_.index.find(edit.key);
  if (!edit.blob) {
    if (!record) return admission;
    auto left = apis::prepare_delete(record->parse(), system_clock().now());
    admission.write_back = left.has_value();
    Change change{Verb::remove, edit.key, {}, {}};
    if (left) change = {Verb::update, edit.key, *std::move(left), {}};
    admission.change = prepare(change, record);
    return admission;
  }
  std::string text;
  try {
    if (edit.blob->is_null()) throw Error(Code::invalid, "the path is not a regular file");
    text = reader.get(*edit.blob, "file");
    const json::Value file = parse_file(edit.key, text);
    json::Value object =
        parts_.options.admit_edit ? parts_.options.admit_edit(edit.key, file, record) : file;
    if (record && object.get("status").is_null())
      object.set("status", record->parse().get("status"));
    if (invalid_.contains(edit.key)) object = with_declared(std::move(object), true, "");
    admission.change = prepare(to_change(record, edit.key, std::move(object)), record);
    admission.write_back = !(admission.change->texts.file == file);
  } catch (const Error& e) {
    // What others wrote is wrong, not the store: it is said where they will look.
    admission.refused = log::clip(flat_path(edit.key), kMaxRule) + " of commit " +
                        edit.commit.hex().substr(0, 12) + ", " + rule_of(e, text);
    if (record)
      admission.change = prepare(
          to_change(record, edit.key, with_declared(record->parse(), false, admission.refused)),
          record);
  }
  return admission;
}

void Writer::admit(std::vector<FileEdit> edits, std::optional<FolderTree> tree, const Oid& head,
                   const Oid& base, ObjectReader& reader) {
  std::vector<Admission> admitted;
  for (const FileEdit& edit : edits) admitted.push_back(admit_one(edit, reader));
  store_admitted(admitted, std::move(tree), head, base);

  std::vector<std::string> refused;
  for (const Admission& a : admitted) {
    const bool exists = a.change && a.change->verb != Verb::remove;
    if (!a.refused.empty() && exists)
      invalid_[a.edit.key] = *a.edit.blob;
    else
      invalid_.erase(a.edit.key);
    if (a.refused.empty()) continue;
    log::warn("a file is invalid; its last valid version stays in force", {{"file", a.refused}});
    if (refused.size() < kMaxListed) refused.push_back(a.refused);
  }
  std::lock_guard lock(mutex_);
  invalid_files_ = std::move(refused);
}

// The rows that say which version of each file has been looked at.
std::vector<ObjectRow> Writer::rows_of(const std::vector<Admission>& admitted,
                                       const std::map<Key, Oid>& completed) const {
  std::vector<ObjectRow> rows;
  for (const Admission& a : admitted) {
    if (!a.record || a.change->verb == Verb::remove) continue;
    const auto file = completed.find(a.edit.key);
    const Oid id = file != completed.end() ? file->second : a.edit.blob.value_or(Oid{});
    rows.push_back({a.edit.key, a.record->revision, id, !a.refused.empty(), a.record->json});
  }
  return rows;
}

void Writer::store_admitted(std::vector<Admission>& admitted, std::optional<FolderTree> tree,
                            const Oid& head, const Oid& base) {
  std::vector<Prepared> prepared;
  for (const Admission& a : admitted)
    if (a.change) prepared.push_back(*a.change);
  Group group(parts_.index, revision_);
  Work work;
  work.request = std::make_shared<Request>();
  work.staged = group.staging.stage(prepared);
  group.staging.accept(work.staged);
  auto staged = work.staged.begin();
  for (Admission& a : admitted)
    if (a.change) a.record = (staged++)->record;

  const bool complete_files = std::any_of(admitted.begin(), admitted.end(),
                                          [](const Admission& a) { return a.write_back; });
  // A commit has a revision even where no object got one.
  const uint64_t last = std::max(group.staging.revision(), revision_ + (complete_files ? 1 : 0));
  reserve_revisions(last);
  if (complete_files)
    journal_admitted(group, work, admitted, std::move(tree), head, base, last);
  else
    record_admitted(work, admitted, std::move(tree), head, last);
  {
    std::lock_guard lock(mutex_);
    published_ = head;
  }
  group.works.assign(1, std::move(work));
  publish(group);
  revision_ = last;
}

void Writer::add_history(Work& work, const Oid& edited, const Oid& commit) const {
  const auto now = std::chrono::floor<std::chrono::seconds>(system_clock().now());
  for (const Staged& s : work.staged)
    if (s.effect())
      work.history.push_back(
          {s.record->key,
           {s.record->revision, commit.hex(), Time(now), kActor, s.prepared->verb,
            "edited by git in " + edited.hex().substr(0, 12)}});
}

// With files to complete: one commit of ours on top of theirs, by way of the journal. The sealer
// writes the rows before it moves the head that they stand at.
void Writer::journal_admitted(Group& group, Work& work, const std::vector<Admission>& admitted,
                              std::optional<FolderTree> tree, const Oid& head, const Oid& base,
                              uint64_t last) {
  std::vector<JournalChange> changes;
  size_t bytes = 4096;
  for (const Admission& a : admitted) {
    if (!a.write_back) continue;
    const Texts& texts = a.change->texts;
    JournalChange change{a.change->verb, a.edit.key, a.record->revision, file_text(texts.file), {}};
    if (a.change->status_changed && !texts.status.is_null())
      change.status_json = texts.status.dump();
    bytes += change.yaml.size() + change.status_json.size() + 1024;
    changes.push_back(std::move(change));
  }
  parts_.journal.reserve(bytes);
  if (tree) ledger_.move_to(*std::move(tree), head);
  const std::string message = "complete files edited in " + head.hex().substr(0, 12);
  const Ledger::Added added =
      ledger_.add(changes, {kActor, message, base, std::min(revision_ + 1, last), last});
  std::map<Key, Oid> completed;
  for (size_t i = 0; i < changes.size(); ++i) completed[changes[i].key] = added.blobs[i];
  group.journal = encode(added.record);
  if (!write_journal(group)) throw Error(Code::unavailable, broken_);

  add_history(work, head, added.commit);
  Generation& generation = ledger_.generation();
  generation.revision = std::max(generation.revision, last);
  for (const Staged& s : work.staged)
    if (s.effect() && s.prepared->verb == Verb::remove) generation.rows[s.record->key].reset();
  for (ObjectRow& row : rows_of(admitted, completed)) generation.rows[row.key] = std::move(row);
  std::lock_guard lock(history_mutex_);
  for (const HistoryRow& line : work.history) {
    unsealed_[line.line.revision] = line;
    generation.history.push_back(line);
  }
}

// With nothing to complete their commit stays the head, and SQLite alone notes that it was seen.
void Writer::record_admitted(Work& work, const std::vector<Admission>& admitted,
                             std::optional<FolderTree> tree, const Oid& head, uint64_t last) {
  add_history(work, head, head);
  parts_.database.write([&](Db& db) {
    for (const Staged& s : work.staged)
      if (s.effect() && s.prepared->verb == Verb::remove)
        remove_object(db, s.record->key, s.record->revision);
    for (const ObjectRow& row : rows_of(admitted, {})) put_object(db, row);
    for (const HistoryRow& line : work.history) put_history(db, line);
    put_meta(db, kMetaHead, head.hex());
    raise_revision(db, last);
  });
  if (tree) ledger_.move_to(*std::move(tree), head);
}

}  // namespace umpteenth::store
