// GET /umpteenth/v1alpha1/doctor: the hardening checklist, for `umpctl doctor`. It tells of every
// workspace and of the host's files: for the instance's admin only.
#pragma once

#include <optional>

#include "server/api.h"

namespace umpteenth::server {

// Nothing where the request is for another path.
std::optional<http::Response> answer_doctor(const http::Request& request, const Identity& who,
                                            const ServerDeps& deps);

}  // namespace umpteenth::server
