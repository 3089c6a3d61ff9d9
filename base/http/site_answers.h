// What a server says before, or instead of, calling Site::handle.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "base/http/parser.h"
#include "base/http/server.h"

namespace umpteenth::http {

// By Site::error_response, or plain text where there is none.
Response error_answer(const Site& site, const Request& request, const std::exception& error);
Response refusal_answer(const Site& site, const Request& request, const Refusal& refusal);
// nullopt: the body may come, up to body_limit.
std::optional<Response> judge_head(const Site& site, const Request& head,
                                   std::optional<uint64_t> content_length, size_t& body_limit);

}  // namespace umpteenth::http
