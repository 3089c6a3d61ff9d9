#include "engine/tar.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::engine {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMaxExtension = 64U << 10;  // a pax or GNU long-name record

// Offsets and widths of a ustar header.
struct Field {
  size_t at, width;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12},
    kMtime{136, 12}, kChecksum{148, 8}, kLink{157, 100}, kMagic{257, 6}, kPrefix{345, 155};
constexpr size_t kTypeAt = 156;

[[noreturn]] void malformed(const std::string& what) {
  throw Error(Code::bad_request, "read tar archive: " + what);
}

size_t padded(size_t n) { return (n + kBlock - 1) / kBlock * kBlock; }

std::string_view text_of(std::string_view block, Field f) {
  std::string_view s = block.substr(f.at, f.width);
  return s.substr(0, std::min(s.find('\0'), s.size()));
}

// Octal digits, or GNU's big-endian binary with the top bit set.
int64_t number_of(std::string_view block, Field f) {
  std::string_view s = block.substr(f.at, f.width);
  if ((static_cast<unsigned char>(s[0]) & 0x80U) != 0) {
    uint64_t n = static_cast<unsigned char>(s[0]) & 0x7fU;
    for (char c : s.substr(1)) {
      if (n >> 54U != 0) malformed("a number is too large");
      n = n << 8U | static_cast<unsigned char>(c);
    }
    return static_cast<int64_t>(n);
  }
  uint64_t n = 0;
  bool ended = false;
  for (char c : s) {
    if (c == ' ' || c == '\0') {
      ended = ended || n != 0 || c == '\0';
      continue;
    }
    if (c < '0' || c > '7' || ended) malformed("a number is not octal");
    n = n * 8 + static_cast<uint64_t>(c - '0');
  }
  return static_cast<int64_t>(n);
}

unsigned checksum_of(std::string_view block) {
  unsigned sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.width;
    sum += own ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::string clean_name(std::string_view raw, const TarLimits& limits) {
  if (raw.size() > limits.max_name)
    throw Error(Code::too_large, "read tar archive: a name is longer than " +
                                     std::to_string(limits.max_name) + " bytes");
  if (raw.find('\0') != std::string_view::npos) malformed("a name holds a NUL");
  std::string name;
  while (!raw.empty()) {
    const size_t slash = std::min(raw.find('/'), raw.size());
    const std::string_view part = raw.substr(0, slash);
    raw.remove_prefix(std::min(slash + 1, raw.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..")
      throw Error(Code::invalid, "read tar archive: a name leads out of the archive by \"..\"");
    if (!name.empty()) name += '/';
    name += part;
  }
  return name;
}

struct Overrides {  // of pax and GNU records, for the entry that follows
  std::optional<std::string> path, link;
  std::optional<int64_t> size, uid, gid;
  bool sparse = false;
};

int64_t decimal(std::string_view text) {
  if (text.empty() || text.size() > 18) malformed("a pax number is not a number");
  int64_t n = 0;
  for (char c : text) {
    if (c < '0' || c > '9') malformed("a pax number is not a number");
    n = n * 10 + (c - '0');
  }
  return n;
}

// Records "LENGTH KEY=VALUE\n", LENGTH counting itself.
void read_pax(std::string_view records, Overrides& into) {
  while (!records.empty()) {
    const size_t space = records.find(' ');
    if (space == std::string_view::npos || space > 9) malformed("a pax record has no length");
    const auto length = static_cast<size_t>(decimal(records.substr(0, space)));
    if (length <= space + 1 || length > records.size() || records[length - 1] != '\n')
      malformed("a pax record has a wrong length");
    const std::string_view record = records.substr(space + 1, length - space - 2);
    records.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) malformed("a pax record has no '='");
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path")
      into.path = value;
    else if (key == "linkpath")
      into.link = value;
    else if (key == "size")
      into.size = decimal(value);
    else if (key == "uid")
      into.uid = decimal(value);
    else if (key == "gid")
      into.gid = decimal(value);
    else if (key.starts_with("GNU.sparse."))
      into.sparse = true;
  }
}

TarEntry::Type type_of(char flag) {
  switch (flag) {
    case '0':
    case '\0':
    case '7':
      return TarEntry::Type::file;
    case '1':
      return TarEntry::Type::hardlink;
    case '2':
      return TarEntry::Type::symlink;
    case '5':
      return TarEntry::Type::directory;
    default:
      return TarEntry::Type::special;
  }
}

void check_allowed(const TarEntry& entry, const TarLimits& limits) {
  const bool link = entry.type == TarEntry::Type::symlink || entry.type == TarEntry::Type::hardlink;
  if (link && !limits.links)
    throw Error(Code::invalid, "\"" + log::clip(entry.name) + "\" is a link: links are refused");
  if (entry.type == TarEntry::Type::special && !limits.special)
    throw Error(Code::invalid, "\"" + log::clip(entry.name) +
                                   "\" is neither a regular file nor a directory: refused");
}

class Reader {
 public:
  Reader(std::string_view tar, const TarLimits& limits) : rest_(tar), limits_(limits) {}

  // False at the end of the archive.
  bool next(TarEntry& entry) {
    Overrides over;
    for (;;) {
      if (rest_.empty()) return false;
      const std::string_view head = take(kBlock);
      if (head.find_first_not_of('\0') == std::string_view::npos) return false;
      if (number_of(head, kChecksum) != checksum_of(head))
        malformed("a header's checksum is wrong");
      const char flag = head[kTypeAt];
      if (flag == 'x' || flag == 'g' || flag == 'L' || flag == 'K') {
        extension(flag, size_of(head, {}), over);
        continue;
      }
      fill(head, flag, over, entry);
      return true;
    }
  }

 private:
  std::string_view take(size_t n) {
    if (n > rest_.size()) malformed("it is cut short");
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }

  static size_t size_of(std::string_view head, std::optional<int64_t> pax) {
    return static_cast<size_t>(pax ? *pax : number_of(head, kSize));
  }

  std::string_view body(size_t size) {
    if (size > rest_.size()) malformed("it is cut short");
    // Some writers leave out the padding at the very end.
    return take(std::min(padded(size), rest_.size())).substr(0, size);
  }

  void extension(char flag, size_t size, Overrides& over) {
    if (size > kMaxExtension) throw Error(Code::too_large, "read tar archive: a name is too long");
    std::string_view data = body(size);
    if (flag == 'x') return read_pax(data, over);
    data = data.substr(0, std::min(data.find('\0'), data.size()));
    if (flag == 'L') over.path = data;
    if (flag == 'K') over.link = data;
  }

  void fill(std::string_view head, char flag, const Overrides& over, TarEntry& entry) {
    if (++entries_ > limits_.max_entries)
      throw Error(Code::too_large, "read tar archive: more than " +
                                       std::to_string(limits_.max_entries) + " entries");
    entry = {};
    entry.type = over.sparse ? TarEntry::Type::special : type_of(flag);
    entry.name = clean_name(over.path ? *over.path : header_name(head), limits_);
    entry.link = over.link ? *over.link : std::string(text_of(head, kLink));
    entry.mode = static_cast<int>(number_of(head, kMode) & 07777);
    entry.uid = over.uid.value_or(number_of(head, kUid));
    entry.gid = over.gid.value_or(number_of(head, kGid));
    entry.mtime = number_of(head, kMtime);
    check_allowed(entry, limits_);
    const size_t size = size_of(head, over.size);
    if (entry.type != TarEntry::Type::file && entry.type != TarEntry::Type::special) return;
    if (size > limits_.max_bytes - bytes_)
      throw Error(Code::too_large, "read tar archive: its files hold more than " +
                                       std::to_string(limits_.max_bytes) + " bytes");
    bytes_ += size;
    entry.data = body(size);
  }

  static std::string header_name(std::string_view head) {
    std::string name(text_of(head, kName));
    const std::string_view prefix = text_of(head, kPrefix);
    if (head.substr(kMagic.at, 6) == std::string_view("ustar\0", 6) && !prefix.empty())
      name = std::string(prefix) + "/" + name;
    return name;
  }

  std::string_view rest_;
  const TarLimits& limits_;
  size_t entries_ = 0, bytes_ = 0;
};

void put(std::string& block, Field f, std::string_view text) {
  std::memcpy(block.data() + f.at, text.data(), std::min(f.width, text.size()));
}

void put_octal(std::string& block, Field f, int64_t n) {
  std::array<char, 24> digits{};
  std::snprintf(digits.data(), digits.size(), "%0*llo", static_cast<int>(f.width - 1),
                static_cast<unsigned long long>(n));
  put(block, f, digits.data());
}

std::string header(const TarEntry& e, char type, size_t size) {
  std::string block(kBlock, '\0');
  put(block, kName, e.name);
  put_octal(block, kMode, e.mode);
  put_octal(block, kUid, e.uid);
  put_octal(block, kGid, e.gid);
  put_octal(block, kSize, static_cast<int64_t>(size));
  put_octal(block, kMtime, e.mtime);
  block[kTypeAt] = type;
  put(block, kLink, e.link);
  put(block, kMagic,
      std::string_view("ustar\0"
                       "00",
                       8));
  put_octal(block, {kChecksum.at, 7}, checksum_of(block));
  block[kChecksum.at + 7] = ' ';
  return block;
}

std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) ++length;
  return std::to_string(length) + rest;
}

}  // namespace

