#include <elf.h>
#include <unistd.h>

#include "tests/ump/support.h"

namespace umpteenth {
namespace {

void expect_small_and_static(const std::string& path, Elf64_Half machine) {
  const std::string program = read_file(path);
  EXPECT_LT(program.size(), 1'000'000U) << path;
  ASSERT_GE(program.size(), sizeof(Elf64_Ehdr)) << path;
  const auto* head = reinterpret_cast<const Elf64_Ehdr*>(program.data());
  EXPECT_EQ(head->e_machine, machine) << path;
  for (int i = 0; i < head->e_phnum; ++i) {
    const auto* part = reinterpret_cast<const Elf64_Phdr*>(program.data() + head->e_phoff) + i;
    EXPECT_NE(part->p_type, static_cast<Elf64_Word>(PT_INTERP)) << path << " needs a linker";
  }
}

const std::string& arm64_path() {
  static const std::string path = ump_path() + "-arm64";
  return path;
}

TEST(UmpProgram, is_static_and_below_one_megabyte) {
  expect_small_and_static(ump_path(), EM_X86_64);
}

TEST(UmpProgram, is_so_for_arm64_too) {
  if (::access(arm64_path().c_str(), R_OK) != 0) GTEST_SKIP() << arm64_path() << " is not built";
  expect_small_and_static(arm64_path(), EM_AARCH64);
}

TEST(UmpProgram, runs_on_arm64) {
  if (::access(arm64_path().c_str(), R_OK) != 0) GTEST_SKIP() << arm64_path() << " is not built";
  if (::access("/usr/bin/qemu-aarch64", X_OK) != 0)
    GTEST_SKIP() << "qemu-aarch64 (package qemu-user) is not installed";
  Command command;
  command.argv = {"/usr/bin/qemu-aarch64", arm64_path(), "version"};
  CommandResult done = system_runner().run(command);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.out.starts_with("ump ")) << done.out;
  // Its sockets, JSON and messages.
  command.argv = {"/usr/bin/qemu-aarch64", arm64_path(), "state", "list"};
  command.env = {"UMP_BROKER_URL=http://127.0.0.1:1", "UMP_TOKEN=x"};
  done = system_runner().run(command);
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_NE(done.err.find("cannot reach the broker"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace umpteenth
