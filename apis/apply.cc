#include "apis/apply.h"

#include <algorithm>

#include "apis/lifecycle.h"
#include "apis/managed_fields.h"
#include "apis/object.h"
#include "apis/schema.h"
#include "base/error.h"

namespace umpteenth::apis {
namespace {

std::string key_of(const json::Member& field) { return field.key.substr(2); }  // without "f:"

const json::Value& member(const json::Value& parent, const json::Member& field) {
  return parent.get(key_of(field));
}

// Leaves of `fields` whose values differ between the two documents.
json::Value differing(const json::Value& fields, const json::Value& a, const json::Value& b) {
  json::Value found = json::Value::object();
  for (const json::Member& f : fields.members()) {
    const json::Value &left = member(a, f), &right = member(b, f);
    if (f.value.empty()) {
      if (!(left == right)) found.members().push_back(f);
      continue;
    }
    json::Value inner = differing(f.value, left, right);
    if (!inner.empty()) found.members().push_back({f.key, std::move(inner)});
  }
  return found;
}

void copy_fields(const json::Value& fields, const json::Value& from, json::Value& to) {
  if (!to.is_object()) to = json::Value::object();
  for (const json::Member& f : fields.members()) {
    if (f.value.empty())
      to.set(key_of(f), member(from, f));
    else
      copy_fields(f.value, member(from, f), to[key_of(f)]);
  }
}

// Objects that become empty go too: defaults bring back what must be there.
void remove_fields(const json::Value& fields, json::Value& from) {
  for (const json::Member& f : fields.members()) {
    json::Value* inner = from.find(key_of(f));
    if (!inner) continue;
    if (!f.value.empty()) remove_fields(f.value, *inner);
    if (f.value.empty() || (inner->is_object() && inner->empty())) from.erase(key_of(f));
  }
}

void drop_nulls(json::Value& v) {
  if (!v.is_object()) return;
  std::erase_if(v.members(), [](const json::Member& m) { return m.value.is_null(); });
  for (json::Member& m : v.members()) drop_nulls(m.value);
}

struct Conflict {
  std::string with;  // `"a" using umpteenth.dev/v1alpha1`
  json::Value fields;
};

class Merge {
 public:
  Merge(const Kind& kind, const json::Value& live, const json::Value& applied,
        const ApplyOptions& options)
      : live_(live),
        applied_(applied),
        options_(options),
        merged_(live),
        me_{options.manager, "Apply", ""},
        api_version_(kind.api_version()) {
    json::Value known = applied;  // what is pruned later is owned by nobody
    prune_unknown(object_schema(kind), known, "");
    mine_ = owned_fields(kind, known);
  }

  json::Value run() {
    const std::vector<Conflict> conflicts = find_conflicts();
    const bool forced = options_.force || own_history_explains(conflicts);
    if (!conflicts.empty() && !forced) refuse(conflicts);
    copy_fields(mine_, applied_, merged_);
    remove_dropped();
    for (const Conflict& c : conflicts) take_over(c.fields);
    set_entry(merged_, me_, api_version_, mine_, options_.now);
    copy_identity();
    refresh_last_applied();
    return std::move(merged_);
  }

 private:
  static const json::Array& entries(const json::Value& object) {
    static const json::Array none;
    const json::Value& all = object.get("metadata").get("managedFields");
    return all.is_array() ? all.items() : none;
  }

  std::vector<Conflict> find_conflicts() const {
    std::vector<Conflict> all;
    for (const json::Value& entry : entries(live_)) {
      const ManagerId id = manager_of(entry);
      if (id == me_ || !id.subresource.empty()) continue;
      json::Value fields = differing(fields_common(mine_, entry.get("fieldsV1")), live_, applied_);
      if (!fields.empty())
        all.push_back(
            {json::quote(id.manager) + " using " + entry.get_string("apiVersion", api_version_),
             std::move(fields)});
    }
    return all;
  }

  bool own_history_explains(const std::vector<Conflict>& conflicts) const {
    const std::string text = annotation_of(live_, kLastApplied);
    if (options_.manager != "kubectl" || text.empty()) return false;
    try {
      const json::Value last = json::parse(text);
      return std::all_of(conflicts.begin(), conflicts.end(), [&](const Conflict& c) {
        return differing(c.fields, live_, last).empty();
      });
    } catch (const Error&) {  // somebody else's annotation explains nothing
      return false;
    }
  }

