#include "tests/support/paths.h"

namespace umpteenth::support {

const std::string& source_dir() {
  static const std::string dir = UMPTEENTH_SOURCE_DIR;
  return dir;
}

const std::string& bin_dir() {
  static const std::string dir = UMPTEENTH_BIN_DIR;
  return dir;
}

}  // namespace umpteenth::support
