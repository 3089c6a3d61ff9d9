#include "ump/http_answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr long kMaxLength = 1L << 30;

struct Head {
  int status = 0;
  size_t body_at = 0;
  long length = -1;  // -1 where none is given
  bool chunked = false;
};

// The value of a header field on this line, null where it is another's.
const char* value_of(const char* line, const char* name) {
  const size_t n = strlen(name);
  if (strncasecmp(line, name, n) != 0 || line[n] != ':') return nullptr;
  line += n + 1;
  return line + strspn(line, " \t");
}

bool parse_head(const Buffer& raw, Head* head) {
  const char* text = raw.data();
  const char* end = strstr(text, "\r\n\r\n");
  if (!end || strncmp(text, "HTTP/1.", 7) != 0 || strlen(text) < 12) return false;
  head->status = atoi(text + 9);
  head->body_at = static_cast<size_t>(end - text) + 4;
  for (const char* line = strstr(text, "\r\n"); line && line < end; line = strstr(line, "\r\n")) {
    line += 2;
    if (const char* length = value_of(line, "content-length")) {
      head->length = strtol(length, nullptr, 10);
      if (head->length < 0 || head->length > kMaxLength) return false;
    } else if (const char* coding = value_of(line, "transfer-encoding")) {
      head->chunked = strncasecmp(coding, "chunked", 7) == 0;
    }
  }
  if (head->status == 204) head->length = 0;
  return head->status >= 100 && head->status < 600;
}

// True when the last chunk is there.
bool unchunk(const char* at, const char* end, Buffer* body) {
  while (at < end) {
    char* after = nullptr;
    const unsigned long size = strtoul(at, &after, 16);
    const char* line_end = strstr(after, "\r\n");
    if (after == at || !line_end || line_end >= end) return false;
    if (size == 0) return true;
    at = line_end + 2;
    if (size > static_cast<unsigned long>(kMaxLength) || static_cast<size_t>(end - at) < size + 2)
      return false;
    if (body) body->append(at, size);
    at += size + 2;
  }
  return false;
}

}  // namespace

bool is_whole_answer(const Buffer& raw) {
  Head head;
  if (!parse_head(raw, &head) || head.chunked || head.length < 0) return false;
  return raw.size() - head.body_at >= static_cast<size_t>(head.length);
}

bool parse_answer(const Buffer& raw, int* status, Buffer* body) {
  Head head;
  if (!parse_head(raw, &head)) return false;
  *status = head.status;
  const char* at = raw.data() + head.body_at;
  const size_t there = raw.size() - head.body_at;
  if (head.chunked) return unchunk(at, raw.data() + raw.size(), body);
  if (head.length >= 0 && there < static_cast<size_t>(head.length)) return false;
  body->append(at, head.length >= 0 ? static_cast<size_t>(head.length) : there);
  return true;
}

}  // namespace umpteenth::ump
