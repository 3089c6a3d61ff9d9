// `ump`, the program inside every sandbox.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "ump/ump.h"

namespace umpteenth::ump {
namespace {

int command_help(int argc, char** argv);
int command_version(int, char**) {
  puts("ump " UMPTEENTH_VERSION);
  return kOk;
}

const struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* arguments;
  const char* what;
  bool hidden;
} kCommands[] = {
    {"llm", command_llm,
     "[--model utility|agent] [--schema FILE] [--system TEXT] [--max-tokens N] [PROMPT|-]",
     "ask the model; with a schema the answer is JSON", false},
    {"state", command_state, "get KEY | set KEY [VALUE|-] | list", "values kept between runs",
     false},
    {"output", command_output, "set KEY [VALUE|-]",
     "set an output of this run; JSON stays JSON, other text becomes a string", false},
    {"step", command_step, "NAME…", "put a marker on the run's timeline", false},
    {"summary", command_summary, "[TEXT|-]", "say what the script did", false},
    {"fail", command_fail, "[REASON]", "report that the run failed; exits 1", false},
    {"connect", command_connect, "HOST PORT",
     "stdin and stdout through the egress proxy to a host, as a ProxyCommand of ssh", false},
    {"version", command_version, "", "print the version", false},
    {"help", command_help, "[--all]", "print this", false},
    {"init", command_init, "[--ttl DURATION]", "the sandbox's first process", true},
    {"exec", command_exec,
     "[--pidfile FILE] [--user UID[:GID]] [--workdir DIR] [--env-stdin] -- COMMAND… | --kill FILE",
     "run a command in a process group that can be killed", true},
    {"relay", command_relay,
     "--listen ADDRESS:PORT --socket PATH [--dns ADDRESS:PORT --dns-socket PATH]",
     "forward connections to the broker's socket", true},
    {"netcheck", command_netcheck,
     "[--timeout DURATION] [--reach ADDRESS…] [--unreachable ADDRESS…]",
     "say which addresses can be reached; exits 1 where one is not as expected", true},
    {"hostfw", command_hostfw,
     "[--here] [--out FILE] save | restore nft|legacy [FILE] | isolate BRIDGE… | remove BRIDGE",
     "read and change the firewall of the engine's host", true},
};

void print(const Command& command) {
  printf("  ump %s%s%s\n        %s\n", command.name, *command.arguments ? " " : "",
         command.arguments, command.what);
}

int command_help(int argc, char** argv) {
  const bool all = argc == 1 && strcmp(argv[0], "--all") == 0;
  if (argc > 0 && !all) return usage("help: unknown argument \"%s\"", argv[0]);
  puts("ump talks to Umpteenth from inside a run's sandbox.\n");
  for (const Command& command : kCommands)
    if (!command.hidden || all) print(command);
  puts("\nExit codes: 0 done, 1 the call failed, 2 wrong usage. A value of - is read from stdin.");
  return kOk;
}

int run(int argc, char** argv) {
  if (argc < 2) return usage("no command; see ump help");
  const char* name = argv[1];
  if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) name = "help";
  if (strcmp(name, "--version") == 0) name = "version";
  for (const Command& command : kCommands) {
    if (strcmp(name, command.name) != 0) continue;
    if (argc == 3 && strcmp(argv[2], "--help") == 0) {
      print(command);
      return kOk;
    }
    return command.run(argc - 2, argv + 2);
  }
  return usage("unknown command \"%s\"; see ump help", name);
}

}  // namespace
}  // namespace umpteenth::ump

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  return umpteenth::ump::run(argc, argv);
}
