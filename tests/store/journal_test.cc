#include "store/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace umpteenth::store {
namespace {

JournalRecord record(uint64_t generation, uint64_t sequence, const std::string& text) {
  return {generation,
          sequence,
          {{Verb::create, {"jobs", "default", text}, sequence, "yaml of " + text, "{}"},
           {Verb::remove, {"jobs", "default", "x"}, sequence + 1, "", "end"}},
          "commit of " + text};
}

TEST(Journal, reads_back_in_order_over_generations) {
  TempDir folder;
  {
    Journal journal(folder.path());
    for (uint64_t g = 1; g <= 6; ++g) {
      journal.begin(g);
      journal.append(encode(record(g, 2 * g, "a")) + encode(record(g, 2 * g + 1, "b")));
    }
  }
  const auto records = Journal(folder.path()).read();
  ASSERT_EQ(records.size(), 8U);
  EXPECT_EQ(records.front().generation, 3U);
  EXPECT_EQ(records.back().sequence, 13U);
  EXPECT_EQ(records.back().commit, "commit of b");
  EXPECT_EQ(records.back().changes[0].key.name, "b");
  EXPECT_EQ(records.back().changes[0].yaml, "yaml of b");
  EXPECT_EQ(records.back().changes[1].verb, Verb::remove);
}

TEST(Journal, a_torn_end_is_left_out_wherever_it_is_torn) {
  const std::string first = encode(record(1, 0, "a")), second = encode(record(1, 1, "b"));
  TempDir folder;
  Journal journal(folder.path());
  for (size_t cut = 0; cut < second.size(); cut += 3) {
    journal.begin(1);
    journal.append(first + second.substr(0, cut));
    EXPECT_EQ(journal.read().size(), 1U) << cut;
  }
  journal.begin(1);
  journal.append(first + second);
  EXPECT_EQ(journal.read().size(), 2U);
}

TEST(Journal, a_flipped_bit_ends_it) {
  const std::string first = encode(record(1, 0, "a"));
  TempDir folder;
  Journal journal(folder.path());
  for (size_t at = 0; at < first.size(); at += 3) {
    std::string bytes = first;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    journal.begin(1);
    journal.append(bytes);
    EXPECT_TRUE(journal.read().empty()) << at;
  }
}

TEST(Journal, the_rest_of_an_older_generation_is_not_read) {
  TempDir folder;
  Journal journal(folder.path());
  journal.begin(1);
  journal.append(encode(record(1, 0, "old")) + encode(record(1, 1, "old")));
  journal.begin(5);
  journal.append(encode(record(5, 2, "new")));
  const auto records = journal.read();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].generation, 5U);
}

}  // namespace
}  // namespace umpteenth::store
