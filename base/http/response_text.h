// The head of a response as bytes. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/http/message.h"

namespace umpteenth::http {

struct Framing {
  bool head_request = false;  // answers HEAD: lengths are told, no body follows
  bool chunked = false;
  bool close = false;
  std::string_view date;  // RFC 9110 text
};

bool status_has_body(int status);
// Framing fields are ours: those of the response are left out, but for Content-Length to a HEAD.
// Line breaks in values become blanks.
std::string response_head(const Response& response, const Framing& framing);
std::string chunk_line(size_t size);  // the line before a chunk
std::string http_date(int64_t unix_seconds);

}  // namespace umpteenth::http
