#include "broker/proxy_head.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/crypto.h"
#include "base/error.h"

namespace umpteenth::broker {
namespace {

constexpr size_t kMaxMethod = 32;
constexpr size_t kMaxChunkLine = 256;

bool is_token(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kMarks.find(c) != std::string_view::npos;
}
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is_token(c); });
}
bool is_field_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return out;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

struct Field {
  std::string_view name, value;
  std::string key;  // the name in lower case
};

// The lines of a head without its first; nullopt where one is malformed.
std::optional<std::vector<Field>> fields_of(std::string_view lines) {
  std::vector<Field> fields;
  while (!lines.empty()) {
    const size_t end = lines.find("\r\n");
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon)) ||
        !is_field_value(line.substr(colon + 1)))
      return std::nullopt;
    fields.push_back(
        {line.substr(0, colon), trim(line.substr(colon + 1)), lower(line.substr(0, colon))});
  }
  return fields;
}

bool one_hop(const std::string& key, const std::vector<std::string>& named) {
  constexpr std::string_view kFields[] = {"connection", "keep-alive", "te",
                                          "trailer",    "upgrade",    "http2-settings"};
  return key.starts_with("proxy-") || std::ranges::find(kFields, key) != std::end(kFields) ||
         std::ranges::find(named, key) != named.end();
}

// What Connection names. A sender must not take the framing or Host away with it.
std::vector<std::string> named_by_connection(const std::vector<Field>& fields) {
  std::vector<std::string> named;
  for (const Field& field : fields) {
    if (field.key != "connection") continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      const std::string name = lower(trim(rest.substr(0, comma)));
      if (name != "content-length" && name != "transfer-encoding" && name != "host")
        named.push_back(name);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return named;
}

std::optional<uint64_t> number(std::string_view text, uint64_t max) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value > max ? std::nullopt : std::optional(value);
}

// "host:port" or "[v6]:port"; without a port where the default is not 0.
bool split_authority(std::string_view text, int default_port, std::string& host, int& port) {
  size_t colon = text.rfind(':');
  if (const size_t bracket = text.rfind(']'); bracket != std::string_view::npos) {
    if (!text.starts_with('[')) return false;
    if (colon < bracket) colon = std::string_view::npos;
    if (colon == std::string_view::npos && bracket + 1 != text.size()) return false;
    if (colon != std::string_view::npos && colon != bracket + 1) return false;
  } else if (colon != std::string_view::npos && text.find(':') != colon) {
    return false;
  }
  port = default_port;
  if (colon != std::string_view::npos) {
    const auto found = number(text.substr(colon + 1), 65535);
    if (!found || *found == 0) return false;
    port = static_cast<int>(*found);
  }
  host = std::string(text.substr(0, colon));
  return port != 0 && !host.empty();
}

std::string password_of(std::string_view value) {
  const size_t space = value.find(' ');
  if (space == std::string_view::npos || lower(value.substr(0, space)) != "basic") return "";
  try {
    const std::string both = crypto::from_base64(trim(value.substr(space)));
    const size_t colon = both.find(':');
    return colon == std::string::npos ? "" : both.substr(colon + 1);
  } catch (const Error&) {  // credentials of no use are none
    return "";
  }
}

std::string same_form(std::string_view host) {
  std::string text = lower(host);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

ProxyHead refused(ProxyHead head, int status, std::string text) {
  head.refusal_status = status;
  head.refusal = std::move(text);
  return head;
}

// Fills in body; "" or what is wrong.
std::string frame_body(const std::vector<Field>& fields, BodyFrame& body) {
  bool length = false, chunked = false;
  for (const Field& field : fields) {
    if (field.key == "content-length") {
      const auto bytes = number(field.value, UINT64_MAX);
      if (!bytes || length) return "Content-Length must be one number";
      length = true;
      body = BodyFrame::length(*bytes);
    } else if (field.key == "transfer-encoding") {
      if (chunked || lower(field.value) != "chunked") return "Transfer-Encoding must be chunked";
      chunked = true;
    }
  }
  if (length && chunked) return "a request has either Content-Length or Transfer-Encoding";
  if (chunked) body = BodyFrame::chunked();
  return "";
}

// Host and port out of the target, what is left of it into path; "" or what is wrong.
std::string read_absolute(std::string_view target, ProxyHead& head, std::string& path) {
  constexpr std::string_view kScheme = "http://";
  if (lower(target.substr(0, kScheme.size())) != kScheme)
    return "the egress proxy takes http:// URLs; other protocols go through CONNECT";
  target.remove_prefix(kScheme.size());
  const size_t end = std::min(target.find_first_of("/?#"), target.size());
  const std::string_view authority = target.substr(0, end);
  path = std::string(target.substr(end));
  if (path.empty() || path[0] != '/') path.insert(0, "/");
  if (path.find('#') != std::string::npos) return "a request's URL has no fragment";
  if (authority.find('@') != std::string_view::npos) return "a request's URL has no user";
  if (!split_authority(authority, 80, head.host, head.port)) return "the URL names no host";
  return "";
}

std::string forwarded(const ProxyHead& head, std::string_view method, const std::string& path,
                      const std::vector<Field>& fields) {
  const std::vector<std::string> named = named_by_connection(fields);
  std::string text = std::string(method) + " " + path + " HTTP/1.1\r\nHost: " + head.host;
  if (head.port != 80) text += ":" + std::to_string(head.port);
  text += "\r\n";
  for (const Field& field : fields)
    if (field.key != "host" && !one_hop(field.key, named))
      text.append(field.name).append(": ").append(field.value).append("\r\n");
  return text + "Connection: close\r\n\r\n";
}

}  // namespace

