// Images that umpd makes itself.
//
// *Prepared* images: a base image with `ump` and the sandbox's folders in it, made once per base
// image and ump (a copy into each container would cost 120 ms). The base's user, entrypoint and
// healthcheck do not apply to it; its environment and files do.
//
// The *helper* image: nothing but `ump`, for the relay; imported, never pulled, used by its id.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "engine/engine.h"

namespace umpteenth::engine {

inline constexpr char kUmpPath[] = "/usr/local/bin/ump";         // in sandboxes
inline constexpr char kHelperUmpPath[] = "/ump";                 // in the helper image
inline constexpr char kLabelBaseId[] = "umpteenth.base-id";      // the base image's id
inline constexpr char kLabelBaseName[] = "umpteenth.base-name";  // as the manifest names it
inline constexpr char kLabelUmp[] = "umpteenth.ump-sha256";

class SandboxImages {
 public:
  // ump_by_arch: "amd64" and "arm64" → the program's path; they are read when needed. Where a file
  // is absent its architecture is refused.
  SandboxImages(Engine& engine, std::string instance,
                std::map<std::string, std::filesystem::path> ump_by_arch);

  // The base image by name or id; pulled only where it is absent.
  Image ensure_base(const std::string& name, std::stop_token stop);
  // The id of the prepared image. Error(not_found) without the base image, Error(invalid) for an
  // architecture that has no ump.
  std::string ensure_prepared(const std::string& base);
  std::string ensure_helper();  // the id, for the engine's own architecture

  // Removes prepared and helper images of ours whose base or ump is no longer the current one.
  // What is in use stays until the next time. Returns how many went.
  size_t collect_garbage();

 private:
  struct Program {
    std::string bytes, sha256;
  };
  const Program& program_for(const std::string& arch, const std::string& image);
  std::string prepare(const Image& base, const std::string& base_name, const Program& program,
                      const std::string& name);
  bool outdated(const Image& image);

  Engine& engine_;
  const std::string instance_;
  const std::map<std::string, std::filesystem::path> ump_by_arch_;
  std::mutex mutex_;  // one preparation at a time
  std::map<std::string, Program> programs_;
};

}  // namespace umpteenth::engine
