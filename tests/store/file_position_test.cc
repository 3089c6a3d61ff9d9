#include "store/file_position.h"

#include <gtest/gtest.h>

namespace umpteenth::store {
namespace {

TEST(FilePosition, finds_the_line_of_a_field) {
  const char* yaml =
      "kind: Job\n"         // 1
      "metadata:\n"         // 2
      "  name: spec\n"      // 3
      "spec:\n"             // 4
      "  outputs:\n"        // 5
      "  - name: a\n"       // 6
      "    required: no\n"  // 7
      "  - required: x\n"   // 8
      "    name: b\n"       // 9
      "  limits:\n"         // 10
      "    maxTurns: 0\n";  // 11
  EXPECT_EQ(line_of_field(yaml, "kind"), 1);
  EXPECT_EQ(line_of_field(yaml, "metadata.name"), 3);
  EXPECT_EQ(line_of_field(yaml, "spec.limits.maxTurns"), 11);
  EXPECT_EQ(line_of_field(yaml, "spec.outputs[0].required"), 7);
  EXPECT_EQ(line_of_field(yaml, "spec.outputs[1].name"), 9);
  EXPECT_EQ(line_of_field(yaml, "spec.outputs[1].required"), 8);
  EXPECT_EQ(line_of_field(yaml, "spec.limits.absent"), 10);
  EXPECT_EQ(line_of_field(yaml, "nothing"), 1);
  EXPECT_EQ(line_of_field("", "spec"), 1);
}

}  // namespace
}  // namespace umpteenth::store
