#include "apis/seal.h"

#include "apis/secret.h"
#include "base/crypto.h"
#include "tests/apis/objects.h"

namespace umpteenth::apis {
namespace {

const std::string kKey(32, 'k');
const SealedEntry kWhere{"default", "github", "token"};

Sealer a_sealer() { return Sealer("instance-1", {kKey}); }

TEST(Seal, what_is_sealed_opens_and_never_looks_the_same) {
  const Sealer sealer = a_sealer();
  for (const std::string& value :
       {std::string(), std::string("x"), std::string("a\0b", 3), std::string(64U << 10, 'v')}) {
    const std::string a = sealer.seal(kWhere, value), b = sealer.seal(kWhere, value);
    EXPECT_NE(a, b);
    EXPECT_EQ(a.rfind("v1.", 0), 0u);
    EXPECT_EQ(sealer.open(kWhere, a), value);
    EXPECT_TRUE(sealer.is_current(a));
    const std::string offline =
        Sealer::seal_offline(sealer.public_key(), "instance-1", kWhere, value);
    EXPECT_EQ(sealer.open(kWhere, offline), value);
    EXPECT_FALSE(sealer.is_current(offline));
  }
}

// Made by an independent program (Python's cryptography) from the format that seal.h describes:
// what an older umpd sealed must open for ever.
TEST(Seal, test_vectors) {
  const Sealer sealer = a_sealer();
  EXPECT_EQ(sealer.public_key(), "yS35TTHbVDhB8Q6p7uAQYt-MA8RMIGYaM8h84qtBPW8");
  EXPECT_EQ(sealer.open(kWhere,
                        "v1.1a90c9ea.czEAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eH2RlZmdoaWprbG1ubx"
                        "1VDs6_S-nkkO4VKyurYl4adApaZf1Jmki2KA0"),
            "s3cret-value");
  EXPECT_EQ(sealer.open(kWhere,
                        "v1.1a90c9ea.eDEHo3y8FCCTyLdV3BsQ6Gy0JjdK0WqoU-0L38CyuG0cfGRlZmdoaWprbG1ub8"
                        "rXo5uhg6IfLu-DZzjnZ_IQXW8UvYaIP0HzUK8"),
            "s3cret-value");
  EXPECT_EQ(sealer.fingerprint(kWhere, "s3cret-value"), "9d425626");
}

TEST(Seal, cannot_be_moved) {
  const Sealer sealer = a_sealer();
  for (const std::string& sealed :
       {sealer.seal(kWhere, "value"),
        Sealer::seal_offline(sealer.public_key(), "instance-1", kWhere, "value")}) {
    for (const SealedEntry& other :
         {SealedEntry{"default", "github", "other"}, SealedEntry{"default", "gitlab", "token"},
          SealedEntry{"web", "github", "token"}, SealedEntry{"defaultgithub", "", "token"},
          SealedEntry{"default", "githubtoken", ""}})
      EXPECT_NE(complaint([&] { sealer.open(other, sealed); })
                    .find("cannot be opened: it was sealed for another entry, secret, workspace or "
                          "instance, or was changed"),
                std::string::npos);
    const Sealer other_instance("instance-2", {kKey});
    EXPECT_NE(complaint([&] { other_instance.open(kWhere, sealed); }), "");
    const Sealer other_key("instance-1", {std::string(32, 'z')});
    EXPECT_NE(complaint([&] {
                other_key.open(kWhere, sealed);
              }).find("which this instance does not have"),
              std::string::npos);
  }
}

TEST(Seal, any_changed_byte_is_noticed) {
  const Sealer sealer = a_sealer();
  const std::string sealed = sealer.seal(kWhere, "value");
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    // The last character of base64url may carry bits that do not count.
    if (i + 1 == sealed.size()) continue;
    EXPECT_THROW(sealer.open(kWhere, changed), Error) << i;
  }
  for (size_t n = 0; n < sealed.size() - 1; ++n)
    EXPECT_THROW(sealer.open(kWhere, sealed.substr(0, n)), Error) << n;
  for (const char* odd : {"", "x", "v2.a.b", "v1.", "v1..", "v1.aaaaaaaa.!!", "v1.aaaaaaaa.AAAA"})
    EXPECT_THROW(sealer.open(kWhere, odd), Error) << odd;
}

TEST(Seal, several_keys_open_and_the_newest_seals) {
  const std::string old_key(32, 'o');
  const Sealer before("instance-1", {old_key});
  const Sealer after("instance-1", {kKey, old_key});
  const std::string sealed = before.seal(kWhere, "value");
  EXPECT_EQ(after.open(kWhere, sealed), "value");
  EXPECT_FALSE(after.is_current(sealed));
  EXPECT_TRUE(after.is_current(after.seal(kWhere, "value")));
  EXPECT_EQ(
      after.open(kWhere, Sealer::seal_offline(before.public_key(), "instance-1", kWhere, "v")),
      "v");
  EXPECT_THROW(before.open(kWhere, after.seal(kWhere, "value")), Error);
}

TEST(Seal, keys_and_public_keys_are_checked) {
  EXPECT_EQ(complaint([] { Sealer sealer("i", {}); }), "422: app.encryption_key is required");
  EXPECT_EQ(complaint([] { Sealer sealer("i", {"short"}); }),
            "422: app.encryption_key must be at least 16 bytes");
  EXPECT_THROW(Sealer::seal_offline("AAAA", "i", kWhere, "v"), Error);
  EXPECT_THROW(Sealer::seal_offline("not base64!", "i", kWhere, "v"), Error);
}

TEST(Seal, fingerprints_change_with_value_place_and_instance) {
  const Sealer sealer = a_sealer();
  const std::string print = sealer.fingerprint(kWhere, "value");
  EXPECT_EQ(print.size(), 8u);
  EXPECT_EQ(sealer.fingerprint(kWhere, "value"), print);
  EXPECT_NE(sealer.fingerprint(kWhere, "other"), print);
  EXPECT_NE(sealer.fingerprint({"default", "github", "b"}, "value"), print);
  EXPECT_NE(Sealer("instance-2", {kKey}).fingerprint(kWhere, "value"), print);
  EXPECT_NE(crypto::hex(crypto::sha256("value")).substr(0, 8), print);
}

// --- admission --------------------------------------------------------------------------------

json::Value a_secret(const std::string& spec_yaml) {
  return an_object(secret_kind(), spec_yaml, "github");
}

json::Value admitted(json::Value object, const json::Value* old = nullptr) {
  admit_secret(a_sealer(), object, old);
  return object;
}

TEST(AdmitSecret, seals_and_leaves_no_clear_value) {
  json::Value secret = a_secret("stringData: {token: s3cret-value, user: me}");
  secret["metadata"]["annotations"].set(kLastApplied, secret.dump());
  const json::Value made = created(secret_kind(), admitted(secret));
  EXPECT_EQ(made.dump().find("s3cret-value"), std::string::npos);
  EXPECT_EQ(made.get("spec").find("stringData"), nullptr);
  EXPECT_EQ(secret_value(a_sealer(), made, "token"), "s3cret-value");
  EXPECT_EQ(made.at_path({"status", "fingerprints", "token"}).as_string().size(), 8u);
  const json::Value applied = json::parse(annotation_of(made, kLastApplied));
  EXPECT_EQ(applied.at_path({"spec", "stringData"}).dump(),
            R"({"token":"sealed","user":"sealed"})");
}

TEST(AdmitSecret, applying_the_same_again_is_no_change) {
  json::Value secret = a_secret("stringData: {token: s3cret-value}");
  const std::string applied = secret.dump();
  secret["metadata"]["annotations"].set(kLastApplied, applied);
  const json::Value old = created(secret_kind(), admitted(secret));
  json::Value again = old;
  again["metadata"]["annotations"].set(kLastApplied, applied);
  again["spec"].set("stringData", parse_yaml_one("{token: s3cret-value}"));
  EXPECT_EQ(prepare_update(secret_kind(), old, admitted(again, &old), options()).object, old);
  again["spec"].set("stringData", parse_yaml_one("{token: another-value}"));
  const json::Value changed =
      prepare_update(secret_kind(), old, admitted(again, &old), options()).object;
  EXPECT_EQ(generation_of(changed), 2);
  EXPECT_NE(changed.at_path({"status", "fingerprints"}), old.at_path({"status", "fingerprints"}));
}

TEST(AdmitSecret, the_annotation_keeps_no_field_that_does_not_exist) {
  json::Value secret = a_secret("stringData: {token: s3cret-value}");
  json::Value applied = secret;
  applied.set("stringData", parse_yaml_one("{x: other-clear}"));
  applied["spec"].set("data", parse_yaml_one("{x: other-clear}"));
  applied["metadata"]["annotations"].set(kLastApplied, "{\"x\": \"other-clear s3cret-value\"}");
  secret["metadata"]["annotations"].set(kLastApplied, applied.dump());
  const std::string made = admitted(secret).dump();
  EXPECT_EQ(made.find("other-clear"), std::string::npos);
  EXPECT_EQ(made.find("s3cret-value"), std::string::npos);
}

TEST(AdmitSecret, a_key_that_is_no_longer_applied_goes) {
  json::Value secret = a_secret("stringData: {a: value-a, b: value-b}");
  secret["metadata"]["annotations"].set(kLastApplied, secret.dump());
  const json::Value old = created(secret_kind(), admitted(secret));
  json::Value patched = old;  // as kubectl's patch leaves it: live has no stringData to delete from
  json::Value applied = a_secret("stringData: {a: value-a}");
  patched["metadata"]["annotations"].set(kLastApplied, applied.dump());
  patched["spec"].set("stringData", parse_yaml_one("{a: value-a}"));
  const json::Value made = admitted(patched, &old);
  EXPECT_NE(made.at_path({"spec", "sealedData", "a"}), json::Value());
  EXPECT_EQ(made.at_path({"spec", "sealedData", "b"}), json::Value());
}

TEST(AdmitSecret, a_replacement_keeps_only_what_it_names) {
  const json::Value old = created(secret_kind(), admitted(a_secret("stringData: {a: 1x, b: 2x}")));
  const json::Value made = admitted(a_secret("stringData: {a: 1x}"), &old);
  EXPECT_EQ(made.at_path({"spec", "sealedData"}).size(), 1u);
  EXPECT_EQ(made.at_path({"spec", "sealedData", "a"}), old.at_path({"spec", "sealedData", "a"}));
}

TEST(AdmitSecret, what_was_sealed_offline_gets_the_resting_form) {
  const Sealer sealer = a_sealer();
  json::Value secret = a_secret("{}");
  secret["spec"]["sealedData"].set(
      "token", Sealer::seal_offline(sealer.public_key(), "instance-1", kWhere, "value"));
  const json::Value made = admitted(secret);
  const std::string kept = made.at_path({"spec", "sealedData", "token"}).as_string();
  EXPECT_TRUE(sealer.is_current(kept));
  EXPECT_EQ(sealer.open(kWhere, kept), "value");
  secret["spec"]["sealedData"].set("other", secret.at_path({"spec", "sealedData", "token"}));
  EXPECT_NE(complaint([&] { admitted(secret); }).find("spec.sealedData.other: Invalid value"),
            std::string::npos);
}

TEST(AdmitSecret, refusals_name_the_field_and_never_the_value) {
  const std::pair<const char*, const char*> table[] = {
      {"stringData: [clear-value]",
       "spec.stringData: Invalid value: \"array\": must be an object of strings"},
      {"stringData: {'a b': clear-value}", "spec.stringData: Invalid value: \"a b\": a key is"},
      {"stringData: {a: [clear-value]}",
       "spec.stringData.a: Invalid value: \"array\": must be a string"},
      {"sealedData: {a: clear-value}",
       "spec.sealedData.a: Invalid value: secret default/github, entry \"a\": not a sealed value"},
  };
  for (const auto& [yaml, part] : table) {
    const std::string said = complaint([&] { admitted(a_secret(yaml)); });
    EXPECT_NE(said.find(part), std::string::npos) << yaml << "\n" << said;
    EXPECT_EQ(said.find("clear-value"), std::string::npos);
  }
  json::Value big = a_secret("{}");
  big["spec"]["stringData"].set("a", std::string(65537, 'x'));
  EXPECT_EQ(complaint([&] { admitted(big); }),
            "spec.stringData.a: Too long: may not be more than 65536 bytes");
  json::Value nameless = a_secret("stringData: {a: b}");
  nameless["metadata"] = parse_yaml_one("{namespace: default, generateName: x-}");
  EXPECT_NE(complaint([&] { admitted(nameless); }).find("generateName is not accepted"),
            std::string::npos);
}

TEST(AdmitSecret, a_copy_of_the_value_in_labels_or_annotations_is_refused) {
  for (const char* where : {"labels", "annotations"}) {
    json::Value secret = a_secret("stringData: {token: s3cret, pin: '12345'}");
    secret["metadata"][where].set("note", "my s3cret here");
    const std::string said = complaint([&] { admitted(secret); });
    EXPECT_EQ(said, std::string("metadata.") + where +
                        ": Forbidden: \"note\" contains the clear value of entry \"token\"");
    secret["metadata"][where].set("note", "12345");  // five characters: in every other text
    EXPECT_EQ(complaint([&] { admitted(secret); }), "");
  }
  json::Value secret = a_secret("{}");
  secret["spec"]["stringData"].set("token", "line\nbreak\"quote");
  secret["metadata"]["annotations"].set("note", secret.get("spec").dump());
  EXPECT_NE(complaint([&] { admitted(secret); }).find("Forbidden"), std::string::npos);
  secret["metadata"]["annotations"] = json::Value::object({{kLastApplied, "{not json"}});
  EXPECT_NE(complaint([&] { admitted(secret); }).find("must be JSON"), std::string::npos);
}

TEST(SecretValue, the_key_may_be_left_out) {
  const Sealer sealer = a_sealer();
  const json::Value one = admitted(a_secret("stringData: {password: p}"));
  const json::Value several = admitted(a_secret("stringData: {username: u, password: p}"));
  const json::Value with_value = admitted(a_secret("stringData: {value: v, password: p}"));
  EXPECT_EQ(secret_value(sealer, one, ""), "p");
  EXPECT_EQ(secret_value(sealer, with_value, ""), "v");
  EXPECT_EQ(secret_value(sealer, several, "username"), "u");
  EXPECT_EQ(complaint([&] { secret_value(sealer, several, ""); }),
            "422: secret default/github has several keys, name one of them: username, password");
  EXPECT_EQ(complaint([&] { secret_value(sealer, several, "x"); }),
            "422: secret default/github has no key \"x\", its keys are: username, password");
  EXPECT_EQ(complaint([&] { secret_value(sealer, a_secret("{}"), ""); }),
            "422: secret default/github has no values");
}

}  // namespace
}  // namespace umpteenth::apis
