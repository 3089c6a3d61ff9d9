// Discovery both ways, OpenAPI, version, health, reviews, sign-in, the protobuf bodies.
#include "server/discovery.h"

#include "server/kube_proto.h"
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

const std::string kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

class Discover : public ApiTest {
 protected:
  http::Response get(const std::string& path, const std::string& accept = "application/json") {
    return send("GET", path, "", {{"Accept", accept}});
  }
};

TEST_F(Discover, legacy_lists_groups_and_resources) {
  EXPECT_EQ(json::parse(get("/api").body).get("versions"), json::Value::array({"v1"}));
  const json::Value groups = json::parse(get("/apis/").body);
  EXPECT_EQ(groups.get_string("kind"), "APIGroupList");
  EXPECT_EQ(groups.get("groups").items()[0].get_string("name"), "umpteenth.dev");
  EXPECT_EQ(json::parse(get("/apis/umpteenth.dev").body).get_string("kind"), "APIGroup");
  const json::Value list = json::parse(get(kGv).body);
  EXPECT_EQ(list.get_string("groupVersion"), "umpteenth.dev/v1alpha1");
  bool jobs = false, status = false;
  for (const json::Value& r : list.get("resources").items()) {
    jobs |= r.get_string("name") == "jobs" && r.get("shortNames") == json::Value::array({"uj"});
    status |= r.get_string("name") == "jobs/status";
  }
  EXPECT_TRUE(jobs && status) << list.dump();
  EXPECT_EQ(json::parse(get("/api/v1").body).get("resources").size(), 2U);
  EXPECT_EQ(get("/apis/authorization.k8s.io/v1").status, 200);
}

TEST_F(Discover, aggregated_has_the_exact_content_type) {
  for (const char* path : {"/api", "/apis"}) {
    const http::Response response = get(path, kAggregated);
    EXPECT_EQ(response.headers.get("Content-Type"),
              "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    EXPECT_EQ(json::parse(response.body).get_string("kind"), "APIGroupDiscoveryList");
  }
  const http::Response beta =
      get("/apis", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList");
  EXPECT_EQ(json::parse(beta.body).get_string("apiVersion"), "apidiscovery.k8s.io/v2beta1");
  EXPECT_TRUE(json::parse(get("/api", kAggregated).body)
                  .get("items")
                  .items()[0]
                  .at_path({"metadata", "name"})
                  .is_null());
}

TEST_F(Discover, etags_answer_304_without_a_body) {
  for (const char* path : {"/api", "/apis", "/openapi/v3"}) {
    const http::Response first = get(path, kAggregated);
    const std::string etag(first.headers.get("Etag"));
    ASSERT_EQ(etag.front(), '"');
    EXPECT_EQ(first.headers.get("Vary"), "Accept");
    const http::Response again =
        send("GET", path, "", {{"Accept", kAggregated}, {"If-None-Match", etag}});
    EXPECT_EQ(again.status, 304);
    EXPECT_TRUE(again.body.empty());
  }
}

TEST_F(Discover, openapi_v3_is_hashed_and_carries_field_validation) {
  const json::Value index = json::parse(get("/openapi/v3").body);
  const std::string url =
      index.at_path({"paths", "apis/umpteenth.dev/v1alpha1"}).get_string("serverRelativeURL");
  EXPECT_TRUE(url.starts_with("/openapi/v3/apis/umpteenth.dev/v1alpha1?hash=")) << url;
  const http::Response hashed = get(url);
  EXPECT_EQ(hashed.headers.get("Cache-Control"), "public, immutable");
  EXPECT_TRUE(hashed.headers.has("Expires"));
  EXPECT_NE(hashed.body.find("\"fieldValidation\""), std::string::npos);
  EXPECT_EQ(hashed.body.find("strategic-merge-patch"), std::string::npos);
  const json::Value paths = json::parse(hashed.body).get("paths");
  const json::Value& patch =
      paths.get("/apis/umpteenth.dev/v1alpha1/namespaces/{namespace}/jobs/{name}").get("patch");
  EXPECT_EQ(patch.get("x-kubernetes-group-version-kind").get_string("kind"), "Job");
  EXPECT_EQ(get("/openapi/v3/api/v1").status, 200);
}

TEST_F(Discover, openapi_v2_is_an_empty_200) {
  const http::Response response =
      get("/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf");
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.body.empty());
}

TEST_F(Discover, version_and_health_need_no_token) {
  for (const char* path : {"/version", "/version/", "/healthz", "/livez", "/readyz"})
    EXPECT_EQ(api.answer(a_request("GET", path)).status, 200) << path;
  EXPECT_EQ(json::parse(api.answer(a_request("GET", "/version/")).body).get_string("minor"), "32");
  EXPECT_EQ(api.answer(a_request("GET", "/healthz")).body, "ok");
}

TEST_F(Discover, readyz_says_why_not) {
  std::optional<std::string> why = "the engine has not answered yet";
  Api other({*store, sealer, clock, tokens, nullptr, nullptr, [&] { return why; }, {}, {}});
  const http::Response response = other.answer(a_request("GET", "/readyz"));
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.body, *why);
  why.reset();
  EXPECT_EQ(other.answer(a_request("GET", "/readyz")).status, 200);
}

