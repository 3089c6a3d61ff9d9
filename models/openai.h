// OpenAI-compatible chat completions, streamed: OpenAI, OpenRouter, vLLM, Ollama, llama.cpp, …
#pragma once

#include <string>

#include "base/outbound.h"
#include "models/model_client.h"

namespace umpteenth::models {

struct OpenAIOptions {
  std::string base_url;   // with the version: https://api.openai.com/v1
  std::string api_key;    // "" = no Authorization header
  bool official = false;  // OpenAI's own API: max_completion_tokens instead of max_tokens
  Duration connect_timeout{10'000};
  Duration idle_timeout{120'000};
  Duration total_timeout{600'000};
};

// Thread-safe: it keeps nothing between calls.
class OpenAIClient : public ModelClient {
 public:
  OpenAIClient(OpenAIOptions options, OutboundPolicy policy)
      : options_(std::move(options)), outbound_(std::move(policy)) {}

  Answer complete(const Prompt& prompt, const std::function<void(const Delta&)>& on_delta,
                  std::stop_token stop) override;

 private:
  OpenAIOptions options_;
  Outbound outbound_;
};

}  // namespace umpteenth::models
