#include "engine/sandbox_images.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/fd.h"
#include "tests/support/fake_engine.h"

namespace umpteenth::engine {
namespace {

class SandboxImagesTest : public ::testing::Test {
 protected:
  SandboxImagesTest() {
    put_ump("the ump program");
    base_ = fake_.add_image("bb");
  }
  void put_ump(const std::string& bytes) { std::ofstream(dir_.path() / "ump") << bytes; }
  SandboxImages images() { return {fake_, "inst-1", {{"amd64", dir_.path() / "ump"}}}; }

  TempDir dir_;
  support::FakeEngine fake_;
  std::string base_;
};

TEST_F(SandboxImagesTest, a_prepared_image_is_made_once_per_base_and_ump) {
  SandboxImages images = this->images();
  const std::string first = images.ensure_prepared("bb");
  EXPECT_EQ(images.ensure_prepared("bb:latest"), first);
  EXPECT_EQ(fake_.count_calls("commit_container"), 1U);
  const auto made = fake_.find_image(first);
  EXPECT_EQ(made->entrypoint, (std::vector<std::string>{"/usr/local/bin/ump", "init"}));
  EXPECT_EQ(made->user, "0:0");
  EXPECT_EQ(made->labels.at(kLabelRole), "prepared");
  EXPECT_EQ(made->labels.at(kLabelBaseId), base_);
  EXPECT_TRUE(fake_.list_containers({}).empty());  // the container went

  put_ump("another ump");
  SandboxImages updated = this->images();
  EXPECT_NE(updated.ensure_prepared("bb"), first);
}

TEST_F(SandboxImagesTest, ump_and_folders_are_in_it) {
  ContainerSpec s;
  s.name = "one";
  s.image = images().ensure_prepared("bb");
  fake_.create_container(s);
  const auto files = fake_.files_of("one");
  EXPECT_EQ(files.at("/usr/local/bin/ump").data, "the ump program");
  EXPECT_EQ(files.at("/usr/local/bin/ump").mode, 0755);
  EXPECT_EQ(files.at("/usr/local/bin/ump").uid, 0);
  EXPECT_EQ(files.at("/ump/outputs").uid, 1000);
  EXPECT_TRUE(files.at("/ump/logs").directory);
  EXPECT_EQ(files.at("/run/ump").mode, 01777);
  EXPECT_FALSE(files.contains("/etc/passwd"));
}

TEST_F(SandboxImagesTest, a_failed_preparation_leaves_no_container_and_is_tried_again) {
  SandboxImages images = this->images();
  fake_.fail_next("commit_container", Error(Code::internal, "no space left on device"));
  try {
    images.ensure_prepared("bb");
    FAIL() << "a failed commit was taken for an image";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "prepare image \"bb\": no space left on device");
  }
  EXPECT_TRUE(fake_.list_containers({}).empty());
  images.ensure_prepared("bb");
}

TEST_F(SandboxImagesTest, other_architectures_are_refused_clearly) {
  fake_.add_image("exotic", "s390x");
  fake_.add_image("arm", "arm64");
  SandboxImages images = this->images();
  try {
    images.ensure_prepared("exotic");
    FAIL() << "s390x was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid);
    EXPECT_EQ(e.message(), "image \"exotic\" is for s390x: sandboxes need amd64 or arm64");
  }
  try {
    images.ensure_prepared("arm");
    FAIL() << "there is no ump for arm64 here";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid);
    EXPECT_TRUE(
        e.message().starts_with("image \"arm\" is for arm64: this installation has no ump"));
  }
  EXPECT_THROW(images.ensure_prepared("absent"), Error);
}

TEST_F(SandboxImagesTest, a_base_is_pulled_only_where_it_is_absent) {
  SandboxImages images = this->images();
  EXPECT_EQ(images.ensure_base("bb", {}).id, base_);
  EXPECT_EQ(fake_.count_calls("pull_image"), 0U);
  EXPECT_THROW(images.ensure_base("absent", {}), Error);
  EXPECT_EQ(fake_.count_calls("pull_image"), 1U);
}

TEST_F(SandboxImagesTest, garbage_is_what_has_another_base_or_ump) {
  SandboxImages old = images();
  old.ensure_prepared("bb");
  old.ensure_helper();
  EXPECT_EQ(old.collect_garbage(), 0U);

  put_ump("another ump");
  SandboxImages now = images();
  const std::string current = now.ensure_prepared("bb");
  const std::string helper = now.ensure_helper();
  EXPECT_EQ(now.collect_garbage(), 2U);
  EXPECT_TRUE(fake_.find_image(current));
  EXPECT_TRUE(fake_.find_image(helper));

  ContainerSpec uses;
  uses.name = "uses";
  uses.image = current;
  fake_.create_container(uses);
  fake_.add_image("bb");                 // the tag moves to another image
  EXPECT_EQ(now.collect_garbage(), 0U);  // in use
  fake_.remove_container("uses");
  EXPECT_EQ(now.collect_garbage(), 1U);
}

TEST_F(SandboxImagesTest, images_of_another_installation_are_left_alone) {
  SandboxImages other(fake_, "inst-2", {{"amd64", dir_.path() / "ump"}});
  other.ensure_prepared("bb");
  put_ump("another ump");
  EXPECT_EQ(images().collect_garbage(), 0U);
}

}  // namespace
}  // namespace umpteenth::engine
