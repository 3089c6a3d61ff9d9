#include "client/jsonpath.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace umpteenth::client {
namespace {

const char kDocument[] = R"({"items":[
  {"metadata":{"name":"a","labels":{"x.y/z":"1"}},"status":{"conditions":[{"type":"Ready","status":"True"}]},"n":1},
  {"metadata":{"name":"b"},"status":{"conditions":[{"type":"Ready","status":"False"}]},"n":20}],
  "kind":"List"})";

TEST(Jsonpath, prints_what_kubectl_prints) {
  const json::Value root = json::parse(kDocument);
  const std::pair<const char*, const char*> cases[] = {
      {"{.kind}", "List"},
      {"{$.kind}", "List"},
      {"kind={.kind}!", "kind=List!"},
      {"{.items[*].metadata.name}", "a b"},
      {"{.items[-1].metadata.name}", "b"},
      {"{.items[0:1].metadata.name}", "a"},
      {"{.items[0,1].n}", "1 20"},
      {"{.items[0].metadata.labels.x\\.y/z}", "1"},
      {"{.items[0].metadata.labels['x.y/z']}", "1"},
      {"{..name}", "a b"},
      {"{range .items[*]}{.metadata.name}{\"\\t\"}{.n}{\"\\n\"}{end}", "a\t1\nb\t20\n"},
      {"{.items[?(@.n>5)].metadata.name}", "b"},
      {"{.items[?(@.metadata.name==\"a\")].n}", "1"},
      {"{.items[0].status.conditions[?(@.type==\"Ready\")].status}", "True"},
      {"{.items[0].metadata}", R"({"name":"a","labels":{"x.y/z":"1"}})"},
      {"{.nothing.here}", ""},
      {"{.items[7].n}", ""},
      {"{.kind} {.items[0].n}", "List 1"},
      {"{@.kind}", "List"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(jsonpath(text, root), wanted) << text;
}

TEST(Jsonpath, says_where_a_template_is_wrong) {
  const json::Value root = json::parse(kDocument);
  for (const char* text : {"{.kind", "{.items[}", "{.items[x]}", "{range .items[*]}{.n}", "{end}",
                           "{.items[?(@.n>)]}", "{\"open}", "{!}", "{@!}", "{.n@\x01}"}) {
    try {
      jsonpath(text, root);
      FAIL() << text << " was accepted";
    } catch (const Error& e) {
      EXPECT_NE(e.message().find("at character"), std::string::npos) << text << ": " << e.message();
    }
  }
}

}  // namespace
}  // namespace umpteenth::client
