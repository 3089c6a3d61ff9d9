#include "cmd/umpd/edits.h"

#include <gtest/gtest.h>

#include "apis/object.h"
#include "apis/yaml.h"
#include "base/error.h"

namespace umpteenth::umpd {
namespace {

struct EditsTest : ::testing::Test {
  FakeClock clock{parse_time("2026-03-02T10:00:00Z")};
  apis::Sealer sealer{"test", {"0123456789abcdef0123456789abcdef"}};
  EditParts parts{sealer, clock, {{"jobs", {apis::kRunsFinalizer}}}};
  const store::Key key{"jobs", "default", "a"};

  static json::Value file(const std::string& instruction, const std::string& metadata = "") {
    return apis::parse_yaml_one(
        "apiVersion: umpteenth.dev/v1alpha1\nkind: Job\n"
        "metadata: {name: a, namespace: default" +
        metadata + "}\nspec: {instruction: " + instruction + "}\n");
  }
  static store::RecordPtr stored(const json::Value& object) {
    auto record = std::make_shared<store::Record>();
    record->key = {"jobs", "default", "a"};
    record->json = object.dump();
    return record;
  }
};

TEST_F(EditsTest, a_new_file_is_completed_as_by_a_create) {
  const json::Value job = admit_edit(parts, key, file("one"), nullptr);
  EXPECT_FALSE(apis::uid_of(job).empty());
  EXPECT_EQ(apis::generation_of(job), 1);
  EXPECT_TRUE(apis::has_finalizer(job, apis::kRunsFinalizer));
  EXPECT_EQ(job.at_path({"spec", "limits"}).get_int("timeoutSeconds"), 900) << "defaults";
}

TEST_F(EditsTest, an_edited_object_stays_the_same_object) {
  const json::Value before = admit_edit(parts, key, file("one"), nullptr);
  clock.advance(std::chrono::hours(1));
  for (const char* carried : {"", ", uid: 7f1c0c5e-8f0e-4f65-9a52-0f6a1d1b2c3d, generation: 9"}) {
    const json::Value after = admit_edit(parts, key, file("two", carried), stored(before));
    EXPECT_EQ(apis::uid_of(after), apis::uid_of(before));
    EXPECT_EQ(apis::created_at(after), apis::created_at(before));
    EXPECT_EQ(apis::generation_of(after), 2);
    EXPECT_EQ(after.get("spec").get_string("instruction"), "two");
    EXPECT_TRUE(apis::has_finalizer(after, apis::kRunsFinalizer)) << "left out of the file";
  }
}

TEST_F(EditsTest, a_file_that_breaks_a_rule_is_refused) {
  const auto refusal = [&](const store::Key& at, json::Value object) {
    try {
      admit_edit(parts, at, std::move(object), nullptr);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("accepted");
  };
  EXPECT_NE(refusal({"jobs", "default", "b"}, file("one")).find("the file's name says \"b\""),
            std::string::npos);
  EXPECT_NE(refusal(key, file("''")).find("spec.instruction"), std::string::npos);
  EXPECT_NE(refusal({"secrets", "default", "a"}, file("one")).find("must hold a Secret"),
            std::string::npos);
  const std::string clear =
      refusal({"secrets", "default", "s"},
              apis::parse_yaml_one("apiVersion: umpteenth.dev/v1alpha1\nkind: Secret\n"
                                   "metadata: {name: s, namespace: default}\n"
                                   "spec: {stringData: {value: clear-value}}\n"));
  EXPECT_TRUE(clear.starts_with("spec.stringData: Forbidden")) << clear;
  EXPECT_EQ(clear.find("clear-value"), std::string::npos);
}

}  // namespace
}  // namespace umpteenth::umpd
