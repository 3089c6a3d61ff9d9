// Discovery, legacy and aggregated, OpenAPI and the version document: made once, served with ETags.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/http/message.h"

namespace umpteenth::server {

class Discovery {
 public:
  Discovery();
  // nullopt where the path is none of these. Answers 304 to a fitting If-None-Match.
  std::optional<http::Response> answer(const http::Request& request) const;

 private:
  struct Document {
    std::string type, body, etag;
    bool hashed = false;  // may be asked for with ?hash= and then never changes
  };
  void add(std::string path, std::string type, std::string body, bool hashed = false);
  http::Response serve(const http::Request& request, const Document& document) const;

  std::map<std::string, Document, std::less<>> by_path_;
};

std::string version_document();

}  // namespace umpteenth::server
