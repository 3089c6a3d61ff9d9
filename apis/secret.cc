#include "apis/secret.h"

#include "apis/cells.h"
#include "apis/formats.h"
#include "apis/schema_builder.h"

namespace umpteenth::apis {
namespace {

using namespace schema;  // NOLINT(google-build-using-namespace): the schema reads as one text

void check_secret(const json::Value& object, const json::Value*, std::vector<Cause>& causes) {
  for (const char* field : {"stringData", "sealedData"}) {
    const json::Value& data = object.get("spec").get(field);
    if (!data.is_object()) continue;
    for (const json::Member& m : data.members())
      if (!valid_secret_key(m.key))
        causes.push_back({std::string("spec.") + field,
                          "Invalid value: " + json::quote(m.key.substr(0, 100)) +
                              ": a key is 1 to 100 letters, digits, '_', '.' or '-'",
                          "FieldValueInvalid"});
  }
}

json::Value keys_cell(const json::Value& object, Time) {
  constexpr size_t kMost = 60;
  std::string keys;
  const json::Value& data = object.at_path({"spec", "sealedData"});
  if (data.is_object())
    for (const json::Member& m : data.members()) {
      if (keys.size() + m.key.size() > kMost) return keys + (keys.empty() ? "…" : ",…");
      keys += (keys.empty() ? "" : ",") + m.key;
    }
  return keys.empty() ? json::Value("<none>") : json::Value(keys);
}

}  // namespace

const Kind& secret_kind() {
  static const Kind kind = [] {
    Kind k;
    k.kind = "Secret";
    k.plural = "secrets";
    k.singular = "secret";
    k.short_names = {"sec"};
    k.categories = {"umpteenth"};
    k.description =
        "Named values, write-only: sealed on the way in, never returned. "
        "Deleting one takes its mappings out of the workspace's jobs, in the same commit; a "
        "warning "
        "names each such job.";
    k.max_name = 100;
    k.spec_schema =
        section("The values.",
                {{"stringData",
                  map("Values in clear, write-only: sealed and removed on the way in. A key is 1 "
                      "to 100 letters, digits, '_', '.' or '-'; a value at most 65536 bytes.",
                      text("Value.").max_length(65536))
                      .max_properties(256)},
                 {"sealedData",
                  map("Sealed values, v1.<key id>.<base64url>, as umpd or `umpctl seal` makes "
                      "them.",
                      text("Sealed value.").max_length(90000))
                      .max_properties(256)}})
            .take();
    k.status_schema =
        schema::status({{"fingerprints", map("Eight hex digits a key that change with the value; "
                                             "not a hash of it.",
                                             text("Fingerprint."))}})
            .take();
    k.columns = {{"Keys", "string", "Names of its values.", 0, keys_cell}};
    k.status_from_admission = true;
    k.check = check_secret;
    k.verbs = kAllVerbs;
    return k;
  }();
  return kind;
}

}  // namespace umpteenth::apis
