// What iptables-save printed, and what its rules may do to a bridge's packets. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace umpteenth::engine::firewall {

struct Chain {
  std::string policy;              // "-" for a chain of somebody's own
  std::vector<std::string> rules;  // without `-A chain `
  bool operator==(const Chain&) const = default;
};

struct Dump {
  std::map<std::string, std::map<std::string, Chain>> tables;
  const Chain* find(const std::string& table, const std::string& chain) const;
};

// Error(bad_gateway) for text that is not iptables-save's.
Dump parse_dump(std::string_view text);

// The rule that could let a packet of the interface pass by before `jump` is reached in the chain,
// or that the jump is absent (said in words); nullopt where the jump surely comes first. Replies
// (a rule for RELATED,ESTABLISHED alone) may pass.
std::optional<std::string> reaches_late(const Dump& dump, const std::string& table,
                                        const std::string& chain, const std::string& jump,
                                        const std::string& interface);

// Whether the chain holds these rules in this order, and besides them only ones that let nothing
// through.
bool holds(const Dump& dump, const std::string& table, const std::string& chain,
           const std::vector<std::string>& rules);

// The words of a rule; a quoted one counts as one.
std::vector<std::string> words_of(std::string_view rule);

}  // namespace umpteenth::engine::firewall
