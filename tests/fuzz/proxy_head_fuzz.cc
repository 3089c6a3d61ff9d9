// broker: the first bytes of a sandbox's connection to the proxy, and of what a server answers.
#include "broker/proxy_head.h"

#include "broker/socks5.h"
#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  broker::first_bytes(bytes);

  const broker::ProxyHead head = broker::parse_proxy_head(bytes);
  if (head.state == broker::ProxyHead::State::complete && head.refusal_status == 0) {
    fuzz::require(head.size <= bytes.size(), "a head is part of what came");
    fuzz::require(!head.host.empty(), "a target has a host");
    fuzz::require(head.port > 0 && head.port < 65536, "a target has a port");
    for (const char* field : {"\nProxy-", "\nproxy-", "\nPROXY-"})
      fuzz::require(head.forward.find(field) == std::string::npos,
                    "no field of the proxy's own is passed on");
    broker::BodyFrame body = head.body;
    body.take(bytes.substr(head.size));
  }
  if (bytes.size() > broker::kMaxProxyHead + 1)
    fuzz::require(head.state == broker::ProxyHead::State::complete, "a head's size has an end");

  const broker::AnswerHead answer = broker::parse_answer_head(bytes);
  if (answer.state == broker::AnswerHead::State::complete)
    fuzz::require(answer.size <= bytes.size(), "an answer's head is part of what came");

  broker::BodyFrame chunks = broker::BodyFrame::chunked();
  const auto whole = chunks.take(bytes);
  broker::BodyFrame one_by_one = broker::BodyFrame::chunked();
  size_t taken = 0;
  bool bad = false;
  for (const char& c : bytes) {
    if (one_by_one.done()) break;
    const auto used = one_by_one.take({&c, 1});
    if (!used) {
      bad = true;
      break;
    }
    taken += *used;
  }
  fuzz::require(bad == !whole.has_value(), "chunks are refused however they arrive");
  if (whole) fuzz::require(*whole == taken, "chunks end at the same place however they arrive");
  return 0;
}