TEST_F(Discover, without_a_token_nobody_is_anybody) {
  const http::Headers wrong[] = {{},
                                 {{"Authorization", "Bearer wrong"}},
                                 {{"Authorization", "Basic " + token}},
                                 {{"Authorization", "Bearer "}}};
  for (const http::Headers& headers : wrong) {
    const http::Request request = a_request("GET", kNs + "/jobs", "", headers);
    const http::Response response = api.answer(request);
    refused(response, 401, "Unauthorized");
    EXPECT_TRUE(response.headers.has("WWW-Authenticate"));
    EXPECT_TRUE(std::holds_alternative<http::Response>(api.admit(request)))
        << "refused before a body is read";
  }
  const auto admitted =
      api.admit(a_request("POST", kNs + "/jobs", "", {{"Authorization", "Bearer " + token}}));
  EXPECT_EQ(std::get<http::Admitted>(admitted).body_limit, 3U << 20);
}

TEST_F(Discover, impersonation_is_refused) {
  const http::Response response = send("GET", kNs + "/jobs", "", {{"impersonate-User", "bob"}});
  EXPECT_EQ(response.status, 403);
}

TEST_F(Discover, sandbox_facing_connections_are_closed) {
  Api other(
      {*store, sealer, clock, tokens, nullptr, nullptr, {}, {}, [](const http::Endpoint& end) {
         return end.address.starts_with("10.201.");
       }});
  const http::Site site = other.site();
  EXPECT_FALSE(site.accept({"10.201.0.2", 4000}, {"10.201.0.1", 8080}));
  EXPECT_FALSE(site.accept({"10.201.0.2", 4000}, {"192.0.2.2", 8080})) << "by another address";
  EXPECT_FALSE(site.accept({"192.0.2.7", 4000}, {"10.201.0.1", 8080})) << "from another address";
  EXPECT_TRUE(site.accept({"127.0.0.1", 4000}, {"127.0.0.1", 8080}));
}

TEST_F(Discover, can_i_is_answered_from_the_table) {
  const std::string path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const auto ask = [&](const std::string& verb, const std::string& resource) {
    const json::Value answer = ok("POST", path,
                                  R"({"spec":{"resourceAttributes":{"verb":")" + verb +
                                      R"(","group":"umpteenth.dev","resource":")" + resource +
                                      R"(","namespace":"default"}}})",
                                  201);
    return answer.at_path({"status", "allowed"}).as_bool();
  };
  EXPECT_TRUE(ask("delete", "sandboxengines"));
  token = token_for(Role::member, {"default"});
  EXPECT_TRUE(ask("create", "jobs"));
  EXPECT_FALSE(ask("delete", "runs"));
  EXPECT_FALSE(ask("create", "modelproviders"));
}

TEST_F(Discover, who_am_i) {
  const json::Value answer =
      ok("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
         R"({"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1"})", 201);
  EXPECT_EQ(answer.at_path({"status", "userInfo", "username"}).as_string(), "admin");
}

// "k8s\0" + runtime.Unknown{typeMeta, raw}
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) +
         bytes;
}
std::string envelope(const std::string& version, const std::string& kind, const std::string& raw) {
  return std::string("k8s\0", 4) + field(1, field(1, version) + field(2, kind)) + field(2, raw);
}

