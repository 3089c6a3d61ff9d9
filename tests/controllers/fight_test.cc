#include "controllers/runtime/fight.h"

#include <gtest/gtest.h>

namespace umpteenth::controllers {
namespace {

const store::Key kA{"jobs", "default", "a"};
const store::Key kB{"jobs", "default", "b"};

TEST(FightDetector, waits_longer_and_longer_from_the_tenth_identical_plan) {
  FightDetector fights;
  for (int i = 1; i < 10; ++i) EXPECT_EQ(fights.note(kA, "remove x"), Duration::zero()) << i;
  EXPECT_EQ(fights.note(kB, "remove x"), Duration::zero()) << "objects are counted apart";
  EXPECT_EQ(fights.note(kA, "remove x"), Duration(10'000));
  EXPECT_EQ(fights.note(kA, "remove x"), Duration(20'000));
  Duration last{};
  for (int i = 0; i < 20; ++i) last = fights.note(kA, "remove x");
  EXPECT_EQ(last, Duration(600'000));
}

TEST(FightDetector, another_plan_or_none_ends_it) {
  FightDetector fights;
  for (int i = 0; i < 9; ++i) fights.note(kA, "remove x");
  fights.note(kA, "remove y");
  EXPECT_EQ(fights.note(kA, "remove x"), Duration::zero());
  for (int i = 0; i < 8; ++i) fights.note(kA, "remove x");
  fights.note(kA, "");
  EXPECT_EQ(fights.note(kA, "remove x"), Duration::zero());
}

}  // namespace
}  // namespace umpteenth::controllers
