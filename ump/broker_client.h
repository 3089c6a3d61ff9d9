// One HTTP/1.1 call to the broker that UMP_BROKER_URL names.
#pragma once

#include <stddef.h>

#include "ump/buffer.h"

namespace umpteenth::ump {

struct Answer {
  int status = 0;
  Buffer body;
};

// False with a message where there is no broker or no whole answer. `path` is percent-encoded
// already; `body` is JSON, or null for none.
bool call_broker(const char* method, const char* path, const Buffer* body, Answer* answer);
// The same; a status other than 2xx is an error whose message is printed.
bool call_broker_ok(const char* method, const char* path, const Buffer* body, Answer* answer);
// Connected, non-blocking, and what authorises a caller; -1 with a message.
int dial_broker(Buffer* token);
void complain_about(const Answer& answer);

}  // namespace umpteenth::ump
