// docs/resources.md, rendered from the kinds: it cannot say another thing than the server does.
#pragma once

#include <string>

namespace umpteenth::apis {

std::string reference_markdown();

}  // namespace umpteenth::apis
