#include "cmd/umpctl/persist.h"

#include <gtest/gtest.h>

namespace umpteenth::umpctl {
namespace {

constexpr Patience kShort{std::chrono::milliseconds(1), std::chrono::milliseconds(50)};

TEST(Persistently, outlasts_a_server_that_is_away) {
  int calls = 0;
  const auto answer = [&] {
    if (++calls < 4) throw Error(Code::unavailable, "cannot reach it");
    return calls;
  };
  EXPECT_EQ(persistently(answer, {kShort.pause, std::chrono::hours(1)}), 4);
}

TEST(Persistently, gives_up_at_its_time_and_at_other_errors) {
  EXPECT_THROW(persistently([]() -> int { throw Error(Code::unavailable, "away"); }, kShort),
               Error);
  int calls = 0;
  const auto refused = [&]() -> int {
    ++calls;
    throw Error(Code::forbidden, "you may not");
  };
  EXPECT_THROW(persistently(refused, kShort), Error);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace umpteenth::umpctl
