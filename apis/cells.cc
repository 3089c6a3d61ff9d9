#include "apis/cells.h"

#include <cstdio>

#include "apis/object.h"

namespace umpteenth::apis {

Column at(std::string name, std::string type, std::string description,
          std::vector<std::string> path, int priority) {
  return {std::move(name), std::move(type), std::move(description), priority,
          [path = std::move(path)](const json::Value& object, Time) -> json::Value {
            const json::Value* v = &object;
            for (const std::string& key : path)
              if (!(v = v->find(key))) return nullptr;
            if (v->is_array() || v->is_object()) return static_cast<int64_t>(v->size());
            return *v;
          }};
}

Column condition_column(std::string name, std::string type_of_condition) {
  return {std::move(name), "string", "Status of the condition " + type_of_condition + ".", 0,
          [type = std::move(type_of_condition)](const json::Value& object, Time) -> json::Value {
            const auto condition = find_condition(object, type);
            return condition ? json::Value(condition->status) : json::Value();
          }};
}

json::Value age_cell(const json::Value& object, Time now) {
  const json::Value& created = object.at_path({"metadata", "creationTimestamp"});
  if (!created.is_string()) return "<unknown>";
  return format_age(now - created_at(object));
}

Column age_column() { return {"Age", "date", "Time since it was created.", 0, age_cell}; }

std::string format_usd(double usd) {
  char text[32];
  std::snprintf(text, sizeof text, usd != 0 && usd < 0.01 ? "$%.4f" : "$%.2f", usd);
  return text;
}

}  // namespace umpteenth::apis
