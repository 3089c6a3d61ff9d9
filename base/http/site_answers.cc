#include "base/http/site_answers.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace umpteenth::http {

Response error_answer(const Site& site, const Request& request, const std::exception& error) {
  try {
    if (site.error_response) return site.error_response(request, ErrorView(error));
  } catch (const std::exception& e) {  // the answer about an error must not fail
    log::error("cannot describe an error", {{"error", log::clip(e.what())}});
  }
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (ours == nullptr) return Response::text(500, "internal error\n");
  return Response::text(http_status(ours->code()), ours->message() + "\n");
}

Response refusal_answer(const Site& site, const Request& request, const Refusal& refusal) {
  // No Code of ours stands for these: they end a conversation that is no request.
  if (refusal.status == 408 || refusal.status == 417)
    return Response::text(refusal.status, std::string(refusal.why) + "\n");
  Error error(code_from_http_status(refusal.status), std::string(refusal.why));
  if (refusal.status == 503) error.retry_after(1);
  Response response = error_answer(site, request, error);
  if (refusal.status == 503) response.headers.set("Retry-After", "1");
  return response;
}

std::optional<Response> judge_head(const Site& site, const Request& head,
                                   std::optional<uint64_t> content_length, size_t& body_limit) {
  if (site.admit) {
    try {
      auto verdict = site.admit(head);
      if (Response* refused = std::get_if<Response>(&verdict)) return std::move(*refused);
      body_limit = std::get<Admitted>(verdict).body_limit;
    } catch (const std::exception& e) {  // HTTP dispatch: every failure becomes an answer
      return error_answer(site, head, e);
    }
  }
  if (content_length.value_or(0) > body_limit)
    return refusal_answer(site, head, {413, "the request's body is too large"});
  const std::string_view expect = head.headers.get("Expect");
  if (!expect.empty() && expect != "100-continue")
    return refusal_answer(site, head, {417, "the only expectation known is 100-continue"});
  return std::nullopt;
}

}  // namespace umpteenth::http
