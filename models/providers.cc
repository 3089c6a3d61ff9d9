#include "models/providers.h"

#include "apis/script.h"
#include "base/net/url.h"
#include "models/openai.h"
#include "models/scripted.h"

namespace umpteenth::models {
namespace {

constexpr char kOfficialOpenAI[] = "https://api.openai.com/v1";

const apis::ModelProviderSpec::Model& find_model(const apis::ModelProviderSpec& provider,
                                                 const std::string& provider_name,
                                                 const std::string& model_name) {
  std::string names;
  for (const auto& model : provider.models) {
    if (model.name == model_name) return model;
    names += (names.empty() ? "" : ", ") + json::quote(model.name);
  }
  throw Error(Code::not_found, "ModelProvider " + json::quote(provider_name) + " has no model " +
                                   json::quote(model_name) + ": " +
                                   (names.empty() ? "it lists none" : "it has " + names));
}

// A price that is not given for cached tokens is the price of input: a limit that bites too early
// beats one that does not bite.
Price price_of(const apis::ModelProviderSpec::Model& model) {
  Price price{model.price_input, model.price_output, model.price_cache_read,
              model.price_cache_write};
  if (price.cache_read <= 0) price.cache_read = price.input;
  if (price.cache_write <= 0) price.cache_write = price.input;
  return price;
}

std::shared_ptr<ModelClient> openai_client(const apis::ModelProviderSpec& provider,
                                           const std::string& provider_name,
                                           const std::string& api_key,
                                           const OutboundPolicy& policy) {
  OpenAIOptions options;
  options.official = provider.type == "OpenAI" && provider.base_url.empty();
  options.base_url = options.official ? kOfficialOpenAI : provider.base_url;
  options.api_key = api_key;
  if (options.base_url.empty())
    throw Error(Code::invalid, "ModelProvider " + json::quote(provider_name) +
                                   ": spec.baseURL is required for type " + provider.type);
  if (options.official && api_key.empty())
    throw Error(Code::invalid, "ModelProvider " + json::quote(provider_name) +
                                   ": spec.apiKey is required for the official API");
  const net::Url url = net::parse_url(options.base_url);
  if (!url.user.empty() || !url.password.empty())
    throw Error(Code::invalid, "ModelProvider " + json::quote(provider_name) +
                                   ": spec.baseURL holds credentials: use spec.apiKey");
  return std::make_shared<OpenAIClient>(std::move(options), policy);
}

}  // namespace

std::shared_ptr<ModelClient> make_client(const apis::ModelProviderSpec& provider,
                                         const std::string& provider_name,
                                         const std::string& api_key, const OutboundPolicy& policy) {
  if (provider.type == "Scripted") {
    try {
      return std::make_shared<ScriptedClient>(provider_name, apis::script_from(provider.script),
                                              system_clock());
    } catch (Error& e) {  // whose script it is
      throw e.in("ModelProvider " + json::quote(provider_name));
    }
  }
  if (provider.type == "OpenAI" || provider.type == "OpenAICompatible")
    return openai_client(provider, provider_name, api_key, policy);
  throw Error(Code::invalid, "ModelProvider " + json::quote(provider_name) +
                                 ": no client for type " + json::quote(provider.type) +
                                 ", use OpenAI, OpenAICompatible or Scripted");
}

std::string client_problem(const apis::ModelProviderSpec& provider,
                           const std::string& provider_name) {
  try {
    make_client(provider, provider_name, provider.api_key.secret.empty() ? "" : "a key", {});
    return "";
  } catch (const Error& e) {  // the answer to the question
    return e.message();
  }
}

Model make_model(const apis::ModelProviderSpec& provider, const std::string& provider_name,
                 const std::string& model_name, const std::string& api_key,
                 const OutboundPolicy& policy) {
  const auto& chosen = find_model(provider, provider_name, model_name);
  Model model;
  model.provider = provider_name;
  model.name = chosen.name;
  model.id = chosen.id.empty() ? chosen.name : chosen.id;
  if (chosen.context_window > 0) model.context_window = chosen.context_window;
  model.price = price_of(chosen);
  model.client = make_client(provider, provider_name, api_key, policy);
  return model;
}

}  // namespace umpteenth::models
