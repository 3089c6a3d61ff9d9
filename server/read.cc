#include "server/read.h"

#include <algorithm>
#include <charconv>

#include "apis/object.h"
#include "base/crypto.h"
#include "server/history.h"

namespace umpteenth::server {
namespace {

constexpr size_t kContinueVersion = 1;
constexpr size_t kMaxLimit = 10'000;

struct Listed {
  std::vector<store::RecordPtr> records;
  std::vector<json::Value> objects;  // filled where they had to be parsed, else empty
  uint64_t revision = 0;
  std::string next;
  std::optional<size_t> remaining;
};

// A continue token says which list it goes on with, so that it cannot be used on another.
std::string make_continue(const Call& call, const std::string& next) {
  return crypto::base64url(
      json::Value::array({kContinueVersion, call.resource().stored_as, call.target.ns, next})
          .dump());
}

std::string read_continue(const Call& call, std::string_view token) {
  const std::string what = "continue key is not valid: ";
  json::Value parts;
  try {
    parts = json::parse(crypto::from_base64url(token), {4, 4096});
  } catch (const Error&) {  // which layer refused it does not help the client
    throw Error(Code::bad_request, what + "it was not made by this server");
  }
  if (!parts.is_array() || parts.size() != 4 || !parts.items()[3].is_string() ||
      parts.items()[0] != json::Value(kContinueVersion))
    throw Error(Code::bad_request, what + "it was not made by this server");
  if (parts.items()[1] != json::Value(call.resource().stored_as) ||
      parts.items()[2] != json::Value(call.target.ns))
    throw Error(Code::bad_request, what + "it belongs to another list");
  return parts.items()[3].as_string();
}

size_t read_limit(const http::Request& request) {
  const std::string_view text = request.param("limit");
  if (text.empty()) return 0;
  uint64_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(Code::bad_request, "limit: Invalid value: " + json::quote(text) +
                                       ": must be a number that is not negative");
  return std::min<uint64_t>(limit, kMaxLimit);
}

// The rules of resourceVersion and resourceVersionMatch on a list.
void check_revision(Env& env, const http::Request& request) {
  const std::string_view match = request.param("resourceVersionMatch");
  const std::string_view text = request.param("resourceVersion");
  const std::string field = "resourceVersionMatch";
  if (!match.empty() && match != "Exact" && match != "NotOlderThan")
    throw invalid_field(field,
                        "Unsupported value: " + json::quote(match) +
                            ": supported values: \"Exact\", \"NotOlderThan\"",
                        "FieldValueNotSupported");
  if (!match.empty() && text.empty())
    throw invalid_field(field,
                        "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is "
                        "provided",
                        "FieldValueForbidden");
  if (!match.empty() && !request.param("continue").empty())
    throw invalid_field(field, "Forbidden: resourceVersionMatch is forbidden with continue",
                        "FieldValueForbidden");
  const uint64_t wanted = parse_revision(text);
  if (match == "Exact" && wanted == 0)
    throw invalid_field(field,
                        "Forbidden: resourceVersionMatch \"Exact\" is forbidden for "
                        "resourceVersion \"0\"",
                        "FieldValueForbidden");
  const uint64_t current = env.store.revision();
  refuse_future(wanted, current);
  if (match == "Exact" && wanted < current)
    throw Error(Code::expired, "The resourceVersion for the provided list is too old.");
}

// Keeps what the client may see and asked for.
class Filter {
 public:
  explicit Filter(const Call& call) : call_(call), selection_(selection_of(call)) {}
  bool trivial() const { return selection_.empty() && call_.who.instance_admin; }
  const Selection& selection() const { return selection_; }

  void keep(const store::RecordPtr& record, Listed& into) const {
    const Resource& r = call_.resource();
    if (!may_see(call_.who, r.group, r.kind->plural, record->key.ns, record->key.name)) return;
    if (selection_.empty()) {
      into.records.push_back(record);
      return;
    }
    json::Value object = r.object_of(*record);
    if (!selection_.matches(object)) return;
    into.records.push_back(record);
    into.objects.push_back(std::move(object));
  }

