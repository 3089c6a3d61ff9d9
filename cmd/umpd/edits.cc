#include "cmd/umpd/edits.h"

#include "apis/lifecycle.h"
#include "apis/object.h"
#include "base/error.h"

namespace umpteenth::umpd {
namespace {

void check_place(const apis::Kind& kind, const store::Key& key, const json::Value& file) {
  if (file.get_string("kind") != kind.kind || file.get_string("apiVersion") != apis::kGroupVersion)
    throw Error(Code::invalid, "the file must hold a " + kind.kind + " of " + apis::kGroupVersion);
  if (apis::name_of(file) != key.name)
    throw Error(Code::invalid, "metadata.name is " + json::quote(apis::name_of(file)) +
                                   ", the file's name says " + json::quote(key.name));
}

void admit_sealed(const apis::Sealer& sealer, json::Value& secret, const json::Value* live) {
  if (secret.at_path({"spec", "stringData"}).size() > 0)
    throw Error(Code::invalid,
                "spec.stringData: Forbidden: a file in git must not hold clear values; use umpctl "
                "apply, or umpctl seal for a file");
  apis::admit_secret(sealer, secret, live);
}

}  // namespace

json::Value admit_edit(const EditParts& parts, const store::Key& key, json::Value file,
                       const store::RecordPtr& live) {
  const apis::Kind* kind = apis::find_kind(key.kind);
  if (!kind) throw Error(Code::invalid, "there is no kind " + json::quote(key.kind));
  check_place(*kind, key, file);
  const json::Value old = live ? live->parse() : json::Value();
  if (kind->kind == "Secret") admit_sealed(parts.sealer, file, live ? &old : nullptr);
  apis::WriteOptions options;
  options.field_validation = apis::FieldValidation::strict;
  options.field_manager = "git";
  options.now = parts.clock.now();
  if (const auto found = parts.finalizers.find(key.kind); found != parts.finalizers.end())
    options.finalizers = found->second;
  if (!live) return apis::prepare_create(*kind, std::move(file), options).object;
  // The file of an object that was made elsewhere, or again, may carry another uid.
  file["metadata"].erase("uid");
  return apis::prepare_update(*kind, old, std::move(file), options).object;
}

}  // namespace umpteenth::umpd
