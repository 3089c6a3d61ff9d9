#include "server/managed_fields.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "apis/managed_fields.h"
#include "apis/object.h"
#include "base/error.h"
#include "server/field_set.h"

namespace umpteenth::server {
namespace {

constexpr size_t kMostEntries = 50;  // of Update managers: the oldest ones make way

struct Owner {
  std::string manager, operation, api_version, subresource, time;
  FieldSet fields;

  bool is(const Manager& m, std::string_view op) const {
    return manager == m.name && operation == op && subresource == m.subresource &&
           api_version == m.kind.api_version();
  }
};

std::vector<Owner> read_owners(const json::Value& list) {
  std::vector<Owner> owners;
  if (!list.is_array()) return owners;
  for (const json::Value& entry : list.items()) {
    Owner owner{entry.get_string("manager"),    entry.get_string("operation"),
                entry.get_string("apiVersion"), entry.get_string("subresource"),
                entry.get_string("time"),       FieldSet::from_v1(entry.get("fieldsV1"))};
    if (!owner.manager.empty() && !owner.fields.empty()) owners.push_back(std::move(owner));
  }
  return owners;
}

json::Value write_owners(std::vector<Owner> owners) {
  std::erase_if(owners, [](const Owner& o) { return o.fields.empty(); });
  while (owners.size() > kMostEntries) {
    const auto oldest =
        std::min_element(owners.begin(), owners.end(), [](const Owner& a, const Owner& b) {
          const bool a_stays = a.operation == "Apply", b_stays = b.operation == "Apply";
          return a_stays != b_stays ? b_stays : a.time < b.time;
        });
    owners.erase(oldest);
  }
  json::Value list = json::Value::array();
  for (const Owner& owner : owners) {
    json::Value entry = json::Value::object({{"manager", owner.manager},
                                             {"operation", owner.operation},
                                             {"apiVersion", owner.api_version},
                                             {"time", owner.time},
                                             {"fieldsType", "FieldsV1"},
                                             {"fieldsV1", owner.fields.to_v1()}});
    if (!owner.subresource.empty()) entry.set("subresource", owner.subresource);
    list.push_back(std::move(entry));
  }
  return list;
}

const json::Value& list_of(const json::Value& object) {
  return object.at_path({"metadata", "managedFields"});
}

Owner& own_entry(std::vector<Owner>& owners, const Manager& manager, std::string_view operation) {
  for (Owner& owner : owners)
    if (owner.is(manager, operation)) return owner;
  owners.push_back({manager.name,
                    std::string(operation),
                    manager.kind.api_version(),
                    manager.subresource,
                    format_time(manager.now),
                    {}});
  return owners.back();
}

void store_list(json::Value& object, json::Value list) {
  if (list.empty())
    object["metadata"].erase("managedFields");
  else
    object["metadata"].set("managedFields", std::move(list));
}

struct Clash {
  std::string manager;  // with its version: "a" using umpteenth.dev/v1alpha1
  std::string field;
};

std::vector<Clash> clashes(const json::Value& live, const json::Value& applied,
                           const FieldSet& applied_fields, const std::vector<Owner>& owners,
                           const Manager& manager) {
  std::vector<Clash> found;
  for (const Owner& owner : owners) {
    if (owner.is(manager, "Apply")) continue;
    for (const Path& path : applied_fields) {
      const json::Value* is = find_at(live, path);
      if (!owner.fields.overlaps(path) || !is || *is == *find_at(applied, path)) continue;
      found.push_back(
          {json::quote(owner.manager) + " using " + owner.api_version, to_string(path)});
    }
  }
  return found;
}

[[noreturn]] void refuse(const std::vector<Clash>& found) {
  std::vector<Cause> causes;
  std::map<std::string, std::vector<std::string>> by_manager;
  for (const Clash& clash : found) {
    causes.push_back({clash.field, "conflict with " + clash.manager, "FieldManagerConflict"});
    by_manager[clash.manager].push_back(clash.field);
  }
  std::string text = "Apply failed with " + std::to_string(found.size()) + " conflict" +
                     (found.size() == 1 ? "" : "s") + ": ";
  if (found.size() == 1)
    throw Error(Code::conflict, text + "conflict with " + found[0].manager + ": " + found[0].field,
                causes);
  bool first = true;
  for (const auto& [manager, fields] : by_manager) {
    text += (first ? "conflicts with " : "\nconflicts with ") + manager + ":";
    for (const std::string& field : fields) text += "\n- " + field;
    first = false;
  }
  throw Error(Code::conflict, text, causes);
}

// kubectl's move from client-side apply: what stands in the annotation with its live value was
// kubectl's own.
bool all_last_applied(const json::Value& live, const std::vector<Clash>& found,
                      const FieldSet& applied_fields) {
  const std::string text = apis::annotation_of(live, apis::kLastApplied);
  if (text.empty()) return false;
  json::Value last;
  try {
    last = json::parse(text);
  } catch (const Error&) {  // a client's annotation may hold anything
    return false;
  }
  for (const Path& path : applied_fields) {
    const std::string field = to_string(path);
    if (std::none_of(found.begin(), found.end(), [&](const Clash& c) { return c.field == field; }))
      continue;
    const json::Value* was = find_at(last, path);
    const json::Value* is = find_at(live, path);
    if (!was || !is || !(*was == *is)) return false;
  }
  return true;
}

void remove_abandoned(json::Value& merged, const FieldSet& before, const FieldSet& applied_fields,
                      const std::vector<Owner>& owners, const Manager& manager) {
  for (const Path& path : before) {
    if (applied_fields.overlaps(path)) continue;
    const bool shared = std::any_of(owners.begin(), owners.end(), [&](const Owner& o) {
      return !o.is(manager, "Apply") && o.fields.overlaps(path);
    });
    if (!shared) erase_at(merged, path);
  }
}

json::Value without(json::Value object) {
  if (json::Value* meta = object.find("metadata")) {
    meta->erase("managedFields");
    meta->erase("resourceVersion");
  }
  return object;
}

}  // namespace

json::Value server_side_apply(const json::Value& live, const json::Value& applied,
                              const Manager& manager, bool force) {
  if (!list_of(applied).is_null() && !list_of(applied).empty())
    throw Error(Code::bad_request, "metadata.managedFields must be nil");
  std::vector<Owner> owners = read_owners(list_of(live));
  const FieldSet fields =
      FieldSet::from_v1(apis::owned_fields(manager.kind, applied, manager.subresource == "status"));
  const std::vector<Clash> found = clashes(live, applied, fields, owners, manager);
  if (!found.empty() && !force &&
      !(manager.name == "kubectl" && all_last_applied(live, found, fields)))
    refuse(found);

  json::Value merged = live.is_null() ? applied : live;
  for (const Path& path : fields) set_at(merged, path, *find_at(applied, path));
  remove_abandoned(merged, own_entry(owners, manager, "Apply").fields, fields, owners, manager);

  for (const Path& path : fields) {
    const json::Value* was = find_at(live, path);
    if (was && *was == *find_at(applied, path)) continue;  // shared with whoever set the same
    for (Owner& owner : owners)
      if (!owner.is(manager, "Apply")) owner.fields.remove_overlapping(path);
  }
  Owner& own = own_entry(owners, manager, "Apply");
  if (!(own.fields == fields)) own.time = format_time(manager.now);
  own.fields = fields;
  store_list(merged, write_owners(std::move(owners)));
  return merged;
}

void refresh_last_applied(json::Value& merged, const json::Value& applied) {
  if (apis::annotation_of(merged, apis::kLastApplied).empty()) return;
  merged["metadata"]["annotations"].set(apis::kLastApplied, applied.dump() + "\n");
}

bool same_but_for_owners(const json::Value& a, const json::Value& b) {
  return without(a) == without(b);
}

bool same_owners(const json::Value& a, const json::Value& b) {
  const auto timeless = [](const json::Value& object) {
    json::Value list = list_of(object);
    if (!list.is_array()) return json::Value::array();
    for (json::Value& entry : list.items()) entry.erase("time");
    return list;
  };
  return timeless(a) == timeless(b);
}

}  // namespace umpteenth::server
