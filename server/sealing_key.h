// GET /umpteenth/v1alpha1/sealing-key: what `umpctl seal` needs to seal values that only this
// instance can open. Not secret; for everybody who has a token.
#pragma once

#include <optional>

#include "apis/seal.h"
#include "base/http/message.h"

namespace umpteenth::server {

// Nothing where the request is for another path.
std::optional<http::Response> answer_sealing_key(const http::Request& request,
                                                 const apis::Sealer& sealer);

}  // namespace umpteenth::server
