// Names of what is ours on an engine: ump-<8 hex of the instance>-<what>.
#pragma once

#include <string>
#include <string_view>

#include "base/crypto.h"

namespace umpteenth::engine {

inline std::string short_hash(std::string_view text, size_t digits) {
  return crypto::hex(crypto::sha256(text)).substr(0, digits);
}

inline std::string own_name(std::string_view instance, std::string_view what) {
  return "ump-" + short_hash(instance, 8) + "-" + std::string(what);
}

}  // namespace umpteenth::engine
