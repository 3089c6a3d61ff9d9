// umpd: the server. Command lines only; daemon.cc puts the parts together.
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "cmd/umpd/config.h"
#include "cmd/umpd/daemon.h"
#include "server/kubeconfig.h"
#include "store/open.h"

namespace umpteenth::umpd {
namespace {

constexpr char kUsage[] =
    "usage: umpd COMMAND [flags]\n\n"
    "  serve                   run in the foreground, logs to stderr; SIGTERM ends it\n"
    "  admin-token [--rotate]  print the admin token; --rotate makes a new one\n"
    "  fsck                    check the data folder; umpd must not be running on it\n"
    "  docs                    print docs/configuration.md\n"
    "  version\n\n"
    "flags:\n"
    "  --config FILE           options (else CONFIG_FILE, config.yml, config.yaml)\n"
    "  --data-dir DIR          app.data_dir\n"
    "  --host ADDRESS          server.host\n"
    "  --port PORT             server.port, 0 = any free one\n"
    "  --broker-port PORT      server.broker_port\n"
    "  --engine ENDPOINT       engine.endpoint, such as unix:///var/run/docker.sock\n\n"
    "docs/configuration.md lists every option.\n";

struct Line {
  std::string command, config_file;
  bool rotate = false;
  Flags flags;
};

struct UsageError {
  std::string text;
};

Line parse_line(const std::vector<std::string>& words) {
  static const std::pair<std::string_view, std::string_view> kFlagOptions[] = {
      {"--data-dir", "app.data_dir"},  {"--host", "server.host"},
      {"--port", "server.port"},       {"--broker-port", "server.broker_port"},
      {"--engine", "engine.endpoint"},
  };
  Line line;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i], value;
    if (!word.starts_with("-")) {
      if (!line.command.empty()) throw UsageError{"unknown argument " + word};
      line.command = word;
      continue;
    }
    if (word == "--rotate") {
      line.rotate = true;
      continue;
    }
    if (word == "--help" || word == "-h") {
      line.command = "help";
      return line;
    }
    const size_t equals = word.find('=');
    const bool attached = equals != std::string::npos;
    if (attached) {
      value = word.substr(equals + 1);
      word.resize(equals);
    }
    std::string_view option;
    for (const auto& [flag, path] : kFlagOptions)
      if (word == flag) option = path;
    if (option.empty() && word != "--config") throw UsageError{"unknown flag " + word};
    if (!attached) {
      if (++i >= words.size()) throw UsageError{word + " needs a value"};
      value = words[i];
    }
    if (word == "--config")
      line.config_file = value;
    else
      line.flags.emplace_back(option, value);
  }
  return line;
}

Config config_of(const Line& line) {
  ConfigSources sources;
  sources.environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  sources.flags = line.flags;
  sources.file_name = line.config_file;
  if (sources.file_name.empty())
    if (const auto named = sources.environment("CONFIG_FILE")) sources.file_name = *named;
  for (const char* name : {"config.yml", "config.yaml"})
    if (sources.file_name.empty() && std::filesystem::exists(name)) sources.file_name = name;
  if (!sources.file_name.empty()) sources.file_text = read_file(sources.file_name, 1U << 20);
  return load_config(sources);
}

int fsck(const Config& config) {
  const auto problems = store::check_store(config.app.data_dir);
  for (const std::string& problem : problems) std::cout << problem << "\n";
  if (problems.empty()) std::cout << "no problems found\n";
  return problems.empty() ? 0 : 1;
}

int dispatch(const Line& line) {
  if (line.command == "version") {
    std::cout << "umpd " UMPTEENTH_VERSION "\n";
    return 0;
  }
  if (line.command == "docs") {
    std::cout << configuration_markdown();
    return 0;
  }
  if (line.command == "help" || line.command.empty()) {
    (line.command.empty() ? std::cerr : std::cout) << kUsage;
    return line.command.empty() ? 2 : 0;
  }
  if (line.command == "serve") return serve(config_of(line));
  if (line.command == "admin-token") return admin_token(config_of(line), line.rotate);
  if (line.command == "fsck") return fsck(config_of(line));
  throw UsageError{"unknown command " + line.command};
}

}  // namespace
}  // namespace umpteenth::umpd

int main(int argc, char** argv) {
  using namespace umpteenth;  // NOLINT(google-build-using-namespace): main only
  ::signal(SIGPIPE, SIG_IGN);
  try {
    return umpd::dispatch(umpd::parse_line({argv + 1, argv + argc}));
  } catch (const umpd::UsageError& e) {
    std::cerr << "umpd: " << e.text << "; see 'umpd --help'\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "umpd: " << e.what() << "\n";
    return 1;
  }
}
