// The hardening checklist (docs/security.md), item by item: what this instance shows of itself.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace umpteenth::server {

// What umpd knows of its own options and files.
struct HardeningFacts {
  std::string app_url;   // app.url, "" where it was not set
  std::string api_host;  // server.host
  bool tls = true;       // the API itself speaks TLS
  int api_port = 0, broker_port = 0;
  bool in_container = false;  // umpd is a container of the engine: the broker has a TCP port there
  bool allow_private_targets = true;
  struct File {
    std::string path;
    unsigned mode = 0;  // permission bits
    bool operator==(const File&) const = default;
  };
  std::vector<File> secret_files;  // those that hold keys
};

struct HardeningSubject {
  HardeningFacts facts;
  std::vector<std::string> tokens;                 // names of the API tokens, the admin's left out
  std::vector<json::Value> engines, jobs, models;  // SandboxEngine, Job and ModelProvider objects
};

enum class Met { yes, no, unknown };
std::string_view to_string(Met met);  // met, unmet, not known

struct HardeningItem {
  std::string id, title;
  Met met = Met::unknown;
  std::string found;  // what was seen
  std::string todo;   // what to do, "" where nothing is
  bool operator==(const HardeningItem&) const = default;
};
std::vector<HardeningItem> check_hardening(const HardeningSubject& subject);
json::Value to_json(const std::vector<HardeningItem>& items);

}  // namespace umpteenth::server
