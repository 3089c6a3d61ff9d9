// What every handler works with: the running parts, one authenticated request, and its answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apis/lifecycle.h"
#include "apis/seal.h"
#include "apis/selectors.h"
#include "base/http/message.h"
#include "server/authority.h"
#include "server/negotiate.h"
#include "server/periodic.h"
#include "server/ports.h"
#include "server/target.h"
#include "server/tokens.h"
#include "store/store.h"

namespace umpteenth::server {

class Collector;

struct Env {
  store::Store& store;
  const apis::Sealer& sealer;
  Clock& clock;
  Tokens& tokens;
  Periodic& periodic;
  Collector& collector;
  Trigger* trigger = nullptr;
  PlanPreview* plans = nullptr;
  Finalizers finalizers;
  std::function<json::Value(const std::string& engine)> remove_firewall = {};
};

struct Call {
  const http::Request& http;
  Identity who;
  Target target;
  Time now;
  std::vector<std::string> warnings;  // become Warning headers

  const Resource& resource() const { return *target.resource; }
  store::Key key() const { return {resource().stored_as, target.ns, target.name}; }
};

// Error(forbidden) in Kubernetes' words where the table says no.
void authorize(const Call& call, std::string_view verb);
void authorize(const Call& call, std::string_view verb, std::string_view subresource);

// 200/201 with the text of a JSON object; YAML where the client prefers it; Warning headers.
http::Response answer(const Call& call, int status, std::string json);
// One object in the shape the client asked for (object, Table, PartialObjectMetadata).
http::Response answer_object(const Call& call, int status, const json::Value& object);
http::Response answer_record(const Call& call, int status, const store::Record& record);
// A Status for an error, as the last resort of every request.
http::Response answer_error(const Error& error, const apis::ErrorSubject& subject);

void add_warnings(http::Response& response, const std::vector<std::string>& warnings);

apis::IncludeObject include_object(const http::Request& request);  // Error(invalid)
json::Value table_of(const Call& call, const Accepted& accepted,
                     const std::vector<json::Value>& objects, bool with_columns);
json::Value partial_of(const json::Value& object, const std::string& meta_version);

// Label and field selectors of a request.
struct Selection {
  apis::LabelSelector labels;
  apis::FieldSelector fields;
  bool empty() const { return labels.empty() && fields.empty(); }
  bool matches(const json::Value& object) const {
    return labels.matches(object) && fields.matches(object);
  }
};
Selection selection_of(const Call& call);  // Error(bad_request)

bool flag(const http::Request& request, std::string_view name);  // true, True, 1
uint64_t parse_revision(std::string_view text);  // Error(bad_request); "" and "0" are 0

}  // namespace umpteenth::server
