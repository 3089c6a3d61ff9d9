#include "apis/formats.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "apis/object.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/net/address.h"
#include "base/time_zone.h"

namespace umpteenth::apis {
namespace {

bool alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
bool digit(char c) { return c >= '0' && c <= '9'; }

bool all_of(std::string_view text, std::string_view also) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return alnum(c) || also.find(c) != std::string_view::npos; });
}

// Begins and ends with a letter or digit; in between also `also`.
bool name_part(std::string_view text, std::string_view also) {
  return !text.empty() && alnum(text.front()) && alnum(text.back()) && all_of(text, also);
}

bool valid_time(std::string_view text) {
  try {
    parse_time(text);
    return true;
  } catch (const Error&) {  // the only question here is whether it parses
    return false;
  }
}

bool valid_uri(std::string_view text) {
  const size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0 || text.size() > 2048) return false;
  if (!name_part(text.substr(0, colon), "+.-")) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && c != '"' && c != '<' && c != '>' && c != '\\';
  });
}

// A relative path that stays below its root.
bool valid_path(std::string_view text) {
  if (text.size() > 4096 || text.find('\0') != std::string_view::npos) return false;
  if (!text.empty() && text.front() == '/') return false;
  for (size_t at = 0; at <= text.size();) {
    const size_t slash = std::min(text.find('/', at), text.size());
    if (text.substr(at, slash - at) == "..") return false;
    at = slash + 1;
  }
  return true;
}

bool valid_base64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  return all_of(text, "+/");
}

struct Format {
  std::string_view name, rule;
  bool (*matches)(std::string_view);
};

bool lower_dns_label(std::string_view t) { return valid_dns_label(t); }
bool lower_dns_subdomain(std::string_view t) { return valid_dns_subdomain(t); }

constexpr std::array kFormats{
    Format{"date-time", "an RFC 3339 time such as 2026-11-30T08:00:00Z", valid_time},
    Format{"cidr", "a CIDR range such as 10.0.0.0/8, host bits zero",
           [](std::string_view t) { return net::parse_cidr(t).has_value(); }},
    Format{"env-name", "letters, digits and underscores, not beginning with a digit",
           valid_env_name},
    Format{"domain-pattern",
           "a domain such as api.example.com or *.example.com, without scheme, port, path or "
           "IP address",
           valid_domain_pattern},
    Format{"duration", "a duration such as 30s, 5m or 1h30m",
           [](std::string_view t) { return parse_duration_seconds(t) >= 0; }},
    Format{"uri", "an absolute URL", valid_uri},
    Format{"time-zone", "an IANA time zone such as Europe/Berlin",
           [](std::string_view t) { return time_zone_exists(t); }},
    Format{"dns-label", "a lowercase RFC 1123 label (a-z, 0-9, '-'), at most 63 characters",
           lower_dns_label},
    Format{"dns-subdomain",
           "a lowercase RFC 1123 subdomain (a-z, 0-9, '-', '.'), at most 253 characters",
           lower_dns_subdomain},
    Format{"path", "a relative path without ..", valid_path},
    Format{"secret-key", "1 to 100 letters, digits, '_', '.' or '-'", valid_secret_key},
    Format{"byte", "base64", valid_base64},
};

const Format* find_format(std::string_view name) {
  for (const Format& f : kFormats)
    if (f.name == name) return &f;
  return nullptr;
}

}  // namespace

bool matches_format(std::string_view format, std::string_view text) {
  const Format* f = find_format(format);
  return !f || f->matches(text);
}

std::string_view format_rule(std::string_view format) {
  const Format* f = find_format(format);
  return f ? f->rule : std::string_view();
}

bool valid_env_name(std::string_view text) {
  return !text.empty() && !digit(text.front()) && all_of(text, "_");
}

bool reserved_env_name(std::string_view text) {
  if (text.substr(0, 4) == "UMP_" || text == "NODE_USE_ENV_PROXY") return true;
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper == "HTTP_PROXY" || upper == "HTTPS_PROXY" || upper == "ALL_PROXY" ||
         upper == "NO_PROXY";
}

bool valid_domain_pattern(std::string_view text) {
  if (text.substr(0, 2) == "*.") text.remove_prefix(2);
  if (text.empty() || text.size() > 253) return false;
  size_t labels = 0;
  std::string_view last;
  for (size_t at = 0; at <= text.size();) {
    const size_t dot = std::min(text.find('.', at), text.size());
    last = text.substr(at, dot - at);
    if (last.size() > 63 || !name_part(last, "-")) return false;
    ++labels;
    at = dot + 1;
  }
  // A last label of digits only is an IP address, also in its short and odd forms (127.1).
  const bool hex_number = last.size() > 2 && last[0] == '0' && (last[1] == 'x' || last[1] == 'X');
  return labels > 0 && !std::all_of(last.begin(), last.end(), digit) && !hex_number;
}

bool valid_secret_key(std::string_view text) {
  return !text.empty() && text.size() <= 100 && all_of(text, "_.-");
}

bool valid_label_value(std::string_view text) {
  return text.empty() || (text.size() <= 63 && name_part(text, "-_."));
}

bool valid_qualified_name(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    if (!valid_dns_subdomain(text.substr(0, slash))) return false;
    text.remove_prefix(slash + 1);
  }
  return text.size() <= 63 && name_part(text, "-_.");
}

long parse_duration_seconds(std::string_view text) {
  long total = 0;
  if (text.empty() || text.size() > 20) return -1;
  while (!text.empty()) {
    size_t n = 0;
    long value = 0;
    for (; n < text.size() && digit(text[n]); ++n) value = value * 10 + (text[n] - '0');
    if (n == 0 || n > 9 || n == text.size()) return -1;
    const char unit = text[n];
    if (unit != 's' && unit != 'm' && unit != 'h' && unit != 'd') return -1;
    total += value * (unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 86400);
    text.remove_prefix(n + 1);
  }
  return total;
}

}  // namespace umpteenth::apis
