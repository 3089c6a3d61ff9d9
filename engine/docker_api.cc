#include "engine/docker_api.h"

#include <array>
#include <charconv>

#include "base/log.h"

namespace umpteenth::engine {
namespace {

constexpr std::pair<int, int> kOldest{1, 40};
constexpr std::pair<int, int> kNewest{1, 47};
constexpr size_t kMaxLine = 1U << 20;
constexpr Duration kSlice{500};

std::pair<int, int> parse_version(std::string_view text) {
  std::pair<int, int> v{0, 0};
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return v;
  std::from_chars(text.data(), text.data() + dot, v.first);
  std::from_chars(text.data() + dot + 1, text.data() + text.size(), v.second);
  return v;
}

std::string text_of(std::pair<int, int> v) {
  return std::to_string(v.first) + "." + std::to_string(v.second);
}

std::string message_of(std::string_view body) {
  try {
    const json::Value answer = json::parse(body);
    for (const char* key : {"message", "cause"})
      if (const std::string m = answer.get_string(key); !m.empty()) return log::clip(m, 300);
  } catch (const Error&) {  // not JSON: the text itself is the message
  }
  return body.empty() ? "no reason given" : log::clip(body, 300);
}

bool has(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view p : parts)
    if (text.find(p) != std::string_view::npos) return true;
  return false;
}

}  // namespace

Error engine_error(int status, std::string_view body) {
  const std::string m = message_of(body);
  if (has(m, {"could not find an available, non-overlapping", "could not find free subnet"}))
    return {Code::conflict,
            "the engine has no free address pool left: remove unused networks (" + m + ")"};
  if (has(m, {"Pool overlaps", "subnet overlaps", "already used on the host"}))
    return {Code::conflict, "the subnet overlaps with another network of the engine (" + m + ")"};
  switch (status) {
    case 400:
      return {Code::invalid, m};
    case 403:  // "has active endpoints", "endpoint already exists", "address already in use"
    case 409:
      return {Code::conflict, m};
    case 404:
      return {Code::not_found, m};
    case 503:
      return {Code::unavailable, m};
    default:
      break;
  }
  if (has(m, {"no such", "No such", "not found", "does not exist"})) return {Code::not_found, m};
  if (has(m, {"already used", "already in use", "already exists", "in use by", "being used",
              "already connected", "state improper", "is associated with"}))
    return {Code::conflict, m};
  return {Code::internal, "the container engine answered " + std::to_string(status) + ": " + m};
}

std::string negotiate(std::string_view engine_min, std::string_view engine_max) {
  const auto low = parse_version(engine_min), high = parse_version(engine_max);
  if (high < kOldest)
    throw Error(Code::invalid, "the container engine speaks API " + log::clip(engine_max, 20) +
                                   ", at least " + text_of(kOldest) + " is needed: upgrade it");
  if (low > kNewest)
    throw Error(Code::invalid, "the container engine speaks API " + log::clip(engine_min, 20) +
                                   " and later, at most " + text_of(kNewest) + " is understood");
  return text_of(std::min(high, kNewest));
}

std::string query_text(const Query& query) {
  std::string text;
  for (const auto& [key, value] : query)
    text += (text.empty() ? "?" : "&") + key + "=" + http::percent_encode(value);
  return text;
}

std::string path_segment(std::string_view text) {
  if (text == "." || text == "..") throw Error(Code::bad_request, "\"..\" names nothing");
  return http::percent_encode(text);
}

std::string image_path(std::string_view reference) {
  std::string path;
  for (const char c : reference) {
    if (c == '/' || c == ':' || c == '@')
      path += c;
    else
      path += http::percent_encode(std::string_view(&c, 1));
  }
  return path;
}

DockerApi::DockerApi(const std::string& endpoint)
    : endpoint_(endpoint), client_(http::parse_client_target(endpoint)) {}

void DockerApi::rethrow(Error error, const ApiCall& call) {
  if (error.code() == Code::unavailable) {
    const std::scoped_lock lock(mutex_);
    version_.clear();
    std::string cause = error.message();  // begins with the address again
    if (const size_t at = cause.find(": ");
        at != std::string::npos && endpoint_.ends_with(cause.substr(0, at)))
      cause.erase(0, at + 2);
    const bool denied = cause.find("Permission denied") != std::string::npos;
    throw Error(Code::unavailable,
                "cannot reach the container engine at " + endpoint_ + ": " + cause +
                    (denied ? ": umpd's user needs to be in the group that owns the socket" : ""));
  }
  throw error.in(call.method + " " + call.path);
}

