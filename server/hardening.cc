#include "server/hardening.h"

#include <algorithm>

#include "apis/job.h"
#include "apis/model_provider.h"
#include "apis/object.h"
#include "apis/sandbox_engine.h"
#include "base/error.h"
#include "base/net/address.h"
#include "base/net/url.h"

namespace umpteenth::server {
namespace {

// "a, b, c and 4 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    text += (text.empty() ? "" : ", ") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

std::string counted(size_t n, const std::string& one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

bool is_loopback(const std::string& host) {
  const auto address = net::parse_address(host);
  return host == "localhost" || host == "::1" ||
         (address && net::parse_cidr("127.0.0.0/8")->contains(*address));
}

HardeningItem https(const HardeningFacts& facts) {
  HardeningItem item{"https", "Umpteenth is behind HTTPS, and app.url is the https:// address",
                     Met::yes, "", ""};
  if (facts.app_url.starts_with("https://")) {
    item.found = "app.url is " + facts.app_url;
  } else if (!facts.app_url.empty()) {
    item.met = Met::no;
    item.found = "app.url is " + facts.app_url;
    item.todo =
        "put a reverse proxy with a certificate in front and set app.url to its https:// "
        "address";
  } else if (facts.tls) {
    item.found = "app.url is not set, so it is the API's own address; umpd serves HTTPS there";
  } else {
    item.met = Met::no;
    item.found = "server.tls.mode is off and app.url is not set";
    item.todo =
        "set app.url to the https:// address of the reverse proxy, or server.tls.mode to "
        "self or files";
  }
  return item;
}

HardeningItem ports(const HardeningFacts& facts) {
  HardeningItem item{
      "ports", "The broker's port is unpublished, and the API is reachable only through the proxy",
      Met::yes, "", ""};
  const std::string broker = std::to_string(facts.broker_port);
  const std::string api = facts.api_host + ":" + std::to_string(facts.api_port);
  if (facts.in_container) {
    item.met = Met::unknown;
    item.found =
        "umpd runs in a container: which of its ports the engine publishes is not seen "
        "from inside";
    item.todo = "docker port CONTAINER must not list " + broker + ", and the API's port only on " +
                "127.0.0.1 or not at all";
    return item;
  }
  item.found = "the broker has no TCP port on this host; the API listens on " + api;
  if (is_loopback(facts.api_host)) return item;
  item.met = Met::unknown;
  item.found += ", which other machines may reach";
  item.todo =
      "set server.host to 127.0.0.1 where the proxy runs on this host, else let the host's "
      "firewall admit the proxy only";
  return item;
}

HardeningItem sign_in(const std::vector<std::string>& tokens) {
  HardeningItem item{"sign-in", "Only the people who should run jobs can come in", Met::yes, "",
                     ""};
  item.found = "there are no sign-in providers: the admin token and " +
               counted(tokens.size(), "API token") + " are the ways in";
  if (!tokens.empty()) {
    item.found += " (" + listed(tokens) + ")";
    item.todo = "revoke the tokens of those who left: DELETE /umpteenth/v1alpha1/tokens/ID";
  }
  return item;
}

HardeningItem keys(const HardeningFacts& facts) {
  HardeningItem item{
      "keys",
      "The files that hold keys are their owner's alone, and a copy of the key is kept "
      "beside the backups",
      Met::unknown, "", "keep a copy of the encryption key beside the backups, not in them"};
  std::vector<std::string> names, open;
  for (const auto& file : facts.secret_files)
    ((file.mode & 077) != 0 ? open : names).push_back(file.path);
  if (!open.empty()) {
    item.met = Met::no;
    item.found = "others may read or write " + listed(open);
    item.todo = "chmod 600 " + open.front() + "; " + item.todo;
    return item;
  }
  item.found =
      (names.empty() ? "no file holds a key" : listed(names) + " belong to their owner alone") +
      std::string("; where copies of the key are is not seen from here");
  return item;
}

HardeningItem firewall(const std::vector<json::Value>& engines) {
  HardeningItem item{"egress-firewall", "The egress firewall blocks private networks", Met::yes, "",
                     ""};
  const auto note = [&](Met met, const std::string& engine, const std::string& text) {
    if (item.met != Met::no && met != Met::yes) item.met = met;
    item.found += (item.found.empty() ? "" : "; ") + engine + ": " + text;
  };
  for (const json::Value& engine : engines) {
    const std::string name = apis::name_of(engine);
    const std::string state = engine.at_path({"status", "egressFirewall"}).get_string("state");
    const auto why = apis::find_condition(engine, "EgressFirewall");
    const std::string text = why && !why->message.empty() ? ", " + why->message : "";
    if (state == "Enforced") {
      note(Met::yes, name, "private networks blocked");
    } else if (state == "Off") {
      note(Met::no, name, "turned off" + text);
    } else if (state == "NotEnforced") {
      note(Met::no, name, "not enforced" + text);
    } else {
      note(Met::unknown, name, "its state is not known yet");
    }
  }
  if (engines.empty()) note(Met::unknown, "no SandboxEngine", "there is nothing to guard");
  if (item.met == Met::no)
    item.todo =
        "set spec.egressFilter to required on a rootful Docker engine and mend what its "
        "condition EgressFirewall says; until then give jobs network mode AllowedDomains "
        "or None";
  return item;
}

HardeningItem job_networks(const std::vector<json::Value>& jobs) {
  HardeningItem item{"job-networks",
                     "Jobs that do not need the whole internet use AllowedDomains or None",
                     Met::yes, "", ""};
  std::vector<std::string> wide;
  for (const json::Value& job : jobs) {
    const auto spec = apis::job_spec_from(job.get("spec"));
    if (spec.network.mode == apis::NetworkMode::internet)
      wide.push_back(apis::namespace_of(job) + "/" + apis::name_of(job));
  }
  if (wide.empty()) {
    item.found = "none of " + counted(jobs.size(), "job") + " has network mode Internet";
    return item;
  }
  item.met = Met::unknown;
  item.found = std::to_string(wide.size()) + " of " + counted(jobs.size(), "job") +
               " may reach the whole internet: " + listed(wide);
  item.todo = "give each that does not need it spec.network.mode AllowedDomains or None";
  return item;
}

// Of the literal addresses only: what a name resolves to may be another thing tomorrow.
bool at_private_address(const std::string& url) {
  if (url.empty()) return false;
  try {
    const std::string host = net::parse_url(url).host;
    const auto address = net::parse_address(host);
    return host == "localhost" || (address && net::classify(*address, {}) != net::Class::is_public);
  } catch (const Error&) {  // a URL that cannot be read is nobody's reason
    return false;
  }
}

HardeningItem private_targets(const HardeningFacts& facts, const std::vector<json::Value>& models) {
  HardeningItem item{"private-targets",
                     "network.allow_private_targets is false unless a model server or webhook "
                     "receiver is on your network",
                     Met::yes, "", ""};
  if (!facts.allow_private_targets) {
    item.found = "it is false";
    return item;
  }
  std::vector<std::string> local;
  for (const json::Value& model : models)
    if (at_private_address(apis::model_provider_spec_from(model.get("spec")).base_url))
      local.push_back(apis::namespace_of(model) + "/" + apis::name_of(model));
  if (!local.empty()) {
    item.found = "it is true, and these model providers need it: " + listed(local);
    return item;
  }
  item.met = Met::no;
  item.found = "it is true, and no model provider has a private address";
  item.todo =
      "set network.allow_private_targets to false, unless a name that you use resolves to "
      "a private address";
  return item;
}

HardeningItem gvisor(const std::vector<json::Value>& engines,
                     const std::vector<json::Value>& jobs) {
  HardeningItem item{"gvisor",
                     "Sandboxes run under gVisor if there are jobs that you did not write",
                     Met::yes, "", ""};
  std::vector<std::string> others;
  for (const json::Value& engine : engines) {
    const std::string runtime = apis::sandbox_engine_spec_from(engine.get("spec")).runtime;
    if (runtime.find("runsc") == std::string::npos)
      others.push_back("sandbox engine " + apis::name_of(engine) + " (" + runtime + ")");
  }
  for (const json::Value& job : jobs) {
    const std::string runtime = apis::job_spec_from(job.get("spec")).sandbox.runtime;
    if (!runtime.empty() && runtime.find("runsc") == std::string::npos)
      others.push_back("job " + apis::namespace_of(job) + "/" + apis::name_of(job) + " (" +
                       runtime + ")");
  }
  if (others.empty()) {
    item.found = "every sandbox engine's runtime is gVisor's";
    return item;
  }
  item.met = Met::unknown;
  item.found = "without it: " + listed(others) + "; who wrote the jobs is not seen from here";
  item.todo =
      "where others write jobs: install gVisor's runsc in the engine and set spec.runtime "
      "of the SandboxEngine to it";
  return item;
}

}  // namespace

std::string_view to_string(Met met) {
  switch (met) {
    case Met::yes:
      return "met";
    case Met::no:
      return "unmet";
    case Met::unknown:
      return "not known";
  }
  return "";
}

std::vector<HardeningItem> check_hardening(const HardeningSubject& s) {
  return {https(s.facts),
          ports(s.facts),
          sign_in(s.tokens),
          keys(s.facts),
          firewall(s.engines),
          job_networks(s.jobs),
          private_targets(s.facts, s.models),
          gvisor(s.engines, s.jobs)};
}

json::Value to_json(const std::vector<HardeningItem>& items) {
  json::Value list = json::Value::array();
  for (const HardeningItem& item : items)
    list.push_back(json::Value::object({{"id", item.id},
                                        {"title", item.title},
                                        {"state", to_string(item.met)},
                                        {"found", item.found},
                                        {"todo", item.todo}}));
  return json::Value::object({{"items", std::move(list)}});
}

}  // namespace umpteenth::server
