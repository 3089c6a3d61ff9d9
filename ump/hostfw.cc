// `ump hostfw`: reads and changes the firewall of an engine's host for umpd. In a helper container
// it takes the host's programs (PID 1's mount namespace); the network namespace is the one that the
// engine put it in, which is the engine's own (network mode host). With --here it stays where it
// is.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

#include "ump/child.h"
#include "ump/links.h"
#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

constexpr size_t kMaxRules = 16 << 20;
constexpr int kNoProgram = 127;

// Where PID 1 is closed even to root, its parent (the engine's shim) has the host's files as well.
bool enter_hosts_files() {
  int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", static_cast<int>(getppid()));
    fd = open(path, O_RDONLY | O_CLOEXEC);
  }
  if (fd < 0 || setns(fd, CLONE_NEWNS) != 0 || chdir("/") != 0) {
    complain_errno("cannot enter the host's mount namespace");
    return false;
  }
  close(fd);
  return true;
}

void section(const char* name, const Buffer& text) {
  printf("== %s\n", name);
  fwrite(text.data(), 1, text.size(), stdout);
  if (text.size() > 0 && text.data()[text.size() - 1] != '\n') putchar('\n');
}

// By the backend's own name, else by the plain one where that is of the backend. false on failure;
// *found says whether there is such a program.
bool save_with(const char* named, const char* plain, bool nft, Buffer* text, bool* found) {
  const char* const own[] = {named, nullptr};
  int code = run_child(own, nullptr, 0, text, kMaxRules);
  *found = code != kNoProgram;
  if (!*found) {
    text->clear();
    const char* const other[] = {plain, nullptr};
    code = run_child(other, nullptr, 0, text, kMaxRules);
    *found = code != kNoProgram;
    // An empty ruleset prints no header; then either answer is right.
    const char* is_nft = *found ? strstr(text->data(), "(nf_tables)") : nullptr;
    if (*found && text->size() > 0 && (is_nft != nullptr) != nft) *found = false;
  }
  if (*found && code != 0) complain("%s: exit code %d", named, code);
  return !*found || code == 0;
}

bool has_legacy_tables(const char* names_file) {
  Buffer names;
  return read_file(names_file, 4096, &names) && names.size() > 0;
}

bool save_family(const char* family, bool six) {
  Buffer text;
  bool found = false;
  char name[32];
  if (!save_with(six ? "ip6tables-nft-save" : "iptables-nft-save",
                 six ? "ip6tables-save" : "iptables-save", true, &text, &found))
    return false;
  snprintf(name, sizeof name, "%s nft", family);
  if (found) section(name, text);
  // Asking for legacy tables where there are none would make the kernel load them.
  if (!has_legacy_tables(six ? "/proc/net/ip6_tables_names" : "/proc/net/ip_tables_names"))
    return true;
  text.clear();
  if (!save_with(six ? "ip6tables-legacy-save" : "iptables-legacy-save",
                 six ? "ip6tables-save" : "iptables-save", false, &text, &found))
    return false;
  snprintf(name, sizeof name, "%s legacy", family);
  if (found) section(name, text);
  return true;
}

// The interfaces on which IPv6 is on, a line each.
void list_ipv6_enabled(Buffer* into) {
  DIR* folder = opendir("/proc/sys/net/ipv6/conf");
  if (!folder) return;  // no IPv6 at all
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    char path[320];
    snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", entry->d_name);
    Buffer value;
    if (!read_file(path, 16, &value) || value.size() == 0 || value.data()[0] != '0') continue;
    into->append(entry->d_name);
    into->push_back('\n');
  }
  closedir(folder);
}

int save() {
  if (!save_family("ipv4", false)) return kFailed;
  Buffer text;
  if (access("/proc/net/if_inet6", F_OK) != 0) {
    text.append("absent");
    section("ipv6", text);
  } else if (!save_family("ipv6", true)) {
    return kFailed;
  }
  text.clear();
  if (!read_file("/proc/sys/net/bridge/bridge-nf-call-iptables", 16, &text)) text.append("absent");
  section("bridge-nf-call-iptables", text);
  text.clear();
  if (!list_links(&text)) return kFailed;
  section("links", text);
  text.clear();
  list_ipv6_enabled(&text);
  section("ipv6-enabled", text);
  puts("== end");  // what lacks it was cut off
  return fflush(stdout) == 0 ? kOk : kFailed;
}

