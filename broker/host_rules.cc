#include "broker/host_rules.h"

#include <algorithm>

#include "base/log.h"

namespace umpteenth::broker {
namespace {

constexpr size_t kMaxHost = 253;

bool non_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

bool in_a_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
         c == ':' || c == '[' || c == ']' || c == '%' || non_ascii(c);
}

bool is_literal(const std::string& host) {
  if (host.find_first_of(":[]%") != std::string::npos) return true;
  // The resolver takes 1, 0x7f.1 and 0177.0.0.1 for addresses: a last label that begins with a
  // digit is no top-level domain.
  const size_t dot = host.rfind('.');
  const char first = host[dot == std::string::npos ? 0 : dot + 1];
  return first >= '0' && first <= '9';
}

bool matches(const std::string& entry, const std::string& host) {
  if (!entry.starts_with("*.")) return entry == host;
  const std::string suffix = entry.substr(1);
  return host.size() > suffix.size() && host.ends_with(suffix);
}

}  // namespace

std::optional<std::string> normal_host(std::string_view text) {
  std::string host(text);
  std::ranges::transform(host, host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  if (host.ends_with('.')) host.pop_back();
  if (host.empty() || host.size() > kMaxHost || host.starts_with('.') || host.ends_with('.') ||
      host.find("..") != std::string::npos || !std::ranges::all_of(host, in_a_name))
    return std::nullopt;
  return host;
}

std::string host_refusal(const runs::EgressGrant& grant, const std::string& host) {
  if (grant.mode == apis::NetworkMode::none)
    return "the egress proxy only serves sandboxes with internet access or an allow-list";
  if (std::ranges::any_of(host, non_ascii)) return "use an ASCII or Punycode target hostname";
  if (host.find_first_of(":[]%") != std::string::npos && grant.mode == apis::NetworkMode::internet)
    return "sandboxes have no IPv6";
  if (grant.mode == apis::NetworkMode::internet) return "";
  const bool listed = !is_literal(host) &&
                      std::ranges::any_of(grant.allowed_domains, [&](const std::string& entry) {
                        return matches(entry, host);
                      });
  return listed ? "" : log::clip(host) + " is not on this job's allow-list";
}

bool address_allowed(const runs::EgressGrant& grant, net::Class found) {
  return found == net::Class::is_public ||
         (found == net::Class::private_range && grant.allow_private);
}

}  // namespace umpteenth::broker
