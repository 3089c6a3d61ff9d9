#include "apis/selectors.h"

#include "tests/apis/objects.h"

namespace umpteenth::apis {
namespace {

const json::Value& labelled() {
  static const json::Value object = parse_yaml_one(
      "{metadata: {name: a, namespace: default, labels: {app: demo, tier: '', x.y/z: v}}, spec: "
      "{job: digest, n: 3, b: true}}");
  return object;
}

TEST(LabelSelector, matches_as_kubernetes_does) {
  const std::pair<const char*, bool> table[] = {
      {"", true},
      {"app=demo", true},
      {"app==demo", true},
      {"app=other", false},
      {"app!=demo", false},
      {"app!=other", true},
      {"none!=x", true},
      {"none=x", false},
      {"app", true},
      {"none", false},
      {"!app", false},
      {"!none", true},
      {"! none", true},
      {"app in (demo)", true},
      {"app in (a, demo ,b)", true},
      {"app in (a,b)", false},
      {"app notin (demo)", false},
      {"app notin (a)", true},
      {"none notin (a)", true},
      {"tier=", true},
      {"tier in (,a)", true},
      {"tier", true},
      {"x.y/z=v", true},
      {"app=demo,x.y/z=v", true},
      {"app=demo , x.y/z = w", false},
      {"app in (demo),!none,tier", true},
      {"in=x", false},
  };
  for (const auto& [text, expected] : table)
    EXPECT_EQ(LabelSelector(text).matches(labelled()), expected) << text;
  EXPECT_FALSE(LabelSelector("app").matches(json::Value::object()));
  EXPECT_TRUE(LabelSelector("").empty());
}

TEST(LabelSelector, refuses_what_it_cannot_read) {
  for (const char* text :
       {"a in b", "a in (b", "a in b)", "a in (b c)", "a b",    ",",     "a,",      ",a",
        "a,,b",   "=a",      "!",       "!!a",        "a==b=c", "a=b c", "a notin", "a in ((b))",
        "-a",     "a=-b",    "X.y/a=b", "(a)",        "a=(b)",  "a=!b"}) {
    const std::string said = complaint([&] { LabelSelector selector(text); });
    EXPECT_EQ(said.rfind("400: unable to parse requirement: ", 0), 0u) << text << ": " << said;
  }
  EXPECT_EQ(complaint([] { LabelSelector selector("a in b"); }),
            "400: unable to parse requirement: found 'b' expected: '('");
  EXPECT_NE(complaint([] { LabelSelector selector(std::string(20000, 'a')); }), "");
  std::string many = "a";
  for (int i = 0; i < 300; ++i) many += ",a";
  EXPECT_NE(complaint([&] { LabelSelector selector(many); }).find("too many"), std::string::npos);
}

TEST(FieldSelector, matches_and_knows_its_fields) {
  const std::vector<std::string> fields = {"spec.job", "spec.n", "spec.b"};
  const std::pair<const char*, bool> table[] = {
      {"", true},
      {"metadata.name=a", true},
      {"metadata.name==a", true},
      {"metadata.name!=a", false},
      {"metadata.name=b", false},
      {"metadata.namespace=default,spec.job=digest", true},
      {"metadata.namespace=default,spec.job=other", false},
      {"spec.n=3,spec.b=true", true},
      {"spec.job=", false},
      {"metadata.name=a\\,b", false},
  };
  for (const auto& [text, expected] : table)
    EXPECT_EQ(FieldSelector(text, fields).matches(labelled()), expected) << text;
  EXPECT_EQ(FieldSelector("metadata.name=a,spec.job!=x", fields).exact("metadata.name"), "a");
  EXPECT_EQ(FieldSelector("spec.job!=x", fields).exact("spec.job"), "");
  EXPECT_EQ(FieldSelector("metadata.name=x\\,y\\=z\\\\", {}).exact("metadata.name"), "x,y=z\\");
  EXPECT_EQ(complaint([&] { FieldSelector selector("spec.other=1", fields); }),
            "400: field label not supported: spec.other");
  EXPECT_EQ(complaint([&] { FieldSelector selector("metadata.name", fields); }),
            "400: invalid selector: \"metadata.name\"; can't understand \"metadata.name\"");
}

}  // namespace
}  // namespace umpteenth::apis
