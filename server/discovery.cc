#include "server/discovery.h"

#include <array>

#include "apis/serve.h"
#include "base/crypto.h"
#include "base/error.h"
#include "server/negotiate.h"
#include "server/resource.h"

namespace umpteenth::server {
namespace {

constexpr char kJson[] = "application/json";
constexpr char kV3Ours[] = "/openapi/v3/apis/umpteenth.dev/v1alpha1";
constexpr char kV3Core[] = "/openapi/v3/api/v1";

using json::Value;

// What only POST reaches: the self-subject reviews.
struct Review {
  const char *group, *plural, *singular, *kind;
};
constexpr std::array<Review, 3> kReviews = {
    {{"authentication.k8s.io", "selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview"},
     {"authorization.k8s.io", "selfsubjectaccessreviews", "selfsubjectaccessreview",
      "SelfSubjectAccessReview"},
     {"authorization.k8s.io", "selfsubjectrulesreviews", "selfsubjectrulesreview",
      "SelfSubjectRulesReview"}}};
constexpr std::array<const char*, 2> kReviewGroups = {"authentication.k8s.io",
                                                      "authorization.k8s.io"};

// Ours beside what every kind has.
struct Extra {
  const char *plural, *subresource, *kind, *verb;
};
constexpr std::array<Extra, 4> kExtras = {{{"jobs", "run", "Run", "create"},
                                           {"runs", "timeline", "Run", "get"},
                                           {"runs", "log", "Run", "get"},
                                           {"runs", "artifacts", "Run", "get"}}};

Value group_versions(const std::string& group, const std::string& version) {
  const Value one = Value::object({{"groupVersion", group + "/" + version}, {"version", version}});
  return Value::object(
      {{"name", group}, {"versions", Value::array({one})}, {"preferredVersion", one}});
}

Value all_groups() {
  Value groups = Value::array({group_versions(apis::kGroup, apis::kVersion)});
  for (const char* group : kReviewGroups) groups.push_back(group_versions(group, "v1"));
  return groups;
}

Value as_group(Value group) {
  group.set("kind", "APIGroup");
  group.set("apiVersion", "v1");
  return group;
}

Value resource_list(const std::string& group_version, Value items) {
  return Value::object({{"kind", "APIResourceList"},
                        {"apiVersion", "v1"},
                        {"groupVersion", group_version},
                        {"resources", std::move(items)}});
}

Value review_resources(std::string_view group) {
  Value items = Value::array();
  for (const Review& r : kReviews)
    if (group == r.group)
      items.push_back(Value::object({{"name", r.plural},
                                     {"singularName", r.singular},
                                     {"namespaced", false},
                                     {"kind", r.kind},
                                     {"verbs", Value::array({"create"})}}));
  return items;
}

// Our group's list, with the subresources that only we have.
Value our_resources() {
  Value list = apis::legacy_resource_list();
  for (const Extra& extra : kExtras)
    list["resources"].push_back(
        Value::object({{"name", std::string(extra.plural) + "/" + extra.subresource},
                       {"singularName", ""},
                       {"namespaced", true},
                       {"kind", extra.kind},
                       {"verbs", Value::array({extra.verb})}}));
  return list;
}

Value response_kind(std::string_view group, std::string_view version, std::string_view kind) {
  return Value::object({{"group", group}, {"version", version}, {"kind", kind}});
}

Value aggregated_version_of(const char* version, Value items) {
  return Value::object(
      {{"version", version}, {"freshness", "Current"}, {"resources", std::move(items)}});
}

Value aggregated(Value groups, std::string_view version) {
  return Value::object({{"kind", "APIGroupDiscoveryList"},
                        {"apiVersion", "apidiscovery.k8s.io/" + std::string(version)},
                        {"metadata", Value::object()},
                        {"items", std::move(groups)}});
}

Value aggregated_groups() {
  Value groups = apis::aggregated_discovery().get("items");
  for (const char* group : kReviewGroups) {
    Value items = Value::array();
    for (const Review& r : kReviews)
      if (std::string_view(group) == r.group)
        items.push_back(Value::object({{"resource", r.plural},
                                       {"responseKind", response_kind(r.group, "v1", r.kind)},
                                       {"scope", "Cluster"},
                                       {"singularResource", r.singular},
                                       {"verbs", Value::array({"create"})}}));
    groups.push_back(Value::object(
        {{"metadata", Value::object({{"name", group}, {"creationTimestamp", nullptr}})},
         {"versions", Value::array({aggregated_version_of("v1", std::move(items))})}}));
  }
  return groups;
}

std::string aggregated_type(const std::string& version) {
  return "application/json;g=apidiscovery.k8s.io;v=" + version + ";as=APIGroupDiscoveryList";
}

std::string strip_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

}  // namespace

std::string version_document() {
  return Value::object({{"major", "1"},
                        {"minor", "32"},
                        {"gitVersion", "v1.32.0+umpteenth-" UMPTEENTH_VERSION},
                        {"gitCommit", ""},
                        {"gitTreeState", "clean"},
                        {"buildDate", "2026-01-01T00:00:00Z"},
                        {"goVersion", ""},
                        {"compiler", "gcc"},
                        {"platform", "linux/amd64"}})
      .dump();
}

Discovery::Discovery() {
  add("/api", kJson,
      Value::object({{"kind", "APIVersions"},
                     {"versions", Value::array({"v1"})},
                     {"serverAddressByClientCIDRs", Value::array()}})
          .dump());
  const Value groups = all_groups();
  add("/apis", kJson,
      Value::object({{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", groups}}).dump());
  for (const Value& group : groups.items())
    add("/apis/" + group.get_string("name"), kJson, as_group(group).dump());
  for (const char* group : kReviewGroups)
    add("/apis/" + std::string(group) + "/v1", kJson,
        resource_list(std::string(group) + "/v1", review_resources(group)).dump());
  add("/api/v1", kJson, apis::core_resource_list().dump());
  add(std::string("/apis/") + apis::kGroupVersion, kJson, our_resources().dump());
  for (const char* version : {"v2", "v2beta1"}) {
    // Stored beside the legacy form under a name that no path can have.
    add(std::string("/api ") + version, aggregated_type(version),
        aggregated(apis::core_aggregated_discovery().get("items"), version).dump());
    add(std::string("/apis ") + version, aggregated_type(version),
        aggregated(aggregated_groups(), version).dump());
  }
  add(kV3Ours, kJson, apis::openapi_v3().dump(), true);
  add(kV3Core, kJson, apis::core_openapi_v3().dump(), true);
  Value paths = Value::object();
  for (const char* path : {kV3Core, kV3Ours}) {
    const std::string etag = by_path_.find(path)->second.etag;
    paths.set(std::string_view(path).substr(sizeof("/openapi/v3/") - 1),
              Value::object({{"serverRelativeURL",
                              std::string(path) + "?hash=" + etag.substr(1, etag.size() - 2)}}));
  }
  add("/openapi/v3", kJson, Value::object({{"paths", std::move(paths)}}).dump());
  // A document of no bytes is a valid empty protobuf; kubectl wants the 200. It asks for a type
  // with an @ in it, but does not parse one in the answer.
  add("/openapi/v2", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", "");
}

void Discovery::add(std::string path, std::string type, std::string body, bool hashed) {
  std::string etag = "\"" + crypto::hex(crypto::sha256(type + body)).substr(0, 32) + "\"";
  by_path_[std::move(path)] = {std::move(type), std::move(body), std::move(etag), hashed};
}

std::optional<http::Response> Discovery::answer(const http::Request& request) const {
  if (request.path.find(' ') != std::string::npos) return std::nullopt;
  const std::string path = strip_slashes(request.path);
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return std::nullopt;
  if (request.method != "GET" && request.method != "HEAD") throw method_not_allowed();
  if (path == "/api" || path == "/apis")
    if (const std::string v = aggregated_version(request.headers.get("Accept")); !v.empty())
      return serve(request, by_path_.find(path + " " + v)->second);
  return serve(request, found->second);
}

http::Response Discovery::serve(const http::Request& request, const Document& document) const {
  http::Response response;
  response.headers.set("Content-Type", document.type);
  response.headers.set("Etag", document.etag);
  response.headers.set("Vary", "Accept");
  if (document.hashed && request.has_param("hash")) {
    response.headers.set("Cache-Control", "public, immutable");
    response.headers.set("Expires", "Thu, 31 Dec 2099 23:59:59 GMT");
  } else {
    response.headers.set("Cache-Control", "no-cache, private");
  }
  if (request.headers.get("If-None-Match") == document.etag)
    response.status = 304;
  else
    response.body = document.body;
  return response;
}

}  // namespace umpteenth::server
