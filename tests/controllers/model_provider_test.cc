// What a model provider says of itself before anybody calls it.
#include <gtest/gtest.h>

#include "apis/model_provider.h"
#include "apis/object.h"
#include "controllers/model_provider/plan.h"
#include "models/providers.h"
#include "tests/controllers/world.h"

namespace umpteenth::controllers {
namespace {

std::string ready(const json::Value& object) {
  auto condition = apis::find_condition(object, "Ready");
  return condition ? condition->status + " " + condition->reason + ": " + condition->message : "";
}

// spec: without models, which are added.
std::string planned(const char* spec, const std::optional<std::set<std::string>>& keys = {}) {
  auto object =
      json::Value::object({{"metadata", json::Value::object({{"name", "main"}, {"generation", 2}})},
                           {"spec", json::parse(spec)}});
  if (object.get("spec").get("models").is_null())
    object["spec"].set("models", json::parse(R"([{"name":"m","id":"m"}])"));
  std::string problem =
      models::client_problem(apis::model_provider_spec_from(object.get("spec")), "main");
  object.set("status",
             model_provider::plan_status(object, {keys, problem}, at("2026-03-02T10:00:00Z")));
  EXPECT_EQ(object.get("status").get_int("observedGeneration"), 2);
  return ready(object);
}

TEST(ModelProviderPlan, says_whether_a_run_could_use_it) {
  const char* openai = R"({"type":"OpenAI","apiKey":{"secret":"openai","key":"value"}})";
  EXPECT_EQ(planned(openai, {{"value"}}), "True Configured: ");
  EXPECT_EQ(planned(openai),
            "False SecretNotFound: spec.apiKey: secret openai does not exist, and its key value is "
            "wanted");
  EXPECT_EQ(planned(openai, {{"other", "token"}}),
            "False SecretKeyNotFound: spec.apiKey: secret openai has no key value (its keys: "
            "other, token)");
  EXPECT_EQ(planned(R"({"type":"OpenAI","apiKey":{"secret":"openai"}})"),
            "False SecretNotFound: spec.apiKey: secret openai does not exist");
  EXPECT_EQ(planned(R"({"type":"OpenAI"})"),
            "False Unusable: ModelProvider \"main\": spec.apiKey is required for the official API");
  EXPECT_EQ(planned(R"({"type":"OpenAICompatible","baseURL":"http://model.example:8000/v1"})"),
            "True Configured: ")
      << "without a key";
  EXPECT_TRUE(planned(R"({"type":"Anthropic"})").starts_with("False Unusable: "));
  EXPECT_TRUE(planned(R"({"type":"Scripted","models":[]})").starts_with("False NoModels: "));
  EXPECT_EQ(planned(R"({"type":"Scripted","script":[{"say":"hello"}]})"), "True Configured: ");
  EXPECT_TRUE(planned(R"({"type":"Scripted","script":[{"sya":"hello"}]})")
                  .starts_with("False ScriptInvalid: ModelProvider \"main\": "));
}

TEST(ModelProviderController, heals_when_its_secret_appears_and_notices_when_it_goes) {
  auto ground = std::make_shared<Ground>();
  World world(ground, [](const agent::Params&) { return succeed(); });
  ground->create("modelproviders", "default", "keyed",
                 R"({"type":"OpenAI","models":[{"name":"m","id":"m"}],"apiKey":{"secret":"k"}})");
  ground->create_job("user", R"({"model":{"provider":"keyed","name":"m"}})");
  world.start();
  auto job_is = [&](const std::string& beginning) {
    return world.passes(
        [&] { return ready(ground->get("jobs", "default", "user")).starts_with(beginning); });
  };
  auto is = [&](const std::string& beginning) {
    return world.passes([&] {
      return ready(ground->get("modelproviders", "default", "keyed")).starts_with(beginning);
    });
  };
  EXPECT_TRUE(is("False SecretNotFound"));
  EXPECT_TRUE(job_is("False ProviderNotReady: model provider keyed: spec.apiKey: secret k"));
  ground->create("secrets", "default", "k", R"({"sealedData":{"value":"v1.k.x"}})");
  EXPECT_TRUE(is("True Configured"));
  EXPECT_TRUE(job_is("True Ready"));
  ground->remove("secrets", "k");
  EXPECT_TRUE(is("False SecretNotFound"));
}

}  // namespace
}  // namespace umpteenth::controllers
