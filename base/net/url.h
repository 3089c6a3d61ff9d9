// URLs as we accept them: absolute http(s), ws(s), ssh, unix. By libcurl's parser, in outbound.cc.
#pragma once

#include <string>
#include <string_view>

namespace umpteenth::net {

struct Url {
  std::string scheme, user, password, host, path, query;
  int port = 0;  // the scheme's default where absent
};
Url parse_url(std::string_view text);  // Error(bad_request)

}  // namespace umpteenth::net
