#include "cmd/umpctl/command.h"

#include <algorithm>
#include <charconv>
#include <iostream>

#include "base/error.h"
#include "base/nearest.h"
#include "cmd/umpctl/doctor.h"

namespace umpteenth::umpctl {

const std::vector<Flag>& global_flags() {
  static const std::vector<Flag> flags{
      {"namespace", 'n', "WORKSPACE", "the workspace to work in"},
      {"kubeconfig", 0, "FILE", "instead of $UMPCONFIG, $KUBECONFIG and the default files"},
      {"context", 0, "NAME", "the kubeconfig context to use"},
      {"server", 's', "URL", "another server than the kubeconfig's"},
      {"token", 0, "TOKEN", "another token than the kubeconfig's"},
      {"warnings-as-errors", 0, "", "exit with 1 when the server sent a warning"},
      {"help", 'h', "", "show the help of the command"},
  };
  return flags;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> table = [] {
    std::vector<Command> made;
    add_apply_commands(made);
    add_get_commands(made);
    add_run_commands(made);
    add_history_commands(made);
    add_change_commands(made);
    add_engine_commands(made);
    add_info_commands(made);
    add_doctor_command(made);
    add_seal_command(made);
    std::sort(made.begin(), made.end(),
              [](const Command& a, const Command& b) { return a.name < b.name; });
    return made;
  }();
  return table;
}

const Command* find_command(std::string_view name) {
  for (const Command& c : commands())
    if (c.name == name) return &c;
  return nullptr;
}

namespace {

const Flag* find_flag(const Command& command, std::string_view name) {
  for (const auto* flags : {&command.flags, &global_flags()})
    for (const Flag& f : *flags)
      if (f.name == name) return &f;
  return nullptr;
}

const Flag* find_letter(const Command& command, char letter) {
  for (const auto* flags : {&command.flags, &global_flags()})
    for (const Flag& f : *flags)
      if (f.letter == letter) return &f;
  return nullptr;
}

std::vector<std::string> flag_names(const Command& command) {
  std::vector<std::string> names;
  for (const auto* flags : {&command.flags, &global_flags()})
    for (const Flag& f : *flags) names.push_back(f.name);
  return names;
}

Error usage_error(const Command& command, const std::string& what) {
  return Error(Code::bad_request, what + (what.ends_with('?') ? " " : "; ") + "see 'umpctl " +
                                      command.name + " --help'");
}

}  // namespace

Invocation parse(const Command& command, const std::vector<std::string>& words) {
  Invocation line;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      line.arguments.insert(line.arguments.end(), words.begin() + static_cast<long>(i) + 1,
                            words.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      line.arguments.push_back(word);
      continue;
    }
    const Flag* flag = nullptr;
    std::string value;
    bool has_value = false;
    if (word[1] == '-') {
      const size_t equals = word.find('=');
      flag = find_flag(command, std::string_view(word).substr(
                                    2, equals == std::string::npos ? equals : equals - 2));
      const std::string name = word.substr(0, equals);
      if (!flag) {
        const std::string close = nearest(name.substr(2), flag_names(command));
        throw usage_error(command, "unknown flag " + name +
                                       (close.empty() ? "" : "; did you mean --" + close + "?"));
      }
      if ((has_value = equals != std::string::npos)) value = word.substr(equals + 1);
    } else {
      flag = find_letter(command, word[1]);
      if (!flag) throw usage_error(command, "unknown flag " + word.substr(0, 2));
      if (word.size() > 2) {
        if (flag->value.empty()) {  // -AR: several switches in one word
          line.values.emplace(flag->name, "true");
          for (size_t k = 2; k < word.size(); ++k) {
            const Flag* next = find_letter(command, word[k]);
            if (!next || !next->value.empty())
              throw usage_error(command, "unknown flag in " + word);
            line.values.emplace(next->name, "true");
          }
          continue;
        }
        has_value = true;
        value = word.substr(word[2] == '=' ? 3 : 2);
      }
    }
    if (flag->value.empty()) {
      if (has_value && value != "true" && value != "false")
        throw usage_error(command,
                          "--" + flag->name + " is \"" + value + "\", it must be true or false");
      line.values.emplace(flag->name, has_value ? value : "true");
      continue;
    }
    if (!has_value) {
      if (!flag->bare.empty()) {
        value = flag->bare;
      } else if (++i < words.size()) {
        value = words[i];
      } else {
        throw usage_error(command, "--" + flag->name + " needs a value (" + flag->value + ")");
      }
    }
    line.values.emplace(flag->name, value);
  }
  for (const Flag& f : command.flags)
    if (!f.fallback.empty() && !line.given(f.name)) line.values.emplace(f.name, f.fallback);
  return line;
}

