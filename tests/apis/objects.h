// Builders and shorthands for the tests of apis/.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apis/job.h"
#include "apis/lifecycle.h"
#include "apis/object.h"
#include "apis/yaml.h"
#include "base/error.h"

namespace umpteenth::apis {

inline const Time kNow = parse_time("2026-11-30T08:00:00Z");
inline constexpr char kUid[] = "11111111-2222-4333-8444-555555555555";

inline WriteOptions options(FieldValidation validation = FieldValidation::strict) {
  WriteOptions o;
  o.field_validation = validation;
  o.now = kNow;
  o.make_uid = [] { return std::string(kUid); };
  return o;
}

// {"name": …, "namespace": "default"} and the spec given as YAML.
inline json::Value an_object(const Kind& kind, const std::string& spec_yaml,
                             const std::string& name = "a") {
  return make_object(kind, kind.namespaced() ? "default" : "", name, parse_yaml_one(spec_yaml));
}

inline json::Value a_job(const std::string& spec_yaml = "instruction: do it") {
  return an_object(job_kind(), spec_yaml);
}

inline json::Value created(const Kind& kind, const json::Value& object) {
  return prepare_create(kind, object, options()).object;
}

// The causes of the Error(invalid) that f throws, one "field: message" each; other errors as
// "code: message"; empty where it throws nothing.
template <typename F>
std::vector<std::string> complaints(F f) {
  try {
    f();
    return {};
  } catch (const Error& e) {
    std::vector<std::string> all;
    for (const Cause& c : e.causes()) all.push_back(c.field + ": " + c.message);
    if (all.empty()) all.push_back(std::to_string(http_status(e.code())) + ": " + e.message());
    return all;
  }
}

template <typename F>
std::string complaint(F f) {
  std::string all;
  for (const std::string& c : complaints(f)) all += (all.empty() ? "" : "\n") + c;
  return all;
}

inline std::string create_complaint(const Kind& kind, const std::string& spec_yaml) {
  return complaint([&] { prepare_create(kind, an_object(kind, spec_yaml), options()); });
}

}  // namespace umpteenth::apis
