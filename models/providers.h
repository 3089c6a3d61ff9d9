// From a ModelProvider resource to a client.
#pragma once

#include <memory>
#include <string>

#include "apis/model_provider.h"
#include "base/outbound.h"
#include "models/model_client.h"

namespace umpteenth::models {

// Talks to the provider; makes no call yet. Error(invalid) for a type that has no client and for
// what the client cannot work with.
std::shared_ptr<ModelClient> make_client(const apis::ModelProviderSpec& provider,
                                         const std::string& provider_name,
                                         const std::string& api_key, const OutboundPolicy& policy);

// Why that would fail, whatever the key's value is; "" where it would not.
std::string client_problem(const apis::ModelProviderSpec& provider,
                           const std::string& provider_name);

// Error(not_found) names the models that exist; Error(invalid) a type that has no client.
Model make_model(const apis::ModelProviderSpec& provider, const std::string& provider_name,
                 const std::string& model_name, const std::string& api_key,
                 const OutboundPolicy& policy);

}  // namespace umpteenth::models
