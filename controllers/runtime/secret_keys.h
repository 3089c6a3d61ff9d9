// What a reference to a Secret can be checked against without opening it.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "store/store.h"

namespace umpteenth::controllers {

// The names of a Secret's values; nullopt where there is no such Secret.
std::optional<std::set<std::string>> find_secret_keys(const store::Store& store,
                                                      const std::string& ns,
                                                      const std::string& secret);

}  // namespace umpteenth::controllers
