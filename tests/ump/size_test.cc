#include <elf.h>

#include "tests/ump/support.h"

namespace umpteenth {
namespace {

TEST(UmpProgram, is_static_and_below_one_megabyte) {
  const std::string program = read_file(ump_path());
  EXPECT_LT(program.size(), 1'000'000U);
  ASSERT_GE(program.size(), sizeof(Elf64_Ehdr));
  const auto* head = reinterpret_cast<const Elf64_Ehdr*>(program.data());
  for (int i = 0; i < head->e_phnum; ++i) {
    const auto* part = reinterpret_cast<const Elf64_Phdr*>(program.data() + head->e_phoff) + i;
    EXPECT_NE(part->p_type, static_cast<Elf64_Word>(PT_INTERP)) << "it needs a dynamic linker";
  }
}

}  // namespace
}  // namespace umpteenth
