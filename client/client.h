// A small client of the umpd API on cpprestsdk. One Client a process is enough; calls block.
// Failures are Error with the server's code and text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apis/kind.h"
#include "base/error.h"
#include "base/json.h"
#include "client/kubeconfig.h"

namespace umpteenth::client {

using Params = std::vector<std::pair<std::string, std::string>>;

struct Reply {
  int status = 0;
  std::string content_type;
  std::string body;
  std::vector<std::string> warnings;  // texts of Warning headers
};

// What the server answered, as opposed to what went wrong on this side.
class ServerError : public Error {
 public:
  explicit ServerError(Error e) : Error(std::move(e)) {}
};

class Client {
 public:
  explicit Client(Connection connection);
  ~Client();

  // Any path below the server; a status of 400 and up is thrown as the
  // ServerError its Status names.
  // warnings are handed to on_warning.
  Reply send(const std::string& method, const std::string& path, const Params& params = {},
             const std::string& body = {}, const std::string& content_type = "application/json",
             const std::string& accept = "application/json");

  // Reads a body line by line (watch, timelines) until on_line answers false or it ends.
  void stream(const std::string& path, const Params& params, const std::string& accept,
              const std::function<bool(std::string_view line)>& on_line);

  // Paths of the API. name "" = the collection; ns "" with a workspaced kind = all workspaces.
  static std::string path_of(const apis::Kind& kind, const std::string& ns,
                             const std::string& name = {}, const std::string& subresource = {});

  json::Value get(const apis::Kind& kind, const std::string& ns, const std::string& name);
  json::Value create(const apis::Kind& kind, const std::string& ns, const json::Value& object,
                     const Params& params);
  json::Value patch(const apis::Kind& kind, const std::string& ns, const std::string& name,
                    const json::Value& patch, const Params& params);

  std::function<void(const std::string&)> on_warning;
  const Connection& connection() const { return connection_; }

 private:
  Connection connection_;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace umpteenth::client
