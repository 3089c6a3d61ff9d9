// OpenSSL's own words for what failed.
#pragma once

#include <string_view>

#include "base/error.h"

namespace umpteenth {

// Throws with the first error of this thread's queue, and empties the queue.
[[noreturn]] void throw_openssl_error(std::string_view attempted, Code code = Code::internal);

}  // namespace umpteenth
