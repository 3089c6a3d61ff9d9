#include "base/http/message.h"

#include <algorithm>
#include <array>

namespace umpteenth::http {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = lower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool unreserved(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

Response with_type(int status, const char* type, std::string body) {
  Response response;
  response.status = status;
  response.headers.add("Content-Type", type);
  response.body = std::move(body);
  return response;
}

}  // namespace

void Headers::add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::set(std::string name, std::string value) {
  std::erase_if(fields_, [&](const auto& field) { return same_name(field.first, name); });
  add(std::move(name), std::move(value));
}

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [key, value] : fields_)
    if (same_name(key, name)) return value;
  return {};
}

bool Headers::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& field) { return same_name(field.first, name); });
}

std::vector<std::string> Headers::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : fields_)
    if (same_name(key, name)) values.push_back(value);
  return values;
}

std::string_view Request::param(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return value;
  return {};
}

bool Request::has_param(std::string_view name) const {
  return std::any_of(query.begin(), query.end(), [&](const auto& p) { return p.first == name; });
}

std::string Request::cookie(std::string_view name) const {
  for (const auto& [key, value] : headers.fields()) {
    if (!same_name(key, "cookie")) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(';'), rest.size());
      std::string_view pair = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
      if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=')
        return std::string(pair.substr(name.size() + 1));
    }
  }
  return {};
}

Response Response::text(int status, std::string body) {
  return with_type(status, "text/plain; charset=utf-8", std::move(body));
}

Response Response::json(int status, std::string body) {
  return with_type(status, "application/json", std::move(body));
}

std::string percent_decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
    if (low >= 0) {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (unreserved(c)) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return encoded;
}

std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> result;
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    result.emplace_back(percent_decode(pair.substr(0, equals), true),
                        percent_decode(pair.substr(std::min(equals + 1, pair.size())), true));
  }
  return result;
}

}  // namespace umpteenth::http
