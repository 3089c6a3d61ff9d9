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

TEST(Json, refuses_half_of_a_surrogate_pair_which_nobody_could_read_back) {
  EXPECT_EQ(parse(R"("\ud83d\ude00")").as_string(), "\xF0\x9F\x98\x80");
  for (const char* half : {R"("\ud83d")", R"("\ude00")", R"("x\udfffy")", R"({"\udc00":1})"})
    EXPECT_THROW(parse(half), Error) << half;
  EXPECT_EQ(parse("\"\xED\x9F\xBF\"").as_string(), "\xED\x9F\xBF") << "the last before them";
}

TEST(Json, numbers_are_exact_and_have_an_end) {
  EXPECT_EQ(parse("9223372036854775807").as_int(), INT64_MAX);
  EXPECT_EQ(parse("-9223372036854775808").as_int(), INT64_MIN);
  EXPECT_FALSE(parse("9223372036854775808").is_int());
  EXPECT_EQ(parse("0e060").as_double(), 0);
  EXPECT_EQ(parse("-0").as_int(), 0);
  EXPECT_EQ(parse("0.1").as_double(), 0.1);
  EXPECT_EQ(parse("1e-999").as_double(), 0);
  EXPECT_THROW(parse("1e999"), Error);
  EXPECT_THROW(parse("-1e999"), Error);
  EXPECT_THROW(parse("01"), Error);
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
