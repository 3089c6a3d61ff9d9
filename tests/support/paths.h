// Where this checkout is, for tests that read its files or run its programs. Only paths.cc knows
// these at compile time, so that ccache serves the tests' objects to every checkout.
#pragma once

#include <string>

namespace umpteenth::support {

const std::string& source_dir();  // no trailing slash
const std::string& bin_dir();     // the built programs

}  // namespace umpteenth::support
