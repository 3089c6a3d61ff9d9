#include "cmd/umpctl/seal.h"

#include <gtest/gtest.h>

#include "apis/seal.h"
#include "apis/yaml.h"
#include "base/error.h"

namespace umpteenth::umpctl {
namespace {

const apis::Sealer& instance() {
  static const apis::Sealer sealer("instance-1", {std::string(32, 'k')});
  return sealer;
}

json::Value key() {
  return json::Value::object(
      {{"instance", instance().instance_id()}, {"publicKey", instance().public_key()}});
}

json::Value secret(const std::string& spec) {
  return apis::parse_yaml_one("{kind: Secret, metadata: {name: s, namespace: web}, spec: " + spec +
                              "}");
}

TEST(Seal, seals_every_value_for_its_own_place) {
  const json::Value made =
      sealed(secret("{stringData: {a: one, b: two}, sealedData: {c: kept}}"), key());
  EXPECT_EQ(made.get("spec").find("stringData"), nullptr);
  const json::Value& data = made.at_path({"spec", "sealedData"});
  EXPECT_EQ(instance().open({"web", "s", "a"}, data.get_string("a")), "one");
  EXPECT_EQ(instance().open({"web", "s", "b"}, data.get_string("b")), "two");
  EXPECT_EQ(data.get_string("c"), "kept");
  EXPECT_THROW(instance().open({"web", "s", "b"}, data.get_string("a")), Error);
  EXPECT_EQ(made.dump().find("two"), std::string::npos);
}

TEST(Seal, leaves_other_kinds_alone) {
  const json::Value job = apis::parse_yaml_one("{kind: Job, spec: {stringData: {a: b}}}");
  EXPECT_EQ(sealed(job, key()), job);
}

TEST(Seal, refuses_what_it_cannot_seal) {
  const auto refusal = [](const std::string& spec, const json::Value& with) -> std::string {
    try {
      sealed(secret(spec), with);
    } catch (const Error& e) {
      return e.message();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("{stringData: {a: 1}}", key()),
            "spec.stringData.a must be a string, it is integer (put it in quotes)");
  EXPECT_EQ(refusal("{stringData: [x]}", key()), "spec.stringData must be a mapping of strings");
  EXPECT_TRUE(
      refusal("{stringData: {a: b}}", json::Value::object()).starts_with("this is no sealing key"));
  EXPECT_NE(
      refusal("{stringData: {a: b}}", json::Value::object({{"instance", "x"}, {"publicKey", "!"}})),
      "accepted");
}

}  // namespace
}  // namespace umpteenth::umpctl
