#include "store/pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "base/crypto.h"
#include "base/error.h"
#include "base/fd.h"

namespace umpteenth::store {
namespace fs = std::filesystem;
namespace {

constexpr unsigned kOfsDelta = 6;
constexpr size_t kHeader = 12, kTrailer = 20, kFanout = 256;
constexpr size_t kWriteStep = 4U << 20;  // so that one fsync is never large
constexpr char kIndexMagic[] = "\377tOc";

void put_u32(std::string& out, uint64_t n) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((n >> shift) & 0xff);
}
uint32_t get_u32(std::string_view in, size_t at) {
  uint32_t n = 0;
  for (size_t i = 0; i < 4; ++i) n = n << 8 | static_cast<unsigned char>(in[at + i]);
  return n;
}

void put_entry_header(std::string& out, unsigned type, size_t n) {
  auto c = static_cast<unsigned char>(type << 4 | (n & 15));
  for (n >>= 4; n != 0; n >>= 7) {
    out += static_cast<char>(c | 0x80);
    c = static_cast<unsigned char>(n & 127);
  }
  out += static_cast<char>(c);
}

void put_distance(std::string& out, uint64_t distance) {
  unsigned char b[10];
  size_t k = sizeof b - 1;
  b[k] = distance & 127;
  while (distance >>= 7) b[--k] = static_cast<unsigned char>(0x80 | (--distance & 127));
  out.append(reinterpret_cast<char*>(b) + k, sizeof b - k);
}

void put_varint(std::string& out, size_t n) {
  for (; n >= 128; n >>= 7) out += static_cast<char>(n | 0x80);
  out += static_cast<char>(n);
}

void put_copy(std::string& out, size_t offset, size_t size) {
  while (size > 0) {
    const size_t part = std::min<size_t>(size, 0xffffff);
    const size_t op_at = out.size();
    unsigned char op = 0x80;
    out += '\0';
    for (int i = 0; i < 4; ++i)
      if (const auto byte = static_cast<unsigned char>(offset >> (8 * i))) {
        op |= static_cast<unsigned char>(1U << i);
        out += static_cast<char>(byte);
      }
    for (int i = 0; i < 3; ++i)
      if (const auto byte = static_cast<unsigned char>(part >> (8 * i))) {
        op |= static_cast<unsigned char>(0x10U << i);
        out += static_cast<char>(byte);
      }
    out[op_at] = static_cast<char>(op);
    offset += part;
    size -= part;
  }
}

std::string delta_of(const PackObject& object) {
  std::string delta;
  put_varint(delta, object.base_size);
  put_varint(delta, object.base_size - object.removed + object.data.size());
  put_copy(delta, 0, object.offset);
  for (size_t at = 0; at < object.data.size(); at += 127) {
    const std::string_view part = std::string_view(object.data).substr(at, 127);
    delta += static_cast<char>(part.size());
    delta.append(part);
  }
  const size_t rest = object.offset + object.removed;
  put_copy(delta, rest, object.base_size - rest);
  return delta;
}

class Deflater {
 public:
  Deflater() {
    if (deflateInit(&stream_, 1) != Z_OK) throw Error(Code::internal, "store: zlib has no memory");
  }
  ~Deflater() { deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void append(std::string& out, std::string_view in) {
    deflateReset(&stream_);
    const size_t before = out.size();
    const size_t room = deflateBound(&stream_, in.size());
    out.resize(before + room);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + before);
    stream_.avail_out = static_cast<uInt>(room);
    if (deflate(&stream_, Z_FINISH) != Z_STREAM_END)
      throw Error(Code::internal, "store: zlib could not deflate");
    out.resize(before + room - stream_.avail_out);
  }

 private:
  z_stream stream_{};
};

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

std::string pack_header(size_t count) {
  std::string header = "PACK";
  put_u32(header, 2);
  put_u32(header, count);
  return header;
}

Error write_error(const std::string& what) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return errno_error(full ? Code::unavailable : Code::internal, what);
}

void write_synced(const fs::path& path, std::string_view bytes) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444));
  if (!fd) throw write_error("create " + path.string());
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kWriteStep))) {
    write_all(fd.get(), bytes.substr(0, kWriteStep));
    if (::fdatasync(fd.get()) != 0) throw write_error("sync " + path.string());
  }
  if (::fsync(fd.get()) != 0) throw write_error("sync " + path.string());
}

void rename_to(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw write_error("rename to " + to.string());
}

struct RawIndex {
  std::vector<PackEntry> entries;
  std::string pack_trailer;
};

// nullopt where it is not a whole version 2 index.
std::optional<RawIndex> parse_index(std::string_view bytes) {
  constexpr size_t kTables = 8 + kFanout * 4;
  if (bytes.size() < kTables + 2 * kTrailer || !bytes.starts_with(kIndexMagic) ||
      get_u32(bytes, 4) != 2)
    return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - kTrailer);
  if (crypto::sha1(body) != bytes.substr(body.size())) return std::nullopt;
  const size_t count = get_u32(bytes, kTables - 4);
  const size_t ids = kTables, crcs = ids + count * 20, offsets = crcs + count * 4;
  const size_t longs = offsets + count * 4;
  if (bytes.size() < longs + 2 * kTrailer) return std::nullopt;
  RawIndex index;
  index.entries.resize(count);
  for (size_t i = 0; i < count; ++i) {
    PackEntry& entry = index.entries[i];
    entry.id = Oid::from_bytes(bytes.substr(ids + i * 20, 20));
    entry.crc = get_u32(bytes, crcs + i * 4);
    entry.offset = get_u32(bytes, offsets + i * 4);
    if ((entry.offset & 0x80000000U) != 0) {
      const size_t at = longs + (entry.offset & 0x7fffffffU) * 8;
      if (at + 8 + 2 * kTrailer > bytes.size()) return std::nullopt;
      entry.offset = uint64_t{get_u32(bytes, at)} << 32 | get_u32(bytes, at + 4);
    }
  }
  index.pack_trailer = bytes.substr(bytes.size() - 2 * kTrailer, kTrailer);
  return index;
}

