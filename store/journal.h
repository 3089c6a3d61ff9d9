// The journal that an acknowledged commit rests on: four preallocated, zero-filled files, one a
// generation in turn, one fdatasync a group. A file is used again when its generation is sealed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "store/git_object.h"
#include "store/store.h"

namespace umpteenth::store {

struct JournalChange {
  Verb verb = Verb::update;
  Key key;
  uint64_t revision = 0;
  std::string yaml;         // "" for a removal
  std::string status_json;  // where status changed with it; "null" where it went
};

struct JournalRecord {
  uint64_t generation = 0, sequence = 0;
  std::vector<JournalChange> changes;
  std::string commit;  // the git commit's text
};

std::string encode(const JournalRecord& record);  // header and body, as written

class Journal {
 public:
  static constexpr size_t kSegments = 4;
  static constexpr size_t kSegmentBytes = 4U << 20;

  explicit Journal(std::filesystem::path folder);  // makes the files where they are missing

  // What the files hold, oldest first; a torn or stale end is left out.
  std::vector<JournalRecord> read() const;

  void begin(uint64_t generation);  // from its start; what was there must be sealed
  // Makes sure that `bytes` more can be written. Error(unavailable) where the disk is full.
  void reserve(size_t bytes);
  bool fits(size_t bytes) const { return used_ + bytes <= kSegmentBytes; }
  bool empty() const { return used_ == 0; }
  // Durable when it returns. After an exception nothing is known of the files any more.
  void append(std::string_view records);

 private:
  std::filesystem::path path_of(size_t segment) const;

  std::filesystem::path folder_;
  std::vector<Fd> files_;
  size_t segment_ = 0;
  size_t used_ = 0;
};

}  // namespace umpteenth::store
