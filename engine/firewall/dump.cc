#include "engine/firewall/dump.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace umpteenth::engine::firewall {
namespace {

constexpr int kMaxDepth = 32;

struct Parsed {
  std::string target;
  bool go_to = false;
  bool conditional = false;  // anything but a target
  bool replies_only = false;
  std::string in;  // -i
  bool in_inverted = false;
};

Parsed parse_rule(std::string_view text) {
  Parsed p;
  std::vector<std::string> conditions;
  bool inverted = false;
  const std::vector<std::string> words = words_of(text);
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& w = words[i];
    const bool last = i + 1 == words.size();
    if ((w == "-j" || w == "-g") && !last) {
      p.target = words[i + 1];
      p.go_to = w == "-g";
      break;
    }
    if (w == "-i" && !last) {
      p.in = words[i + 1];
      p.in_inverted = inverted;
    }
    inverted = w == "!";
    conditions.push_back(w);
  }
  p.conditional = !conditions.empty();
  for (const char* match : {"conntrack", "state"}) {
    const std::string option = std::string("--") + (match[0] == 'c' ? "ctstate" : "state");
    for (const char* states : {"RELATED,ESTABLISHED", "ESTABLISHED,RELATED", "ESTABLISHED"})
      if (conditions == std::vector<std::string>{"-m", match, option, states})
        p.replies_only = true;
  }
  return p;
}

// Interfaces as rules name them: one, or with a '+' at the end a family.
std::string_view prefix_of(std::string_view family) { return family.substr(0, family.size() - 1); }

bool overlap(std::string_view a, std::string_view b) {
  const bool family_a = a.ends_with('+'), family_b = b.ends_with('+');
  if (family_a && family_b)
    return prefix_of(a).starts_with(prefix_of(b)) || prefix_of(b).starts_with(prefix_of(a));
  if (family_a) return b.starts_with(prefix_of(a));
  if (family_b) return a.starts_with(prefix_of(b));
  return a == b;
}

bool contains(std::string_view a, std::string_view b) {
  return a.ends_with('+') ? b.starts_with(prefix_of(a)) : a == b;
}

bool may_match(const Parsed& rule, const std::string& interface) {
  if (rule.in.empty()) return true;
  return rule.in_inverted ? !contains(rule.in, interface) : overlap(rule.in, interface);
}

bool harmless(const std::string& target) {
  static const std::set<std::string, std::less<>> kHarmless = {
      "",     "DROP", "REJECT",   "LOG",     "NFLOG",       "MARK",  "CONNMARK", "TCPMSS",
      "DSCP", "TOS",  "CLASSIFY", "SECMARK", "CONNSECMARK", "AUDIT", "TRACE"};
  return kHarmless.contains(target);
}

// inner: in a chain that was jumped to, where RETURN only leads back.
bool lets_through(const Dump& dump, const std::string& table, const Parsed& rule,
                  const std::string& interface, bool inner, int depth) {
  if (rule.replies_only || harmless(rule.target) || !may_match(rule, interface)) return false;
  if (rule.target == "RETURN") return !inner;
  const Chain* chain = dump.find(table, rule.target);
  if (!chain || chain->policy != "-" || depth > kMaxDepth) return true;
  if (rule.go_to && !inner) return true;  // its end leads past the rest of this chain
  return std::ranges::any_of(chain->rules, [&](const std::string& r) {
    return lets_through(dump, table, parse_rule(r), interface, true, depth + 1);
  });
}

}  // namespace

const Chain* Dump::find(const std::string& table, const std::string& chain) const {
  const auto t = tables.find(table);
  if (t == tables.end()) return nullptr;
  const auto c = t->second.find(chain);
  return c == t->second.end() ? nullptr : &c->second;
}

std::vector<std::string> words_of(std::string_view rule) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (size_t i = 0; i < rule.size(); ++i) {
    const char c = rule[i];
    if (quoted && c == '\\' && i + 1 < rule.size()) {
      word += rule[++i];
    } else if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any || !word.empty()) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) words.push_back(word);
  return words;
}

Dump parse_dump(std::string_view text) {
  Dump dump;
  std::string table;
  const auto wrong = [](std::string_view line) {
    return Error(Code::bad_gateway, "read the host's rules: not a line of iptables-save: " +
                                        std::string(line.substr(0, 80)));
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '*') {
      table = line.substr(1);
      dump.tables[table];
    } else if (line == "COMMIT") {
      table.clear();
    } else if (table.empty()) {
      throw wrong(line);
    } else if (line.front() == ':') {
      const std::vector<std::string> words = words_of(line.substr(1));
      if (words.size() < 2) throw wrong(line);
      dump.tables[table][words[0]].policy = words[1];
    } else if (line.starts_with("-A ")) {
      const std::string_view rest = line.substr(3);
      const size_t blank = std::min(rest.find(' '), rest.size());
      const auto chain = dump.tables[table].find(std::string(rest.substr(0, blank)));
      if (chain == dump.tables[table].end()) throw wrong(line);
      chain->second.rules.emplace_back(rest.substr(std::min(blank + 1, rest.size())));
    } else {
      throw wrong(line);
    }
  }
  if (!table.empty()) throw Error(Code::bad_gateway, "read the host's rules: the text is cut off");
  return dump;
}

std::optional<std::string> reaches_late(const Dump& dump, const std::string& table,
                                        const std::string& chain, const std::string& jump,
                                        const std::string& interface) {
  const Chain* c = dump.find(table, chain);
  if (!c) return "chain " + chain + " of table " + table + " is missing";
  if (std::ranges::count(c->rules, jump) == 0)
    return "\"" + jump + "\" is missing in " + table + " " + chain;
  for (const std::string& rule : c->rules) {
    if (rule == jump) return std::nullopt;
    if (lets_through(dump, table, parse_rule(rule), interface, false, 0))
      return "\"" + rule + "\" comes before \"" + jump + "\" in " + table + " " + chain;
  }
  return std::nullopt;
}

bool holds(const Dump& dump, const std::string& table, const std::string& chain,
           const std::vector<std::string>& rules) {
  const Chain* c = dump.find(table, chain);
  if (!c) return false;
  auto next = rules.begin();
  for (const std::string& rule : c->rules) {
    if (next != rules.end() && rule == *next) {
      ++next;
      continue;
    }
    if (!harmless(parse_rule(rule).target)) return false;
  }
  return next == rules.end();
}

}  // namespace umpteenth::engine::firewall