fs::path index_of(fs::path pack_file) { return pack_file.replace_extension(".idx"); }

constexpr size_t kMaxPack = size_t{4} << 30;

}  // namespace

std::string Pack::name() const {
  return "pack-" + crypto::hex(std::string_view(bytes).substr(bytes.size() - kTrailer));
}

Pack build_pack(const std::vector<PackObject>& objects) {
  Pack pack;
  std::unordered_map<Oid, uint64_t, OidHash> offsets;
  offsets.reserve(objects.size());
  pack.bytes = pack_header(0);
  Deflater deflater;
  for (const PackObject& object : objects) {
    const uint64_t offset = pack.bytes.size();
    if (!offsets.emplace(object.id, offset).second) continue;
    if (object.delta) {
      const std::string delta = delta_of(object);
      put_entry_header(pack.bytes, kOfsDelta, delta.size());
      put_distance(pack.bytes, offset - offsets.at(object.base));
      deflater.append(pack.bytes, delta);
    } else {
      put_entry_header(pack.bytes, static_cast<unsigned>(object.type), object.data.size());
      deflater.append(pack.bytes, object.data);
    }
    pack.entries.push_back(
        {object.id, crc_of(std::string_view(pack.bytes).substr(offset)), offset});
  }
  pack.bytes.replace(0, kHeader, pack_header(pack.entries.size()));
  pack.bytes += crypto::sha1(pack.bytes);
  return pack;
}

std::string build_index(std::vector<PackEntry> entries, std::string_view pack_trailer) {
  std::sort(entries.begin(), entries.end(), [](const PackEntry& a, const PackEntry& b) {
    return a.id != b.id ? a.id < b.id : a.offset < b.offset;
  });
  std::string out(kIndexMagic, 4);
  put_u32(out, 2);
  size_t below = 0;
  for (size_t first = 0; first < kFanout; ++first) {
    while (below < entries.size() && entries[below].id.bytes[0] <= first) ++below;
    put_u32(out, below);
  }
  for (const PackEntry& e : entries) out.append(e.id.view());
  for (const PackEntry& e : entries) put_u32(out, e.crc);
  std::string longs;
  for (const PackEntry& e : entries) {
    if (e.offset < 0x80000000U) {
      put_u32(out, e.offset);
    } else {
      put_u32(out, 0x80000000U | longs.size() / 8);
      put_u32(longs, e.offset >> 32);
      put_u32(longs, e.offset & 0xffffffffU);
    }
  }
  out += longs;
  out.append(pack_trailer);
  out += crypto::sha1(out);
  return out;
}

void write_pack(const fs::path& folder, const Pack& pack) {
  const std::string name = pack.name();
  const fs::path temporary_pack = folder / (kPackTemporary + name + ".pack");
  const fs::path temporary_index = folder / (kPackTemporary + name + ".idx");
  try {
    write_synced(temporary_pack, pack.bytes);
    write_synced(temporary_index,
                 build_index(pack.entries,
                             std::string_view(pack.bytes).substr(pack.bytes.size() - kTrailer)));
    rename_to(temporary_pack, folder / (name + ".pack"));
    rename_to(temporary_index, folder / (name + ".idx"));
    fsync_path(folder);
  } catch (Error&) {
    ::unlink(temporary_pack.c_str());
    ::unlink(temporary_index.c_str());
    throw;
  }
}

PackState check_pack(const fs::path& pack_file) {
  std::string bytes;
  try {
    bytes = read_file(pack_file, kMaxPack);
  } catch (const Error&) {
    return PackState::broken;  // vanished or unreadable: the same to a caller that needs it
  }
  if (bytes.size() < kHeader + kTrailer || !bytes.starts_with("PACK")) return PackState::broken;
  const std::string_view body = std::string_view(bytes).substr(0, bytes.size() - kTrailer);
  const std::string_view trailer = std::string_view(bytes).substr(body.size());
  if (crypto::sha1(body) != trailer) return PackState::broken;
  const fs::path index_file = index_of(pack_file);
  if (!fs::exists(index_file)) return PackState::index_broken;
  const auto index = parse_index(read_file(index_file, kMaxPack));
  const bool fits =
      index && index->pack_trailer == trailer && index->entries.size() == get_u32(bytes, 8);
  return fits ? PackState::good : PackState::index_broken;
}

std::string join_packs(const fs::path& folder, const std::vector<std::string>& names) {
  Pack joined;
  joined.bytes = pack_header(0);
  for (const std::string& name : names) {
    const std::string bytes = read_file(folder / (name + ".pack"), kMaxPack);
    const auto index = parse_index(read_file(folder / (name + ".idx"), kMaxPack));
    if (!index || bytes.size() < kHeader + kTrailer ||
        bytes.substr(bytes.size() - kTrailer) != index->pack_trailer)
      throw Error(Code::internal, "store: " + name + " does not fit its index");
    const uint64_t shift = joined.bytes.size() - kHeader;
    for (PackEntry entry : index->entries) {
      entry.offset += shift;
      joined.entries.push_back(entry);
    }
    joined.bytes.append(bytes, kHeader, bytes.size() - kHeader - kTrailer);
  }
  joined.bytes.replace(0, kHeader, pack_header(joined.entries.size()));
  joined.bytes += crypto::sha1(joined.bytes);
  write_pack(folder, joined);
  return joined.name();
}

}  // namespace umpteenth::store
