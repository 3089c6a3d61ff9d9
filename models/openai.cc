#include "models/openai.h"

#include <charconv>

#include "base/log.h"
#include "models/openai_wire.h"

namespace umpteenth::models {
namespace {

std::string endpoint(std::string base_url) {
  while (base_url.ends_with('/')) base_url.pop_back();
  return base_url + "/chat/completions";
}

// Whether trying again may help. A name that does not exist and an address that policy refuses
// stay so.
ModelError transport_error(const Error& e) {
  const bool hopeless = e.code() == Code::forbidden || e.code() == Code::bad_request ||
                        e.code() == Code::invalid || e.code() == Code::too_large ||
                        e.message().find("resolve host") != std::string::npos;
  const std::string text = "calling the model API: " + e.message();
  return {hopeless ? Failure::permanent : Failure::transient, text, !hopeless};
}

int retry_after_seconds(const std::string& header) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), seconds);
  return error == std::errc() && end == header.data() + header.size() ? seconds : 0;
}

}  // namespace

Answer OpenAIClient::complete(const Prompt& prompt,
                              const std::function<void(const Delta&)>& on_delta,
                              std::stop_token stop) {
  ChatStream stream(on_delta);

  OutboundRequest request;
  request.method = "POST";
  request.url = endpoint(options_.base_url);
  request.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  if (!options_.api_key.empty())
    request.headers.emplace_back("Authorization", "Bearer " + options_.api_key);
  request.body = chat_request(prompt, options_.official).dump();
  request.connect_timeout = options_.connect_timeout;
  request.idle_timeout = options_.idle_timeout;
  request.total_timeout = options_.total_timeout;
  request.on_data = [&](std::string_view bytes) {
    stream.feed(bytes);
    return true;
  };

  OutboundResponse response;
  try {
    response = outbound_.send(request, stop);
  } catch (const ModelError&) {
    throw;                    // the stream's own
  } catch (const Error& e) {  // classified here, because only we know what may be repeated
    if (stop.stop_requested()) throw ModelError(Failure::permanent, "the call was stopped", true);
    throw transport_error(e);
  }
  if (response.status != 200) {
    ModelError error = chat_error(response.status, response.body);
    if (const int seconds = retry_after_seconds(response.header("retry-after")); seconds > 0)
      error.retry_after(seconds);
    throw error;
  }
  return stream.finish();
}

}  // namespace umpteenth::models
