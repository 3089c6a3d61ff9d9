// What umpd's options and files say for the hardening checklist.
#pragma once

#include <filesystem>

#include "cmd/umpd/config.h"
#include "server/hardening.h"

namespace umpteenth::umpd {

// Looks at the files' modes. The port in use and the container are the caller's to fill in.
server::HardeningFacts hardening_facts(const Config& config, const std::filesystem::path& data_dir);

}  // namespace umpteenth::umpd
