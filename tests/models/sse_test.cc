#include "models/sse.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace umpteenth::models {
namespace {

// The events of a stream cut into pieces of `step` bytes.
std::vector<std::string> events(std::string_view stream, size_t step, size_t max = 1000) {
  SseParser parser(max);
  std::vector<std::string> seen;
  const auto note = [&](const SseEvent& e) { seen.push_back(e.event + "|" + e.data); };
  for (size_t at = 0; at < stream.size(); at += step) parser.feed(stream.substr(at, step), note);
  parser.finish(note);
  return seen;
}

TEST(Sse, parses_every_way_of_ending_lines_split_anywhere) {
  const std::string stream =
      "\xEF\xBB\xBF"
      "data: one\n\n: comment\nevent: named\r\ndata:two\r\ndata: three\r\n\r\n"
      "id: 7\rdata: {\"a\": 1}\r\rdata\n\nevent: empty\n\nretry: 5\n\ndata: last";
  const std::vector<std::string> expected{"|one", "named|two\nthree", "|{\"a\": 1}", "|", "|last"};
  for (size_t step = 1; step <= stream.size(); ++step)
    EXPECT_EQ(events(stream, step), expected) << "pieces of " << step;
}

TEST(Sse, an_id_with_empty_data_is_an_event_without_text) {
  EXPECT_EQ(events("id: 1\ndata: \n\ndata: x\n\n", 3), (std::vector<std::string>{"|", "|x"}));
}

TEST(Sse, a_line_without_end_and_an_event_without_end_are_bounded) {
  EXPECT_THROW(events("data: " + std::string(2000, 'x'), 7), Error);
  std::string lines;
  for (int i = 0; i < 300; ++i) lines += "data: 12345\n";
  EXPECT_THROW(events(lines, 7), Error);
  std::string many;
  for (int i = 0; i < 300; ++i) many += "data: 12345\n\n";
  EXPECT_EQ(events(many, 7).size(), 300U);
}

}  // namespace
}  // namespace umpteenth::models
