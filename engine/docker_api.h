// The Docker Engine API as requests and JSON answers: version negotiation and errors as ours.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/http/client.h"
#include "base/json.h"

namespace umpteenth::engine {

// What a status and the engine's text mean. Podman answers 500 for much; its texts decide then.
Error engine_error(int status, std::string_view body);

// "1.40" ≤ the highest that both sides speak; Error(invalid) says what would be needed.
std::string negotiate(std::string_view engine_min, std::string_view engine_max);

using Query = std::vector<std::pair<std::string, std::string>>;
std::string query_text(const Query& query);          // "?a=b&c=d", "" where empty
std::string path_segment(std::string_view text);     // percent-encoded
std::string image_path(std::string_view reference);  // the same, "/" and ":" and "@" stay

struct ApiCall {
  std::string method = "GET";
  std::string path;  // without the version
  Query query;
  std::string body;
  std::string content_type = "application/json";
  Duration timeout{60'000};
  size_t max_body = 64U << 20;
  std::set<int> also_fine;  // statuses beside 2xx that are no error
};

class DockerApi {
 public:
  explicit DockerApi(const std::string& endpoint);

  http::Response send(const ApiCall& call, std::stop_token stop = {});
  json::Value get(const std::string& path, const Query& query = {});
  json::Value post(const std::string& path, const json::Value& body, const Query& query = {});
  std::unique_ptr<http::BodyReader> open(const ApiCall& call, std::stop_token stop = {});
  std::unique_ptr<http::Duplex> upgrade(const ApiCall& call);
  json::Value version();  // the engine's /version, asked anew

 private:
  http::ClientRequest request(const ApiCall& call);
  std::string prefix();
  [[noreturn]] void rethrow(Error error, const ApiCall& call);

  std::string endpoint_;
  http::Client client_;
  std::mutex mutex_;
  std::string version_;  // "" = not negotiated; forgotten when the engine goes away
};

// Reads a response of one JSON object a line. False from on_object ends it.
// Error(timeout) after idle without a byte, Error(bad_gateway) for a line over a megabyte.
void read_json_lines(http::BodyReader& reader, Duration idle, std::stop_token stop,
                     const std::function<bool(const json::Value&)>& on_object);

}  // namespace umpteenth::engine
