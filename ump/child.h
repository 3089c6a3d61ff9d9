// Runs a program of the host to its end: an argv, never a shell, with a fixed environment.
#pragma once

#include "ump/buffer.h"

namespace umpteenth::ump {

// The program's exit code; -1 where it could not be started or written to (said on stderr), 127
// where there is none of that name. Its stdout goes to `out` (at most max bytes, more is -1), or to
// our own stderr where that is null. input may be null.
int run_child(const char* const argv[], const char* input, size_t n, Buffer* out, size_t max);

}  // namespace umpteenth::ump
