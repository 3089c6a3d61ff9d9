#include "tests/support/golden.h"
#include "tests/support/paths.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace umpteenth::testing {
namespace {

std::string line_at(std::string_view text, size_t at) {
  const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  return std::string(text.substr(begin, text.find('\n', begin) - begin));
}

}  // namespace

::testing::AssertionResult golden(std::string_view name, std::string_view text) {
  const std::filesystem::path path = std::filesystem::path(support::source_dir()) / name;
  if (const char* accept = std::getenv("ACCEPT"); accept && std::string_view(accept) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return ::testing::AssertionSuccess();
  }
  std::ifstream in(path, std::ios::binary);
  std::stringstream kept;
  kept << in.rdbuf();
  const std::string expected = kept.str();
  if (in && expected == text) return ::testing::AssertionSuccess();
  size_t at = 0;
  while (at < expected.size() && at < text.size() && expected[at] == text[at]) ++at;
  return ::testing::AssertionFailure()
         << name << " differs at byte " << at << "\n  kept: " << line_at(expected, at)
         << "\n  made: " << line_at(text, at)
         << "\nIf the new text is right, run again with ACCEPT=1.";
}

}  // namespace umpteenth::testing
