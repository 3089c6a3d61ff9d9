#include "apis/schema_builder.h"

namespace umpteenth::apis::schema {

Node::Node(std::string_view type, std::string_view description) : value_(json::Value::object()) {
  if (!type.empty()) value_.set("type", type);
  value_.set("description", description);
}

Node& Node::put(std::string_view key, json::Value value) {
  value_.set(key, std::move(value));
  return *this;
}

Node& Node::one_of(std::initializer_list<const char*> values) {
  json::Value list = json::Value::array();
  for (const char* v : values) list.push_back(v);
  return put("enum", std::move(list));
}

Node& Node::range(json::Value min, json::Value max) {
  put("minimum", std::move(min));
  return put("maximum", std::move(max));
}

Node& Node::unique_by(std::string_view key) {
  put("x-kubernetes-list-type", "map");
  return put("x-kubernetes-list-map-keys", json::Value::array({key}));
}

Node text(std::string_view description) { return {"string", description}; }
Node integer(std::string_view description) { return Node("integer", description).format("int64"); }
Node number(std::string_view description) { return {"number", description}; }
Node boolean(std::string_view description) { return {"boolean", description}; }
Node any(std::string_view description) { return Node("", description).nullable().open(); }

Node list(std::string_view description, Node item) {
  return Node("array", description).put("items", item.take());
}

Node map(std::string_view description, Node value) {
  return Node("object", description).put("additionalProperties", value.take());
}

Node object(std::string_view description, const Fields& fields) {
  Node node("object", description);
  json::Value properties = json::Value::object();
  json::Value required = json::Value::array();
  for (const auto& [name, field] : fields) {
    properties.set(name, field.value());
    if (field.is_required()) required.push_back(name);
  }
  node.put("properties", std::move(properties));
  if (!required.empty()) node.put("required", std::move(required));
  return node;
}

Node section(std::string_view description, const Fields& fields) {
  return object(description, fields).by_default(json::Value::object());
}

Node time(std::string_view description) { return text(description).format("date-time"); }

Node status(const Fields& fields) {
  Fields all = {
      {"observedGeneration", integer("The generation this status was made from.")},
      {"conditions",
       list("What is true of the object now.",
            object("One condition.",
                   {{"type", text("Kind of condition, CamelCase.").max_length(316).required()},
                    {"status",
                     text("Whether it holds.").one_of({"True", "False", "Unknown"}).required()},
                    {"observedGeneration", integer("The generation the condition is about.")},
                    {"lastTransitionTime", time("When status changed last.")},
                    {"reason", text("Why, in one CamelCase word.").max_length(1024)},
                    {"message", text("Why, for people.").max_length(32768)}}))
           .unique_by("type")}};
  all.insert(all.end(), fields.begin(), fields.end());
  return object("What is observed; written by umpd only.", all).open();
}

}  // namespace umpteenth::apis::schema
