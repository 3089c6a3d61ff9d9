#include "base/openssl_error.h"

#include <openssl/err.h>

#include <array>
#include <string>

namespace umpteenth {

void throw_openssl_error(std::string_view attempted, Code code) {
  std::array<char, 256> text{};
  const unsigned long first = ERR_get_error();
  ERR_clear_error();
  if (first != 0) ERR_error_string_n(first, text.data(), text.size());
  throw Error(code, std::string(attempted) + (first != 0 ? ": " + std::string(text.data()) : ""));
}

}  // namespace umpteenth
