#include "server/sealing_key.h"

#include "base/json.h"
#include "server/resource.h"

namespace umpteenth::server {

std::optional<http::Response> answer_sealing_key(const http::Request& request,
                                                 const apis::Sealer& sealer) {
  if (request.path != "/umpteenth/v1alpha1/sealing-key") return std::nullopt;
  if (request.method != "GET") throw method_not_allowed();
  const json::Value key =
      json::Value::object({{"instance", sealer.instance_id()}, {"publicKey", sealer.public_key()}});
  return http::Response::json(200, key.dump());
}

}  // namespace umpteenth::server
