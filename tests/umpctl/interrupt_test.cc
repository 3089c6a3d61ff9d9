#include "cmd/umpctl/interrupt.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace umpteenth::umpctl {
namespace {

TEST(OnInterruptDeathTest, says_its_text_and_ends_with_130) {
  EXPECT_EXIT(
      {
        std::signal(SIGINT, SIG_DFL);
        OnInterrupt say("the run goes on");
        std::raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "the run goes on\n");
}

TEST(OnInterruptDeathTest, leaves_an_ignored_signal_ignored_and_what_was_before_in_place) {
  EXPECT_EXIT(
      {
        std::signal(SIGINT, SIG_IGN);
        {
          OnInterrupt say("never said");
          std::raise(SIGINT);
        }
        std::signal(SIGINT, [](int) { _exit(7); });
        { OnInterrupt say("never said"); }
        std::raise(SIGINT);
      },
      ::testing::ExitedWithCode(7), "^$");
}

}  // namespace
}  // namespace umpteenth::umpctl
