// The code of the Error that f throws; not_implemented where it throws none.
#pragma once

#include "base/error.h"

namespace umpteenth::support {

template <typename F>
Code code_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return Code::not_implemented;
}

}  // namespace umpteenth::support
