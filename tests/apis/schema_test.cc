#include "apis/schema.h"

#include <gtest/gtest.h>

#include <functional>

#include "apis/lifecycle.h"
#include "apis/schema_builder.h"
#include "apis/serve.h"
#include "apis/yaml.h"

namespace umpteenth::apis {
namespace {

using namespace schema;

std::string first(const json::Value& schema, const std::string& yaml) {
  std::vector<Cause> causes;
  validate(schema, parse_yaml_one(yaml), "spec", causes);
  return causes.empty() ? "" : causes[0].reason + " " + causes[0].field + ": " + causes[0].message;
}

TEST(Schema, says_what_is_wrong_in_kubernetes_words) {
  const json::Value s =
      object("",
             {{"name", text("").min_length(2).max_length(4).pattern("^[a-zé]+$").required()},
              {"n", integer("").range(1, 9)},
              {"x", number("").range(0.5, 2)},
              {"b", boolean("")},
              {"e", text("").one_of({"A", "B"})},
              {"l", list("", text("").max_length(3)).min_items(1).max_items(2)},
              {"set", list("", text("")).unique()},
              {"keyed", list("", object("", {{"k", text("")}, {"v", text("")}})).unique_by("k")},
              {"m", map("", integer("")).max_properties(2)},
              {"cidr", text("").format("cidr")},
              {"free", any("")}})
          .take();
  const std::pair<const char*, const char*> table[] = {
      {"name: ab", ""},
      {"name: éééé", ""},  // characters count, not bytes
      {"n: 1", "FieldValueRequired spec.name: Required value"},
      {"name: 5",
       "FieldValueTypeInvalid spec.name: Invalid value: \"integer\": spec.name in body must be of "
       "type string: \"integer\""},
      {"name: a",
       "FieldValueInvalid spec.name: Invalid value: \"a\": spec.name in body should be at least 2 "
       "chars long"},
      {"name: abcde", "FieldValueTooLong spec.name: Too long: may not be more than 4 characters"},
      {"name: aB",
       "FieldValueInvalid spec.name: Invalid value: \"aB\": spec.name in body should match "
       "'^[a-zé]+$'"},
      {"{name: ab, n: 0}",
       "FieldValueInvalid spec.n: Invalid value: 0: spec.n in body should be greater than or equal "
       "to 1"},
      {"{name: ab, n: 10}",
       "FieldValueInvalid spec.n: Invalid value: 10: spec.n in body should be less than or equal "
       "to "
       "9"},
      {"{name: ab, n: 1.5}",
       "FieldValueTypeInvalid spec.n: Invalid value: \"number\": spec.n in body must be of type "
       "integer: \"number\""},
      {"{name: ab, n: 2.0}", ""},
      {"{name: ab, n: 1e300}",
       "FieldValueTypeInvalid spec.n: Invalid value: \"number\": spec.n in body must be of type "
       "integer: \"number\""},
      {"{name: ab, x: 0.1}",
       "FieldValueInvalid spec.x: Invalid value: 0.1: spec.x in body should be greater than or "
       "equal to 0.5"},
      {"{name: ab, b: yes}",
       "FieldValueTypeInvalid spec.b: Invalid value: \"string\": spec.b in body must be of type "
       "boolean: \"string\""},
      {"{name: ab, e: C}",
       "FieldValueNotSupported spec.e: Unsupported value: \"C\": supported values: \"A\", \"B\""},
      {"{name: ab, l: []}",
       "FieldValueInvalid spec.l: Invalid value: 0: spec.l in body should have at least 1 items"},
      {"{name: ab, l: [a, b, c]}",
       "FieldValueTooMany spec.l: Too many: 3: must have at most 2 items"},
      {"{name: ab, l: [a, bcde]}",
       "FieldValueTooLong spec.l[1]: Too long: may not be more than 3 characters"},
      {"{name: ab, set: [a, b, a]}", "FieldValueDuplicate spec.set[2]: Duplicate value: \"a\""},
      {"{name: ab, keyed: [{k: a, v: x}, {k: a, v: y}]}",
       "FieldValueDuplicate spec.keyed[1]: Duplicate value: {\"k\":\"a\"}"},
      {"{name: ab, m: {a: x}}",
       "FieldValueTypeInvalid spec.m.a: Invalid value: \"string\": spec.m.a in body must be of "
       "type "
       "integer: \"string\""},
      {"{name: ab, m: {a.b/c: x}}",
       "FieldValueTypeInvalid spec.m[a.b/c]: Invalid value: \"string\": spec.m[a.b/c] in body must "
       "be of type integer: \"string\""},
      {"{name: ab, m: {a: 1, b: 2, c: 3}}",
       "FieldValueTooMany spec.m: Too many: 3: must have at most 2 items"},
      {"{name: ab, cidr: 10.0.0.1/8}",
       "FieldValueInvalid spec.cidr: Invalid value: \"10.0.0.1/8\": spec.cidr in body must be a "
       "CIDR range such as 10.0.0.0/8, host bits zero"},
      {"{name: ab, free: null}", ""},
      {"{name: ab, free: [1, {a: b}]}", ""},
      {"[]",
       "FieldValueTypeInvalid spec: Invalid value: \"array\": spec in body must be of type object: "
       "\"array\""},
  };
  for (const auto& [yaml, message] : table) EXPECT_EQ(first(s, yaml), message) << yaml;
}

TEST(Schema, a_long_value_is_quoted_in_part_and_a_long_list_of_errors_ends) {
  const json::Value s = list("", text("").one_of({"A"})).take();
  std::vector<Cause> causes;
  json::Value many = json::Value::array();
  for (int i = 0; i < 5000; ++i) many.push_back(std::string(500, 'x'));
  validate(s, many, "spec", causes);
  EXPECT_EQ(causes.size(), 100u);
  EXPECT_LT(causes[0].message.size(), 200u);
}

TEST(Schema, a_very_long_text_never_meets_the_regular_expression) {
  const json::Value s = text("").pattern("^(a|b)*$").take();
  std::vector<Cause> causes;
  validate(s, std::string(1U << 20, 'a'), "spec", causes);
  EXPECT_EQ(causes.size(), 1u);
}

TEST(Schema, defaults_go_deep_and_nulls_mean_not_given) {
  const json::Value s =
      object("", {{"a", section("", {{"b", integer("").by_default(7)}})},
                  {"c", object("", {{"d", text("").by_default("x")}})},
                  {"l", list("", object("", {{"e", boolean("").by_default(true)}}))},
                  {"m", map("", object("", {{"f", integer("").by_default(1)}}))},
                  {"n", any("")}})
          .take();
  const auto with_defaults = [&](const char* yaml) {
    json::Value v = parse_yaml_one(yaml);
    apply_defaults(s, v);
    return v.dump();
  };
  EXPECT_EQ(with_defaults("{}"), R"({"a":{"b":7}})");
  EXPECT_EQ(with_defaults("{a: null, c: null, n: null}"), R"({"n":null,"a":{"b":7}})");
  EXPECT_EQ(with_defaults("{a: {b: 1}, c: {}}"), R"({"a":{"b":1},"c":{"d":"x"}})");
  EXPECT_EQ(with_defaults("{a: {b: null}, l: [{}, {e: false}], m: {k: {}}}"),
            R"({"a":{"b":7},"l":[{"e":true},{"e":false}],"m":{"k":{"f":1}}})");
}

TEST(Schema, unknown_fields_are_removed_and_named) {
  const json::Value s = object("", {{"a", object("", {{"b", integer("")}})},
                                    {"l", list("", object("", {{"c", integer("")}}))},
                                    {"free", any("")},
                                    {"open", object("", {{"known", object("", {})}}).open()},
                                    {"m", map("", object("", {{"d", integer("")}}))}})
                            .take();
  json::Value v = parse_yaml_one(R"({a: {b: 1, x: 2}, l: [{c: 1}, {y: {z: 1}}], free: {any: [1]},
    open: {more: 1, known: {w: 1}}, m: {k: {d: 1, v: 2}}, "odd/name": 1})");
  EXPECT_EQ(prune_unknown(s, v, "spec"),
            (std::vector<std::string>{"spec.a.x", "spec.l[1].y", "spec.open.known.w", "spec.m.k.v",
                                      "spec[odd/name]"}));
  EXPECT_EQ(v.dump(),
            R"({"a":{"b":1},"l":[{"c":1},{}],"free":{"any":[1]},"open":{"more":1,"known":{}},)"
            R"("m":{"k":{"d":1}}})");
}

// What every schema of ours must be like.
TEST(Schema, every_kind_is_described_and_bounded) {
  std::vector<std::string> odd;
  const std::function<void(const json::Value&, const std::string&, bool)> walk =
      [&](const json::Value& node, const std::string& path, bool from_people) {
        if (node.get_string("description").empty()) odd.push_back(path + ": no description");
        if (node.find("pattern") && !node.find("maxLength"))
          odd.push_back(path + ": a pattern without maxLength");
        if (from_people && node.get_string("type") == "string" && !node.find("maxLength") &&
            !node.find("enum") && node.get_string("format") != "date-time")
          odd.push_back(path + ": a string without maxLength");
        if (const json::Value* otherwise = node.find("default")) {
          json::Value made = *otherwise;
          apply_defaults(node, made);
          std::vector<Cause> causes;
          validate(node, made, path, causes);
          for (const Cause& c : causes) odd.push_back("default of " + c.field + ": " + c.message);
        }
        if (const json::Value* properties = node.find("properties"))
          for (const json::Member& m : properties->members())
            walk(m.value, path + "." + m.key, from_people);
        for (const char* sub : {"items", "additionalProperties"})
          if (node.get(sub).is_object()) walk(node.get(sub), path + "." + sub, from_people);
      };
  for (const Kind* k : kinds()) {
    walk(k->spec_schema, k->kind + ".spec", true);
    walk(k->status_schema, k->kind + ".status", false);
    EXPECT_FALSE(k->description.empty());
  }
  EXPECT_EQ(odd, std::vector<std::string>());
}

}  // namespace
}  // namespace umpteenth::apis
