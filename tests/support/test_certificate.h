// A self-signed certificate for 127.0.0.1 and localhost, made when first asked for.
#pragma once

#include "base/http/server.h"

namespace umpteenth::test {

http::TlsFiles a_certificate();

}  // namespace umpteenth::test
