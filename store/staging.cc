#include "store/staging.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace umpteenth::store {
namespace {

constexpr size_t kMaxChanges = 5000;
constexpr char kRevision[] = "resourceVersion";

std::string subject(const Key& key) { return key.kind + ".umpteenth.dev \"" + key.name + "\""; }

void check_against(const Prepared& change, const RecordPtr& base) {
  if (change.verb == Verb::create) {
    if (base) throw Error(Code::already_exists, subject(change.key) + " already exists");
    return;
  }
  if (!base) throw Error(Code::not_found, subject(change.key) + " not found");
  if (change.expect && *change.expect != base->revision)
    throw Error(Code::conflict, "Operation cannot be fulfilled on " + subject(change.key) +
                                    ": the object has been modified; please apply your changes to "
                                    "the latest version and try again");
}

void append_member(std::string& text, const json::Member& member) {
  text += text.empty() || text.back() == '{' ? "" : ",";
  text += json::quote(member.key) + ":" + member.value.dump();
}

RecordPtr record_of(const Key& key, uint64_t revision, std::string json) {
  auto record = std::make_shared<Record>();
  record->key = key;
  record->revision = revision;
  record->json = std::move(json);
  return record;
}

}  // namespace

Texts texts_of(json::Value object) {
  if (!object.is_object() || !object.get("metadata").is_object())
    throw Error(Code::bad_request, "store: an object needs metadata");
  Texts texts;
  json::Value metadata = std::move(*object.find("metadata"));
  metadata.erase(kRevision);
  texts.head = "{";
  for (const char* key : {"apiVersion", "kind"})
    if (const json::Value* value = object.find(key)) append_member(texts.head, {key, *value});
  texts.head += std::string(texts.head == "{" ? "" : ",") + "\"metadata\":{\"resourceVersion\":\"";
  const std::string rest = metadata.dump();
  texts.tail = metadata.empty() ? "\"}" : "\"," + rest.substr(1);
  object.set("metadata", std::move(metadata));
  if (const json::Value* status = object.find("status")) texts.status = *status;
  object.erase("status");
  for (const json::Member& member : object.members())
    if (member.key != "apiVersion" && member.key != "kind" && member.key != "metadata")
      append_member(texts.tail, member);
  if (!texts.status.is_null()) append_member(texts.tail, {"status", texts.status});
  texts.tail += "}";
  texts.file = std::move(object);
  return texts;
}

std::string served(const Texts& texts, uint64_t revision) {
  const std::string digits = std::to_string(revision);
  std::string text;
  text.reserve(texts.head.size() + digits.size() + texts.tail.size());
  return text.append(texts.head).append(digits).append(texts.tail);
}

std::string with_revision(const Record& record, uint64_t revision) {
  // texts_of() puts the revision first in metadata, and only two short strings before that.
  const std::string mark = "\"metadata\":{\"resourceVersion\":\"";
  const size_t at = record.json.find(mark);
  const size_t begin = at + mark.size();
  const size_t end = record.json.find('"', begin);
  return record.json.substr(0, begin) + std::to_string(revision) + record.json.substr(end);
}

Prepared prepare(const Change& change, RecordPtr base) {
  Prepared prepared;
  prepared.verb = change.verb;
  prepared.key = change.key;
  prepared.expect = change.expect;
  if (change.verb == Verb::remove) {
    prepared.base = std::move(base);
    return prepared;
  }
  prepared.texts = texts_of(change.object);
  compare(prepared, std::move(base));
  return prepared;
}

void compare(Prepared& prepared, RecordPtr base) {
  prepared.base = std::move(base);
  prepared.file_changed = prepared.status_changed = true;
  if (prepared.verb == Verb::remove || !prepared.base) return;
  if (served(prepared.texts, prepared.base->revision) == prepared.base->json) {
    prepared.file_changed = prepared.status_changed = false;
    return;
  }
  const Texts old = texts_of(prepared.base->parse());
  prepared.file_changed = !(old.file == prepared.texts.file);
  prepared.status_changed = !(old.status == prepared.texts.status);
}

void check_shape(const Commit& commit) {
  if (commit.changes.empty()) throw Error(Code::bad_request, "store: a commit without changes");
  if (commit.changes.size() > kMaxChanges)
    throw Error(Code::too_large, "store: a commit of " + std::to_string(commit.changes.size()) +
                                     " changes: limit is " + std::to_string(kMaxChanges));
  std::set<Key> keys;
  for (const Change& change : commit.changes) {
    if (change.key.kind.empty() || change.key.name.empty())
      throw Error(Code::bad_request, "store: a change without kind or name");
    if (!keys.insert(change.key).second)
      throw Error(Code::bad_request,
                  "store: two changes of " + to_string(change.key) + " in one commit");
  }
}

RecordPtr Staging::find(const Key& key) const {
  const auto it = changed_.find(key);
  return it != changed_.end() ? it->second : index_.find(key);
}

std::vector<Staged> Staging::stage(std::vector<Prepared>& commit) const {
  std::vector<size_t> order(commit.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return commit[a].key < commit[b].key; });

  std::vector<Staged> staged(commit.size());
  uint64_t revision = revision_;
  for (const size_t i : order) {
    Prepared& change = commit[i];
    RecordPtr base = find(change.key);
    check_against(change, base);
    if (base != change.base) compare(change, base);
    staged[i] = {&change, base, base};
    if (change.verb != Verb::remove && !change.file_changed && !change.status_changed) continue;
    ++revision;
    staged[i].record = record_of(change.key, revision,
                                 change.verb == Verb::remove ? with_revision(*base, revision)
                                                             : served(change.texts, revision));
  }
  return staged;
}

void Staging::accept(const std::vector<Staged>& staged) {
  for (const Staged& s : staged) {
    if (!s.effect()) continue;
    changed_[s.record->key] = s.prepared->verb == Verb::remove ? nullptr : s.record;
    revision_ = std::max(revision_, s.record->revision);
  }
}

Index::Update update_of(const Staged& staged) { return {staged.prepared->verb, staged.record}; }

Event event_of(const Staged& staged) {
  switch (staged.prepared->verb) {
    case Verb::create:
      return {Event::Type::added, staged.record, nullptr};
    case Verb::update:
      return {Event::Type::modified, staged.record, staged.previous};
    case Verb::remove:
      break;
  }
  return {Event::Type::removed, staged.record, staged.previous};
}

}  // namespace umpteenth::store
