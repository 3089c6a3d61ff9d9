#include "store/writer.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "store/codec.h"
#include "store/layout.h"

namespace umpteenth::store {
namespace {

constexpr size_t kGroupRequests = 1024;
constexpr size_t kGroupBytes = 2U << 20;
constexpr size_t kRecordOverhead = 1024, kChangeOverhead = 128;

size_t journal_bytes(const Request& request) {
  size_t bytes = kRecordOverhead + 2 * request.actor.size() + request.message.size();
  for (const Prepared& p : request.prepared)
    bytes += kChangeOverhead + p.yaml.size() + p.texts.tail.size() + p.key.kind.size() +
             p.key.ns.size() + p.key.name.size();
  return bytes;
}

}  // namespace

Writer::Writer(const Parts& parts, Recovered recovered)
    : parts_(parts),
      lock_(parts.repository),
      ledger_(std::move(recovered.ledger)),
      invalid_(std::move(recovered.invalid)),
      pending_(std::move(recovered.pending)),
      revision_(recovered.revision),
      last_generation_(recovered.generation) {
  reserve_revisions(revision_);
  published_ = ledger_.head();
  for (const auto& [key, blob] : invalid_) invalid_files_.push_back(flat_path(key));
  blocked_ = lock_.recover(true);
  sealer_ = std::make_unique<Sealer>(
      parts.repository, parts.database, lock_, last_generation_, [this](const Generation& done) {
        {
          std::lock_guard lock(mutex_);
          published_ = done.tip;
        }
        std::lock_guard lock(history_mutex_);
        unsealed_.erase(unsealed_.begin(), unsealed_.upper_bound(done.revision));
      });
  thread_ = std::thread([this] { run(); });
}

Writer::~Writer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  sealer_.reset();
}

void Writer::submit(const RequestPtr& request) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(request);
  }
  wake_.notify_one();
  request->done.wait(0);
  if (request->error) throw *request->error;
}

void Writer::flush() {
  auto request = std::make_shared<Request>();
  request->what = Request::What::flush;
  submit(request);
  if (!sealer_->wait_sealed(request->generation))
    throw Error(Code::unavailable, sealer_->trouble());
}

void Writer::look() {
  auto request = std::make_shared<Request>();
  request->what = Request::What::look;
  submit(request);
}

bool Writer::moved_by_others() const {
  if (lock_.held()) return false;
  const auto ref = read_ref(parts_.repository, kMainRef);
  std::lock_guard lock(mutex_);
  return ref != published_;
}

bool Writer::unblocked() const {
  std::lock_guard lock(mutex_);
  return blocked_.empty() || !broken_.empty();
}

bool Writer::take(std::deque<RequestPtr>& batch) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return stopping_ || !queue_.empty(); };
  if (batch.empty()) {
    if (may_seal())
      wake_.wait_until(lock, ledger_.generation().opened + kGenerationLife, ready);
    else
      wake_.wait(lock, ready);
  }
  while (!queue_.empty() && batch.size() < kGroupRequests) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return !(stopping_ && batch.empty());
}

void Writer::run() {
  std::deque<RequestPtr> batch;
  while (take(batch)) {
    if (!batch.empty()) process(batch);
    if (may_seal() && generation_due()) close_generation();
  }
  if (may_seal()) close_generation();
}

void Writer::process(std::deque<RequestPtr>& batch) {
  const bool git = std::any_of(batch.begin(), batch.end(), [](const RequestPtr& r) {
    return r->files || r->what == Request::What::look;
  });
  std::optional<Error> git_refusal;
  if (git) git_refusal = prepare_git();
  Group group(parts_.index, revision_);
  while (!batch.empty() && group.journal.size() < kGroupBytes) {
    if (add(group, batch.front(), git_refusal) == Step::later) break;
    batch.pop_front();
  }
  finish(group);
  if (group.rotate && may_seal()) close_generation();
}

Writer::Step Writer::add(Group& group, const RequestPtr& request,
                         const std::optional<Error>& git_refusal) {
  switch (request->what) {
    case Request::What::look:  // prepare_git() has looked
      complete(request, git_refusal);
      return Step::added;
    case Request::What::flush:
      if (!group.works.empty()) return Step::later;
      if (may_seal()) close_generation();
      request->generation = last_generation_;
      complete(request, std::nullopt);
      return Step::added;
    case Request::What::rows:
      group.works.push_back({request, {}, false, {}, {}});
      return Step::added;
    case Request::What::commit:
      break;
  }
  try {
    return add_commit(group, request, git_refusal);
  } catch (const Error& e) {
    // Whatever is wrong with this commit is for its caller; the others of the group go on.
    complete(request, e);
  } catch (const std::exception& e) {
    complete(request, Error(Code::internal, e.what()));
  }
  return Step::added;
}

