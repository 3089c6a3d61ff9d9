#include "apis/sandbox_engine.h"

#include "apis/cells.h"
#include "base/net/address.h"

namespace umpteenth::apis {
namespace {

using namespace schema;  // NOLINT(google-build-using-namespace): the schema reads as one text

Node spec() {
  return section(
      "A container engine and how its host is guarded.",
      {{"type",
        text("What it is.").one_of({"Docker", "Podman", "Swarm", "MicroVM"}).by_default("Docker")},
       {"endpoint", text("Its API.")
                        .min_length(1)
                        .max_length(1024)
                        .format("uri")
                        .by_default("unix:///var/run/docker.sock")},
       {"runtime", text("Container runtime of jobs that name none.")
                       .min_length(1)
                       .max_length(100)
                       .by_default("runc")},
       {"egressFilter", text("The host firewall. auto: used where it can be, and the status says "
                             "whether. required: no run without it. off: none.")
                            .one_of({"auto", "required", "off"})
                            .by_default("auto")},
       {"attachment", text("How a sandbox meets the broker. namespace: umpd listens inside it. "
                           "network: it has one with the broker in it. auto: namespace where umpd "
                           "can.")
                          .one_of({"auto", "namespace", "network"})
                          .by_default("auto")},
       {"subnetPool", text("Private IPv4 range that run networks (/29 each) are cut from; prefix "
                           "8 to 24.")
                          .min_length(1)
                          .max_length(43)
                          .format("cidr")
                          .by_default("10.201.0.0/16")},
       {"image", text("The instance's sandbox image; empty: the built-in one.")
                     .max_length(512)
                     .by_default("")},
       {"warmPool", object("Sandboxes kept ready.", {}).open()},
       {"blockedTargets", list("Extra ranges that no sandbox may reach, at most 1000.",
                               text("CIDR range.").min_length(1).max_length(64).format("cidr"))
                              .unique()
                              .max_items(1000)
                              .by_default(json::Value::array())}});
}

Node engine_status() {
  return schema::status(
      {{"egressFirewall",
        object("What was read back from the host.",
               {{"state",
                 text("Enforced, NotEnforced or Off.").one_of({"Enforced", "NotEnforced", "Off"})},
                {"reason", text("Why it is not enforced.")},
                {"backend", text("iptables backend: nft or legacy.")},
                {"watch", text("How changes are noticed: events, within a second; polled, every "
                               "ten minutes and before each run with Internet access.")},
                {"lastChecked", text("When it was read last.")},
                {"lastRepaired", text("When it was repaired last.")},
                {"lastRepair", text("What was repaired then.")},
                {"repairs", integer("How often it was repaired.")}})
            .open()},
       {"attachment", text("How sandboxes meet the broker now; the condition "
                           "NamespaceAttachment says why.")},
       {"version", object("Versions.", {{"name", text("Which engine it is.")},
                                        {"engine", text("Engine.")},
                                        {"api", text("API.")}})
                       .open()},
       {"architecture", text("The engine's, amd64 or arm64.")},
       {"runtimes", list("Container runtimes it has.", text("Name."))},
       {"capacity", object("The engine's machine.",
                           {{"cpus", number("Processors.")}, {"memoryMiB", integer("Memory.")}})
                        .open()},
       {"capabilities",
        object("What the engine can do.",
               {{"diskLimit", boolean("Whether resources.diskMiB can be enforced; where it cannot, "
                                      "a job that sets it does not run.")}})
            .open()},
       {"sandboxes", object("Sandboxes now.",
                            {{"running", integer("In runs.")}, {"warm", integer("Kept ready.")}})
                         .open()}});
}

void check_engine(const json::Value& object, const json::Value*, std::vector<Cause>& causes) {
  const std::string pool = object.get("spec").get_string("subnetPool");
  const auto cidr = net::parse_cidr(pool);
  if (cidr && (!cidr->base.is_v4() || cidr->prefix < 8 || cidr->prefix > 24))
    causes.push_back(
        {"spec.subnetPool",
         "Invalid value: " + json::quote(pool) + ": must be an IPv4 range with a prefix of 8 to 24",
         "FieldValueInvalid"});
}

}  // namespace

SandboxEngineSpec sandbox_engine_spec_from(const json::Value& v) {
  SandboxEngineSpec s;
  s.type = v.get_string("type", s.type);
  s.endpoint = v.get_string("endpoint", s.endpoint);
  s.runtime = v.get_string("runtime", s.runtime);
  s.egress_filter = v.get_string("egressFilter", s.egress_filter);
  s.attachment = v.get_string("attachment", s.attachment);
  s.subnet_pool = v.get_string("subnetPool", s.subnet_pool);
  if (const json::Value& blocked = v.get("blockedTargets"); blocked.is_array())
    for (const json::Value& b : blocked.items()) s.blocked_targets.push_back(b.as_string());
  s.image = v.get_string("image");
  return s;
}

json::Value to_json(const SandboxEngineSpec& s) {
  return json::Value::object({{"type", s.type},
                              {"endpoint", s.endpoint},
                              {"runtime", s.runtime},
                              {"egressFilter", s.egress_filter},
                              {"attachment", s.attachment},
                              {"subnetPool", s.subnet_pool},
                              {"image", s.image},
                              {"blockedTargets", json::Value::strings(s.blocked_targets)}});
}

const Kind& sandbox_engine_kind() {
  static const Kind kind = [] {
    Kind k;
    k.kind = "SandboxEngine";
    k.plural = "sandboxengines";
    k.singular = "sandboxengine";
    k.short_names = {"se"};
    k.categories = {"umpteenth"};
    k.scope = Scope::cluster;
    k.description =
        "Where sandboxes run and how the host is guarded; its status is the truth "
        "about enforcement.";
    k.spec_schema = spec().take();
    k.status_schema = engine_status().take();
    k.columns = {at("Type", "string", "What it is.", {"spec", "type"}),
                 condition_column("Ready", "Ready"),
                 at("Firewall", "string", "State of the egress firewall.",
                    {"status", "egressFirewall", "state"}),
                 at("Running", "integer", "Sandboxes in runs.", {"status", "sandboxes", "running"}),
                 at("Version", "string", "Engine version.", {"status", "version", "engine"}, kWide),
                 at("Attachment", "string", "How sandboxes meet the broker.",
                    {"status", "attachment"}, kWide),
                 at("Repairs", "integer", "Repairs of the firewall.",
                    {"status", "egressFirewall", "repairs"}, kWide)};
    k.check = check_engine;
    k.verbs = kAllVerbs;
    return k;
  }();
  return kind;
}

}  // namespace umpteenth::apis
