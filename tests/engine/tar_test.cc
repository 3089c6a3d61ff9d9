#include "engine/tar.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace umpteenth::engine {
namespace {

std::string refusal(std::string_view tar, const TarLimits& limits = {}) {
  try {
    read_tar(tar, limits);
  } catch (const Error& e) {
    return std::to_string(http_status(e.code())) + " " + e.message();
  }
  return "accepted";
}

// A header made by hand: type, name and size as told, checksum right.
std::string raw_entry(char type, std::string name, const std::string& octal_size,
                      const std::string& body = {}) {
  std::string b(512, '\0');
  b.replace(0, name.size(), name);
  b.replace(100, 7, "0000644");
  b.replace(108, 7, "0000000");
  b.replace(116, 7, "0000000");
  b.replace(124, octal_size.size(), octal_size);
  b.replace(136, 11, "00000000000");
  b.replace(148, 8, "        ");
  b[156] = type;
  b.replace(257, 5, "ustar");
  b.replace(263, 2, "00");
  unsigned sum = 0;
  for (char c : b) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  b.replace(148, 6, digits);
  b[154] = '\0';
  std::string padded = body;
  padded.resize((body.size() + 511) / 512 * 512);
  return b + padded;
}

TEST(Tar, what_is_written_is_read_back) {
  const std::string long_name = "deep/" + std::string(150, 'n') + "/file.txt";
  TarWriter w;
  w.add_directory("outputs", 0750, 1000, 1001);
  w.add_file("outputs/a.txt", "hello", 0600, 1000, 1000);
  w.add_file(long_name, std::string(1000, 'x'));
  w.add_file("empty", "");
  const std::string tar = w.finish();
  EXPECT_EQ(tar.size() % 512, 0U);

  const auto entries = read_tar(tar, {});
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].type, TarEntry::Type::directory);
  EXPECT_EQ(entries[0].name, "outputs");
  EXPECT_EQ(entries[0].mode, 0750);
  EXPECT_EQ(entries[0].gid, 1001);
  EXPECT_EQ(entries[1].name, "outputs/a.txt");
  EXPECT_EQ(entries[1].data, "hello");
  EXPECT_EQ(entries[1].uid, 1000);
  EXPECT_EQ(entries[2].name, long_name);
  EXPECT_EQ(entries[2].data.size(), 1000U);
  EXPECT_EQ(entries[3].data, "");
}

TEST(Tar, links_and_special_files_are_refused_unless_asked_for) {
  TarWriter w;
  w.add_symlink("outputs/passwd", "/etc/passwd");
  const std::string tar = w.finish();
  EXPECT_EQ(refusal(tar), "422 \"outputs/passwd\" is a link: links are refused");
  TarLimits allow;
  allow.links = true;
  EXPECT_EQ(read_tar(tar, allow)[0].link, "/etc/passwd");

  EXPECT_NE(refusal(raw_entry('1', "hard", "00000000000")).find("is a link"), std::string::npos);
  for (char type : {'3', '4', '6', 'S', 'V'})
    EXPECT_NE(refusal(raw_entry(type, "odd", "00000000000")).find("neither a regular file"),
              std::string::npos)
        << type;
  const std::string sparse = "22 GNU.sparse.major=1\n";
  EXPECT_NE(refusal(raw_entry('x', "p", "00000000026", sparse) + raw_entry('0', "f", "0")),
            "accepted");
}

TEST(Tar, names_stay_inside) {
  EXPECT_NE(refusal(raw_entry('0', "../../etc/passwd", "0")).find("leads out"), std::string::npos);
  EXPECT_NE(refusal(raw_entry('0', "a/../b", "0")).find("leads out"), std::string::npos);
  EXPECT_EQ(read_tar(raw_entry('0', "/etc//./passwd", "0"), {})[0].name, "etc/passwd");
  EXPECT_EQ(read_tar(raw_entry('5', "./", "0"), {})[0].name, "");
  const std::string evil = std::string("14 path=../../x\n").replace(0, 2, "16");
  EXPECT_NE(refusal(raw_entry('x', "p", "00000000020", evil) + raw_entry('0', "f", "0")),
            "accepted");
}

TEST(Tar, limits_hold) {
  TarWriter w;
  for (int i = 0; i < 11; ++i) w.add_file("f" + std::to_string(i), std::string(100, 'x'));
  const std::string tar = w.finish();
  TarLimits few;
  few.max_entries = 10;
  EXPECT_EQ(refusal(tar, few), "413 read tar archive: more than 10 entries");
  TarLimits small;
  small.max_bytes = 1'050;
  EXPECT_EQ(refusal(tar, small), "413 read tar archive: its files hold more than 1050 bytes");
  TarLimits shorter;
  shorter.max_name = 1;
  EXPECT_EQ(refusal(tar, shorter), "413 read tar archive: a name is longer than 1 bytes");
}

TEST(Tar, a_size_that_lies_is_refused) {
  EXPECT_EQ(refusal(raw_entry('0', "f", "77777777777")).substr(0, 3), "413");
  EXPECT_EQ(refusal(raw_entry('0', "f", "00000002000", "short")),
            "400 read tar archive: it is cut short");
  std::string negative = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff";
  EXPECT_EQ(refusal(raw_entry('0', "f", negative)), "400 read tar archive: a number is too large");
  const std::string pax = "30 size=999999999999999999999\n";
  EXPECT_EQ(refusal(raw_entry('x', "p", "00000000036", pax) + raw_entry('0', "f", "0")),
            "400 read tar archive: a pax number is not a number");
}

TEST(Tar, every_cut_and_every_flipped_byte_of_a_header_is_survived) {
  TarWriter w;
  w.add_file("dir/" + std::string(120, 'a'), "some bytes");
  w.add_file("b", "more");
  const std::string tar = w.finish();
  size_t refused = 0;
  for (size_t n = 0; n < tar.size(); ++n) refused += refusal(tar.substr(0, n)) != "accepted";
  EXPECT_GT(refused, 1'000U);
  for (size_t i = 0; i < 512; ++i) {
    std::string flipped = tar;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x80);
    EXPECT_NE(refusal(flipped), "accepted") << "byte " << i;
  }
}

TEST(Tar, a_gnu_long_name_is_understood) {
  const std::string name(180, 'g');
  const std::string tar = raw_entry('L', "././@LongLink", "00000000265", name + '\0') +
                          raw_entry('0', "cut", "00000000002", "hi");
  const auto entries = read_tar(tar, {});
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].name, name);
  EXPECT_EQ(entries[0].data, "hi");
}

}  // namespace
}  // namespace umpteenth::engine