  [[noreturn]] static void refuse(const std::vector<Conflict>& conflicts) {
    std::vector<Cause> causes;
    std::string text;
    for (const Conflict& c : conflicts) {
      const std::vector<std::string> paths = field_paths(c.fields);
      const bool alone = conflicts.size() == 1 && paths.size() == 1;
      text += text.empty() ? "" : "\n";
      text += (paths.size() == 1 ? "conflict with " : "conflicts with ") + c.with + ":";
      for (const std::string& path : paths) {
        text += (alone ? " " : "\n- ") + path;
        causes.push_back({path, "conflict with " + c.with, "FieldManagerConflict"});
      }
    }
    const size_t n = causes.size();
    throw Error(
        Code::conflict,
        "Apply failed with " + std::to_string(n) + (n == 1 ? " conflict: " : " conflicts: ") + text,
        std::move(causes));
  }

  // What this manager applied before, applies no more, and nobody else owns.
  void remove_dropped() {
    json::Value dropped = json::Value::object();
    for (const json::Value& entry : entries(live_))
      if (manager_of(entry) == me_) dropped = fields_without(entry.get("fieldsV1"), mine_);
    for (const json::Value& entry : entries(live_))
      if (!(manager_of(entry) == me_)) dropped = fields_without(dropped, entry.get("fieldsV1"));
    remove_fields(dropped, merged_);
  }

  void take_over(const json::Value& fields) {
    const json::Array before = entries(merged_);
    for (const json::Value& entry : before) {
      const ManagerId id = manager_of(entry);
      if (id == me_ || !id.subresource.empty()) continue;
      json::Value kept = fields_without(entry.get("fieldsV1"), fields);
      if (!(kept == entry.get("fieldsV1")))
        set_entry(merged_, id, entry.get_string("apiVersion", api_version_), std::move(kept),
                  parse_time(entry.get_string("time", format_time(options_.now))));
    }
  }

  // Preconditions that the applied document names are checked by prepare_update.
  void copy_identity() {
    for (const char* key : {"name", "namespace", "uid", "resourceVersion"})
      if (const json::Value* v = applied_.get("metadata").find(key))
        merged_["metadata"].set(key, *v);
    for (const char* key : {"apiVersion", "kind"})
      if (const json::Value* v = applied_.find(key)) merged_.set(key, *v);
    // Fields that do not exist travel along, so that prepare_update can speak of them.
    for (const json::Member& m : applied_.members())
      if (!merged_.find(m.key)) merged_.members().push_back(m);
    const json::Value& spec = applied_.get("spec");
    if (spec.is_object() && merged_["spec"].is_object())
      for (const json::Member& m : spec.members())
        if (!merged_["spec"].find(m.key)) merged_["spec"].set(m.key, m.value);
  }

  void refresh_last_applied() {
    if (options_.manager != "kubectl" || annotation_of(live_, kLastApplied).empty()) return;
    merged_["metadata"]["annotations"].set(kLastApplied, applied_.dump() + "\n");
  }

  const json::Value& live_;
  const json::Value& applied_;
  const ApplyOptions& options_;
  json::Value merged_, mine_;
  ManagerId me_;
  std::string api_version_;
};

}  // namespace

Applied apply(const Kind& kind, const json::Value* live, const json::Value& given,
              const ApplyOptions& options) {
  if (options.manager.empty())
    throw Error(
        Code::invalid,
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is "
        "required for apply patch",
        {{"fieldManager", "Required value: is required for apply patch", "FieldValueRequired"}});
  if (!given.is_object())
    throw Error(Code::bad_request,
                std::string("the body must be an object, found ") + given.type_name());
  if (!given.get("metadata").get("managedFields").empty())
    throw Error(Code::bad_request, "metadata.managedFields must be nil");
  json::Value applied = given;
  applied.erase("status");
  drop_nulls(applied);
  if (live) return {Merge(kind, *live, applied, options).run(), false};
  json::Value known = applied;
  prune_unknown(object_schema(kind), known, "");
  set_entry(applied, {options.manager, "Apply", ""}, kind.api_version(), owned_fields(kind, known),
            options.now);
  return {std::move(applied), true};
}

}  // namespace umpteenth::apis
