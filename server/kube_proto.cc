#include "server/kube_proto.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"

namespace umpteenth::server {
namespace {

[[noreturn]] void malformed(std::string_view what) {
  throw Error(Code::bad_request, "malformed protobuf body: " + std::string(what));
}

struct Field {
  uint64_t number = 0;
  std::string_view bytes;  // of a length-delimited field, else empty
};

// Walks the fields of one message; varints and fixed widths are stepped over.
class Message {
 public:
  explicit Message(std::string_view bytes) : rest_(bytes) {}

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t tag = varint();
    Field field{tag >> 3, {}};
    if (field.number == 0) malformed("field number 0");
    switch (tag & 7) {
      case 0:
        varint();
        break;
      case 1:
        take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        take(4);
        break;
      default:
        malformed("unknown wire type");
    }
    return field;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) malformed("truncated number");
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fU} << shift;
      if (!(byte & 0x80U)) return value;
    }
    malformed("number too long");
  }
  std::string_view take(uint64_t n) {
    if (n > rest_.size()) malformed("truncated field");
    const std::string_view bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return bytes;
  }

  std::string_view rest_;
};

struct Name {
  uint64_t number;
  std::string_view json;
};

json::Value strings_of(std::string_view bytes, std::span<const Name> names) {
  json::Value object = json::Value::object();
  Message message(bytes);
  while (const auto field = message.next())
    for (const Name& name : names)
      if (name.number == field->number && !field->bytes.empty())
        object.set(name.json, field->bytes);
  return object;
}

void add_map_entry(json::Value& map, std::string_view bytes) {
  std::string key, value;
  Message entry(bytes);
  while (const auto field = entry.next()) {
    if (field->number == 1) key = field->bytes;
    if (field->number == 2) value = field->bytes;
  }
  map.set(key, value);
}

json::Value object_meta(std::string_view bytes) {
  static constexpr std::array<Name, 3> kNames = {
      {{1, "name"}, {2, "generateName"}, {3, "namespace"}}};
  json::Value meta = strings_of(bytes, kNames);
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 11) add_map_entry(meta["labels"], field->bytes);
    if (field->number == 12) add_map_entry(meta["annotations"], field->bytes);
  }
  return meta;
}

json::Value access_review_spec(std::string_view bytes) {
  static constexpr std::array<Name, 7> kResource = {{{1, "namespace"},
                                                     {2, "verb"},
                                                     {3, "group"},
                                                     {4, "version"},
                                                     {5, "resource"},
                                                     {6, "subresource"},
                                                     {7, "name"}}};
  static constexpr std::array<Name, 2> kPath = {{{1, "path"}, {2, "verb"}}};
  json::Value spec = json::Value::object();
  Message message(bytes);
  while (const auto field = message.next()) {
    if (field->number == 1) spec.set("resourceAttributes", strings_of(field->bytes, kResource));
    if (field->number == 2) spec.set("nonResourceAttributes", strings_of(field->bytes, kPath));
  }
  return spec;
}

json::Value rules_review_spec(std::string_view bytes) {
  static constexpr std::array<Name, 1> kNames = {{{1, "namespace"}}};
  return strings_of(bytes, kNames);
}

void decode_delete_options(std::string_view raw, json::Value& options) {
  static constexpr std::array<Name, 2> kPreconditions = {{{1, "uid"}, {2, "resourceVersion"}}};
  Message message(raw);
  while (const auto field = message.next()) {
    if (field->number == 2) options.set("preconditions", strings_of(field->bytes, kPreconditions));
    if (field->number == 4) options.set("propagationPolicy", field->bytes);
    if (field->number == 5) options["dryRun"].push_back(field->bytes);
  }
}

// Sets the parts of the message that the kind has.
void decode_raw(const std::string& kind, std::string_view raw, json::Value& object) {
  if (kind == "DeleteOptions") return decode_delete_options(raw, object);
  Message message(raw);
  while (const auto field = message.next()) {
    if (kind == "Namespace" && field->number == 1)
      object.set("metadata", object_meta(field->bytes));
    if (kind == "SelfSubjectAccessReview" && field->number == 2)
      object.set("spec", access_review_spec(field->bytes));
    if (kind == "SelfSubjectRulesReview" && field->number == 2)
      object.set("spec", rules_review_spec(field->bytes));
  }
}

}  // namespace

json::Value decode_kube_proto(std::string_view body) {
  constexpr std::string_view kMagic("k8s\0", 4);
  if (!body.starts_with(kMagic)) malformed("it does not begin with k8s\\0");
  json::Value object = json::Value::object();
  std::string_view raw;
  Message envelope(body.substr(kMagic.size()));
  while (const auto field = envelope.next()) {
    if (field->number == 1) {
      static constexpr std::array<Name, 2> kTypeMeta = {{{1, "apiVersion"}, {2, "kind"}}};
      object = strings_of(field->bytes, kTypeMeta);
    }
    if (field->number == 2) raw = field->bytes;
  }
  const std::string kind = object.get_string("kind");
  if (kind != "Namespace" && kind != "SelfSubjectAccessReview" &&
      kind != "SelfSubjectRulesReview" && kind != "SelfSubjectReview" && kind != "DeleteOptions")
    throw Error(Code::unsupported_media_type, "protobuf bodies of kind " + json::quote(kind) +
                                                  " are not read: send application/json");
  decode_raw(kind, raw, object);
  return object;
}

}  // namespace umpteenth::server
