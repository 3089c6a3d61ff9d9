// Small makers of table columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apis/kind.h"

namespace umpteenth::apis {

inline constexpr int kWide = 1;

// A cell that shows what is at the path; lists and objects show their size.
Column at(std::string name, std::string type, std::string description,
          std::vector<std::string> path, int priority = 0);
// The status of a condition: True, False, Unknown.
Column condition_column(std::string name, std::string type_of_condition);
// Where a kind wants AGE in another place than the last.
Column age_column();
json::Value age_cell(const json::Value& object, Time now);
// "$1.25", "$0.0042"
std::string format_usd(double usd);

inline const std::vector<std::string> kAllVerbs = {"create", "delete", "deletecollection", "get",
                                                   "list",   "patch",  "update",           "watch"};

}  // namespace umpteenth::apis
