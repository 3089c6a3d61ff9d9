// `auth can-i`, `auth can-i --list` and `auth whoami`, answered from the authority table.
#pragma once

#include <optional>

#include "base/http/message.h"
#include "server/authority.h"

namespace umpteenth::server {

// nullopt where the path is no review.
std::optional<http::Response> answer_review(const http::Request& request, const Identity& who);

}  // namespace umpteenth::server