TEST_F(Discover, protobuf_bodies_of_kubectl_are_read) {
  const http::Headers proto = {{"Content-Type", kProtobufType},
                               {"Accept", "application/vnd.kubernetes.protobuf,application/json"}};
  const std::string review =
      envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview",
               field(2, field(1, field(1, "default") + field(2, "list") +
                                     field(3, "umpteenth.dev") + field(5, "jobs"))));
  http::Response response =
      send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, proto);
  EXPECT_EQ(response.status, 201) << response.body;
  EXPECT_TRUE(json::parse(response.body).at_path({"status", "allowed"}).as_bool());
  const std::string ns = envelope(
      "v1", "Namespace", field(1, field(1, "made") + field(11, field(1, "k") + field(2, "v"))));
  response = send("POST", "/api/v1/namespaces", ns, proto);
  EXPECT_EQ(response.status, 201) << response.body;
  EXPECT_TRUE(exists("workspaces", "made", ""));
  EXPECT_EQ(send("POST", kNs + "/jobs", ns, proto).status, 415);
}

TEST(KubeProto, every_truncation_is_refused_or_read_and_never_worse) {
  const std::string whole = envelope(
      "v1", "Namespace", field(1, field(1, "made") + field(11, field(1, "k") + field(2, "v"))));
  EXPECT_EQ(
      decode_kube_proto(whole).dump(),
      R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"made","labels":{"k":"v"}}})");
  const size_t type_only = envelope("v1", "Namespace", "").size() - 2;
  for (size_t n = 0; n < whole.size(); ++n) {
    if (n == type_only)
      EXPECT_FALSE(decode_kube_proto(whole.substr(0, n)).find("metadata"));
    else
      EXPECT_THROW(decode_kube_proto(whole.substr(0, n)), Error) << n;
  }
  for (size_t n = 4; n < whole.size(); ++n) {
    std::string bent = whole;
    bent[n] = '\xff';
    try {
      decode_kube_proto(bent);
    } catch (const Error&) {
    }
  }
}

TEST_F(Discover, namespaces_are_a_view_of_workspaces) {
  const json::Value ns = ok("GET", "/api/v1/namespaces/default");
  EXPECT_EQ(ns.get_string("kind"), "Namespace");
  EXPECT_EQ(ns.get_string("apiVersion"), "v1");
  EXPECT_EQ(ns.at_path({"status", "phase"}).as_string(), "Active");
  EXPECT_EQ(apis::uid_of(ns), apis::uid_of(ok("GET", kGv + "/workspaces/default")));
  const json::Value made =
      ok("POST", "/api/v1/namespaces", R"({"metadata":{"name":"web","labels":{"a":"b"}}})", 201);
  EXPECT_EQ(made.get_string("kind"), "Namespace");
  EXPECT_TRUE(exists("workspaces", "web", ""));
  EXPECT_EQ(names(ok("GET", "/api/v1/namespaces?labelSelector=a%3Db")),
            (std::vector<std::string>{"web"}));
  refused(send("POST", "/api/v1/namespaces", R"({"metadata":{"name":"web"}})"), 409,
          "workspaces.umpteenth.dev \"web\" already exists");
  const json::Value table =
      json::parse(get("/api/v1/namespaces", "application/json;as=Table;v=v1;g=meta.k8s.io").body);
  EXPECT_EQ(table.get("columnDefinitions").items()[1].get_string("name"), "Status");
}

TEST_F(Discover, events_are_listed_and_selected) {
  const json::Value job = make_job("a");
  const std::string event =
      R"({"metadata":{"name":"a.1"},"involvedObject":{"kind":"Job","namespace":"default","name":"a","uid":")" +
      apis::uid_of(job) +
      R"(","apiVersion":"umpteenth.dev/v1alpha1"},"reason":"Started","message":"m","type":"Normal","count":1,"firstTimestamp":"2026-11-30T07:59:00Z","lastTimestamp":"2026-11-30T07:59:00Z","eventTime":null,"source":{"component":"umpteenth"}})";
  ok("POST", "/api/v1/namespaces/default/events", event, 201);
  const std::string path = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D";
  EXPECT_EQ(ok("GET", path + "a%2CinvolvedObject.kind%3DJob").get("items").size(), 1U);
  EXPECT_EQ(ok("GET", path + "b").get("items").size(), 0U);
  EXPECT_EQ(ok("GET", "/api/v1/events").get_string("kind"), "EventList");
}

TEST_F(Discover, metrics_count_requests_and_objects) {
  make_job("a");
  send("GET", kNs + "/jobs/nope");
  const std::string text = send("GET", "/metrics").body;
  EXPECT_NE(text.find("umpteenth_objects{kind=\"Job\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("umpteenth_api_requests_total{method=\"GET\",code=\"404\"} 1\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace umpteenth::server
