// /umpteenth/v1alpha1/tokens: further tokens with a role and workspaces, made by InstanceAdmins.
#pragma once

#include <optional>

#include "base/http/message.h"
#include "server/tokens.h"

namespace umpteenth::server {

// nullopt where the path is another.
std::optional<http::Response> answer_tokens(const http::Request& request, const Identity& who,
                                            Tokens& tokens);

}  // namespace umpteenth::server
