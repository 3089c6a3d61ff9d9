// The one thread that changes anything: takes what is queued, checks it, makes it durable as a
// group (one journal sync for git, one transaction for SQLite), then shows and acknowledges it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "store/database.h"
#include "store/journal.h"
#include "store/ledger.h"
#include "store/open.h"
#include "store/recovery.h"
#include "store/repository.h"
#include "store/sealer.h"
#include "store/staging.h"
#include "store/watch_hub.h"

namespace umpteenth::store {

inline constexpr std::chrono::milliseconds kGenerationLife(250);

struct Request {
  enum class What { commit, rows, flush, look };
  What what = What::commit;
  std::vector<Prepared> prepared;
  std::string actor, message;
  bool git = false;    // of kinds kept in git
  bool files = false;  // it changes files, as far as its maker could see
  std::function<void(Db&)> rows;

  std::vector<RecordPtr> records;
  uint64_t generation = 0;  // of a flush: what to wait for
  std::optional<Error> error;
  std::atomic<int> done = 0;  // int: waited for on a futex of its own
};
using RequestPtr = std::shared_ptr<Request>;

// One group on its way.
struct Work {
  RequestPtr request;
  std::vector<Staged> staged;
  bool journaled = false;
  std::vector<Oid> blobs;  // of journaled ones, by staged
  std::vector<HistoryRow> history;
};
struct Group {
  explicit Group(const Index& index, uint64_t revision) : staging(index, revision) {}
  Staging staging;
  std::string journal;
  std::vector<Work> works;
  std::set<Key> journal_keys, row_keys;
  bool rotate = false;  // the journal's file is full
};

class Writer {
 public:
  struct Parts {
    const Options& options;
    std::filesystem::path repository;
    Database& database;
    Journal& journal;
    Index& index;
    WatchHub& hub;
  };
  Writer(const Parts& parts, Recovered recovered);
  ~Writer();  // what is queued is done first, and sealed
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Returns when it is done; throws what went wrong.
  void submit(const RequestPtr& request);
  // Everything acknowledged so far is in git when it returns; Error(unavailable) where it cannot.
  void flush();
  // Takes over what others did to the ref, or goes on where that failed before.
  void look();
  // Has the ref left the value that umpd gave it?
  bool moved_by_others() const;
  bool unblocked() const;  // nothing is in the way of commits, as far as was last tried

  Health health() const;
  std::vector<Revision> unsealed_history(const Key& key) const;  // newest first
  RefLock& ref_lock() { return lock_; }

 private:
  enum class Step { added, later };

  void run();
  bool take(std::deque<RequestPtr>& batch);
  void process(std::deque<RequestPtr>& batch);
  Step add(Group& group, const RequestPtr& request, const std::optional<Error>& git_refusal);
  Step add_commit(Group& group, const RequestPtr& request, const std::optional<Error>& git_refusal);
  bool room_for(Group& group, size_t bytes);
  void journal_commit(Group& group, Work& work);
  void finish(Group& group);
  bool write_journal(Group& group);
  void write_rows(Group& group);
  void write_rows_of(Db& db, Work& work);
  void publish(Group& group);
  void note_sealing(const Work& work);
  void fail(Group& group, const Error& error, bool only_rows);
  void complete(const RequestPtr& request, std::optional<Error> error);
  void break_down(const std::string& why);
  void reserve_revisions(uint64_t revision);

  std::optional<Error> prepare_git();
  void take_lock();
  void open_generation();
  void close_generation();
  bool generation_due() const;
  // After a failed sync what the open generation holds may not be what was acknowledged.
  bool may_seal() const { return ledger_.is_open() && broken_.empty(); }

  // adoption.cc: edits by others.
  struct Admission;
  void adopt_pending();
  std::optional<Oid> moved_ref();
  void adopt(const Oid& theirs);
  bool restore_ours(const Oid& theirs, ObjectReader& reader);
  void admit(std::vector<FileEdit> edits, std::optional<FolderTree> tree, const Oid& head,
             const Oid& base, ObjectReader& reader);
  Admission admit_one(const FileEdit& edit, ObjectReader& reader);
  void store_admitted(std::vector<Admission>& admitted, std::optional<FolderTree> tree,
                      const Oid& head, const Oid& base);
  void journal_admitted(Group& group, Work& work, const std::vector<Admission>& admitted,
                        std::optional<FolderTree> tree, const Oid& head, const Oid& base,
                        uint64_t last);
  void record_admitted(Work& work, const std::vector<Admission>& admitted,
                       std::optional<FolderTree> tree, const Oid& head, uint64_t last);
  std::vector<ObjectRow> rows_of(const std::vector<Admission>& admitted,
                                 const std::map<Key, Oid>& completed) const;
  void add_history(Work& work, const Oid& edited, const Oid& commit) const;
  void keep_condition(Prepared& prepared, const RecordPtr& record);

  const Parts parts_;
  RefLock lock_;
  Ledger ledger_;
  std::map<Key, Oid> invalid_;
  std::vector<FileEdit> pending_;
  uint64_t revision_;
  uint64_t reserved_ = 0;
  uint64_t last_generation_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<RequestPtr> queue_;
  bool stopping_ = false;
  std::string broken_, blocked_;  // for health
  Oid published_;                 // what the ref should be
  std::vector<std::string> invalid_files_;

  mutable std::mutex history_mutex_;
  std::map<uint64_t, HistoryRow> unsealed_;

  std::chrono::steady_clock::time_point busy_until_;  // do not wait for the lock again before
  std::unique_ptr<Sealer> sealer_;
  std::thread thread_;
};

}  // namespace umpteenth::store
