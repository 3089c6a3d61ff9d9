#include "models/providers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apis/lifecycle.h"

namespace umpteenth::models {
namespace {

apis::ModelProviderSpec provider(std::string type) {
  apis::ModelProviderSpec spec;
  spec.type = std::move(type);
  spec.models = {{"small", "small-1", 0, 2, 4, 0, 0}, {"big", "", 9'000, 0, 0, 0, 0}};
  spec.script = json::parse(R"([{"say":"hi"}])");
  return spec;
}

std::string make_error(const apis::ModelProviderSpec& spec, const std::string& model,
                       const std::string& key, Code code) {
  try {
    make_model(spec, "main", model, key, {});
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.message();
    return e.message();
  }
  return "no error";
}

TEST(Providers, a_model_is_found_with_its_window_and_prices) {
  const Model model = make_model(provider("Scripted"), "main", "small", "", {});
  EXPECT_EQ(model.id, "small-1");
  EXPECT_EQ(model.context_window, 128'000);
  EXPECT_EQ(model.price.cache_read, 2);  // not given: as input
  EXPECT_EQ(make_model(provider("Scripted"), "main", "big", "", {}).id, "big");
  Prompt prompt;
  EXPECT_EQ(model.client->complete(prompt, {}, {}).text(), "hi");
}

TEST(Providers, errors_name_what_exists) {
  EXPECT_EQ(make_error(provider("Scripted"), "tiny", "", Code::not_found),
            "ModelProvider \"main\" has no model \"tiny\": it has \"small\", \"big\"");
  EXPECT_NE(make_error(provider("Anthropic"), "big", "k", Code::invalid).find("\"Anthropic\""),
            std::string::npos);
  EXPECT_NE(make_error(provider("OpenAI"), "big", "", Code::invalid).find("spec.apiKey"),
            std::string::npos);
  EXPECT_NE(make_error(provider("OpenAICompatible"), "big", "", Code::invalid).find("spec.baseURL"),
            std::string::npos);
  auto open = provider("OpenAICompatible");
  open.base_url = "https://ada:secret@models.example/v1";
  const std::string error = make_error(open, "big", "", Code::invalid);
  EXPECT_NE(error.find("spec.baseURL holds credentials"), std::string::npos);
  EXPECT_EQ(error.find("secret"), std::string::npos);
  auto broken = provider("Scripted");
  broken.script = json::parse(R"([{"sya":"x"}])");
  EXPECT_NE(make_error(broken, "big", "", Code::invalid).find("spec.script[0].sya"),
            std::string::npos);
}

TEST(Providers, a_script_is_checked_when_it_is_applied) {
  const json::Value manifest = json::parse(R"({
    "apiVersion":"umpteenth.dev/v1alpha1","kind":"ModelProvider",
    "metadata":{"name":"demo","namespace":"default"},
    "spec":{"type":"Scripted","models":[{"name":"s"}],
            "script":[{"say":"x"},{"say":"y","match":{"turns":2}}]}})");
  try {
    apis::prepare_create(apis::model_provider_kind(), manifest, {});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::invalid);
    EXPECT_TRUE(std::any_of(e.causes().begin(), e.causes().end(), [](const Cause& cause) {
      return cause.field == "spec.script[1].match.turns";
    })) << e.message();
  }
}

}  // namespace
}  // namespace umpteenth::models