Speaks first_bytes(std::string_view bytes) {
  if (bytes.empty()) return Speaks::need_more;
  if (bytes[0] == 5) return Speaks::socks5;
  const size_t space = bytes.substr(0, kMaxMethod + 1).find(' ');
  if (space == std::string_view::npos) {
    const bool method = bytes.size() <= kMaxMethod && is_token(bytes);
    return method ? Speaks::need_more : Speaks::broker_api;
  }
  if (bytes.substr(0, space) == "CONNECT") return Speaks::proxy;
  if (bytes.size() == space + 1) return Speaks::need_more;
  const char first = bytes[space + 1];
  const bool scheme = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z');
  return scheme ? Speaks::proxy : Speaks::broker_api;
}

BodyFrame BodyFrame::length(uint64_t bytes) {
  BodyFrame frame;
  frame.left_ = bytes;
  frame.done_ = bytes == 0;
  return frame;
}

BodyFrame BodyFrame::chunked() {
  BodyFrame frame;
  frame.chunked_ = true;
  frame.done_ = false;
  return frame;
}

// One byte of a chunked body's frame; false where it cannot stand there.
bool BodyFrame::step(char c) {
  switch (at_) {
    case At::size: {
      const char l = c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c;
      const bool digit = l >= '0' && l <= '9';
      if (digit || (l >= 'a' && l <= 'f')) {
        if (++digits_ > 15) return false;
        left_ = left_ * 16 + static_cast<uint64_t>(digit ? l - '0' : l - 'a' + 10);
        return true;
      }
      if (digits_ == 0) return false;
      at_ = c == '\r' ? At::size_end : At::extension;
      line_ = 0;
      return c == '\r' || c == ';';
    }
    case At::extension:
      if (c == '\r') at_ = At::size_end;
      return c != '\n' && ++line_ <= kMaxChunkLine;
    case At::size_end:
      digits_ = line_ = 0;
      at_ = left_ == 0 ? At::last_cr : At::data;
      return c == '\n';
    case At::data_cr:
      at_ = At::data_lf;
      return c == '\r';
    case At::data_lf:
      at_ = At::size;
      return c == '\n';
    case At::last_cr:  // trailers would be fields that nobody has checked
      at_ = At::last_lf;
      return c == '\r';
    case At::last_lf:
      done_ = true;
      return c == '\n';
    case At::data:
      break;
  }
  return false;
}

std::optional<size_t> BodyFrame::take(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && !done_) {
    if (chunked_ && at_ != At::data) {
      if (!step(bytes[taken++])) return std::nullopt;
      continue;
    }
    const auto part = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size() - taken));
    left_ -= part;
    taken += part;
    if (left_ > 0) continue;
    if (chunked_)
      at_ = At::data_cr;
    else
      done_ = true;
  }
  return taken;
}

