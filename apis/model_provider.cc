#include "apis/model_provider.h"

#include "apis/cells.h"
#include "apis/script.h"

namespace umpteenth::apis {
namespace {

using namespace schema;  // NOLINT(google-build-using-namespace): the schema reads as one text

Node model() {
  const auto price = [](const char* what) { return number(what).range(0, 100000); };
  return object(
      "One model.",
      {{"name", text("What jobs call it.").min_length(1).max_length(200).required()},
       {"id", text("What the API calls it; absent: the name.").max_length(200)},
       {"contextWindow", integer("Tokens; absent: 128000.").range(1024, 100000000)},
       {"price", object("US dollars a million tokens; absent: free, so cost limits do not bite.",
                        {{"inputPerMTok", price("Read.")},
                         {"outputPerMTok", price("Written.")},
                         {"cacheReadPerMTok", price("Read from the cache.")},
                         {"cacheWritePerMTok", price("Written to the cache.")}})}});
}

Node spec() {
  return object(
      "A model API.",
      {{"type", text("Its protocol. Scripted answers from `script` and needs no model.")
                    .one_of({"Anthropic", "OpenAI", "OpenAICompatible", "Scripted"})
                    .required()},
       {"baseURL", text("Address; empty: the official one. Changing it clears what was bound to "
                        "the old one.")
                       .max_length(2048)
                       .format("uri")
                       .by_default("")},
       {"apiKey", secret_ref("The key.")},
       {"models", list("Models it offers, at most 5000.", model())
                      .unique_by("name")
                      .max_items(5000)
                      .by_default(json::Value::array())},
       {"limits", section("Bounds of its use.",
                          {{"maxConcurrent",
                            integer("Calls at a time, 1 to 1000.").range(1, 1000).by_default(8)}})},
       {"script", list("Rules of type Scripted, tried in order.",
                       object("One rule: when it matches, and what is answered.", {}).open())
                      .max_items(1000)
                      .by_default(json::Value::array())}});
}

void check_provider(const json::Value& object, const json::Value*, std::vector<Cause>& causes) {
  const json::Value& spec = object.get("spec");
  const std::string type = spec.get_string("type");
  if (type == "OpenAICompatible" && spec.get_string("baseURL").empty())
    causes.push_back({"spec.baseURL", "Required value: type OpenAICompatible has no official one",
                      "FieldValueRequired"});
  const std::string url = spec.get_string("baseURL");
  if (!url.empty() && url.rfind("http://", 0) != 0 && url.rfind("https://", 0) != 0)
    causes.push_back(
        {"spec.baseURL",
         "Invalid value: " + json::quote(url.substr(0, 100)) + ": must be an http(s) URL",
         "FieldValueInvalid"});
  if (type != "Scripted" && !spec.get("script").empty())
    causes.push_back({"spec.script", "Forbidden: only with type Scripted", "FieldValueForbidden"});
  if (spec.get("script").is_array()) check_script(spec.get("script"), "spec.script", causes);
}

}  // namespace

ModelProviderSpec model_provider_spec_from(const json::Value& v) {
  ModelProviderSpec s;
  s.type = v.get_string("type");
  s.base_url = v.get_string("baseURL");
  s.api_key = secret_ref_from(v.get("apiKey"));
  if (const json::Value& models = v.get("models"); models.is_array())
    for (const json::Value& m : models.items()) {
      ModelProviderSpec::Model one;
      one.name = m.get_string("name");
      one.id = m.get_string("id", one.name);
      one.context_window = m.get_int("contextWindow", one.context_window);
      const json::Value& price = m.get("price");
      one.price_input = price.get_double("inputPerMTok");
      one.price_output = price.get_double("outputPerMTok");
      one.price_cache_read = price.get_double("cacheReadPerMTok");
      one.price_cache_write = price.get_double("cacheWritePerMTok");
      s.models.push_back(std::move(one));
    }
  s.max_concurrent = v.get("limits").get_int("maxConcurrent", s.max_concurrent);
  if (const json::Value& script = v.get("script"); script.is_array()) s.script = script;
  return s;
}

json::Value to_json(const ModelProviderSpec& s) {
  json::Value v = json::Value::object({{"type", s.type}, {"baseURL", s.base_url}});
  if (!s.api_key.secret.empty()) v.set("apiKey", to_json(s.api_key));
  json::Value models = json::Value::array();
  for (const ModelProviderSpec::Model& m : s.models) {
    json::Value price = json::Value::object();
    if (m.price_input > 0) price.set("inputPerMTok", m.price_input);
    if (m.price_output > 0) price.set("outputPerMTok", m.price_output);
    if (m.price_cache_read > 0) price.set("cacheReadPerMTok", m.price_cache_read);
    if (m.price_cache_write > 0) price.set("cacheWritePerMTok", m.price_cache_write);
    json::Value one =
        json::Value::object({{"name", m.name}, {"id", m.id}, {"contextWindow", m.context_window}});
    if (!price.empty()) one.set("price", std::move(price));
    models.push_back(std::move(one));
  }
  v.set("models", std::move(models));
  v.set("limits", json::Value::object({{"maxConcurrent", s.max_concurrent}}));
  v.set("script", s.script);
  return v;
}

const Kind& model_provider_kind() {
  static const Kind kind = [] {
    Kind k;
    k.kind = "ModelProvider";
    k.plural = "modelproviders";
    k.singular = "modelprovider";
    k.short_names = {"mp"};
    k.categories = {"umpteenth"};
    k.description = "A model API: protocol, address, key, models with prices and windows.";
    k.spec_schema = spec().take();
    k.status_schema = schema::status({}).take();
    k.columns = {at("Type", "string", "Its protocol.", {"spec", "type"}),
                 condition_column("Ready", "Ready"),
                 at("Models", "integer", "Number of models.", {"spec", "models"})};
    k.check = check_provider;
    k.verbs = kAllVerbs;
    return k;
  }();
  return kind;
}

}  // namespace umpteenth::apis
