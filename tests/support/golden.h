// Text kept in files of the tree: a test compares, ACCEPT=1 rewrites.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace umpteenth::testing {

// name: a path below the root of the sources, e.g. tests/golden/job_table.txt. Fails with the first
// line that differs and how to accept the new text.
::testing::AssertionResult golden(std::string_view name, std::string_view text);

}  // namespace umpteenth::testing
