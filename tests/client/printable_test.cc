#include "client/printable.h"

#include <gtest/gtest.h>

namespace umpteenth::client {
namespace {

TEST(Printable, shows_what_a_terminal_would_obey) {
  EXPECT_EQ(printable("\x1b[2J\x1b]0;title\x07"), "^[[2J^[]0;title^G");
  EXPECT_EQ(printable("over\rwritten\x7f\x08"), "over^Mwritten^?^H");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a^@b");
}

TEST(Printable, leaves_text_alone) {
  const std::string text = "line\n\ttab äöü € \xC2\xA0 😀";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable_line("a\nb\tc"), "a b c");
  EXPECT_EQ(printable("\xC2"), "\xC2");
}

}  // namespace
}  // namespace umpteenth::client
