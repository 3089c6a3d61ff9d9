#include "engine/frames.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace umpteenth::engine {
namespace {

std::string frame(char stream, const std::string& payload) {
  const auto n = static_cast<uint32_t>(payload.size());
  std::string f{stream, 0, 0, 0};
  for (int shift = 24; shift >= 0; shift -= 8) f += static_cast<char>(n >> shift & 0xffU);
  return f + payload;
}

TEST(Frames, are_told_apart_however_they_are_cut) {
  const std::string wire = frame(1, "one") + frame(2, "") + frame(2, "two") + frame(1, "three");
  for (size_t step = 1; step <= wire.size(); ++step) {
    std::string out, err;
    FrameReader reader(
        [&](Output which, std::string_view bytes) { (which == Output::out ? out : err) += bytes; });
    for (size_t i = 0; i < wire.size(); i += step) reader.feed(wire.substr(i, step));
    EXPECT_EQ(out, "onethree") << step;
    EXPECT_EQ(err, "two") << step;
    EXPECT_TRUE(reader.at_boundary());
  }
}

TEST(Frames, a_frame_of_4_gib_is_passed_on_without_being_kept) {
  size_t seen = 0;
  FrameReader reader([&](Output, std::string_view bytes) { seen += bytes.size(); });
  reader.feed(std::string("\x01\0\0\0\xff\xff\xff\xff", 8));
  for (int i = 0; i < 100; ++i) reader.feed(std::string(10'000, 'x'));
  EXPECT_EQ(seen, 1'000'000U);
  EXPECT_FALSE(reader.at_boundary());
}

TEST(Frames, text_without_frames_is_refused) {
  FrameReader reader([](Output, std::string_view) { FAIL() << "text was passed on"; });
  EXPECT_THROW(reader.feed("Exec command is already running"), Error);
}

}  // namespace
}  // namespace umpteenth::engine
