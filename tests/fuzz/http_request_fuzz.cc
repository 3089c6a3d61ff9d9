// base/http: a request as it comes from a sandbox or a client, whole and byte by byte.
#include "base/http/parser.h"
#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

namespace {

// The text of a refusal, or of what was read; bytes come in steps.
std::string read(std::string_view bytes, size_t step) {
  http::RequestParser parser(http::broker_limits());
  std::optional<http::Refusal> refusal;
  size_t have = 0, head = 0;
  while (head == 0) {
    if (have == bytes.size()) return "more";
    have = std::min(bytes.size(), have + step);
    head = parser.find_head(bytes.substr(0, have), refusal);
    if (refusal) return "head " + std::to_string(refusal->status);
  }
  fuzz::require(head <= have, "a head is part of what came");
  http::Request request;
  refusal = parser.put_head(bytes.substr(0, head), request);
  if (refusal) return "fields " + std::to_string(refusal->status);
  if (!parser.has_body()) return "no body";
  parser.limit_body(4096);
  std::string body;
  std::string_view rest = bytes.substr(head);
  size_t shown = 0;
  while (!parser.done()) {
    if (shown < rest.size()) shown = std::min(rest.size(), shown + step);
    const size_t used = parser.put_body(rest.substr(0, shown), body, refusal);
    if (refusal) return "body " + std::to_string(refusal->status);
    fuzz::require(used <= shown, "no more is consumed than came");
    rest.remove_prefix(used);
    shown -= used;
    if (used == 0 && shown == rest.size()) return "more body";
  }
  fuzz::require(body.size() <= 4096, "the body's limit holds");
  return "body:" + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  const std::string whole = read(bytes, size + 1);
  const std::string slowly = read(bytes, 1);
  // Refusals may come sooner or later; what is accepted is the same.
  const bool both = whole.starts_with("body:") && slowly.starts_with("body:");
  fuzz::require(!both || whole == slowly, "a body does not depend on how it arrives");
  return 0;
}
