// Reading and making object documents: apiVersion, kind, metadata, spec, status.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apis/kind.h"
#include "base/clock.h"
#include "base/json.h"

namespace umpteenth::apis {

json::Value make_object(const Kind& kind, std::string_view ns, std::string_view name,
                        json::Value spec);

std::string name_of(const json::Value& object);
std::string namespace_of(const json::Value& object);
std::string uid_of(const json::Value& object);
int64_t generation_of(const json::Value& object);
uint64_t revision_of(const json::Value& object);  // 0 where absent
Time created_at(const json::Value& object);
bool deleting(const json::Value& object);  // deletionTimestamp is set
bool has_finalizer(const json::Value& object, std::string_view finalizer);
void add_finalizer(json::Value& object, std::string_view finalizer);
bool remove_finalizer(json::Value& object, std::string_view finalizer);
std::string label_of(const json::Value& object, std::string_view label);
std::string annotation_of(const json::Value& object, std::string_view annotation);

// Deletion was asked for and no finalizer is left: the object goes now.
bool ready_to_remove(const json::Value& object);
// The value of kJobLabel for a job: its name, or where that is over 63 characters its beginning
// and a hash.
std::string job_label_value(std::string_view job);

inline constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";
inline constexpr char kJobLabel[] = "umpteenth.dev/job";
inline constexpr char kRunsFinalizer[] = "umpteenth.dev/runs";
// Annotations of a Run: who started it, and who asked for its end.
inline constexpr char kRequestedBy[] = "umpteenth.dev/requested-by";
inline constexpr char kCancelledBy[] = "umpteenth.dev/cancelled-by";

// Conditions (status.conditions), as in metav1.Condition.
struct Condition {
  std::string type;
  std::string status;  // "True" | "False" | "Unknown"
  std::string reason;  // CamelCase
  std::string message;
  int64_t observed_generation = 0;
  bool operator==(const Condition&) const = default;
};
std::optional<Condition> find_condition(const json::Value& object, std::string_view type);
// lastTransitionTime moves only when `status` changes.
void set_condition(json::Value& status, const Condition& condition, Time now);

bool valid_dns_subdomain(std::string_view name);  // ≤ 253
bool valid_dns_label(std::string_view name);      // ≤ 63

}  // namespace umpteenth::apis
