#include "base/json.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace umpteenth::json {
namespace {

std::string refusal(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& e) {
    return e.message();
  }
  return "accepted";
}

TEST(Json, round_trips_and_keeps_order) {
  const std::string text = R"({"b":1,"a":[true,null,-2.5,"x\n"],"c":{}})";
  EXPECT_EQ(parse(text).dump(), text);
}

TEST(Json, equality_ignores_key_order_and_number_kind) {
  EXPECT_EQ(parse(R"({"a":1,"b":2})"), parse(R"({"b":2.0,"a":1})"));
  EXPECT_FALSE(parse(R"({"a":1})") == parse(R"({"a":"1"})"));
}

TEST(Json, refuses_duplicates_depth_tails_and_bad_text) {
  EXPECT_EQ(refusal(R"({"a":1,"a":2})"), "duplicate key \"a\"");
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += "\"k" + std::to_string(i) + "\":0,";
  EXPECT_EQ(refusal(many + "\"k3\":1}"), "duplicate key \"k3\"");
  EXPECT_EQ(refusal(std::string(65, '[') + std::string(65, ']')), "nested deeper than 64 levels");
  EXPECT_NE(refusal("{} x").find("at byte 3"), std::string::npos);
  EXPECT_NE(refusal("\"\xff\""), "accepted");
  EXPECT_NE(refusal(std::string("\"a\0b\"", 5)), "accepted");
  EXPECT_NE(refusal(""), "accepted");
  EXPECT_NE(refusal("{\"a\":NaN}"), "accepted");
}

TEST(Json, wrong_type_names_both_types) {
  try {
    parse("[]").as_string();
    FAIL() << "a string was read from an array";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "expected a string, found array");
  }
}

TEST(Json, absent_members_read_as_null) {
  const Value v = parse(R"({"spec":{"n":3}})");
  EXPECT_EQ(v.at_path({"spec", "n"}).as_int(), 3);
  EXPECT_TRUE(v.at_path({"spec", "x", "y"}).is_null());
  EXPECT_EQ(v.get("spec").get_int("x", 7), 7);
}

}  // namespace
}  // namespace umpteenth::json
