// The writer's way to the disk: the journal and its generations, the rows, the lock of the ref.
#include <algorithm>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "store/writer.h"

namespace umpteenth::store {
namespace {

constexpr uint64_t kReserve = 1'000'000, kReserveMargin = 100'000;
constexpr size_t kGenerationCommits = 4096, kGenerationBytes = 3U << 20;

}  // namespace

bool Writer::write_journal(Group& group) {
  if (group.journal.empty()) return true;
  try {
    parts_.journal.append(group.journal);
    ledger_.generation().bytes += group.journal.size();
    return true;
  } catch (const Error& e) {
    // After a failed sync nothing is known of what is on the disk: nothing is acknowledged again.
    break_down(e.message());
    fail(group, Error(Code::unavailable, broken_), false);
    return false;
  }
}

void Writer::write_rows(Group& group) {
  const bool any = std::any_of(group.works.begin(), group.works.end(), [](const Work& w) {
    return w.request->rows ||
           (!w.journaled && std::any_of(w.staged.begin(), w.staged.end(),
                                        [](const Staged& s) { return s.effect(); }));
  });
  if (!any) return;
  try {
    if (!broken_.empty()) throw Error(Code::unavailable, broken_);
    parts_.database.write([&](Db& db) {
      for (Work& work : group.works) write_rows_of(db, work);
      raise_revision(db, group.staging.revision());
    });
  } catch (const Error& e) {
    if (e.code() != Code::unavailable) break_down(e.message());
    fail(group, broken_.empty() ? no_room(e) : e, true);
  }
}

void Writer::write_rows_of(Db& db, Work& work) {
  if (work.request->rows) {
    db.exec("SAVEPOINT one");
    try {
      work.request->rows(db);
    } catch (const Error& e) {
      if (e.code() == Code::unavailable) throw;
      work.request->error = e;
      db.exec("ROLLBACK TO one");
    }
    db.exec("RELEASE one");
    return;
  }
  if (work.journaled) return;
  for (const Staged& s : work.staged) {
    if (!s.effect()) continue;
    const Key& key = s.record->key;
    if (s.prepared->verb == Verb::remove) {
      remove_object(db, key, s.record->revision);
      continue;
    }
    Oid file;
    if (work.request->git) file = ledger_.tree().find(key).value_or(Oid{});
    put_object(db, {key, s.record->revision, file, invalid_.contains(key), s.record->json});
  }
}

// What the sealer writes down of it.
void Writer::note_sealing(const Work& work) {
  Generation& generation = ledger_.generation();
  for (size_t i = 0; i < work.staged.size(); ++i) {
    const Staged& s = work.staged[i];
    if (!s.effect()) continue;
    const Key& key = s.record->key;
    auto& row = generation.rows[key];
    if (s.prepared->verb == Verb::remove)
      row.reset();
    else
      row = ObjectRow{key, s.record->revision, work.blobs[i], false, s.record->json};
    invalid_.erase(key);
  }
  std::lock_guard lock(history_mutex_);
  for (const HistoryRow& line : work.history) {
    unsealed_[line.line.revision] = line;
    generation.history.push_back(line);
  }
}

void Writer::break_down(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (!broken_.empty()) return;
  broken_ = "store: writing failed (" + why +
            "); nothing is written any more and nothing acknowledged is lost; restart umpd when "
            "the disk is sound";
  log::error("the store stopped writing", {{"error", why}});
}

// So that a lost umpd.db does not lead to a revision being given twice.
void Writer::reserve_revisions(uint64_t revision) {
  if (revision + kReserveMargin < reserved_) return;
  try {
    write_file_durably(parts_.repository / "umpd/revisions", std::to_string(revision + kReserve),
                       0600);
    reserved_ = revision + kReserve;
  } catch (const Error& e) {  // tried again with the next group; the margin is wide
    log::warn("could not reserve revisions", {{"error", e.message()}});
  }
}

// Everything that must be so before a commit can go into the journal; or why it cannot.
std::optional<Error> Writer::prepare_git() {
  try {
    if (!broken_.empty()) throw Error(Code::unavailable, broken_);
    if (const std::string trouble = sealer_->trouble(); !trouble.empty())
      throw Error(Code::unavailable, trouble);
    if (ledger_.is_open()) return std::nullopt;
    take_lock();
    try {
      open_generation();
      adopt_pending();
    } catch (const Error&) {
      if (ledger_.is_open())
        close_generation();
      else
        lock_.drop();
      throw;
    }
    std::lock_guard lock(mutex_);
    blocked_.clear();
    return std::nullopt;
  } catch (const Error& e) {
    std::lock_guard lock(mutex_);
    blocked_ = e.message();
    return Error(Code::unavailable, e.message());
  }
}

void Writer::take_lock() {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPatience(1000), kStep(5);
  const auto begin = steady_clock::now();
  const auto hold = [this] {
    try {
      return lock_.hold(ledger_.head());
    } catch (const Error& e) {
      if (e.code() != Code::unavailable) throw;
      throw no_room(e);
    }
  };
  while (hold() == RefLock::Taken::busy) {
    const std::string waiting = lock_.recover(false);
    if (waiting.empty()) continue;
    // Patient once; after that others' writes must not wait behind each try.
    if (steady_clock::now() < busy_until_ || steady_clock::now() - begin > kPatience) {
      busy_until_ = steady_clock::now() + std::chrono::seconds(5);
      throw Error(Code::unavailable, waiting);
    }
    std::this_thread::sleep_for(kStep);
  }
}

void Writer::open_generation() {
  const uint64_t number = last_generation_ + 1;
  // Its file in the journal was that of a generation four before.
  if (number > Journal::kSegments && !sealer_->wait_sealed(number - Journal::kSegments))
    throw Error(Code::unavailable, sealer_->trouble());
  parts_.journal.begin(number);
  ledger_.open(number);
}

bool Writer::generation_due() const {
  const Generation& open = ledger_.generation();
  return open.commits >= kGenerationCommits || open.bytes >= kGenerationBytes ||
         std::chrono::steady_clock::now() >= open.opened + kGenerationLife;
}

void Writer::close_generation() {
  Generation closed = ledger_.close();
  if (closed.commits == 0) {
    lock_.drop();
    return;
  }
  last_generation_ = closed.number;
  sealer_->push(std::move(closed));
}

}  // namespace umpteenth::store