ProxyHead parse_proxy_head(std::string_view bytes) {
  ProxyHead head;
  const size_t end = bytes.substr(0, kMaxProxyHead).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() < kMaxProxyHead) return head;
    head.state = ProxyHead::State::complete;
    return refused(std::move(head), 431, "the request's head is too large");
  }
  head.state = ProxyHead::State::complete;
  head.size = end + 4;
  const std::string_view text = bytes.substr(0, end + 2);
  const size_t line_end = text.find("\r\n");
  const std::string_view line = text.substr(0, line_end);
  const size_t space = line.find(' ');
  const size_t last = line.rfind(' ');
  const std::string_view method = line.substr(0, space);
  const std::string_view version =
      last == std::string_view::npos ? std::string_view() : line.substr(last + 1);
  if (space == std::string_view::npos || space == last || !is_token(method) ||
      (version != "HTTP/1.1" && version != "HTTP/1.0"))
    return refused(std::move(head), 400, "the request line is malformed");
  const std::string_view target = line.substr(space + 1, last - space - 1);
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  const auto fields = fields_of(text.substr(line_end + 2));
  if (!fields) return refused(std::move(head), 400, "a header field is malformed");
  if (fields->size() > kMaxProxyFields)
    return refused(std::move(head), 431, "the request has too many header fields");

  head.connect = method == "CONNECT";
  std::string path, problem;
  if (head.connect) {
    if (!split_authority(target, 0, head.host, head.port)) problem = "CONNECT needs host:port";
  } else {
    problem = std::ranges::all_of(target, visible) ? read_absolute(target, head, path)
                                                   : "the request's URL is malformed";
    if (problem.empty()) problem = frame_body(*fields, head.body);
  }
  if (!problem.empty()) return refused(std::move(head), 400, problem);

  size_t hosts = 0;
  for (const Field& field : *fields) {
    if (field.key == "proxy-authorization") head.password = password_of(field.value);
    if (field.key != "host") continue;
    ++hosts;
    std::string host;
    int port = 0;
    if (!head.connect && (!split_authority(field.value, 80, host, port) || port != head.port ||
                          same_form(host) != same_form(head.host)))
      head.host_problem = "the Host field must name the URL's host";
  }
  if (hosts > 1) return refused(std::move(head), 400, "a request has one Host field");
  if (!head.connect) head.forward = forwarded(head, method, path, *fields);
  return head;
}

AnswerHead parse_answer_head(std::string_view bytes) {
  constexpr std::string_view kVersion = "HTTP/1.";
  AnswerHead head;
  const std::string_view begin = bytes.substr(0, kVersion.size());
  head.state = AnswerHead::State::bad;
  if (begin != kVersion.substr(0, begin.size())) return head;
  const size_t end = bytes.substr(0, kMaxAnswerHead).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() < kMaxAnswerHead) head.state = AnswerHead::State::need_more;
    return head;
  }
  const std::string_view text = bytes.substr(0, end + 2);
  const size_t line_end = text.find("\r\n");
  const auto fields = fields_of(text.substr(line_end + 2));
  const std::string_view line = text.substr(0, line_end);
  if (!fields || !is_field_value(line) || line.size() < 12) return head;
  const auto status = number(line.substr(9, 3), 999);
  if (!status || *status == 101) return head;  // nobody asked for an upgrade
  head.state = AnswerHead::State::complete;
  head.size = end + 4;
  head.interim = *status < 200;
  const std::vector<std::string> named = named_by_connection(*fields);
  head.forward.append(line).append("\r\n");
  for (const Field& field : *fields)
    if (!one_hop(field.key, named) || field.key == "trailer")
      head.forward.append(field.name).append(": ").append(field.value).append("\r\n");
  head.forward += head.interim ? "\r\n" : "Connection: close\r\n\r\n";
  return head;
}

std::string proxy_refusal(int status, std::string_view text) {
  const std::pair<int, std::string_view> kReasons[] = {{400, "Bad Request"},
                                                       {403, "Forbidden"},
                                                       {407, "Proxy Authentication Required"},
                                                       {408, "Request Timeout"},
                                                       {429, "Too Many Requests"},
                                                       {431, "Request Header Fields Too Large"},
                                                       {502, "Bad Gateway"},
                                                       {504, "Gateway Timeout"}};
  const auto* reason =
      std::ranges::find(kReasons, status, &std::pair<int, std::string_view>::first);
  std::string answer = "HTTP/1.1 " + std::to_string(status) + " ";
  answer += reason == std::end(kReasons) ? "Error" : reason->second;
  answer += "\r\n";
  if (status == 407) answer += "Proxy-Authenticate: Basic realm=\"umpteenth\"\r\n";
  answer += "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: " +
            std::to_string(text.size() + 1) + "\r\n\r\n";
  return answer.append(text).append("\n");
}

}  // namespace umpteenth::broker
