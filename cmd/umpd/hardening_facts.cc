#include "cmd/umpd/hardening_facts.h"

#include <sys/stat.h>

namespace umpteenth::umpd {

namespace fs = std::filesystem;

server::HardeningFacts hardening_facts(const Config& config, const fs::path& data_dir) {
  server::HardeningFacts facts;
  facts.app_url = config.app.url;
  facts.api_host = config.server.host;
  facts.tls = config.server.tls_mode != "off";
  facts.api_port = static_cast<int>(config.server.port);
  facts.broker_port = static_cast<int>(config.server.broker_port);
  facts.allow_private_targets = config.network.allow_private_targets;
  for (const fs::path& path :
       {fs::path(config.file), data_dir / "encryption.key", fs::path(config.server.tls_key)}) {
    struct stat st {};
    if (path.empty() || ::stat(path.c_str(), &st) != 0) continue;  // not there: nothing to guard
    facts.secret_files.push_back({path.string(), st.st_mode & 0777});
  }
  return facts;
}

}  // namespace umpteenth::umpd
