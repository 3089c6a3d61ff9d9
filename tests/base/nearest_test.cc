#include "base/nearest.h"

#include <gtest/gtest.h>

namespace umpteenth {
namespace {

const std::vector<std::string> kWords{"apply", "get", "delete", "describe", "timeline"};

TEST(Nearest, finds_what_was_mistyped) {
  EXPECT_EQ(nearest("aply", kWords), "apply");
  EXPECT_EQ(nearest("applyy", kWords), "apply");
  EXPECT_EQ(nearest("appyl", kWords), "apply");
  EXPECT_EQ(nearest("gte", kWords), "get");
  EXPECT_EQ(nearest("timleine", kWords), "timeline");
}

TEST(Nearest, finds_the_only_one_that_begins_so) {
  EXPECT_EQ(nearest("desc", kWords), "describe");
  EXPECT_EQ(nearest("de", kWords), "");  // delete or describe
  EXPECT_EQ(nearest("t", kWords), "");
}

TEST(Nearest, says_nothing_where_nothing_is_close) {
  EXPECT_EQ(nearest("rollout", kWords), "");
  EXPECT_EQ(nearest("", kWords), "");
  EXPECT_EQ(nearest(std::string(100'000, 'a'), kWords), "");
  EXPECT_EQ(nearest("get", {}), "");
}

TEST(Nearest, is_worded_as_a_question) {
  EXPECT_EQ(did_you_mean("aply", kWords), "; did you mean apply?");
  EXPECT_EQ(did_you_mean("rollout", kWords), "");
}

}  // namespace
}  // namespace umpteenth
