#include "apis/metadata.h"

#include <algorithm>

#include "apis/formats.h"
#include "apis/object.h"
#include "apis/schema_builder.h"

namespace umpteenth::apis {
namespace {

constexpr char kSubdomainRule[] =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr char kLabelRule[] =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr char kQualifiedRule[] =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'), at most 63 characters, after an "
    "optional DNS subdomain prefix and '/'";
constexpr char kLabelValueRule[] =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?'), at "
    "most 63 characters";

std::string in_quotes(std::string_view text) {
  return json::quote(text.size() > 300 ? std::string(text.substr(0, 100)) + "…"
                                       : std::string(text));
}

class Checker {
 public:
  Checker(const Kind& kind, const json::Value& metadata, std::vector<Cause>& causes)
      : kind_(kind), metadata_(metadata), causes_(causes) {}

  void run() {
    name();
    workspace();
    labels();
    annotations();
    finalizers();
    owners();
  }

 private:
  void add(std::string field, const char* reason, std::string message) {
    if (causes_.size() < 100) causes_.push_back({std::move(field), std::move(message), reason});
  }
  void invalid(std::string field, std::string_view value, const std::string& rule) {
    add(std::move(field), "FieldValueInvalid", "Invalid value: " + in_quotes(value) + ": " + rule);
  }
  void required(std::string field, const std::string& why) {
    add(std::move(field), "FieldValueRequired",
        why.empty() ? "Required value" : "Required value: " + why);
  }

  void name() {
    const std::string name = metadata_.get_string("name");
    if (name.empty()) return required("metadata.name", "name or generateName is required");
    if (name.size() > kind_.max_name)
      return invalid("metadata.name", name,
                     "must be no more than " + std::to_string(kind_.max_name) + " characters");
    if (!valid_dns_subdomain(name)) invalid("metadata.name", name, kSubdomainRule);
  }

  void workspace() {
    const std::string ns = metadata_.get_string("namespace");
    if (!kind_.namespaced()) {
      if (!ns.empty())
        add("metadata.namespace", "FieldValueForbidden", "Forbidden: not allowed on this type");
      return;
    }
    if (ns.empty()) return required("metadata.namespace", "");
    if (!valid_dns_label(ns)) invalid("metadata.namespace", ns, kLabelRule);
  }

  void labels() {
    const json::Value& labels = metadata_.get("labels");
    if (!labels.is_object()) return;
    for (const json::Member& m : labels.members()) {
      if (!valid_qualified_name(m.key)) invalid("metadata.labels", m.key, kQualifiedRule);
      if (!valid_label_value(m.value.as_string()))
        invalid("metadata.labels", m.value.as_string(), kLabelValueRule);
    }
  }

  void annotations() {
    const json::Value& annotations = metadata_.get("annotations");
    if (!annotations.is_object()) return;
    size_t bytes = 0;
    for (const json::Member& m : annotations.members()) {
      bytes += m.key.size() + m.value.as_string().size();
      std::string lower = m.key;  // annotation keys may have any case in the prefix too
      for (char& c : lower)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
      if (!valid_qualified_name(lower)) invalid("metadata.annotations", m.key, kQualifiedRule);
    }
    if (bytes > kMaxAnnotationBytes)
      add("metadata.annotations", "FieldValueTooLong",
          "Too long: may not be more than " + std::to_string(kMaxAnnotationBytes) + " bytes");
  }

  void finalizers() {
    const json::Value& finalizers = metadata_.get("finalizers");
    for (size_t i = 0; i < finalizers.size(); ++i) {
      const std::string& f = finalizers.items()[i].as_string();
      if (!valid_qualified_name(f))
        invalid("metadata.finalizers[" + std::to_string(i) + "]", f, kQualifiedRule);
    }
  }

  void owners() {
    const json::Value& owners = metadata_.get("ownerReferences");
    size_t controllers = 0;
    for (size_t i = 0; i < owners.size(); ++i) {
      const json::Value& owner = owners.items()[i];
      owner_shape(owner, "metadata.ownerReferences[" + std::to_string(i) + "]");
      controllers += owner.get_bool("controller") ? 1 : 0;
    }
    if (controllers > 1)
      invalid("metadata.ownerReferences", "controller",
              "only one reference can have controller set to true, found " +
                  std::to_string(controllers));
  }