bool Invocation::given(std::string_view flag) const { return values.find(flag) != values.end(); }
bool Invocation::on(std::string_view flag) const { return get(flag) == "true"; }
std::string Invocation::get(std::string_view flag) const {
  const auto [first, last] = values.equal_range(flag);
  return first == last ? "" : std::prev(last)->second;
}
std::vector<std::string> Invocation::all(std::string_view flag) const {
  std::vector<std::string> found;
  for (auto [it, last] = values.equal_range(flag); it != last; ++it) found.push_back(it->second);
  return found;
}

int64_t Invocation::integer(std::string_view flag) const {
  const std::string text = get(flag);
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(Code::bad_request,
                "--" + std::string(flag) + " is \"" + text + "\", it must be a whole number");
  return n;
}

int64_t Invocation::milliseconds(std::string_view flag) const {
  const std::string text = get(flag);
  const auto bad = [&] {
    return Error(Code::bad_request, "--" + std::string(flag) + " is \"" + text +
                                        "\", it must be a duration such as 30s, 5m or 1h30m");
  };
  int64_t total = 0;
  const char* at = text.data();
  const char* end = at + text.size();
  bool negative = at < end && *at == '-';
  if (negative) ++at;
  if (at == end) throw bad();
  while (at < end) {
    int64_t n = 0;
    const auto [next, error] = std::from_chars(at, end, n);
    if (error != std::errc()) throw bad();
    std::string unit;
    for (at = next; at < end && std::isalpha(static_cast<unsigned char>(*at)); ++at) unit += *at;
    if (unit.empty() || unit == "s")
      total += n * 1000;
    else if (unit == "ms")
      total += n;
    else if (unit == "m")
      total += n * 60'000;
    else if (unit == "h")
      total += n * 3'600'000;
    else
      throw bad();
  }
  return negative ? -total : total;
}

client::ConnectionFlags Invocation::connection_flags() const {
  return {get("kubeconfig"), get("context"), get("namespace"), get("server"), get("token")};
}

client::Client& Invocation::client() {
  if (!client_) {
    client_ = std::make_unique<client::Client>(client::load_connection(connection_flags()));
    client_->on_warning = [](const std::string& text) { std::cerr << "Warning: " << text << "\n"; };
  }
  return *client_;
}

std::string Invocation::ns() {
  return given("namespace") ? get("namespace") : client().connection().ns;
}

namespace {

std::string flag_line(const Flag& f) {
  std::string line = f.letter ? std::string("  -") + f.letter + ", --" : "      --";
  line += f.name;
  if (!f.value.empty()) line += f.bare.empty() ? " " + f.value : "[=" + f.value + "]";
  line.resize(std::max<size_t>(line.size() + 2, 34), ' ');
  line += f.help;
  if (!f.fallback.empty()) line += " (default " + f.fallback + ")";
  return line + "\n";
}

std::string usage_line(const Command& c) {
  return "umpctl " + c.name + (c.arguments.empty() ? "" : " " + c.arguments);
}

}  // namespace

std::string help_of(const Command& c) {
  std::string text = c.summary + "\n\nusage: " + usage_line(c) + "\n";
  if (!c.detail.empty()) text += "\n" + c.detail + "\n";
  if (!c.flags.empty()) text += "\nflags:\n";
  for (const Flag& f : c.flags) text += flag_line(f);
  text += "\nglobal flags:\n";
  for (const Flag& f : global_flags()) text += flag_line(f);
  return text;
}

std::string help_text() {
  std::string text = "umpctl drives umpd: declared jobs, their runs, secrets and engines.\n\n";
  for (const Command& c : commands()) {
    std::string line = "  " + c.name;
    line.resize(std::max<size_t>(line.size() + 2, 18), ' ');
    text += line + c.summary + "\n";
  }
  text +=
      "\n'umpctl COMMAND --help' has flags and examples. What Kubernetes has and umpctl lacks: use "
      "kubectl\nwith the same kubeconfig.\n";
  return text;
}

std::string commands_markdown() {
  std::string text =
      "# umpctl\n\nGenerated from the command table in `cmd/umpctl`. Exit codes: 0 done, 1 the "
      "server or the command failed, 2 wrong usage; `diff`: 0 no differences, 1 differences, more "
      "than 1 an error; `run --follow` and `wait`: 1 when the run did not succeed. Data goes to "
      "stdout, everything else to stderr.\n\n## Flags of every command\n\n```\n";
  for (const Flag& f : global_flags()) text += flag_line(f);
  text += "```\n";
  for (const Command& c : commands()) {
    text += "\n## " + c.name + "\n\n" + c.summary + "\n\n```\n" + usage_line(c) + "\n";
    for (const Flag& f : c.flags) text += flag_line(f);
    text += "```\n";
    if (!c.detail.empty()) text += "\n```\n" + c.detail + "\n```\n";
  }
  return text;
}

}  // namespace umpteenth::umpctl
