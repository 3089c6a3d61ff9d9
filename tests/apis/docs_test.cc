#include "apis/docs.h"

#include <gtest/gtest.h>

#include "tests/support/golden.h"

namespace umpteenth::apis {
namespace {

TEST(Docs, the_reference_is_what_the_kinds_say) {
  EXPECT_TRUE(umpteenth::testing::golden("docs/resources.md", reference_markdown()));
}

}  // namespace
}  // namespace umpteenth::apis
