#include "store/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kMagic = 0x316c6a75706d75ULL;  // "umpujl1"
constexpr size_t kHeader = 5 * 8;                 // magic, generation, sequence, length, crc
constexpr size_t kMaxBody = size_t{1} << 30;

void put(std::string& out, uint64_t n) { out.append(reinterpret_cast<const char*>(&n), sizeof n); }
void put(std::string& out, std::string_view text) {
  put(out, uint64_t{text.size()});
  out.append(text);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number() {
    uint64_t n = 0;
    const std::string_view raw = take(sizeof n);
    std::memcpy(&n, raw.data(), sizeof n);
    return n;
  }
  std::string text() { return std::string(take(number())); }

 private:
  std::string_view take(size_t n) {
    if (n > bytes_.size()) throw Error(Code::internal, "store: a journal record is short");
    const std::string_view raw = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return raw;
  }
  std::string_view bytes_;
};

uint64_t crc_of(std::string_view head, std::string_view body) {
  uLong crc = crc32(0, reinterpret_cast<const Bytef*>(head.data()), static_cast<uInt>(head.size()));
  crc = crc32(crc, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
  return crc;
}

JournalRecord decode(uint64_t generation, uint64_t sequence, std::string_view body) {
  Reader reader(body);
  JournalRecord record{generation, sequence, {}, {}};
  record.commit = reader.text();
  const uint64_t count = reader.number();
  for (uint64_t i = 0; i < count; ++i) {
    JournalChange change;
    change.verb = static_cast<Verb>(reader.number());
    change.key.kind = reader.text();
    change.key.ns = reader.text();
    change.key.name = reader.text();
    change.revision = reader.number();
    change.yaml = reader.text();
    change.status_json = reader.text();
    record.changes.push_back(std::move(change));
  }
  return record;
}

// The records of one file, up to the first that is torn or of another generation.
void read_segment(std::string_view bytes, std::vector<JournalRecord>& out) {
  std::optional<uint64_t> generation;
  uint64_t next = 0;
  while (bytes.size() >= kHeader) {
    Reader header(bytes.substr(0, kHeader));
    const uint64_t magic = header.number(), its_generation = header.number();
    const uint64_t sequence = header.number(), length = header.number(), crc = header.number();
    if (magic != kMagic || length > kMaxBody || length > bytes.size() - kHeader) return;
    if (generation && (its_generation != *generation || sequence != next)) return;
    const std::string_view body = bytes.substr(kHeader, length);
    if (crc_of(bytes.substr(0, kHeader - 8), body) != crc) return;
    out.push_back(decode(its_generation, sequence, body));
    generation = its_generation;
    next = sequence + 1;
    bytes.remove_prefix(kHeader + length);
  }
}

void fill_with_zeros(int fd, size_t bytes) {
  const std::string zeros(size_t{1} << 20, '\0');
  for (size_t at = 0; at < bytes; at += zeros.size()) write_all(fd, zeros);
  if (::fsync(fd) != 0) throw errno_error(Code::internal, "sync");
}

}  // namespace

std::string encode(const JournalRecord& record) {
  std::string body;
  put(body, record.commit);
  put(body, uint64_t{record.changes.size()});
  for (const JournalChange& change : record.changes) {
    put(body, static_cast<uint64_t>(change.verb));
    put(body, change.key.kind);
    put(body, change.key.ns);
    put(body, change.key.name);
    put(body, change.revision);
    put(body, change.yaml);
    put(body, change.status_json);
  }
  std::string whole;
  whole.reserve(kHeader + body.size());
  put(whole, kMagic);
  put(whole, record.generation);
  put(whole, record.sequence);
  put(whole, uint64_t{body.size()});
  put(whole, crc_of(whole, body));
  return whole + body;
}

fs::path Journal::path_of(size_t segment) const {
  return folder_ / ("journal" + std::to_string(segment));
}

Journal::Journal(fs::path folder) : folder_(std::move(folder)) {
  bool made = false;
  for (size_t i = 0; i < kSegments; ++i) {
    const fs::path path = path_of(i);
    if (!fs::exists(path)) {
      // Under another name until it is whole, so that a crash leaves no short file.
      const fs::path temporary = path.string() + ".new";
      Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      if (!fd) throw errno_error(Code::internal, "create " + temporary.string());
      fill_with_zeros(fd.get(), kSegmentBytes);
      if (::rename(temporary.c_str(), path.c_str()) != 0)
        throw errno_error(Code::internal, "rename to " + path.string());
      made = true;
    }
    files_.emplace_back(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!files_.back()) throw errno_error(Code::internal, "open " + path.string());
  }
  if (made) fsync_path(folder_);
}

std::vector<JournalRecord> Journal::read() const {
  std::vector<std::vector<JournalRecord>> segments(kSegments);
  for (size_t i = 0; i < kSegments; ++i) read_segment(read_file(path_of(i), kMaxBody), segments[i]);
  std::erase_if(segments, [](const auto& records) { return records.empty(); });
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) {
    return a.front().generation < b.front().generation;
  });
  std::vector<JournalRecord> all;
  for (auto& records : segments)
    for (JournalRecord& record : records) all.push_back(std::move(record));
  return all;
}

void Journal::begin(uint64_t generation) {
  segment_ = generation % kSegments;
  used_ = 0;
  // An oversized record grew it.
  if (struct stat st{}; ::fstat(files_[segment_].get(), &st) == 0 &&
                        static_cast<size_t>(st.st_size) > kSegmentBytes &&
                        ::ftruncate(files_[segment_].get(), kSegmentBytes) != 0)
    throw errno_error(Code::internal, "truncate " + path_of(segment_).string());
}

void Journal::reserve(size_t bytes) {
  if (fits(bytes)) return;
  const int failed =
      ::posix_fallocate(files_[segment_].get(), 0, static_cast<off_t>(used_ + bytes));
  if (failed == 0) return;
  errno = failed;
  throw errno_error(failed == ENOSPC || failed == EDQUOT ? Code::unavailable : Code::internal,
                    "grow " + path_of(segment_).string());
}

void Journal::append(std::string_view records) {
  const int fd = files_[segment_].get();
  size_t written = 0;
  while (written < records.size()) {
    const ssize_t n = ::pwrite(fd, records.data() + written, records.size() - written,
                               static_cast<off_t>(used_ + written));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw errno_error(Code::internal, "write " + path_of(segment_).string());
    written += static_cast<size_t>(n);
  }
  if (::fdatasync(fd) != 0) throw errno_error(Code::internal, "sync " + path_of(segment_).string());
  used_ += records.size();
}

}  // namespace umpteenth::store