json::Value DockerApi::version() {
  ApiCall call;
  call.path = "/version";
  http::ClientRequest r;
  r.target = call.path;
  r.timeout = Duration{10'000};
  try {
    const http::Response answer = client_.send(r);
    if (answer.status != 200) throw engine_error(answer.status, answer.body);
    return json::parse(answer.body);
  } catch (const Error& e) {
    rethrow(e, call);
  }
}

std::string DockerApi::prefix() {
  {
    const std::scoped_lock lock(mutex_);
    if (!version_.empty()) return "/v" + version_;
  }
  const json::Value v = version();
  const std::string chosen = negotiate(v.get_string("MinAPIVersion"), v.get_string("ApiVersion"));
  const std::scoped_lock lock(mutex_);
  version_ = chosen;
  return "/v" + version_;
}

http::ClientRequest DockerApi::request(const ApiCall& call) {
  http::ClientRequest r;
  r.method = call.method;
  r.target = prefix() + call.path + query_text(call.query);
  if (!call.body.empty()) r.headers.set("Content-Type", call.content_type);
  r.body = call.body;
  r.timeout = call.timeout;
  r.max_body = call.max_body;
  return r;
}

http::Response DockerApi::send(const ApiCall& call, std::stop_token stop) {
  const http::ClientRequest r = request(call);
  http::Response answer;
  try {
    answer = client_.send(r, std::move(stop));
  } catch (const Error& e) {
    rethrow(e, call);
  }
  if (answer.status / 100 != 2 && !call.also_fine.contains(answer.status))
    throw engine_error(answer.status, answer.body);
  return answer;
}

json::Value DockerApi::get(const std::string& path, const Query& query) {
  ApiCall call;
  call.path = path;
  call.query = query;
  return json::parse(send(call).body);
}

json::Value DockerApi::post(const std::string& path, const json::Value& body, const Query& query) {
  ApiCall call;
  call.method = "POST";
  call.path = path;
  call.query = query;
  call.body = body.dump();
  const std::string answer = send(call).body;
  return answer.empty() ? json::Value() : json::parse(answer);
}

std::unique_ptr<http::BodyReader> DockerApi::open(const ApiCall& call, std::stop_token stop) {
  const http::ClientRequest r = request(call);
  std::unique_ptr<http::BodyReader> reader;
  try {
    reader = client_.open(r, std::move(stop));
  } catch (const Error& e) {
    rethrow(e, call);
  }
  if (reader->head().status / 100 == 2) return reader;
  std::string body;
  std::array<char, 4096> buffer{};
  while (body.size() < 16'384) {
    const size_t n = reader->read(buffer.data(), buffer.size(), Duration{5'000});
    if (n == 0) break;
    body.append(buffer.data(), n);
  }
  throw engine_error(reader->head().status, body);
}

std::unique_ptr<http::Duplex> DockerApi::upgrade(const ApiCall& call) {
  const http::ClientRequest r = request(call);
  try {
    return client_.upgrade(r);
  } catch (const Error& e) {
    if (e.code() == Code::unavailable || e.code() == Code::timeout) rethrow(e, call);
    throw engine_error(http_status(e.code()), e.message());
  }
}

void read_json_lines(http::BodyReader& reader, Duration idle, std::stop_token stop,
                     const std::function<bool(const json::Value&)>& on_object) {
  const std::stop_callback on_stop(stop, [&] { reader.cancel(); });
  std::string line;
  std::array<char, 16'384> buffer{};
  Duration silent{0};
  for (;;) {
    size_t n = 0;
    try {
      n = reader.read(buffer.data(), buffer.size(), kSlice);
      silent = Duration{0};
    } catch (const Error& e) {  // silence is judged here, a stop is no error
      if (stop.stop_requested()) return;
      silent += kSlice;
      if (e.code() != Code::timeout || silent > idle) throw;
      continue;
    }
    if (n == 0) return;
    line.append(buffer.data(), n);
    size_t end = 0;
    for (size_t at; (at = line.find('\n', end)) != std::string::npos; end = at + 1) {
      const std::string_view one = std::string_view(line).substr(end, at - end);
      if (one.find_first_not_of(" \r\t") == std::string_view::npos) continue;
      if (!on_object(json::parse(one))) return;
    }
    line.erase(0, end);
    if (line.size() > kMaxLine)
      throw Error(Code::bad_gateway, "the container engine sent a line over a megabyte");
  }
}

}  // namespace umpteenth::engine
