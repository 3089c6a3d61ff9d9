#include "client/timeline_text.h"

#include <gtest/gtest.h>

namespace umpteenth::client {
namespace {

std::string line(const char* type, const char* key, const std::string& value) {
  json::Value data = json::Value::object();
  data.set(key, value);
  return timeline_line(json::Value::object(
      {{"seq", 1}, {"time", "2026-01-02T03:04:05.678Z"}, {"type", type}, {"data", data}}));
}

TEST(TimelineText, is_a_line_with_time_type_and_what_matters) {
  EXPECT_EQ(line("tool.result", "text", "one\ntwo\n"), "03:04:05  tool.result         one two");
  EXPECT_EQ(line("run.status", "phase", "Running"), "03:04:05  run.status          Running");
}

TEST(TimelineText, cuts_what_is_said_and_keeps_causes) {
  const std::string said(400, 'x'), cause = std::string(300, 'y') + ": permission denied";
  EXPECT_TRUE(line("tool.result", "text", said).ends_with(std::string(160, 'x') + "…"));
  EXPECT_TRUE(line("log", "message", cause).ends_with("permission denied"));
  EXPECT_TRUE(line("error", "message", std::string(600, 'z')).ends_with("z…"));
}

TEST(TimelineText, shows_why_a_model_did_not_answer_and_whether_it_is_asked_again) {
  const auto call = [](bool again) {
    return timeline_line(json::parse(
        R"({"seq":1,"time":"2026-01-02T03:04:05.678Z","type":"llm.call","data":{"turn":1,"model":"m",)"
        R"("provider":"p","attempt":1,"durationMs":12,"retried":)" +
        std::string(again ? "true" : "false") + R"(,"error":"overloaded"}})"));
  };
  EXPECT_EQ(call(true), "03:04:05  llm.call            m  error: overloaded  retried  (12 ms)");
  EXPECT_EQ(call(false), "03:04:05  llm.call            m  error: overloaded  (12 ms)");
}

TEST(TimelineText, cuts_between_letters) {
  std::string text(159, 'x');
  text += "äö";
  EXPECT_TRUE(line("tool.result", "text", text).ends_with("x…"));
}

}  // namespace
}  // namespace umpteenth::client
