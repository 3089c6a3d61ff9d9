#include "runs/text.h"

#include <gtest/gtest.h>

namespace umpteenth::runs {
namespace {

TEST(Text, what_is_not_utf8_is_replaced_byte_by_byte) {
  EXPECT_EQ(to_utf8("a\xff"
                    "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(to_utf8("grün €  𝄞"), "grün €  𝄞");
  for (const char* bad : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"})
    EXPECT_FALSE(is_utf8(bad)) << bad;
  EXPECT_EQ(to_utf8("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Text, clipping_keeps_characters_whole) {
  EXPECT_EQ(clip_characters("üüüü", 4), "üüüü");
  EXPECT_EQ(clip_characters("üüüüü", 4), "üüüü…");
  EXPECT_EQ(clip_characters("äöüßé", 2, 1), "äö\n… 2 characters left out …\né");
  EXPECT_EQ(clip_characters("", 0), "");
}

}  // namespace
}  // namespace umpteenth::runs
