// Hand-written matchers for the `format` of schema strings, and for metadata.
#pragma once

#include <string>
#include <string_view>

namespace umpteenth::apis {

// False for text that is not of the format; true for formats that are not ours to check.
// Ours: date-time, cidr, env-name, domain-pattern, duration, uri, time-zone, dns-label,
// dns-subdomain, path, secret-key, byte.
bool matches_format(std::string_view format, std::string_view text);
// "a domain such as example.com or *.example.com"; "" where the format has no rule of ours.
std::string_view format_rule(std::string_view format);

bool valid_env_name(std::string_view text);        // [A-Za-z_][A-Za-z0-9_]*
bool reserved_env_name(std::string_view text);     // UMP_*, the proxy variables
bool valid_domain_pattern(std::string_view text);  // host or *.host, no IP, ≤ 253
bool valid_secret_key(std::string_view text);      // [A-Za-z0-9_.-]{1,100}
bool valid_label_value(std::string_view text);
bool valid_qualified_name(std::string_view text);  // [prefix/]name of labels and annotations
// 30s, 5m, 1h30m → seconds; -1 where it is none.
long parse_duration_seconds(std::string_view text);

}  // namespace umpteenth::apis
