// Secrets on their way in, and reading one value.
#include <algorithm>

#include "apis/formats.h"
#include "apis/object.h"
#include "apis/seal.h"
#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::apis {
namespace {

constexpr size_t kMaxValue = 64U << 10;
constexpr size_t kSearched = 6;  // shorter values are in every text

[[noreturn]] void refuse(const json::Value& object, const std::string& field,
                         const std::string& why, const char* reason = "FieldValueInvalid") {
  throw Error(Code::invalid,
              "Secret." + std::string(kGroup) + " " + json::quote(name_of(object)) +
                  " is invalid: " + field + ": " + why,
              {{field, why, reason}});
}

void check_values(const json::Value& object, const json::Value& given) {
  if (!given.is_object())
    refuse(
        object, "spec.stringData",
        std::string("Invalid value: \"") + given.type_name() + "\": must be an object of strings",
        "FieldValueTypeInvalid");
  for (const json::Member& m : given.members()) {
    if (!valid_secret_key(m.key))
      refuse(object, "spec.stringData",
             "Invalid value: " + json::quote(m.key.substr(0, 100)) +
                 ": a key is 1 to 100 letters, digits, '_', '.' or '-'");
    if (!m.value.is_string())
      refuse(object, "spec.stringData." + m.key,
             std::string("Invalid value: \"") + m.value.type_name() + "\": must be a string",
             "FieldValueTypeInvalid");
    if (m.value.as_string().size() > kMaxValue)
      refuse(object, "spec.stringData." + m.key, "Too long: may not be more than 65536 bytes",
             "FieldValueTooLong");
    if (m.value.as_string().find('\0') != std::string::npos)
      refuse(object, "spec.stringData." + m.key,
             "Invalid value: must not contain U+0000: no environment variable can hold it");
  }
}

// Also as it looks inside a JSON text.
bool contains(const std::string& text, const std::string& value) {
  if (text.find(value) != std::string::npos) return true;
  const std::string quoted = json::quote(value);
  return text.find(quoted.substr(1, quoted.size() - 2)) != std::string::npos;
}

// document: the object itself, or what its last-applied annotation says of it.
void check_no_copy(const json::Value& object, const json::Value& document,
                   const json::Value& given) {
  for (const char* where : {"labels", "annotations"}) {
    const json::Value& map = document.get("metadata").get(where);
    if (!map.is_object()) continue;
    for (const json::Member& m : map.members()) {
      if (m.key == kLastApplied || !m.value.is_string()) continue;
      for (const json::Member& g : given.members())
        if (g.value.as_string().size() >= kSearched &&
            (contains(m.value.as_string(), g.value.as_string()) ||
             m.key.find(g.value.as_string()) != std::string::npos))
          refuse(object, std::string("metadata.") + where,
                 "Forbidden: " + json::quote(m.key.substr(0, 100)) +
                     " contains the clear value of entry " + json::quote(g.key),
                 "FieldValueForbidden");
    }
  }
}

json::Value parse_applied(const json::Value& object, const std::string& text) {
  try {
    return json::parse(text);
  } catch (const Error&) {  // not JSON: it cannot be searched for values, so it cannot stay
    refuse(object, "metadata.annotations",
           std::string("Invalid value: ") + kLastApplied + " must be JSON");
  }
}

// spec.stringData of the last-applied annotation; null where there is none.
json::Value last_applied_data(const json::Value& object) {
  const std::string text = annotation_of(object, kLastApplied);
  if (text.empty()) return nullptr;
  return parse_applied(object, text).at_path({"spec", "stringData"});
}

// Only what may stand there is kept: a clear value may also be in a field that does not exist
// (stringData at the top, data), which pruning takes from the object but not from this text.
void clean_last_applied(json::Value& object) {
  const std::string text = annotation_of(object, kLastApplied);
  if (text.empty()) return;
  const json::Value applied = json::parse(text);
  json::Value kept = json::Value::object();
  for (const char* key : {"apiVersion", "kind"})
    if (const json::Value* v = applied.find(key)) kept.set(key, *v);
  json::Value& metadata = kept["metadata"];
  metadata = json::Value::object();
  for (const char* key : {"annotations", "labels", "name", "namespace"})
    if (const json::Value* v = applied.get("metadata").find(key)) metadata.set(key, *v);
  if (json::Value* annotations = metadata.find("annotations")) annotations->erase(kLastApplied);
  json::Value& spec = kept["spec"];
  spec = json::Value::object();
  if (const json::Value* v = applied.get("spec").find("sealedData")) spec.set("sealedData", *v);
  if (const json::Value* data = applied.get("spec").find("stringData")) {
    json::Value& names = spec.set("stringData", json::Value::object());
    if (data->is_object())
      for (const json::Member& m : data->members()) names.set(m.key, "sealed");
  }
  // kubectl's own ends in a line feed.
  object["metadata"]["annotations"].set(kLastApplied, kept.dump() + "\n");
}

class Admission {
 public:
  Admission(const Sealer& sealer, json::Value& object, const json::Value* old)
      : sealer_(sealer), object_(object), old_(old) {}

  void run() {
    if (name_of(object_).empty())
      refuse(object_, "metadata.name",
             "Required value: values are sealed for a name, so generateName is not accepted",
             "FieldValueRequired");
    json::Value given = take_given();
    drop_unapplied(given);
    check_sealed();
    for (const json::Member& m : given.members()) seal(m.key, m.value.as_string());
    clean_last_applied(object_);
    set_fingerprints();
  }

