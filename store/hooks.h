// Git's hooks in the store's repository: what a push must pass before git keeps its objects.
#pragma once

#include <filesystem>

namespace umpteenth::store {

// Writes those that are missing or of another version. pre-receive refuses files with clear values
// of Secrets: what is in an object of the repository cannot be taken out of it again.
void ensure_hooks(const std::filesystem::path& repository);

}  // namespace umpteenth::store
