// Secret: named values, write-only. See seal.h for what is kept.
#pragma once

#include "apis/kind.h"

namespace umpteenth::apis {

const Kind& secret_kind();

}  // namespace umpteenth::apis