 private:
  json::Value take_given() {
    json::Value given = json::Value::object();
    json::Value* spec = object_.find("spec");
    if (!spec || !spec->is_object()) return given;
    if (json::Value* data = spec->find("stringData")) {
      if (!data->is_null()) {
        // A null value means "not given", as everywhere else.
        if (data->is_object())
          std::erase_if(data->members(), [](const json::Member& m) { return m.value.is_null(); });
        check_values(object_, *data);
        check_no_copy(object_, object_, *data);
        if (const std::string text = annotation_of(object_, kLastApplied); !text.empty())
          check_no_copy(object_, parse_applied(object_, text), *data);
        given = std::move(*data);
      }
      spec->erase("stringData");
    }
    return given;
  }

  // kubectl apply removes a key by leaving it out of what was applied: live has no stringData that
  // its patch could delete from, so the annotations are compared.
  void drop_unapplied(const json::Value& given) {
    const json::Value now = last_applied_data(object_);
    if (!old_ || annotation_of(object_, kLastApplied).empty()) return;
    const json::Value before = last_applied_data(*old_);
    if (!before.is_object()) return;
    json::Value* sealed = sealed_data();
    if (!sealed) return;
    for (const json::Member& m : before.members())
      if (!now.find(m.key) && !given.find(m.key)) sealed->erase(m.key);
  }

  json::Value* sealed_data() {
    json::Value* spec = object_.find("spec");
    json::Value* data = spec ? spec->find("sealedData") : nullptr;
    return data && data->is_object() ? data : nullptr;
  }

  SealedEntry where(const std::string& key) const {
    return {namespace_of(object_), name_of(object_), key};
  }

  const json::Value& old_sealed(const std::string& key) const {
    static const json::Value none;
    return old_ ? old_->at_path({"spec", "sealedData", key}) : none;
  }

  // What did not stand here before must open here; what was sealed offline gets the resting form.
  void check_sealed() {
    json::Value* sealed = sealed_data();
    if (!sealed) return;
    for (json::Member& m : sealed->members()) {
      if (!m.value.is_string() || m.value == old_sealed(m.key)) continue;
      const std::string value = open(m.key, m.value.as_string());
      if (value.size() > kMaxValue)
        refuse(object_, "spec.sealedData." + m.key, "Too long: may not be more than 65536 bytes",
               "FieldValueTooLong");
      if (!sealer_.is_current(m.value.as_string())) m.value = sealer_.seal(where(m.key), value);
    }
  }

  std::string open(const std::string& key, const std::string& sealed) {
    try {
      return sealer_.open(where(key), sealed);
    } catch (const Error& e) {  // named as a field of this object
      refuse(object_, "spec.sealedData." + key.substr(0, 100), "Invalid value: " + e.message());
    }
  }

  void seal(const std::string& key, const std::string& value) {
    json::Value& sealed = object_["spec"]["sealedData"];
    if (!sealed.is_object()) sealed = json::Value::object();
    for (const json::Value* kept : {&old_sealed(key), &sealed.get(key)})
      if (kept->is_string() && same(key, kept->as_string(), value)) {
        sealed.set(key, json::Value(*kept));
        return;
      }
    sealed.set(key, sealer_.seal(where(key), value));
  }

  bool same(const std::string& key, const std::string& sealed, const std::string& value) const {
    try {
      return crypto::equal_constant_time(sealer_.open(where(key), sealed), value);
    } catch (const Error&) {  // under a key that is gone: sealed anew
      return false;
    }
  }

  void set_fingerprints() {
    json::Value prints = json::Value::object();
    if (const json::Value* sealed = sealed_data())
      for (const json::Member& m : sealed->members()) {
        if (!m.value.is_string()) continue;
        try {
          prints.set(m.key, sealer_.fingerprint(where(m.key),
                                                sealer_.open(where(m.key), m.value.as_string())));
        } catch (const Error&) {  // an old entry under a lost key has no fingerprint
          continue;
        }
      }
    object_.set("status", json::Value::object({{"fingerprints", std::move(prints)}}));
  }

  const Sealer& sealer_;
  json::Value& object_;
  const json::Value* old_;
};

}  // namespace

void admit_secret(const Sealer& sealer, json::Value& object, const json::Value* old) {
  Admission(sealer, object, old).run();
}

std::string secret_value(const Sealer& sealer, const json::Value& secret, const std::string& key) {
  const SealedEntry where{namespace_of(secret), name_of(secret), key};
  const json::Value& sealed = secret.at_path({"spec", "sealedData"});
  std::string chosen = key, names;
  if (sealed.is_object())
    for (const json::Member& m : sealed.members()) names += (names.empty() ? "" : ", ") + m.key;
  if (key.empty()) {
    if (sealed.find("value"))
      chosen = "value";
    else if (sealed.is_object() && sealed.size() == 1)
      chosen = sealed.members()[0].key;
  }
  const json::Value* found = sealed.find(chosen);
  const std::string subject = "secret " + where.ns + "/" + where.name;
  if (!found || !found->is_string()) {
    if (names.empty()) throw Error(Code::invalid, subject + " has no values");
    if (key.empty())
      throw Error(Code::invalid, subject + " has several keys, name one of them: " + names);
    throw Error(Code::invalid,
                subject + " has no key " + json::quote(key) + ", its keys are: " + names);
  }
  return sealer.open({where.ns, where.name, chosen}, found->as_string());
}

}  // namespace umpteenth::apis
