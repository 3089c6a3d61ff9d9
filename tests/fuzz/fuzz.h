// What the fuzz targets share. Each target is one parser that reads foreign bytes: libFuzzer calls
// LLVMFuzzerTestOneInput; `Error` is an answer, anything else that escapes is a finding.
//   tests/fuzz/run.sh [SECONDS]   every target over its corpus, then SECONDS of new inputs each
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"

namespace umpteenth::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A broken promise of the parser ends the process, so that libFuzzer keeps the input.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// The answer or nothing where the input is refused.
template <typename F>
bool accepted(F&& parse) {
  try {
    parse();
    return true;
  } catch (const Error& e) {
    require(!e.message().empty(), "a refusal says why");
    return false;
  }
}

}  // namespace umpteenth::fuzz
