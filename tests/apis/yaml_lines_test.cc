#include "apis/yaml_lines.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace umpteenth::apis {
namespace {

constexpr char kText[] =
    "# a comment\n"                        // 1
    "kind: Job\n"                          // 2
    "metadata:\n"                          // 3
    "  labels: {a/b: x,\n"                 // 4
    "    c: y}\n"                          // 5
    "spec:\n"                              // 6
    "  secrets:\n"                         // 7
    "  - secret: one\n"                    // 8
    "    env: ONE\n"                       // 9
    "  - {secret: two, env: TWO}\n"        // 10
    "  schedule:\n"                        // 11
    "    cron: x\n"                        // 12
    "---\n"                                // 13
    "---\n"                                // 14
    "{\"kind\": \"List\", \"items\": [\n"  // 15
    "  {\"spec\": {\"a\": 1}},\n"          // 16
    "  {\"spec\":\n"                       // 17
    "    {\"b\": 2}}]}\n";                 // 18

TEST(YamlLines, tell_where_a_field_stands) {
  EXPECT_EQ(yaml_line_of(kText, 0, "kind"), 2);
  EXPECT_EQ(yaml_line_of(kText, 0, "metadata.labels[a/b]"), 4);
  EXPECT_EQ(yaml_line_of(kText, 0, "metadata.labels.c"), 5);
  EXPECT_EQ(yaml_line_of(kText, 0, "spec.secrets[0].env"), 9);
  EXPECT_EQ(yaml_line_of(kText, 0, "spec.secrets[1].env"), 10);
  EXPECT_EQ(yaml_line_of(kText, 0, "spec.schedule.cron"), 12);
}

TEST(YamlLines, tell_of_what_is_missing_where_it_would_stand) {
  EXPECT_EQ(yaml_line_of(kText, 0, "spec.instruction"), 6);
  EXPECT_EQ(yaml_line_of(kText, 0, "spec.schedule.timeZone"), 11);
  EXPECT_EQ(yaml_line_of(kText, 0, "spec.secrets[7].env"), 7);
  EXPECT_EQ(yaml_line_of(kText, 0, "spec.sched"), 6);
  EXPECT_EQ(yaml_line_of(kText, 0, "status"), 2);
  EXPECT_EQ(yaml_line_of(kText, 0, ""), 2);
}

TEST(YamlLines, know_documents_and_json) {
  EXPECT_EQ(yaml_line_of(kText, 2, "items[0].spec.a"), 16);
  EXPECT_EQ(yaml_line_of(kText, 2, "items[1].spec.b"), 18);
  EXPECT_EQ(yaml_line_of(kText, 3, "items"), 0);
  EXPECT_EQ(yaml_line_of("a: [", 0, "a"), 0);
}

TEST(YamlKeys, are_listed_with_their_lines) {
  const auto keys = yaml_keys("server:\n  tls:\n    mode: self\nlog: {level: info}\n");
  ASSERT_EQ(keys.size(), 5U);
  EXPECT_EQ(keys[2].path, "server.tls.mode");
  EXPECT_EQ(keys[2].line, 3);
  EXPECT_TRUE(keys[2].leaf);
  EXPECT_FALSE(keys[1].leaf);
  EXPECT_EQ(keys[4].path, "log.level");
  EXPECT_THROW(yaml_keys("a: ["), Error);
}

}  // namespace
}  // namespace umpteenth::apis