void TarWriter::add(const TarEntry& e, char type) {
  std::string pax;
  if (e.name.size() > kName.width) pax += pax_record("path", e.name);
  if (e.link.size() > kLink.width) pax += pax_record("linkpath", e.link);
  if (!pax.empty()) {
    TarEntry record;
    record.name = "pax";
    out_ += header(record, 'x', pax.size()) + pax;
    out_.resize(padded(out_.size()));
  }
  out_ += header(e, type, e.data.size());
  out_ += e.data;
  out_.resize(padded(out_.size()));
}

void TarWriter::add_file(std::string_view name, std::string_view data, int mode, int64_t uid,
                         int64_t gid) {
  TarEntry e;
  e.name = name;
  e.data = data;
  e.mode = mode;
  e.uid = uid;
  e.gid = gid;
  add(e, '0');
}

void TarWriter::add_directory(std::string_view name, int mode, int64_t uid, int64_t gid) {
  TarEntry e;
  e.name = name;
  if (!e.name.ends_with('/')) e.name += '/';
  e.mode = mode;
  e.uid = uid;
  e.gid = gid;
  add(e, '5');
}

void TarWriter::add_symlink(std::string_view name, std::string_view target) {
  TarEntry e;
  e.name = name;
  e.link = target;
  e.mode = 0777;
  add(e, '2');
}

std::string TarWriter::finish() {
  out_.append(2 * kBlock, '\0');
  return std::exchange(out_, {});
}

void read_tar(std::string_view tar, const TarLimits& limits,
              const std::function<void(const TarEntry&)>& visit) {
  Reader reader(tar, limits);
  TarEntry entry;
  while (reader.next(entry)) visit(entry);
}

std::vector<TarEntry> read_tar(std::string_view tar, const TarLimits& limits) {
  std::vector<TarEntry> entries;
  read_tar(tar, limits, [&](const TarEntry& e) { entries.push_back(e); });
  return entries;
}

}  // namespace umpteenth::engine