 private:
  const Call& call_;
  Selection selection_;
};

// A list by one name, as kubectl's waits do, is one look-up.
std::optional<Listed> by_name(Env& env, const Call& call, const Filter& filter) {
  const std::string name = filter.selection().fields.exact("metadata.name");
  const bool one_workspace = !call.resource().kind->namespaced() || !call.target.ns.empty();
  if (name.empty() || !one_workspace) return std::nullopt;
  Listed listed;
  listed.revision = env.store.revision();
  if (const auto record = env.store.find({call.resource().stored_as, call.target.ns, name}))
    filter.keep(record, listed);
  return listed;
}

Listed collect(Env& env, const Call& call, size_t limit) {
  const Filter filter(call);
  const std::string_view token = call.http.param("continue");
  if (token.empty())
    if (auto listed = by_name(env, call, filter)) return *listed;
  Listed listed;
  store::Query query{call.resource().stored_as, call.target.ns, limit, ""};
  if (!token.empty()) query.next = read_continue(call, token);
  while (true) {
    if (limit) query.limit = limit - listed.records.size();
    const store::Page page = env.store.list(query);
    listed.revision = page.revision;
    if (filter.trivial() && listed.records.empty())
      listed.records = page.items;
    else
      for (const auto& record : page.items) filter.keep(record, listed);
    listed.next = page.next;
    if (filter.trivial() && !page.next.empty()) listed.remaining = page.remaining;
    if (page.next.empty() || listed.records.size() >= limit) return listed;
    query.next = page.next;
  }
}

json::Value list_meta(const Call& call, const Listed& listed) {
  json::Value meta = json::Value::object({{"resourceVersion", std::to_string(listed.revision)}});
  if (!listed.next.empty()) meta.set("continue", make_continue(call, listed.next));
  if (listed.remaining) meta.set("remainingItemCount", *listed.remaining);
  return meta;
}

std::vector<json::Value> objects_of(const Call& call, Listed& listed) {
  if (listed.objects.size() == listed.records.size()) return std::move(listed.objects);
  std::vector<json::Value> objects;
  objects.reserve(listed.records.size());
  for (const auto& record : listed.records) objects.push_back(call.resource().object_of(*record));
  return objects;
}

// Records are spliced as they are stored: nothing is parsed for a plain list.
std::string spliced(const Call& call, const Listed& listed) {
  const Resource& r = call.resource();
  size_t size = 256;
  for (const auto& record : listed.records) size += record->json.size() + 1;
  std::string text;
  text.reserve(size);
  text += "{\"kind\":" + json::quote(r.kind->kind + "List") +
          ",\"apiVersion\":" + json::quote(r.group_version()) +
          ",\"metadata\":" + list_meta(call, listed).dump() + ",\"items\":[";
  bool first = true;
  for (const auto& record : listed.records) {
    if (!first) text += ',';
    first = false;
    if (r.is_view())
      text += r.text_of(*record);
    else
      text += record->json;
  }
  text += "]}";
  return text;
}

http::Response shaped(const Call& call, const Accepted& accepted, Listed& listed) {
  if (accepted.shape == Shape::object) return answer(call, 200, spliced(call, listed));
  const std::vector<json::Value> objects = objects_of(call, listed);
  if (accepted.shape == Shape::table) {
    json::Value table = table_of(call, accepted, objects, true);
    table.set("metadata", list_meta(call, listed));
    return answer(call, 200, table.dump());
  }
  json::Value items = json::Value::array();
  for (const json::Value& object : objects)
    items.push_back(partial_of(object, accepted.meta_version));
  return answer(call, 200,
                json::Value::object({{"kind", "PartialObjectMetadataList"},
                                     {"apiVersion", "meta.k8s.io/" + accepted.meta_version},
                                     {"metadata", list_meta(call, listed)},
                                     {"items", std::move(items)}})
                    .dump());
}

}  // namespace

void refuse_future(uint64_t wanted, uint64_t current) {
  if (wanted <= current) return;
  Error error(Code::timeout,
              "Too large resource version: " + std::to_string(wanted) +
                  ", current: " + std::to_string(current),
              {{"", "Too large resource version", "ResourceVersionTooLarge"}});
  error.retry_after(1);
  throw error;
}

store::RecordPtr find_record(Env& env, const Call& call) {
  const auto record = env.store.find(call.key());
  if (!record) throw not_found(call.resource(), call.target.name);
  return record;
}

http::Response get_object(Env& env, Call& call) {
  if (const std::string_view revision = call.http.param("revision"); !revision.empty()) {
    require_history(call);
    return answer_object(call, 200, env.store.object_at(call.key(), revision));
  }
  refuse_future(parse_revision(call.http.param("resourceVersion")), env.store.revision());
  return answer_record(call, 200, *find_record(env, call));
}

http::Response list_objects(Env& env, Call& call) {
  const Accepted accepted = negotiate(call.http.headers.get("Accept"));
  check_revision(env, call.http);
  Listed listed = collect(env, call, read_limit(call.http));
  return shaped(call, accepted, listed);
}

}  // namespace umpteenth::server
