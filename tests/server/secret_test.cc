// Secrets: sealed on every path, and the clear value nowhere.
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

const std::string kValue = "correct-horse-battery";
const std::string kSecrets = kNs + "/secrets";

std::string a_secret(const std::string& data, const std::string& annotations = "{}") {
  return R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Secret","metadata":{"name":"s","annotations":)" +
         annotations + R"(},"spec":{"stringData":)" + data + "}}";
}
std::string with(const std::string& value) { return R"({"value":")" + value + "\"}"; }

std::string last_applied(const std::string& data) {
  return R"({"kubectl.kubernetes.io/last-applied-configuration":)" + json::quote(a_secret(data)) +
         "}";
}

class Secrets : public ApiTest {
 protected:
  // Every answer and everything stored.
  void expect_hidden(const http::Response& response) {
    EXPECT_EQ(response.body.find(kValue), std::string::npos) << response.body;
    for (const auto& [name, value] : response.headers.fields())
      EXPECT_EQ(value.find(kValue), std::string::npos) << name;
    for (const auto& record : store->list({"secrets", "", 0, ""}).items)
      EXPECT_EQ(record->json.find(kValue), std::string::npos) << record->json;
  }
  std::string opened() {
    return apis::secret_value(sealer, store->find({"secrets", "default", "s"})->parse(), "");
  }
};

TEST_F(Secrets, every_write_path_seals) {
  const http::Response created =
      send("POST", kSecrets, a_secret(with(kValue), last_applied(with(kValue))));
  ASSERT_EQ(created.status, 201) << created.body;
  expect_hidden(created);
  EXPECT_EQ(opened(), kValue);
  EXPECT_NE(created.body.find("sealed"), std::string::npos);

  expect_hidden(send("POST", kSecrets + "?dryRun=All", a_secret(with(kValue))));
  const http::Response merged = patch(kSecrets + "/s", "merge-patch+json",
                                      R"({"spec":{"stringData":)" + with(kValue + "2") + "}}");
  ASSERT_EQ(merged.status, 200) << merged.body;
  expect_hidden(merged);
  EXPECT_EQ(opened(), kValue + "2");

  const http::Response by_operations =
      patch(kSecrets + "/s", "json-patch+json",
            R"([{"op":"add","path":"/spec/stringData","value":)" + with(kValue) + "}]");
  ASSERT_EQ(by_operations.status, 200) << by_operations.body;
  expect_hidden(by_operations);

  json::Value whole = ok("GET", kSecrets + "/s");
  whole["spec"].set("stringData", json::Value::object({{"value", kValue + "3"}}));
  const http::Response replaced = send("PUT", kSecrets + "/s", whole.dump());
  ASSERT_EQ(replaced.status, 200) << replaced.body;
  expect_hidden(replaced);
  EXPECT_EQ(opened(), kValue + "3");

  const http::Response applied = patch(kSecrets + "/s?fieldManager=kubectl&force=true",
                                       "apply-patch+yaml", a_secret(with(kValue)));
  ASSERT_EQ(applied.status, 200) << applied.body;
  expect_hidden(applied);
  EXPECT_EQ(opened(), kValue);
  expect_hidden(send("GET", kSecrets + "/s/history"));
  expect_hidden(send("GET", kSecrets));
}

TEST_F(Secrets, the_same_value_again_changes_nothing) {
  const std::string body = a_secret(with(kValue));
  const http::Response first =
      patch(kSecrets + "/s?fieldManager=kubectl", "apply-patch+yaml", body);
  ASSERT_EQ(first.status, 201) << first.body;
  const http::Response second =
      patch(kSecrets + "/s?fieldManager=kubectl", "apply-patch+yaml", body);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(json::parse(first.body), json::parse(second.body));
  const http::Response third =
      patch(kSecrets + "/s", "merge-patch+json", R"({"spec":{"stringData":)" + with(kValue) + "}}");
  EXPECT_EQ(json::parse(first.body), json::parse(third.body));
}