int restore_part(bool six, bool legacy, const char* rules, size_t n) {
  if (n == 0) return kOk;
  const char* named = six ? (legacy ? "ip6tables-legacy-restore" : "ip6tables-nft-restore")
                          : (legacy ? "iptables-legacy-restore" : "iptables-nft-restore");
  const char* plain = six ? "ip6tables-restore" : "iptables-restore";
  int code = kNoProgram;
  for (const char* program : {named, plain}) {
    const char* const argv[] = {program, "--noflush", "-w", "30", nullptr};
    code = run_child(argv, rules, n, nullptr, 0);
    if (code != kNoProgram) break;
  }
  if (code == kNoProgram)
    complain("the host has no %s", plain);
  else if (code != 0)
    complain("%s: exit code %d", named, code);
  return code == 0 ? kOk : kFailed;
}

// The rules for IPv4, then, behind a line "== ipv6", those for IPv6.
int restore(const char* backend, const Buffer& rules) {
  const bool legacy = strcmp(backend, "legacy") == 0;
  if (!legacy && strcmp(backend, "nft") != 0)
    return usage("hostfw restore: unknown backend \"%s\"", backend);
  const char kSix[] = "== ipv6\n";
  const char* six = strstr(rules.data(), kSix);
  const size_t four = six ? static_cast<size_t>(six - rules.data()) : rules.size();
  const int first = restore_part(false, legacy, rules.data(), four);
  if (first != kOk || !six) return first;
  six += sizeof kSix - 1;
  return restore_part(true, legacy, six, rules.size() - static_cast<size_t>(six - rules.data()));
}

// A bridge of ours: ports isolated, and no IPv6 address of its own for sandboxes to reach.
int isolate(int count, char** bridges) {
  int result = kOk;
  for (int i = 0; i < count; ++i) {
    int ports = 0;
    if (!isolate_ports(bridges[i], &ports)) {
      result = kFailed;
      continue;
    }
    char path[128];
    const int n =
        snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", bridges[i]);
    const int fd = n < static_cast<int>(sizeof path) ? open(path, O_WRONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
      if (!write_all(fd, "1", 1)) {
        complain_errno("cannot turn IPv6 off on %s", bridges[i]);
        result = kFailed;
      }
      close(fd);
    }
    printf("%s %d\n", bridges[i], ports);
  }
  return result;
}

bool a_name(const char* text) {
  return *text && *text != '.' && !strchr(text, '/') && strlen(text) < 16;
}

}  // namespace

int command_hostfw(int argc, char** argv) {
  bool here = false;
  const char* out = nullptr;
  for (; argc > 0 && argv[0][0] == '-'; --argc, ++argv) {
    if (strcmp(argv[0], "--here") == 0) {
      here = true;
    } else if (strcmp(argv[0], "--out") == 0 && argc > 1) {
      out = argv[1];
      --argc;
      ++argv;
    } else {
      break;
    }
  }
  const char* verb = argc > 0 ? argv[0] : "";
  const bool saves = strcmp(verb, "save") == 0 && argc == 1;
  const bool restores = strcmp(verb, "restore") == 0 && (argc == 2 || argc == 3);
  const bool isolates = strcmp(verb, "isolate") == 0 && argc > 1;
  const bool removes = strcmp(verb, "remove") == 0 && argc == 2;
  if (!saves && !restores && !isolates && !removes)
    return usage(
        "hostfw [--here] [--out FILE] save | restore nft|legacy [FILE] | isolate BRIDGE… | remove "
        "BRIDGE");
  for (int i = 1; (isolates || removes) && i < argc; ++i)
    if (!a_name(argv[i])) return usage("hostfw %s: \"%s\" is no interface's name", verb, argv[i]);
  Buffer rules;
  if (restores && !(argc == 3 ? read_file(argv[2], kMaxRules, &rules)
                              : read_all(STDIN_FILENO, kMaxRules, &rules))) {
    complain_errno("cannot read the rules");
    return kFailed;
  }
  if (out && !freopen(out, "we", stdout)) {  // before the files are others
    complain_errno("cannot write %s", out);
    return kFailed;
  }
  if (!here && !enter_hosts_files()) return kFailed;
  if (saves) return save();
  if (restores) return restore(argv[1], rules);
  if (removes) return remove_link(argv[1]) ? kOk : kFailed;
  const int isolated = isolate(argc - 1, argv + 1);
  return fflush(stdout) == 0 ? isolated : kFailed;
}

}  // namespace umpteenth::ump
