// base/json: what is accepted is written and read back as the same value.
#include "base/json.h"
#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  json::Value value;
  if (!fuzz::accepted([&] { value = json::parse(fuzz::text_of(data, size)); })) return 0;
  const std::string written = value.dump();
  fuzz::require(json::parse(written) == value, "JSON survives writing and reading");
  fuzz::require(json::parse(value.dump_pretty()) == value, "so does the pretty form");
  return 0;
}
