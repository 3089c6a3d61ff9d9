// Tar archives in memory: what the engine's archive calls take and give. Pure.
//
// The writer makes ustar (pax records where a name is too long). The reader takes ustar, pax and
// GNU long names, checks every field, and copies nothing: hostile sandboxes write what it reads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace umpteenth::engine {

struct TarEntry {
  enum class Type { file, directory, symlink, hardlink, special };
  Type type = Type::file;
  std::string name;       // relative, no "..", no "." or empty parts; "" is the root itself
  std::string link;       // target, as it stands in the archive
  std::string_view data;  // a file's bytes, inside the archive that was read
  int mode = 0644;
  int64_t uid = 0, gid = 0, mtime = 0;
};

class TarWriter {
 public:
  void add_file(std::string_view name, std::string_view data, int mode = 0644, int64_t uid = 0,
                int64_t gid = 0);
  void add_directory(std::string_view name, int mode = 0755, int64_t uid = 0, int64_t gid = 0);
  void add_symlink(std::string_view name, std::string_view target);
  std::string finish();  // the archive; the writer is empty afterwards

 private:
  void add(const TarEntry& entry, char type);
  std::string out_;
};

struct TarLimits {
  size_t max_entries = 10'000;
  size_t max_bytes = 64U << 20;  // of all files together
  size_t max_name = 1'024;
  bool links = false;    // symbolic and hard links, else refused
  bool special = false;  // devices, fifos, sparse files, else refused
};

// Calls visit for each entry in order. Error(bad_request) where it is not a tar or is cut short,
// Error(invalid) for a refused entry, Error(too_large) beyond a limit.
void read_tar(std::string_view tar, const TarLimits& limits,
              const std::function<void(const TarEntry&)>& visit);
std::vector<TarEntry> read_tar(std::string_view tar, const TarLimits& limits);

}  // namespace umpteenth::engine
