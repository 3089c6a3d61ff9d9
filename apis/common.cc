#include "apis/common.h"

namespace umpteenth::apis {

Resources resources_from(const json::Value& v) {
  Resources r;
  r.cpus = v.get_double("cpus", r.cpus);
  r.memory_mib = v.get_int("memoryMiB", r.memory_mib);
  r.pids = v.get_int("pids", r.pids);
  r.disk_mib = v.get_int("diskMiB", r.disk_mib);
  return r;
}

json::Value to_json(const Resources& r) {
  return json::Value::object(
      {{"cpus", r.cpus}, {"memoryMiB", r.memory_mib}, {"pids", r.pids}, {"diskMiB", r.disk_mib}});
}

SecretRef secret_ref_from(const json::Value& v) {
  return {v.get_string("secret"), v.get_string("key")};
}

json::Value to_json(const SecretRef& ref) {
  json::Value v = json::Value::object({{"secret", ref.secret}});
  if (!ref.key.empty()) v.set("key", ref.key);
  return v;
}

ModelRef model_ref_from(const json::Value& v) {
  return {v.get_string("provider"), v.get_string("name"), v.get_string("utility")};
}

json::Value to_json(const ModelRef& ref) {
  json::Value v = json::Value::object();
  if (!ref.provider.empty()) v.set("provider", ref.provider);
  if (!ref.name.empty()) v.set("name", ref.name);
  if (!ref.utility.empty()) v.set("utility", ref.utility);
  return v;
}

namespace schema {

Node resources() {
  return section(
      "What a sandbox may use.",
      {{"cpus", number("CPUs, 0.1 to 64; more is throttled.").range(0.1, 64).by_default(1)},
       {"memoryMiB",
        integer("Memory in MiB, 64 to 262144, without swap.").range(64, 262144).by_default(1024)},
       {"pids", integer("Processes and threads, 16 to 32768.").range(16, 32768).by_default(256)},
       {"diskMiB", integer("Writable layer in MiB; 0 = no limit where the engine has none.")
                       .range(0, 16777216)
                       .by_default(0)}});
}

Node secret_ref(std::string_view description) {
  return object(description, {{"secret", text("Name of a Secret of this workspace.")
                                             .max_length(100)
                                             .format("dns-subdomain")
                                             .required()},
                              {"key", text("Key in it; empty: `value`, else its only key.")
                                          .max_length(100)
                                          .format("secret-key")}});
}

Node model_ref() {
  return object("The model that works on it; absent: the workspace's default.",
                {{"provider", text("A ModelProvider of this workspace or of umpteenth-system.")
                                  .max_length(253)
                                  .format("dns-subdomain")},
                 {"name", text("A model of that provider, by its name there.").max_length(200)},
                 {"utility", text("The cheap model for summaries and checks.").max_length(200)}});
}

Node resource_name(std::string_view description) {
  return text(description).max_length(253).format("dns-subdomain");
}

}  // namespace schema
}  // namespace umpteenth::apis
