// The data folder: its permissions, who it belongs to, and the small secrets in it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"

namespace umpteenth::umpd {

class DataDir {
 public:
  // Makes it (0700) or checks it: a folder that others can read is refused (Error(invalid)), as is
  // one that another umpd uses (Error(conflict)).
  explicit DataDir(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  // A UUID that was made at the first start.
  const std::string& instance_id() const { return instance_id_; }
  // Newest first. configured "" = the generated key; a generated one is reported in `made_key`.
  std::vector<std::string> master_keys(const std::string& configured);
  bool made_key() const { return made_key_; }
  // The umpd that holds the folder now.
  static std::optional<int> running_pid(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  std::string instance_id_;
  Fd lock_;
  bool made_key_ = false;
};

}  // namespace umpteenth::umpd