  void owner_shape(const json::Value& owner, const std::string& path) {
    for (const char* field : {"apiVersion", "kind", "name", "uid"})
      if (owner.get_string(field).empty()) return required(path + "." + field, "");
    const std::string version = owner.get_string("apiVersion");
    const std::string kind_name = owner.get_string("kind"), uid = owner.get_string("uid");
    if (!valid_uid(uid)) invalid(path + ".uid", uid, "must be the owner's uid, a UUID");
    if (!valid_dns_subdomain(owner.get_string("name")))
      invalid(path + ".name", owner.get_string("name"), kSubdomainRule);
    if (version != kGroupVersion)
      return invalid(path + ".apiVersion", version,
                     std::string("an owner must be of ") + kGroupVersion);
    const Kind* kind = find_kind_by_name(kind_name);
    if (!kind) return invalid(path + ".kind", kind_name, "no such kind");
    if (kind->namespaced() && !kind_.namespaced())
      invalid(path + ".kind", kind_name,
              "a cluster-scoped object cannot be owned by one that lives in a workspace");
  }

  static bool valid_uid(std::string_view text) {
    if (text.size() != 36) return false;
    for (size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
      const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
      if (dash ? c != '-' : !hex) return false;
    }
    return true;
  }

  const Kind& kind_;
  const json::Value& metadata_;
  std::vector<Cause>& causes_;
};

}  // namespace

const json::Value& metadata_schema() {
  using namespace schema;  // NOLINT(google-build-using-namespace): the schema reads as one text
  static const json::Value made =
      object(
          "Standard object metadata.",
          {{"name", text("Name, a DNS-1123 subdomain; unique in its kind and workspace.")},
           {"generateName", text("Beginning of a name that the server makes.").max_length(253)},
           {"namespace", text("Workspace.")},
           {"labels", map("Labels to select by; a value has at most 63 characters.", text("Value."))
                          .max_properties(1000)},
           {"annotations", map("Notes of tools, at most 262144 bytes in all.", text("Value."))
                               .max_properties(1000)},
           {"finalizers",
            list("What must be done before it is gone; at most 100.", text("Finalizer."))
                .max_items(kMaxFinalizers)},
           {"ownerReferences",
            list("Objects it goes with; at most 100.",
                 object("An owner, in the same workspace or cluster-scoped.",
                        {{"apiVersion", text("Its group and version.")},
                         {"kind", text("Its kind.")},
                         {"name", text("Its name.")},
                         {"uid", text("Its uid.")},
                         {"controller", boolean("Whether it manages this object.")},
                         {"blockOwnerDeletion", boolean("Foreground deletion waits for it.")}}))
                .max_items(kMaxOwners)},
           {"uid", text("Unique in time and space; the server makes it.")},
           {"resourceVersion", text("Changes with every write.")},
           {"generation", integer("Counts changes of spec.")},
           {"creationTimestamp",
            Node("string", "When it was created.").format("date-time").nullable()},
           {"deletionTimestamp",
            Node("string", "When its deletion was asked for.").format("date-time").nullable()},
           {"deletionGracePeriodSeconds", integer("Seconds.").nullable()},
           {"selfLink", text("Unused.")},
           {"managedFields",
            list("Who set which fields.", object("One manager.", {}).open()).max_items(1000)}})
          .take();
  return made;
}

void check_metadata(const Kind& kind, const json::Value& object, std::vector<Cause>& causes) {
  Checker(kind, object.get("metadata"), causes).run();
}

void check_metadata_update(const json::Value& object, const json::Value& old,
                           std::vector<Cause>& causes) {
  for (const char* field : {"name", "namespace"}) {
    const std::string now = object.get("metadata").get_string(field);
    if (now != old.get("metadata").get_string(field))
      causes.push_back({std::string("metadata.") + field,
                        "Invalid value: " + in_quotes(now) + ": field is immutable",
                        "FieldValueInvalid"});
  }
  if (!deleting(old)) return;
  const json::Value& finalizers = object.get("metadata").get("finalizers");
  for (size_t i = 0; i < finalizers.size(); ++i) {
    const std::string& f = finalizers.items()[i].as_string();
    if (!has_finalizer(old, f))
      causes.push_back({"metadata.finalizers",
                        "Forbidden: no new finalizers can be added if the object is being "
                        "deleted, found new finalizers []string{" +
                            in_quotes(f) + "}",
                        "FieldValueForbidden"});
  }
}

}  // namespace umpteenth::apis
