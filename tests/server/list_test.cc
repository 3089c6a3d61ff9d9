// list: selectors, pages, revisions, Table and metadata-only answers.
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

const std::string kTable =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/"
    "json;as=Table;v=v1beta1;g=meta.k8s.io,"
    "application/json";

class List : public ApiTest {
 protected:
  List() {
    ok("POST", kGv + "/workspaces", workspace("web"), 201);
    for (const char* name : {"a", "b", "c", "d", "e"})
      make_job(name, "x", std::string(R"({"app":")") + (name[0] < 'c' ? "demo" : "other") + "\"}");
    ok("POST", kGv + "/namespaces/web/jobs", a_job("w"), 201);
  }
  json::Value table(const std::string& target) {
    return json::parse(send("GET", target, "", {{"Accept", kTable}}).body);
  }
};

TEST_F(List, has_kind_revision_and_whole_items) {
  const json::Value list = ok("GET", kNs + "/jobs");
  EXPECT_EQ(list.get_string("kind"), "JobList");
  EXPECT_EQ(list.get_string("apiVersion"), "umpteenth.dev/v1alpha1");
  EXPECT_EQ(list.get("metadata").get_string("resourceVersion"), std::to_string(store->revision()));
  EXPECT_EQ(names(list), (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(list.get("items").items()[0].get_string("kind"), "Job");
}

TEST_F(List, empty_is_an_empty_array) {
  EXPECT_NE(send("GET", kNs + "/secrets").body.find("\"items\":[]"), std::string::npos);
}

TEST_F(List, all_workspaces) { EXPECT_EQ(names(ok("GET", kGv + "/jobs")).size(), 6U); }

TEST_F(List, label_and_field_selectors) {
  EXPECT_EQ(names(ok("GET", kNs + "/jobs?labelSelector=app%3Ddemo")),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names(ok("GET", kNs + "/jobs?labelSelector=app+notin+(demo)")).size(), 3U);
  EXPECT_EQ(names(ok("GET", kNs + "/jobs?labelSelector=!app")).size(), 0U);
  EXPECT_EQ(names(ok("GET", kNs + "/jobs?fieldSelector=metadata.name%3Dc")),
            (std::vector<std::string>{"c"}));
  EXPECT_EQ(names(ok("GET", kNs + "/jobs?fieldSelector=metadata.name!%3Dc")).size(), 4U);
  EXPECT_EQ(names(ok("GET", kGv + "/jobs?fieldSelector=metadata.namespace%3Dweb")),
            (std::vector<std::string>{"w"}));
  EXPECT_EQ(names(ok("GET", kNs + "/jobs?fieldSelector=metadata.name%3Dc&labelSelector=app%3Ddemo"))
                .size(),
            0U);
}

TEST_F(List, bad_selectors_are_bad_requests) {
  const json::Value status = json::parse(send("GET", kNs + "/jobs?labelSelector=a+in+b").body);
  EXPECT_EQ(status.get_string("reason"), "BadRequest");
  EXPECT_TRUE(status.get_string("message").starts_with("unable to parse requirement: "))
      << status.dump();
  refused(send("GET", kNs + "/jobs?fieldSelector=spec.x%3D1"), 400,
          "field label not supported: spec.x");
}

TEST_F(List, pages_are_one_snapshot) {
  const json::Value first = ok("GET", kNs + "/jobs?limit=2");
  EXPECT_EQ(names(first), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(first.get("metadata").get_int("remainingItemCount"), 3);
  send("DELETE", kNs + "/jobs/c");
  make_job("bb");
  const std::string token = first.get("metadata").get_string("continue");
  const json::Value second = ok("GET", kNs + "/jobs?limit=2&continue=" + token);
  EXPECT_EQ(names(second), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(second.at_path({"metadata", "resourceVersion"}),
            first.at_path({"metadata", "resourceVersion"}));
  const json::Value last =
      ok("GET", kNs + "/jobs?limit=2&continue=" + second.get("metadata").get_string("continue"));
  EXPECT_EQ(names(last), (std::vector<std::string>{"e"}));
  EXPECT_TRUE(last.at_path({"metadata", "continue"}).is_null());
}

TEST_F(List, pages_with_a_selector_are_full_and_count_nothing) {
  const json::Value first = ok("GET", kNs + "/jobs?limit=2&labelSelector=app%3Dother");
  EXPECT_EQ(names(first), (std::vector<std::string>{"c", "d"}));
  EXPECT_TRUE(first.at_path({"metadata", "remainingItemCount"}).is_null());
  EXPECT_EQ(names(ok("GET", kNs + "/jobs?limit=2&labelSelector=app%3Dother&continue=" +
                                first.get("metadata").get_string("continue"))),
            (std::vector<std::string>{"e"}));
}

TEST_F(List, garbage_and_foreign_continue_keys_are_bad_requests) {
  for (const char* token : {"zzz", "AAAA", "WzEsMiwzLDRd"})
    refused(send("GET", kNs + "/jobs?limit=1&continue=" + std::string(token)), 400,
            "continue key is not valid: it was not made by this server");
  const std::string token = ok("GET", kNs + "/jobs?limit=1").get("metadata").get_string("continue");
  refused(send("GET", kGv + "/jobs?limit=1&continue=" + token), 400,
          "continue key is not valid: it belongs to another list");
  EXPECT_EQ(send("GET", kNs + "/jobs?limit=-1").status, 400);
}

TEST_F(List, resource_versions) {
  const uint64_t now = store->revision();
  EXPECT_EQ(send("GET", kNs + "/jobs?resourceVersion=0").status, 200);
  EXPECT_EQ(send("GET", kNs + "/jobs?resourceVersion=" + std::to_string(now)).status, 200);
  EXPECT_EQ(send("GET", kNs + "/jobs?resourceVersion=abc").status, 400);
  const http::Response future = send("GET", kNs + "/jobs?resourceVersion=999");
  const json::Value status =
      refused(future, 504, "Too large resource version: 999, current: " + std::to_string(now));
  EXPECT_EQ(status.get_string("reason"), "Timeout");
  EXPECT_EQ(future.headers.get("Retry-After"), "1");
  EXPECT_EQ(status.get("details").get_int("retryAfterSeconds"), 1);
  EXPECT_EQ(status.get("details").get("causes").items()[0].get_string("reason"),
            "ResourceVersionTooLarge");
  EXPECT_EQ(send("GET", kNs + "/jobs?resourceVersionMatch=Exact").status, 422);
  EXPECT_EQ(send("GET", kNs + "/jobs?resourceVersion=1&resourceVersionMatch=Near").status, 422);
  EXPECT_EQ(send("GET", kNs + "/jobs?resourceVersion=1&resourceVersionMatch=NotOlderThan").status,
            200);
  EXPECT_EQ(send("GET", kNs + "/jobs?resourceVersion=1&resourceVersionMatch=Exact").status, 410);
}

TEST_F(List, table_has_columns_cells_and_metadata) {
  const json::Value t = table(kNs + "/jobs");
  EXPECT_EQ(t.get_string("kind"), "Table");
  EXPECT_EQ(t.get_string("apiVersion"), "meta.k8s.io/v1");
  EXPECT_EQ(t.get("metadata").get_string("resourceVersion"), std::to_string(store->revision()));
  EXPECT_EQ(t.get("columnDefinitions").items()[0].get_string("name"), "Name");
  ASSERT_EQ(t.get("rows").size(), 5U);
  const json::Value& row = t.get("rows").items()[0];
  EXPECT_EQ(row.get("cells").items()[0].as_string(), "a");
  EXPECT_EQ(row.get("object").get_string("kind"), "PartialObjectMetadata");
  EXPECT_TRUE(row.get("object").get("spec").is_null());
  EXPECT_EQ(table(kNs + "/jobs?includeObject=Object")
                .get("rows")
                .items()[0]
                .get("object")
                .get_string("kind"),
            "Job");
  EXPECT_TRUE(
      table(kNs + "/jobs?includeObject=None").get("rows").items()[0].get("object").is_null());
  EXPECT_EQ(table(kNs + "/jobs/a").get("rows").size(), 1U);
}

TEST_F(List, table_pages_carry_the_continue_key) {
  const json::Value t = table(kNs + "/jobs?limit=2");
  EXPECT_EQ(t.get("rows").size(), 2U);
  EXPECT_FALSE(t.get("metadata").get_string("continue").empty());
}

TEST_F(List, metadata_only) {
  const json::Value list = json::parse(
      send("GET", kNs + "/jobs", "",
           {{"Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}})
          .body);
  EXPECT_EQ(list.get_string("kind"), "PartialObjectMetadataList");
  EXPECT_EQ(list.get("items").items()[0].get_string("kind"), "PartialObjectMetadata");
  EXPECT_TRUE(list.get("items").items()[0].get("spec").is_null());
  const json::Value one =
      json::parse(send("GET", kNs + "/jobs/a", "",
                       {{"Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}})
                      .body);
  EXPECT_EQ(one.get_string("kind"), "PartialObjectMetadata");
}

TEST_F(List, accept_is_negotiated) {
  EXPECT_EQ(send("GET", kNs + "/jobs", "", {{"Accept", "application/xml"}}).status, 406);
  EXPECT_EQ(send("GET", kNs + "/jobs", "", {{"Accept", "application/json, */*;q=0.8"}}).status,
            200);
  EXPECT_EQ(send("GET", kNs + "/jobs", "",
                 {{"Accept", "application/vnd.kubernetes.protobuf,application/json"}})
                .status,
            200);
  const http::Response yaml = send("GET", kNs + "/jobs/a", "", {{"Accept", "application/yaml"}});
  EXPECT_EQ(yaml.headers.get("Content-Type"), "application/yaml");
  EXPECT_NE(yaml.body.find("\nkind: Job\n"), std::string::npos) << yaml.body;
}

TEST_F(List, tokens_see_their_own_workspaces) {
  token = token_for(Role::member, {"web"});
  EXPECT_EQ(names(ok("GET", kGv + "/jobs")), (std::vector<std::string>{"w"}));
  EXPECT_EQ(names(ok("GET", kGv + "/workspaces")), (std::vector<std::string>{"web"}));
  EXPECT_EQ(names(ok("GET", "/api/v1/namespaces")), (std::vector<std::string>{"web"}));
  refused(send("GET", kNs + "/jobs"), 403,
          "jobs.umpteenth.dev is forbidden: User \"token:Member\" cannot list resource \"jobs\" in "
          "API group \"umpteenth.dev\" in the namespace \"default\"");
}

}  // namespace
}  // namespace umpteenth::server
