// Label and field selectors, Kubernetes' grammar.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apis/kind.h"
#include "base/json.h"

namespace umpteenth::apis {

class LabelSelector {
 public:
  LabelSelector() = default;
  explicit LabelSelector(
      std::string_view text);  // Error(bad_request, "unable to parse requirement: …")
  bool empty() const { return requirements_.empty(); }
  bool matches(const json::Value& object) const;

 private:
  enum class Op { in, not_in, exists, not_exists };
  struct Requirement {
    std::string key;
    Op op;
    std::vector<std::string> values;
  };
  std::vector<Requirement> requirements_;
};

class FieldSelector {
 public:
  FieldSelector() = default;
  // Error(bad_request, "field label not supported: …"). kind null: any path (events).
  FieldSelector(std::string_view text, const std::vector<std::string>& supported);
  bool empty() const { return terms_.empty(); }
  bool matches(const json::Value& object) const;
  std::string exact(std::string_view path) const;  // the value demanded of that path by =, or ""

 private:
  struct Term {
    std::string path, value;
    bool equal;
  };
  std::vector<Term> terms_;
};

}  // namespace umpteenth::apis
