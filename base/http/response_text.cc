#include "base/http/response_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

namespace umpteenth::http {
namespace {

std::string_view reason(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 101:
      return "Switching Protocols";
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 301:
      return "Moved Permanently";
    case 302:
      return "Found";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 307:
      return "Temporary Redirect";
    case 308:
      return "Permanent Redirect";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 407:
      return "Proxy Authentication Required";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 410:
      return "Gone";
    case 412:
      return "Precondition Failed";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

bool same(std::string_view a, std::string_view lower_case) {
  return a.size() == lower_case.size() &&
         std::equal(a.begin(), a.end(), lower_case.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x) == y;
         });
}

bool ours(std::string_view name) {
  return same(name, "content-length") || same(name, "transfer-encoding") ||
         same(name, "connection") || same(name, "date");
}

void add(std::string& text, std::string_view name, std::string_view value) {
  text.append(name).append(": ");
  for (const char c : value) text += c == '\r' || c == '\n' || c == '\0' ? ' ' : c;
  text.append("\r\n");
}

}  // namespace

bool status_has_body(int status) { return status >= 200 && status != 204 && status != 304; }

std::string response_head(const Response& response, const Framing& framing) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
  text.append(reason(response.status)).append("\r\n");
  add(text, "Date", framing.date);
  bool length_given = false;
  for (const auto& [name, value] : response.headers.fields()) {
    const bool length = framing.head_request && same(name, "content-length");
    length_given = length_given || length;
    if (length || !ours(name)) add(text, name, value);
  }
  if (framing.chunked)
    add(text, "Transfer-Encoding", "chunked");
  else if (status_has_body(response.status) && !length_given && !response.stream)
    add(text, "Content-Length", std::to_string(response.body.size()));
  if (framing.close) add(text, "Connection", "close");
  return text.append("\r\n");
}

std::string chunk_line(size_t size) {
  std::array<char, 20> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), size, 16);
  return std::string(text.data(), error == std::errc() ? end : text.data()) + "\r\n";
}

std::string http_date(int64_t unix_seconds) {
  const time_t seconds = unix_seconds;
  tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  // The C locale's names, whatever the process' locale is.
  constexpr std::array days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const size_t n = strftime(text.data(), text.size(), ", %d ... %Y %H:%M:%S GMT", &utc);
  std::string date = days[static_cast<size_t>(utc.tm_wday)] + std::string(text.data(), n);
  return date.replace(8, 3, months[static_cast<size_t>(utc.tm_mon)]);
}

}  // namespace umpteenth::http
