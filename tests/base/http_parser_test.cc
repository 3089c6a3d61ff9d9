#include "base/http/parser.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace umpteenth::http {
namespace {

// What becomes of a request that comes in pieces of one size.
std::string verdict(std::string_view bytes, size_t piece) {
  Limits limits;
  limits.header_bytes = 512;
  RequestParser parser(limits);
  Request request;
  std::optional<Refusal> refusal;
  std::string pending;
  size_t sent = 0;
  const auto more = [&] {
    const std::string_view next = bytes.substr(sent, piece);
    sent += next.size();
    pending += next;
    return !next.empty();
  };
  size_t head = 0;
  do {
    head = pending.empty() ? 0 : parser.find_head(pending, refusal);
  } while (!refusal && head == 0 && more());
  if (!refusal && head == 0) return "more";
  if (!refusal) refusal = parser.put_head(std::string_view(pending).substr(0, head), request);
  if (refusal) return std::to_string(refusal->status);
  pending.erase(0, head);
  parser.limit_body(64);
  while (!parser.done()) {
    const size_t used = parser.put_body(pending, request.body, refusal);
    pending.erase(0, used);
    if (refusal) return std::to_string(refusal->status);
    if (!parser.done() && !more()) return "more";
  }
  return request.method + " " + request.path + " " + request.body;
}

const std::vector<std::string> kSeeds{
    "GET /a%20b?x=1&y=%41 HTTP/1.1\r\nHost: h\r\nX-Y: z\r\n\r\n",
    "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
    "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
    "chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\n"
    "T: t\r\n\r\n",
    "POST /d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nabcd: x\r\n\r\n",
    "PUT /e HTTP/1.1\r\nhost: [::1]:80\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
};

TEST(RequestParser, the_pieces_do_not_matter) {
  for (const std::string& seed : kSeeds) {
    const std::string whole = verdict(seed, seed.size());
    EXPECT_NE(whole, "more") << seed;
    for (const size_t piece : {1U, 2U, 3U, 7U, 64U}) EXPECT_EQ(verdict(seed, piece), whole) << seed;
  }
  EXPECT_EQ(verdict(kSeeds[2], 1), "POST /c hello!");
}

// Also what the sanitizers watch: a seeded walk through broken requests.
TEST(RequestParser, mutations_never_depend_on_the_pieces) {
  std::mt19937 random(20261130);
  const std::string alphabet = std::string("\0\r\n \t:;,/%0aAzZ5f\x7f\xff", 20);
  const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = kSeeds[pick(kSeeds.size())];
    for (size_t edits = 1 + pick(3); edits > 0; --edits) {
      const size_t at = pick(bytes.size());
      switch (pick(3)) {
        case 0:
          bytes[at] = alphabet[pick(alphabet.size())];
          break;
        case 1:
          bytes.insert(at, 1 + pick(3), alphabet[pick(alphabet.size())]);
          break;
        default:
          bytes.erase(at, 1 + pick(4));
          break;
      }
      if (bytes.empty()) bytes = "G";
    }
    const std::string whole = verdict(bytes, bytes.size());
    const std::string split = verdict(bytes, 1 + pick(5));
    // A chunk line over the limit is noticed earlier or later, but noticed.
    EXPECT_EQ(whole, split) << testing::PrintToString(bytes);
  }
}

TEST(ResponseParser, heads_are_bounded_and_ends_matter) {
  ResponseParser until_eof(false, 100);
  EXPECT_EQ(until_eof.put("HTTP/1.1 200 OK\r\n\r\nabc"), 19U);  // the caller may want the rest raw
  until_eof.put("abc");
  EXPECT_FALSE(until_eof.done());
  until_eof.put_eof();
  EXPECT_TRUE(until_eof.done());
  EXPECT_EQ(until_eof.response().body, "abc");

  ResponseParser torn(false, 100);
  torn.put("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  torn.put("abc");
  EXPECT_THROW(torn.put_eof(), Error);
  ResponseParser silent(false, 100);
  EXPECT_THROW(silent.put_eof(), Error);
  ResponseParser endless(false, 100);
  EXPECT_THROW(endless.put("HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x')), Error);
}

}  // namespace
}  // namespace umpteenth::http
