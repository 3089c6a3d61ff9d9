// engine: archives that the engine makes of what a sandbox left.
#include "engine/tar.h"

#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  const engine::TarLimits limits{.max_entries = 50, .max_bytes = 1U << 16, .max_name = 200};
  size_t seen = 0, total = 0;
  fuzz::accepted([&] {
    engine::read_tar(bytes, limits, [&](const engine::TarEntry& entry) {
      using Type = engine::TarEntry::Type;
      fuzz::require(++seen <= limits.max_entries, "the number of entries has a limit");
      fuzz::require((total += entry.data.size()) <= limits.max_bytes, "so have their bytes");
      fuzz::require(entry.name.size() <= limits.max_name, "so have names");
      fuzz::require(entry.type == Type::file || entry.type == Type::directory,
                    "links and devices are refused");
      fuzz::require(!entry.name.starts_with('/'), "names are relative");
      fuzz::require(("/" + entry.name + "/").find("/../") == std::string::npos,
                    "names do not climb");
    });
  });
  return 0;
}
