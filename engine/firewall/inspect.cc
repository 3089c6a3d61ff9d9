#include "engine/firewall/inspect.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"

namespace umpteenth::engine::firewall {
namespace {

const Jump kEnginesJump{"FORWARD", "-j DOCKER-USER"};
constexpr char kOurPrefix[] = "UMPTEENTH-";

std::string interface_of(const std::vector<std::string>& words) {
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "-i" && (i == 0 || words[i - 1] != "!")) return words[i + 1];
  return "";
}

std::optional<std::string> misplaced(const Dump& dump, const std::string& table, const Jump& jump,
                                     const std::vector<std::string>& interfaces) {
  const std::string own = interface_of(words_of(jump.rule));
  for (const std::string& interface : interfaces) {
    if (!own.empty() && own != interface) continue;
    if (auto why = reaches_late(dump, table, jump.from, jump.rule, interface)) return why;
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_tables(const std::vector<Table>& tables, const Dump& dump,
                                           const std::vector<std::string>& interfaces) {
  for (const Table& t : tables) {
    for (const auto& [chain, rules] : t.chains)
      if (!holds(dump, t.name, chain, rules))
        return "chain " + chain + " of table " + t.name + " lacks rules of ours";
    for (const Jump& jump : t.jumps)
      if (auto why = misplaced(dump, t.name, jump, interfaces)) return why;
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_bridges(const Ruleset& wanted, const Host& host) {
  for (const std::string& bridge : wanted.interfaces) {
    if (bridge.ends_with('+')) continue;  // run networks come and go
    if (!host.interfaces.contains(bridge)) return "bridge " + bridge + " is missing on the host";
    if (host.ipv6_interfaces.contains(bridge)) return "IPv6 is on on bridge " + bridge;
  }
  if (!host.bridge_filtered)
    return "net.bridge.bridge-nf-call-iptables is not 1: sandboxes of one bridge are not kept "
           "apart";
  for (const Port& p : host.ports)
    if (!p.isolated && std::ranges::count(wanted.interfaces, p.bridge) > 0)
      return "port " + p.interface + " of bridge " + p.bridge + " is not isolated";
  return std::nullopt;
}

bool has_engines_chains(const Host& host) { return host.ipv4.find("filter", "DOCKER-USER"); }

bool jumps_to_ours(const std::vector<std::string>& words) {
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "-j" && words[i + 1].starts_with(kOurPrefix)) return true;
  return false;
}

// Of a bridge that is gone, or to this installation's chain from a bridge that is not its own.
bool stale(const std::string& rule, const Table& table, const std::string& from,
           const std::string& own_chain, const Host& host) {
  const std::vector<std::string> words = words_of(rule);
  if (!jumps_to_ours(words) || std::ranges::count(table.jumps, Jump{from, rule}) > 0) return false;
  const std::string bridge = interface_of(words);
  return words.back() == own_chain || (!bridge.empty() && !host.interfaces.contains(bridge));
}

class Script {
 public:
  explicit Script(const std::string& table) : table_(table) {}
  void chain(const std::string& name, const std::vector<std::string>& rules) {
    declared_ += ":" + name + " - [0:0]\n";
    for (const std::string& rule : rules) lines_ += "-A " + name + " " + rule + "\n";
  }
  void remove(const std::string& from, const std::string& rule) {
    lines_ += "-D " + from + " " + rule + "\n";
  }
  void put_first(const Jump& jump) { lines_ += "-I " + jump.from + " 1 " + jump.rule + "\n"; }
  void remove_chain(const std::string& name) { lines_ += "-F " + name + "\n-X " + name + "\n"; }
  std::string text() const {
    if (declared_.empty() && lines_.empty()) return "";
    return "*" + table_ + "\n" + declared_ + lines_ + "COMMIT\n";
  }

 private:
  std::string table_, declared_, lines_;
};

void restore_jumps(Script& script, const Table& table, const std::vector<Jump>& jumps,
                   const std::string& from, const Ruleset& wanted, const Dump& dump) {
  const Chain* there = dump.find(table.name, from);
  const auto times = [&](const Jump& jump) {
    return there ? std::ranges::count(there->rules, jump.rule) : 0;
  };
  const bool fine = std::ranges::all_of(jumps, [&](const Jump& jump) {
    return times(jump) == 1 && !misplaced(dump, table.name, jump, wanted.interfaces);
  });
  if (fine) return;
  for (const Jump& jump : jumps)
    for (auto n = times(jump); n > 0; --n) script.remove(from, jump.rule);
  for (auto jump = jumps.rbegin(); jump != jumps.rend(); ++jump) script.put_first(*jump);
}

std::string restore_table(const Table& table, const Ruleset& wanted, const Dump& dump,
                          const Host& host) {
  Script script(table.name);
  for (const auto& [chain, rules] : table.chains)
    if (!holds(dump, table.name, chain, rules)) script.chain(chain, rules);
  std::map<std::string, std::vector<Jump>> by_chain;
  for (const char* from : {"DOCKER-USER", "FORWARD", "INPUT"}) by_chain[from];
  for (const Jump& jump : table.jumps) by_chain[jump.from].push_back(jump);
  if (table.name == "filter") by_chain["FORWARD"].push_back(kEnginesJump);
  for (const auto& [from, jumps] : by_chain) {
    // Without the engine's chain its own rules are gone too; the other line still holds.
    if (table.name == "filter" && from != "INPUT" && !has_engines_chains(host)) continue;
    if (const Chain* c = dump.find(table.name, from))
      for (const std::string& rule : c->rules)
        if (stale(rule, table, from, wanted.own_chain, host)) script.remove(from, rule);
    restore_jumps(script, table, jumps, from, wanted, dump);
  }
  return script.text();
}

std::string remove_from_table(const Table& table, const Ruleset& ours, const Dump& dump) {
  Script script(table.name);
  bool shared_in_use = false;
  for (const char* from : {"DOCKER-USER", "FORWARD", "INPUT"}) {
    const Chain* c = dump.find(table.name, from);
    if (!c) continue;
    for (const std::string& rule : c->rules) {
      const std::vector<std::string> words = words_of(rule);
      if (!jumps_to_ours(words)) continue;
      const bool own = std::ranges::count(ours.interfaces, interface_of(words)) > 0 ||
                       words.back().starts_with(ours.own_chain);
      if (own)
        script.remove(from, rule);
      else
        shared_in_use = true;
    }
  }
  for (const auto& [chain, rules] : table.chains)
    if (dump.find(table.name, chain) && (chain.starts_with(ours.own_chain) || !shared_in_use))
      script.remove_chain(chain);
  return script.text();
}

// A section of `ump hostfw save`: "== <name>" and what follows to the next.
std::map<std::string, std::string> sections_of(std::string_view text) {
  std::map<std::string, std::string> sections;
  std::string* current = nullptr;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("== ")) {
      current = &sections[std::string(line.substr(3))];
    } else if (current) {
      current->append(line).push_back('\n');
    } else {
      throw Error(Code::bad_gateway, "read the host's rules: ump hostfw printed \"" +
                                         std::string(line.substr(0, 80)) + "\"");
    }
  }
  if (!sections.contains("end"))
    throw Error(Code::bad_gateway, "read the host's rules: ump hostfw's text is cut off");
  return sections;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Host parse_host(std::string_view saved) {
  const std::map<std::string, std::string> sections = sections_of(saved);
  const auto section = [&](const std::string& name) {
    const auto it = sections.find(name);
    return it == sections.end() ? std::string() : it->second;
  };
  Host host;
  host.ipv4 = parse_dump(section("ipv4 nft"));
  host.backend = "nft";
  if (sections.contains("ipv4 legacy")) {
    Dump legacy = parse_dump(section("ipv4 legacy"));
    // Both are evaluated; the one that the engine fills is the one whose accepts come after ours.
    const bool engines = legacy.find("filter", "DOCKER-USER") != nullptr;
    if (!sections.contains("ipv4 nft") || (engines && !has_engines_chains(host))) {
      host.ipv4 = std::move(legacy);
      host.backend = "legacy";
    }
  } else if (!sections.contains("ipv4 nft")) {
    throw Error(Code::unavailable, "the host has no iptables-save: install iptables");
  }
  host.ipv6_present = section("ipv6") != "absent\n";
  host.ipv6 = parse_dump(section("ipv6 " + host.backend));
  host.bridge_filtered = section("bridge-nf-call-iptables") == "1\n";
  const std::vector<std::string> with_ipv6 = lines_of(section("ipv6-enabled"));
  host.ipv6_interfaces.insert(with_ipv6.begin(), with_ipv6.end());
  for (const std::string& line : lines_of(section("links"))) {
    const std::vector<std::string> words = words_of(line);
    host.interfaces.insert(words[0]);
    if (words.size() == 3) host.ports.push_back({words[1], words[0], words[2] == "isolated"});
  }
  return host;
}

Verdict inspect(const Ruleset& wanted, const Host& host) {
  if (!has_engines_chains(host))
    return {false,
            "the engine's chain DOCKER-USER is missing (its rules were flushed): restart "
            "the engine and create a network"};
  if (auto why = fault_of_bridges(wanted, host)) return {false, *why};
  if (auto why = misplaced(host.ipv4, "filter", kEnginesJump, wanted.interfaces))
    return {false, *why};
  if (auto why = fault_of_tables(wanted.ipv4, host.ipv4, wanted.interfaces)) return {false, *why};
  if (host.ipv6_present)
    if (auto why = fault_of_tables(wanted.ipv6, host.ipv6, wanted.interfaces))
      return {false, "IPv6: " + *why};
  return {true, ""};
}

std::string restore_text(const Restore& restore) {
  return restore.ipv6.empty() ? restore.ipv4 : restore.ipv4 + "== ipv6\n" + restore.ipv6;
}

Restore plan_restore(const Ruleset& wanted, const Host& host) {
  Restore r;
  for (const Table& t : wanted.ipv4) r.ipv4 += restore_table(t, wanted, host.ipv4, host);
  if (host.ipv6_present)
    for (const Table& t : wanted.ipv6) r.ipv6 += restore_table(t, wanted, host.ipv6, host);
  return r;
}

Restore plan_removal(const Ruleset& ours, const Host& host) {
  Restore r;
  for (const Table& t : ours.ipv4) r.ipv4 += remove_from_table(t, ours, host.ipv4);
  for (const Table& t : ours.ipv6) r.ipv6 += remove_from_table(t, ours, host.ipv6);
  return r;
}

}  // namespace umpteenth::engine::firewall