Writer::Step Writer::add_commit(Group& group, const RequestPtr& request,
                                const std::optional<Error>& git_refusal) {
  if (request->git && !invalid_.empty())
    for (Prepared& p : request->prepared)
      if (invalid_.contains(p.key)) keep_condition(p, group.staging.find(p.key));
  Work work;
  work.request = request;
  work.staged = group.staging.stage(request->prepared);
  bool effect = false;
  for (const Staged& s : work.staged) {
    effect |= s.effect();
    work.journaled |= request->git && s.effect() && s.prepared->file_changed;
  }
  if (!effect) {
    for (const Staged& s : work.staged) request->records.push_back(s.record);
    // It may rest on a change of this very group: acknowledged with it.
    group.works.push_back(std::move(work));
    return Step::added;
  }
  // What one storage refuses must not have been the base of what the other took.
  const std::set<Key>& others = work.journaled ? group.row_keys : group.journal_keys;
  for (const Staged& s : work.staged)
    if (others.contains(s.record->key)) return Step::later;
  if (work.journaled) {
    if (git_refusal) throw *git_refusal;
    if (!broken_.empty()) throw Error(Code::unavailable, broken_);
    request->files = true;  // where a change that came between made it so
    if (!ledger_.is_open() || !room_for(group, journal_bytes(*request))) return Step::later;
  }
  group.staging.accept(work.staged);
  for (const Staged& s : work.staged)
    if (s.effect()) (work.journaled ? group.journal_keys : group.row_keys).insert(s.record->key);
  if (work.journaled) {
    try {
      journal_commit(group, work);
    } catch (const std::exception& e) {  // the folders in memory may be half changed
      break_down(e.what());
      throw;
    }
  }
  group.works.push_back(std::move(work));
  return Step::added;
}

// False where another generation has to begin first.
bool Writer::room_for(Group& group, size_t bytes) {
  if (parts_.journal.fits(group.journal.size() + bytes)) return true;
  if (!group.journal.empty() || !parts_.journal.empty()) {
    group.rotate = true;
    return false;
  }
  try {
    parts_.journal.reserve(bytes);
  } catch (const Error& e) {
    if (e.code() != Code::unavailable) throw;
    throw no_room(e);
  }
  return true;
}

void Writer::journal_commit(Group& group, Work& work) {
  std::vector<JournalChange> changes;
  for (const Staged& s : work.staged) {
    if (!s.effect()) continue;
    const Prepared& p = *s.prepared;
    JournalChange change{p.verb, p.key, s.record->revision, {}, {}};
    if (p.verb != Verb::remove) {
      change.yaml = p.yaml.empty() ? file_text(p.texts.file) : p.yaml;
      const bool carried =
          p.status_changed && (p.verb == Verb::update || !p.texts.status.is_null());
      if (carried) change.status_json = p.texts.status.dump();
    }
    changes.push_back(std::move(change));
  }
  const Request& request = *work.request;
  Ledger::Added added = ledger_.add(std::move(changes), {request.actor, request.message, {}, 0, 0});
  group.journal += encode(added.record);
  size_t next = 0;
  for (const Staged& s : work.staged) {
    work.blobs.push_back(s.effect() ? added.blobs[next++] : Oid{});
    if (!s.effect()) continue;
    work.history.push_back(
        {s.record->key,
         {s.record->revision, added.commit.hex(), Time(std::chrono::seconds(added.seconds)),
          request.actor, s.prepared->verb, request.message}});
  }
}

void Writer::finish(Group& group) {
  if (group.works.empty()) return;
  reserve_revisions(group.staging.revision());
  if (!write_journal(group)) return;
  write_rows(group);
  publish(group);
}

void Writer::publish(Group& group) {
  revision_ = group.staging.revision();
  std::vector<Index::Update> updates;
  std::vector<Event> events;
  for (const Work& work : group.works) {
    if (work.journaled) note_sealing(work);
    for (const Staged& s : work.staged) {
      if (!s.effect()) continue;
      updates.push_back(update_of(s));
      events.push_back(event_of(s));
    }
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.record->revision < b.record->revision; });
  if (!updates.empty()) {
    parts_.index.apply(updates, revision_);
    parts_.hub.publish(std::move(events));
  }
  for (const Work& work : group.works) {
    if (work.request->records.empty())
      for (const Staged& s : work.staged) work.request->records.push_back(s.record);
    complete(work.request, work.request->error);
  }
}

void Writer::fail(Group& group, const Error& error, bool only_rows) {
  std::vector<Work> left;
  for (Work& work : group.works)
    if (only_rows && work.journaled)
      left.push_back(std::move(work));
    else
      complete(work.request, error);
  group.works = std::move(left);
}

void Writer::complete(const RequestPtr& request, std::optional<Error> error) {
  request->error = std::move(error);
  request->done = 1;
  request->done.notify_all();
}

std::vector<Revision> Writer::unsealed_history(const Key& key) const {
  std::lock_guard lock(history_mutex_);
  std::vector<Revision> lines;
  for (auto it = unsealed_.rbegin(); it != unsealed_.rend(); ++it)
    if (it->second.key == key) lines.push_back(it->second.line);
  return lines;
}

Health Writer::health() const {
  std::lock_guard lock(mutex_);
  if (!broken_.empty()) return {false, broken_};
  if (const std::string trouble = sealer_->trouble(); !trouble.empty()) return {false, trouble};
  if (!blocked_.empty()) return {false, blocked_};
  Health health;
  for (const std::string& file : invalid_files_)
    health.reason += (health.reason.empty() ? "ignored invalid files: " : "; ") + file;
  return health;
}

}  // namespace umpteenth::store
