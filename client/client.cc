#include "client/client.h"

#include <cpprest/containerstream.h>
#include <cpprest/http_client.h>

#include "apis/serve.h"
#include "base/error.h"

namespace umpteenth::client {

namespace web_http = web::http;

struct Client::Impl {
  web_http::client::http_client client;
};

namespace {

web_http::client::http_client_config config_for(const Connection& connection) {
  web_http::client::http_client_config config;
  config.set_timeout(std::chrono::hours(24));  // watches stay; calls end with the server's limits
  config.set_request_compressed_response(false);
  if (connection.insecure) config.set_validate_certificates(false);
  if (!connection.ca_pem.empty())
    config.set_ssl_context_callback([pem = connection.ca_pem](boost::asio::ssl::context& context) {
      context.add_certificate_authority(boost::asio::buffer(pem));
    });
  return config;
}

std::string uri_of(const std::string& path, const Params& params) {
  std::string uri = path;
  char mark = path.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : params) {
    uri += mark + web::uri::encode_data_string(name) + "=" + web::uri::encode_data_string(value);
    mark = '&';
  }
  return uri;
}

// cpprestsdk joins repeated fields: 299 - "text with \" escaped", 299 - "another"
std::vector<std::string> warning_texts(const std::string& header) {
  std::vector<std::string> texts;
  for (size_t i = header.find('"'); i != std::string::npos; i = header.find('"', i)) {
    std::string text;
    for (++i; i < header.size() && header[i] != '"'; ++i) {
      if (header[i] == '\\' && i + 1 < header.size()) ++i;
      text += header[i];
    }
    ++i;
    texts.push_back(text);
  }
  return texts;
}

Error error_of(int status, const std::string& body) {
  try {
    const json::Value value = json::parse(body);
    if (value.get_string("kind") == "Status") return apis::error_from_status(value, status);
  } catch (const Error&) {
    // not JSON: the text itself has to do
  }
  return Error(code_from_http_status(status),
               "the server answered " + std::to_string(status) + ": " + body.substr(0, 500));
}

}  // namespace

Client::Client(Connection connection)
    : connection_(std::move(connection)),
      impl_(std::make_unique<Impl>(
          Impl{web_http::client::http_client(connection_.server, config_for(connection_))})) {}
Client::~Client() = default;

namespace {

web_http::http_request request_of(const Connection& connection, const std::string& method,
                                  const std::string& uri, const std::string& accept) {
  web_http::http_request request(method);
  request.set_request_uri(uri);
  request.headers().add("Accept", accept);
  request.headers().add("User-Agent", "umpctl/" UMPTEENTH_VERSION);
  if (!connection.token.empty())
    request.headers().add("Authorization", "Bearer " + connection.token);
  return request;
}

template <typename F>
auto translated(const Connection& connection, F&& call) {
  try {
    return call();
  } catch (const web_http::http_exception& e) {
    throw Error(Code::unavailable, "cannot reach " + connection.server + ": " + e.what());
  }
}

}  // namespace

Reply Client::send(const std::string& method, const std::string& path, const Params& params,
                   const std::string& body, const std::string& content_type,
                   const std::string& accept) {
  web_http::http_request request = request_of(connection_, method, uri_of(path, params), accept);
  if (!body.empty()) request.set_body(body, content_type);
  Reply reply;
  translated(connection_, [&] {
    web_http::http_response response = impl_->client.request(request).get();
    reply.status = response.status_code();
    const auto& headers = response.headers();
    if (const auto it = headers.find("Content-Type"); it != headers.end())
      reply.content_type = it->second;
    if (const auto it = headers.find("Warning"); it != headers.end())
      reply.warnings = warning_texts(it->second);
    const auto bytes = response.extract_vector().get();
    reply.body.assign(bytes.begin(), bytes.end());
  });
  if (on_warning)
    for (const std::string& warning : reply.warnings) on_warning(warning);
  if (reply.status >= 400) throw ServerError(error_of(reply.status, reply.body));
  return reply;
}

void Client::stream(const std::string& path, const Params& params, const std::string& accept,
                    const std::function<bool(std::string_view)>& on_line) {
  translated(connection_, [&] {
    web_http::http_response response =
        impl_->client.request(request_of(connection_, "GET", uri_of(path, params), accept)).get();
    if (response.status_code() >= 400) {
      const auto bytes = response.extract_vector().get();
      throw ServerError(error_of(response.status_code(), std::string(bytes.begin(), bytes.end())));
    }
    Concurrency::streams::istream body = response.body();
    for (;;) {
      Concurrency::streams::container_buffer<std::string> line;
      const size_t n = body.read_to_delim(line, '\n').get();
      if (n == 0 && body.is_eof()) return;
      if (!on_line(line.collection())) return;
    }
  });
}

std::string Client::path_of(const apis::Kind& kind, const std::string& ns, const std::string& name,
                            const std::string& subresource) {
  const bool core = kind.kind == "Event" || kind.kind == "Namespace";
  std::string path = core ? "/api/v1" : "/apis/" + std::string(apis::kGroupVersion);
  if (kind.namespaced() && !ns.empty()) path += "/namespaces/" + web::uri::encode_data_string(ns);
  path += "/" + kind.plural;
  if (!name.empty()) path += "/" + web::uri::encode_data_string(name);
  if (!subresource.empty()) path += "/" + subresource;
  return path;
}

json::Value Client::get(const apis::Kind& kind, const std::string& ns, const std::string& name) {
  return json::parse(send("GET", path_of(kind, ns, name)).body);
}

json::Value Client::create(const apis::Kind& kind, const std::string& ns, const json::Value& object,
                           const Params& params) {
  return json::parse(send("POST", path_of(kind, ns), params, object.dump()).body);
}

json::Value Client::patch(const apis::Kind& kind, const std::string& ns, const std::string& name,
                          const json::Value& patch, const Params& params) {
  return json::parse(
      send("PATCH", path_of(kind, ns, name), params, patch.dump(), "application/merge-patch+json")
          .body);
}

}  // namespace umpteenth::client
