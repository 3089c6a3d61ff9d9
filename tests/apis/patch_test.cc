#include "apis/patch.h"

#include <chrono>

#include "tests/apis/objects.h"

namespace umpteenth::apis {
namespace {

TEST(MergePatch, the_examples_of_rfc_7386) {
  const char* table[][3] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", R"({})"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", R"(null)", R"(null)"},
      {R"({"a":"foo"})", R"("bar")", R"("bar")"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {R"([1,2])", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {R"({})", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
  };
  for (const auto& [target, patch, result] : table) {
    json::Value v = json::parse(target);
    merge_patch(v, json::parse(patch));
    EXPECT_EQ(v.dump(), result) << target << " " << patch;
  }
}

TEST(MergePatch, wide_objects_take_no_quadratic_time) {
  json::Value target = json::Value::object(), patch = json::Value::object();
  for (int i = 0; i < 20'000; ++i) {
    target.members().push_back({"k" + std::to_string(i), i});
    patch.members().push_back({"k" + std::to_string(39'999 - i), nullptr});
  }
  const auto begin = std::chrono::steady_clock::now();
  merge_patch(target, patch);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  EXPECT_EQ(target.size(), 20'000u);
  for (json::Member& m : patch.members())
    m.key = "k" + std::to_string(39'999 - std::stoi(m.key.substr(1)));
  merge_patch(target, patch);
  EXPECT_EQ(target.size(), 0u);
}

TEST(JsonPatch, operations) {
  const char* table[][3] = {
      {R"({"a":1})", R"([{"op":"add","path":"/b","value":2}])", R"({"a":1,"b":2})"},
      {R"({"a":1})", R"([{"op":"add","path":"/a","value":2}])", R"({"a":2})"},
      {R"({"a":[1,3]})", R"([{"op":"add","path":"/a/1","value":2}])", R"({"a":[1,2,3]})"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/-","value":2}])", R"({"a":[1,2]})"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/1","value":2}])", R"({"a":[1,2]})"},
      {R"({"a":1})", R"([{"op":"add","path":"","value":[9]}])", R"([9])"},
      {R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])", R"({"b":2})"},
      {R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/1"}])", R"({"a":[1,3]})"},
      {R"({"a":1})", R"([{"op":"replace","path":"/a","value":{"x":1}}])", R"({"a":{"x":1}})"},
      {R"({"a":1})", R"([{"op":"copy","from":"/a","path":"/b"}])", R"({"a":1,"b":1})"},
      {R"({"a":{"x":1}})", R"([{"op":"move","from":"/a/x","path":"/b"}])", R"({"a":{},"b":1})"},
      {R"({"a/b":{"m~n":1}})", R"([{"op":"replace","path":"/a~1b/m~0n","value":2}])",
       R"({"a/b":{"m~n":2}})"},
      {R"({"a":1})", R"([{"op":"test","path":"/a","value":1.0},{"op":"remove","path":"/a"}])",
       R"({})"},
      {R"({"a":{"b":1,"c":2}})", R"([{"op":"test","path":"/a","value":{"c":2,"b":1}}])",
       R"({"a":{"b":1,"c":2}})"},
      {R"({"":1})", R"([{"op":"replace","path":"/","value":2}])", R"({"":2})"},
  };
  for (const auto& [target, patch, result] : table) {
    json::Value v = json::parse(target);
    ASSERT_NO_THROW(json_patch(v, json::parse(patch))) << patch;
    EXPECT_EQ(v.dump(), result) << patch;
  }
}

TEST(JsonPatch, a_refusal_names_the_operation_and_leaves_the_target) {
  const std::pair<const char*, const char*> table[] = {
      {R"([{"op":"test","path":"/a","value":2}])",
       "422: JSON patch operation 0: test failed: the value at \"/a\" is another"},
      {R"([{"op":"add","path":"/x","value":1},{"op":"remove","path":"/none"}])",
       "operation 1: there is no \"none\""},
      {R"([{"op":"replace","path":"/none","value":1}])", "there is no \"none\""},
      {R"([{"op":"add","path":"/none/x","value":1}])", "there is no \"none\""},
      {R"([{"op":"add","path":"/a/x","value":1}])", "cannot add to integer"},
      {R"([{"op":"add","path":"/l/3","value":1}])",
       "array index 3 is out of bounds, the array has 2 items"},
      {R"([{"op":"remove","path":"/l/-"}])", "is not an array index"},
      {R"([{"op":"remove","path":"/l/01"}])", "\"01\" is not an array index"},
      {R"([{"op":"remove","path":"/l/-1"}])", "is not an array index"},
      {R"([{"op":"remove","path":""}])", "the whole document cannot be removed"},
      {R"([{"op":"add","path":"/x"}])", "value: is required"},
      {R"([{"op":"add","value":1}])", "path: a string is required"},
      {R"([{"op":"copy","path":"/x"}])", "from: a string is required"},
      {R"([{"path":"/x"}])", "op: a string is required"},
      {R"([{"op":"turn","path":"/x"}])", "unknown op \"turn\""},
      {R"([{"op":"add","path":"x","value":1}])", "must begin with /"},
      {R"([{"op":"add","path":"/~2","value":1}])", "has a stray ~"},
      {R"([{"op":"move","from":"/o","path":"/o/in"}])", "a value cannot be moved into itself"},
      {R"([5])", "operation 0: is integer, not an object"},
      {R"({"op":"add"})", "400: a JSON patch must be an array of operations, found object"},
  };
  for (const auto& [patch, part] : table) {
    json::Value v = json::parse(R"({"a":1,"l":[1,2],"o":{}})");
    const std::string said = complaint([&] { json_patch(v, json::parse(patch)); });
    EXPECT_NE(said.find(part), std::string::npos) << patch << "\n" << said;
    EXPECT_EQ(v.dump(), R"({"a":1,"l":[1,2],"o":{}})") << patch;
  }
}

TEST(JsonPatch, cannot_grow_without_end) {
  json::Value v = json::parse(R"({"a":["0123456789"]})");
  json::Value doubling = json::Value::array();
  for (int i = 0; i < 60; ++i)
    doubling.push_back(json::parse(R"({"op":"copy","from":"/a","path":"/a/-"})"));
  const std::string said = complaint([&] { json_patch(v, doubling); });
  EXPECT_TRUE(said.find("would add more than") != std::string::npos ||
              said.find("nested deeper than 64") != std::string::npos)
      << said;
  json::Value wide = json::parse(R"({"s":"x","o":{}})");
  wide.set("s", std::string(1U << 20, 'x'));
  json::Value copies = json::Value::array();
  for (int i = 0; i < 100; ++i)
    copies.push_back(
        json::Value::object({{"op", "copy"}, {"from", "/s"}, {"path", "/o/" + std::to_string(i)}}));
  EXPECT_NE(complaint([&] { json_patch(wide, copies); }).find("would add more than 16777216 bytes"),
            std::string::npos);
  json::Value many = json::Value::array();
  for (int i = 0; i < 10'001; ++i)
    many.push_back(json::parse(R"({"op":"test","path":"/a","value":1})"));
  EXPECT_EQ(complaint([&] { json_patch(v, many); }),
            "413: a JSON patch of 10001 operations: limit is 10000");
}

}  // namespace
}  // namespace umpteenth::apis
