// A resource kind as data: the one source of validation, defaults, discovery, explain, columns.
// Adding a kind: one definition (a function in its file returning Kind) and one struct.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

namespace umpteenth::apis {

inline constexpr char kGroup[] = "umpteenth.dev";
inline constexpr char kVersion[] = "v1alpha1";
inline constexpr char kGroupVersion[] = "umpteenth.dev/v1alpha1";
inline constexpr char kSystemWorkspace[] = "umpteenth-system";
inline constexpr char kDefaultWorkspace[] = "default";

enum class Scope { cluster, workspace };
enum class Storage { git, database };

struct Column {
  std::string name;  // as served: "Schedule"; kubectl upper-cases
  std::string type;  // string | integer | number | boolean | date
  std::string description;
  int priority = 0;                                                      // > 0: only with -o wide
  std::function<json::Value(const json::Value& object, Time now)> cell;  // null prints empty
};

struct Kind {
  std::string kind, plural, singular;
  std::vector<std::string> short_names, categories;
  Scope scope = Scope::workspace;
  Storage storage = Storage::git;
  json::Value spec_schema;  // OpenAPI v3, with description, default, enum, limits, required
  json::Value status_schema;
  json::Value other_schema;     // Event only: members of the object beside spec and status
  std::vector<Column> columns;  // NAME comes first and AGE last by themselves
  size_t max_name = 253;
  std::vector<std::string>
      field_selectors;  // besides metadata.name and metadata.namespace: "spec.job"
  // Rules that a schema cannot say; old is null on create. Appends causes with full paths.
  std::function<void(const json::Value& object, const json::Value* old, std::vector<Cause>&)> check;
  std::vector<std::string> verbs;  // create delete deletecollection get list patch update watch
  std::string description;         // one sentence, for explain and docs
  std::string group = kGroup;      // "" for the core views
  std::string version = kVersion;
  // status comes with the object on its way in (Secret: admit_secret makes it) instead of from a
  // controller.
  bool status_from_admission = false;

  bool namespaced() const { return scope == Scope::workspace; }
  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  // jobs.umpteenth.dev, as Kubernetes' errors name a resource.
  std::string group_resource() const { return group.empty() ? plural : plural + "." + group; }
};

// All kinds, in the order of discovery. Never changes while the program runs.
const std::vector<const Kind*>& kinds();
const Kind* find_kind(std::string_view plural);         // null where absent
const Kind* find_stored_kind(std::string_view plural);  // those and core/v1's Event
const Kind* find_kind_by_name(std::string_view kind);   // "Job"
const Kind* resolve_kind(
    std::string_view word);  // plural, singular, short name, Kind, with .group or not

}  // namespace umpteenth::apis
