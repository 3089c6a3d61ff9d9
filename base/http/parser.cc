#include "base/http/parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>

#include "base/error.h"

namespace umpteenth::http {
namespace {

namespace beast = boost::beast;
using beast::error_code;
using beast::string_view;

constexpr uint32_t kMaxResponseHead = 64U << 10;

// What both directions share: fields and body go where the owner says.
template <bool is_request>
class Parser : public beast::http::basic_parser<is_request> {
 public:
  using Base = beast::http::basic_parser<is_request>;

  Request* request = nullptr;
  Response* status = nullptr;
  Headers* headers = nullptr;
  std::string* body = nullptr;
  std::optional<Refusal> refusal;
  int version = 11;

  size_t feed(std::string_view bytes, error_code& error) {
    // Beast, once it waits for the end of the last chunk (5 bytes at least), asserts that many.
    if (waits_ && bytes.size() < 5) {
      error = beast::http::error::need_more;
      return 0;
    }
    const size_t used = Base::put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
    waits_ = error == beast::http::error::need_more;
    return used;
  }

 private:
  void refuse(error_code& error, int code, std::string_view why) {
    refusal = Refusal{code, why};
    error = beast::http::error::bad_field;
  }

  void on_request_impl(beast::http::verb, string_view method, string_view target, int v,
                       error_code&) override {
    version = v;
    if (request == nullptr) return;
    request->method.assign(method.data(), method.size());
    request->target.assign(target.data(), target.size());
  }
  void on_response_impl(int code, string_view, int v, error_code&) override {
    version = v;
    if (status != nullptr) status->status = code;
  }
  void on_field_impl(beast::http::field field, string_view name, string_view value,
                     error_code& error) override {
    if (head_done_) return;  // trailers mean nothing to us
    if (is_request) check(field, value, error);
    if (headers != nullptr && !error)
      headers->add(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
  }
  void check(beast::http::field field, string_view value, error_code& error) {
    const auto all_digits = [](string_view text) {
      return !text.empty() &&
             std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    switch (field) {
      case beast::http::field::content_length:
        if (std::exchange(has_length_, true) || !all_digits(value))
          refuse(error, 400, "Content-Length must be one number");
        break;
      case beast::http::field::transfer_encoding:
        if (std::exchange(has_encoding_, true) || !beast::iequals(value, "chunked"))
          refuse(error, 501, "the only Transfer-Encoding served is chunked");
        else if (version < 11)
          refuse(error, 400, "Transfer-Encoding needs HTTP/1.1");
        break;
      case beast::http::field::host:
        if (std::exchange(has_host_, true) || value.find_first_of("/@, \t") != string_view::npos)
          refuse(error, 400, "Host must be one name");
        break;
      default:
        break;
    }
  }
  void on_header_impl(error_code& error) override {
    head_done_ = true;
    if (is_request && !has_host_) refuse(error, 400, "Host is required");
  }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  size_t on_body_impl(string_view bytes, error_code&) override {
    if (body != nullptr) body->append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  size_t on_chunk_body_impl(std::uint64_t, string_view bytes, error_code& error) override {
    return on_body_impl(bytes, error);
  }
  void on_finish_impl(error_code&) override {}

  bool head_done_ = false, has_length_ = false, has_encoding_ = false, has_host_ = false;
  bool waits_ = false;
};

Refusal refusal_of(const error_code& code) {
  using beast::http::error;
  if (code == error::header_limit) return {431, "the request's head is too large"};
  if (code == error::body_limit) return {413, "the request's body is too large"};
  if (code == error::bad_version) return {400, "only HTTP/1.1 and HTTP/1.0 are served"};
  if (code == error::bad_content_length || code == error::bad_transfer_encoding)
    return {400, "Content-Length and Transfer-Encoding are malformed or given together"};
  if (code == error::bad_chunk || code == error::bad_chunk_extension)
    return {400, "malformed chunk"};
  return {400, "malformed HTTP request"};
}

bool token_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

// The lines of a head without their meaning: what Beast would let pass.
std::optional<Refusal> check_lines(std::string_view head, size_t max_fields) {
  if (head.find('\0') != std::string_view::npos) return Refusal{400, "NUL in the request's head"};
  size_t lines = 0;
  for (size_t at = 0; at < head.size(); ++at) {
    const size_t found = head.find_first_of("\r\n", at);
    if (found == std::string_view::npos) break;
    if (head.substr(found, 2) != "\r\n") return Refusal{400, "lines must end in CR LF"};
    at = found + 1;
    if (at + 1 < head.size() && (head[at + 1] == ' ' || head[at + 1] == '\t'))
      return Refusal{400, "folded header lines are not accepted"};
    ++lines;
  }
  // The request line and the empty line are no fields.
  if (lines > max_fields + 2) return Refusal{431, "the request has too many header fields"};
  return std::nullopt;
}

bool well_escaped(std::string_view path) {
  const auto hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  for (size_t at = path.find('%'); at != std::string_view::npos; at = path.find('%', at + 1)) {
    if (at + 2 >= path.size() || !hex(path[at + 1]) || !hex(path[at + 2])) return false;
    const std::string_view code = path.substr(at + 1, 2);
    if (code == "00" || code == "2f" || code == "2F") return false;
  }
  return true;
}

std::optional<Refusal> split_target(Request& request, bool proxy_targets) {
  const std::string_view target = request.target;
  if (target == "*" && request.method == "OPTIONS") {
    request.path = "*";
    return std::nullopt;
  }
  if (proxy_targets && (request.method == "CONNECT" || target.starts_with("http://") ||
                        target.starts_with("https://")))
    return std::nullopt;
  if (!target.starts_with('/')) return Refusal{400, "the target must be a path"};
  const size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  if (!well_escaped(path) || target.find('#') != std::string_view::npos)
    return Refusal{400, "the target's escapes are malformed or hide a slash or NUL"};
  request.path = percent_decode(path, false);
  if (mark < target.size()) request.query = parse_query(target.substr(mark + 1));
  return std::nullopt;
}

}  // namespace

struct RequestParser::Impl : Parser<true> {};
struct ResponseParser::Impl : Parser<false> {
  Response response;
};

RequestParser::RequestParser(const Limits& limits)
    : impl_(std::make_unique<Impl>()), limits_(limits) {
  impl_->header_limit(static_cast<uint32_t>(limits.header_bytes));
  // Not boost::none: Beast compares with it, and every length is more than nothing.
  impl_->body_limit(std::numeric_limits<uint64_t>::max());
}
RequestParser::~RequestParser() = default;

size_t RequestParser::find_head(std::string_view bytes, std::optional<Refusal>& refusal) {
  if (!bytes.empty() && !token_character(bytes[0])) {
    refusal = Refusal{400, "this is not an HTTP request"};
    return 0;
  }
  const std::string_view within = bytes.substr(0, limits_.header_bytes);
  const size_t end = within.find("\r\n\r\n", searched_ < 3 ? 0 : searched_ - 3);
  searched_ = within.size();
  if (end != std::string_view::npos) {
    refusal = check_lines(bytes.substr(0, end + 4), limits_.header_count);
    return end + 4;
  }
  if (bytes.size() >= limits_.header_bytes)
    refusal = Refusal{431, "the request's head is too large"};
  return 0;
}

std::optional<Refusal> RequestParser::put_head(std::string_view head, Request& request) {
  impl_->request = &request;
  impl_->headers = &request.headers;
  error_code error;
  const size_t used = impl_->feed(head, error);
  impl_->request = nullptr;
  impl_->headers = nullptr;
  if (impl_->refusal) return impl_->refusal;
  if (error) return refusal_of(error);
  if (used != head.size() || !impl_->is_header_done())
    return Refusal{400, "malformed HTTP request"};
  return split_target(request, limits_.proxy_targets);
}

bool RequestParser::has_body() const { return !impl_->is_done(); }
std::optional<uint64_t> RequestParser::content_length() const {
  const auto length = impl_->content_length();
  return length ? std::optional(*length) : std::nullopt;
}
bool RequestParser::keep_alive() const { return impl_->keep_alive(); }
bool RequestParser::http_1_0() const { return impl_->version < 11; }
void RequestParser::limit_body(size_t bytes) { impl_->body_limit(bytes); }
bool RequestParser::done() const { return impl_->is_done(); }

size_t RequestParser::put_body(std::string_view bytes, std::string& body,
                               std::optional<Refusal>& refusal) {
  impl_->body = &body;
  size_t used = 0;
  while (used < bytes.size() && !impl_->is_done()) {
    error_code error;
    used += impl_->feed(bytes.substr(used), error);
    if (error == beast::http::error::need_more) {
      // Only a chunk's header or the trailers are waited for as a whole.
      if (bytes.size() - used > limits_.header_bytes) refusal = Refusal{400, "malformed chunk"};
      break;
    }
    if (error) {
      refusal = impl_->refusal ? *impl_->refusal : refusal_of(error);
      break;
    }
  }
  impl_->body = nullptr;
  return used;
}

ResponseParser::ResponseParser(bool without_body, size_t max_body)
    : impl_(std::make_unique<Impl>()) {
  impl_->status = &impl_->response;
  impl_->headers = &impl_->response.headers;
  impl_->body = &impl_->response.body;
  impl_->header_limit(kMaxResponseHead);
  impl_->body_limit(max_body);
  impl_->skip(without_body);
}
ResponseParser::~ResponseParser() = default;

size_t ResponseParser::put(std::string_view bytes) {
  size_t used = 0;
  while (used < bytes.size() && !impl_->is_done()) {
    const bool had_head = impl_->is_header_done();
    error_code error;
    used += impl_->feed(bytes.substr(used), error);
    if (error == beast::http::error::need_more) {
      if (bytes.size() - used > kMaxResponseHead)
        throw Error(Code::bad_gateway, "the response has an endless chunk header");
      break;
    }
    if (error == beast::http::error::body_limit)
      throw Error(Code::too_large, "the response's body is too large");
    if (error) throw Error(Code::bad_gateway, "the response is not HTTP: " + error.message());
    // What follows the head may be a raw stream: the caller decides.
    if (!had_head && impl_->is_header_done()) break;
  }
  return used;
}

void ResponseParser::put_eof() {
  error_code error;
  if (impl_->got_some()) impl_->put_eof(error);
  if (!impl_->got_some() || error)
    throw Error(Code::bad_gateway, "the connection ended in the middle of a response");
}

bool ResponseParser::head_done() const { return impl_->is_header_done(); }
bool ResponseParser::done() const { return impl_->is_done(); }
bool ResponseParser::keep_alive() const { return impl_->keep_alive(); }
Response& ResponseParser::response() { return impl_->response; }

}  // namespace umpteenth::http
