#include "client/merge.h"

#include <gtest/gtest.h>

#include "apis/object.h"

namespace umpteenth::client {
namespace {

TEST(ThreeWay, sets_removes_and_leaves_what_others_set) {
  const struct {
    const char *last, *live, *wanted, *patch;
  } cases[] = {
      {"{}", R"({"a":1})", R"({"a":1})", "{}"},
      {R"({"a":1})", R"({"a":1})", R"({"a":2})", R"({"a":2})"},
      {R"({"a":1,"b":1})", R"({"a":1,"b":1})", R"({"a":1})", R"({"b":null})"},
      {R"({"a":1})", R"({"a":1,"theirs":5})", R"({"a":1})", "{}"},
      {R"({"a":1})", R"({"a":7})", R"({"a":1})", R"({"a":1})"},
      {R"({"s":{"x":1,"y":1}})", R"({"s":{"x":1,"y":1,"z":1}})", R"({"s":{"x":1}})",
       R"({"s":{"y":null}})"},
      {R"({"l":[1,2]})", R"({"l":[1,2]})", R"({"l":[2]})", R"({"l":[2]})"},
      {R"({"b":1})", R"({"a":1})", R"({"a":1})", "{}"},
      {"{}", R"({"s":1})", R"({"s":{"x":1}})", R"({"s":{"x":1}})"},
  };
  for (const auto& c : cases)
    EXPECT_EQ(
        three_way_patch(json::parse(c.last), json::parse(c.live), json::parse(c.wanted)).dump(),
        c.patch)
        << c.wanted;
}

TEST(LastApplied, never_contains_itself_or_the_status) {
  json::Value manifest =
      json::parse(R"({"metadata":{"name":"a"},"spec":{"x":1},"status":{"y":1}})");
  manifest["metadata"]["annotations"].set(apis::kLastApplied, "old");
  EXPECT_EQ(last_applied_text(manifest), "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"x\":1}}\n");
}

}  // namespace
}  // namespace umpteenth::client
