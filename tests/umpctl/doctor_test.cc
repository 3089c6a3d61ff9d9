#include "cmd/umpctl/doctor.h"

#include <gtest/gtest.h>

namespace umpteenth::umpctl {
namespace {

json::Value item(const char* title, const char* state, const char* found, const char* todo) {
  return json::Value::object(
      {{"id", "x"}, {"title", title}, {"state", state}, {"found", found}, {"todo", todo}});
}

json::Value report(std::initializer_list<json::Value> items) {
  return json::Value::object({{"items", json::Value::array(items)}});
}

TEST(Doctor, prints_an_item_a_paragraph_and_the_counts) {
  EXPECT_EQ(checklist_text(report({item("Doors are shut", "met", "both are", ""),
                                   item("Keys are kept", "not known", "who knows", "look"),
                                   item("Lights are off", "unmet", "one is on", "switch it off")})),
            "met        Doors are shut\n"
            "           both are\n"
            "not known  Keys are kept\n"
            "           who knows\n"
            "           -> look\n"
            "unmet      Lights are off\n"
            "           one is on\n"
            "           -> switch it off\n"
            "1 met, 1 unmet, 1 not known\n");
}

TEST(Doctor, only_what_is_unmet_fails) {
  EXPECT_TRUE(all_met(report({item("a", "met", "", ""), item("b", "not known", "", "")})));
  EXPECT_FALSE(all_met(report({item("a", "met", "", ""), item("b", "unmet", "", "")})));
}

}  // namespace
}  // namespace umpteenth::umpctl