TEST_F(Secrets, are_sealed_by_others_with_the_key_that_is_served) {
  const json::Value key = ok("GET", "/umpteenth/v1alpha1/sealing-key");
  const std::string value =
      apis::Sealer::seal_offline(key.get_string("publicKey"), key.get_string("instance"),
                                 {"default", "s", "value"}, "offline");
  json::Value object = json::parse(
      R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Secret","metadata":{"name":"s"},"spec":{}})");
  object["spec"]["sealedData"].set("value", value);
  const json::Value made = ok("POST", kNs + "/secrets", object.dump(), 201);
  EXPECT_EQ(apis::secret_value(sealer, made, "value"), "offline");
  EXPECT_EQ(send("POST", "/umpteenth/v1alpha1/sealing-key", "{}").status, 405);
  token = "none";
  EXPECT_EQ(send("GET", "/umpteenth/v1alpha1/sealing-key").status, 401);
}

TEST_F(Secrets, a_removed_key_is_forgotten) {
  send("POST", kSecrets, a_secret(R"({"a":"first-value","b":"second-value"})"));
  const http::Response response =
      patch(kSecrets + "/s", "merge-patch+json", R"({"spec":{"stringData":{"b":null}}})");
  ASSERT_EQ(response.status, 200) << response.body;
  const json::Value sealed = ok("GET", kSecrets + "/s").at_path({"spec", "sealedData"});
  EXPECT_EQ(sealed.size(), 1U);
  EXPECT_TRUE(sealed.find("a"));
}

TEST_F(Secrets, a_value_in_another_annotation_is_refused_without_quoting_it) {
  const http::Response response =
      send("POST", kSecrets, a_secret(with(kValue), R"({"note":"it is )" + kValue + "\"}"));
  EXPECT_EQ(response.status, 422) << response.body;
  expect_hidden(response);
  EXPECT_FALSE(exists("secrets", "s"));
}

TEST_F(Secrets, errors_about_values_do_not_quote_them) {
  for (const std::string& data :
       {R"({"bad key!":")" + kValue + "\"}", R"({"value":[")" + kValue + "\"]}",
        "[\"" + kValue + "\"]", "\"" + kValue + "\""}) {
    const http::Response response = send("POST", kSecrets, a_secret(data));
    EXPECT_GE(response.status, 400) << data;
    EXPECT_LT(response.status, 500) << response.body;
    expect_hidden(response);
  }
}

TEST_F(Secrets, deleting_one_takes_its_mappings_out_of_the_jobs) {
  send("POST", kSecrets, a_secret(with(kValue)));
  ok("POST", kNs + "/jobs",
     R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":"a"},"spec":{"instruction":"x","secrets":[{"secret":"s","env":"S"},{"secret":"t","env":"T"}]}})",
     201);
  const uint64_t generation =
      static_cast<uint64_t>(apis::generation_of(ok("GET", kNs + "/jobs/a")));
  const std::string said = "299 - \"job a no longer maps secret s: its runs start without S\"";
  const http::Response tried = send("DELETE", kSecrets + "/s?dryRun=All");
  EXPECT_EQ(tried.headers.get("Warning"), said) << tried.body;
  EXPECT_EQ(ok("GET", kNs + "/jobs/a").at_path({"spec", "secrets"}).size(), 2U);
  const http::Response deleted = send("DELETE", kSecrets + "/s");
  EXPECT_EQ(deleted.status, 200) << deleted.body;
  EXPECT_EQ(deleted.headers.get("Warning"), said);
  const json::Value job = ok("GET", kNs + "/jobs/a");
  ASSERT_EQ(job.at_path({"spec", "secrets"}).size(), 1U) << job.dump();
  EXPECT_EQ(job.at_path({"spec", "secrets"}).items()[0].get_string("secret"), "t");
  EXPECT_EQ(static_cast<uint64_t>(apis::generation_of(job)), generation + 1);
}

}  // namespace
}  // namespace umpteenth::server
