// Reading an HTTP/1.1 answer: by its length, chunked, or to the end of the connection. Pure.
#pragma once

#include "ump/buffer.h"

namespace umpteenth::ump {

// True once nothing more can follow, so that the end of the connection need not be awaited.
bool is_whole_answer(const Buffer& raw);
// False where the answer is not HTTP or is cut off.
bool parse_answer(const Buffer& raw, int* status, Buffer* body);

}  // namespace umpteenth::ump
