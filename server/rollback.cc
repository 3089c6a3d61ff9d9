#include "server/rollback.h"

#include "apis/object.h"
#include "server/history.h"
#include "server/write.h"

namespace umpteenth::server {
namespace {

// What a person declared; uid, times and owners are the living object's.
void take_declared(const json::Value& then, json::Value& object) {
  object.set("spec", then.get("spec"));
  for (const char* key : {"labels", "annotations"}) {
    object["metadata"].erase(key);
    if (const json::Value* old = then.get("metadata").find(key)) object["metadata"].set(key, *old);
  }
}

json::Value again(const Call& call, const json::Value& then) {
  json::Value object =
      apis::make_object(*call.resource().kind, call.target.ns, call.target.name, {});
  take_declared(then, object);
  return object;
}

}  // namespace

http::Response roll_back(Env& env, Call& call) {
  const WriteQuery query = read_write_query(call);
  require_history(call);
  const std::string to(call.http.param("to"));
  if (to.empty())
    throw invalid_field("to", "Required value: a revision or commit of the object's history",
                        "FieldValueRequired");
  const json::Value then = env.store.object_at(call.key(), to);
  const std::string message = "roll back " + store::to_string(call.key()) + " to " + to;
  call.target.subresource.clear();  // what is answered and refused is the object
  const auto record = env.store.find(call.key());
  if (!record) {
    authorize(call, "create");
    require_workspace(env, call);
    return create(env, call, query, again(call, then), message);
  }
  return update(
      env, call, query,
      [&](const json::Value& old) {
        if (apis::deleting(old))
          throw conflict(call.resource(), call.target.name,
                         "it is being deleted; roll it back once it is gone");
        json::Value object = old;
        take_declared(then, object);
        return object;
      },
      message);
}

}  // namespace umpteenth::server
