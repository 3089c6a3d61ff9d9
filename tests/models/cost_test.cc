#include <gtest/gtest.h>

#include "models/model_client.h"

namespace umpteenth::models {
namespace {

TEST(Cost, is_micro_dollars_rounded_up) {
  const Price price{3, 15, 0.3, 3.75};
  EXPECT_EQ(cost_micro_usd({1000, 100, 0, 0}, price), 4500);
  EXPECT_EQ(cost_micro_usd({0, 0, 1, 0}, price), 1);
  EXPECT_EQ(cost_micro_usd({0, 0, 10, 4}, price), 18);
  EXPECT_EQ(cost_micro_usd({5, 5, 5, 5}, {}), 0);
  EXPECT_GT(cost_micro_usd({INT64_MAX, 0, 0, 0}, price), 0);
}

}  // namespace
}  // namespace umpteenth::models
