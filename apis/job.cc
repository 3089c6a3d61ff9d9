#include "apis/job.h"

#include <algorithm>
#include <set>

#include "apis/cells.h"
#include "apis/job_rules.h"
#include "apis/object.h"

namespace umpteenth::apis {
namespace {

using namespace schema;  // NOLINT(google-build-using-namespace): the schema reads as one text

Node sandbox() {
  return section(
      "Where its commands run.",
      {{"image", text("Image reference; empty: the workspace's default, then the instance's.")
                     .max_length(512)
                     .by_default("")},
       {"dockerfile", text("A Dockerfile, at most 65536 characters; wins over image. Its FROM is "
                           "the base.")
                          .max_length(65536)
                          .by_default("")},
       {"runAsRoot", boolean("Commands run as uid 0 instead of the agent user.").by_default(false)},
       {"runtime", text("Container runtime: runc, runsc or another that the engine lists; empty: "
                        "the engine's default.")
                       .max_length(100)
                       .by_default("")},
       {"engine", resource_name("A SandboxEngine; empty: the default one.").by_default("")},
       {"resources", resources()}});
}

Node network() {
  return section(
      "What a sandbox may reach.",
      {{"mode", text("Internet: everything public. AllowedDomains: only the listed domains. None: "
                     "nothing but the broker.")
                    .one_of({"Internet", "AllowedDomains", "None"})
                    .by_default("Internet")},
       {"allowedDomains",
        list("1 to 100 domains, with mode AllowedDomains only. *.example.com covers every name "
             "below example.com and not example.com itself.",
             text("host or *.host, at most 253 characters, no scheme, port, path or IP address.")
                 .min_length(1)
                 .max_length(255)
                 .format("domain-pattern"))
            .max_items(100)
            .by_default(json::Value::array())},
       {"allowPrivateNetwork", boolean("Also private ranges; never loopback, link-local or "
                                       "metadata addresses.")
                                   .by_default(false)}});
}

Node repository() {
  return object(
      "A git repository to work on.",
      {{"name", resource_name("A Repository of this workspace.").min_length(1).required()},
       {"access", text("Isolated: commits return only after validation.")
                      .one_of({"Isolated"})
                      .by_default("Isolated")},
       {"branch", object("Which branch its commits come back on.",
                         {{"policy", text("Integrate: merged into the base. Named: onto `name`.")
                                         .one_of({"Integrate", "Named"})
                                         .by_default("Integrate")},
                          {"name", text("Branch, with policy Named.").max_length(244)},
                          {"from", text("Branch or commit to begin at.").max_length(244)}})},
       {"guard", object("What a change may not do.",
                        {{"protectedPaths", list("Globs of paths that may not change.",
                                                 text("Glob.").min_length(1).max_length(512))
                                                .max_items(100)},
                         {"maxChangedLines",
                          integer("Most lines changed, 0 = no limit.").range(0, 10000000)}})}});
}

Node spec() {
  constexpr char kName[] = "^[A-Za-z_][A-Za-z0-9_.-]*$";
  return object(
      "What is to be done, where, when and within which bounds.",
      {{"instruction", text("What to do, in plain language, at most 20000 characters.")
                           .min_length(1)
                           .max_length(20000)
                           .required()},
       {"suspend",
        boolean("Schedule and webhook start nothing; a person still can.").by_default(false)},
       {"model", model_ref()},
       {"limits",
        section("Bounds of one run.",
                {{"timeoutSeconds", integer("Seconds, 30 to 86400; waiting in the queue does not "
                                            "count.")
                                        .range(30, 86400)
                                        .by_default(900)},
                 {"maxTurns", integer("Model turns, 1 to 1000.").range(1, 1000).by_default(60)},
                 {"maxCostUSD", number("US dollars; 0 = off.").range(0, 100000).by_default(2)}})},
       {"schedule",
        object("When it runs by itself.",
               {{"cron", text("Five fields, or @hourly, @daily, @weekly, @monthly, @yearly.")
                             .min_length(1)
                             .max_length(256)
                             .required()},
                {"timeZone", text("IANA time zone such as Europe/Berlin.")
                                 .max_length(64)
                                 .format("time-zone")
                                 .by_default("UTC")},
                {"overlapPolicy",
                 text("What a start does while a run is active, by the schedule, a person or a "
                      "webhook alike: Skip records a skipped run, Queue waits, Parallel starts "
                      "at once.")
                     .one_of({"Skip", "Queue", "Parallel"})
                     .by_default("Skip")}})},
       {"triggers",
        section("What else starts it.",
                {{"webhook",
                  section("Its webhook address.",
                          {{"enabled", boolean("Whether it answers.").by_default(false)}})}})},
       {"inputs", list("What a run may be given.",
                       object("One input.",
                              {{"name", text("Its name, at most 100 characters.")
                                            .min_length(1)
                                            .max_length(100)
                                            .pattern(kName)
                                            .required()},
                               {"required", boolean("A run without it is refused; absent: false.")},
                               {"description", text("What it means.").max_length(1000)}}))
                      .unique_by("name")
                      .max_items(100)},
       {"outputs",
        list("What a run must set to succeed, at most 100.",
             object("One output.", {{"name", text("Its name, at most 100 characters.")
                                                 .min_length(1)
                                                 .max_length(100)
                                                 .pattern(kName)
                                                 .required()},
                                    {"description", text("What it means.").max_length(1000)}}))
            .unique_by("name")
            .max_items(100)},
       {"sandbox", sandbox()},
       {"network", network()},
       {"secrets",
        list("Secrets given to its commands as environment variables, read at run start.",
             object("One mapping.",
                    {{"secret", resource_name("A Secret of this workspace.")
                                    .min_length(1)
                                    .max_length(100)
                                    .required()},
                     {"key", text("Key in it; empty: `value`, else its only key.")
                                 .max_length(100)
                                 .format("secret-key")},
                     {"env", text("Environment variable; not UMP_* nor a proxy variable.")
                                 .min_length(1)
                                 .max_length(256)
                                 .format("env-name")
                                 .required()}}))
            .unique_by("env")
            .max_items(100)},
       {"mcpServers",
        list("MCP servers whose tools it may call.",
             object("One server.",
                    {{"name", resource_name("An MCPServer of this workspace, at most 64 "
                                            "characters.")
                                  .min_length(1)
                                  .max_length(64)
                                  .required()},
                     {"tools", list("Tools it may call; absent: all.",
                                    text("Tool name.").min_length(1).max_length(200))
                                   .unique()
                                   .max_items(512)}}))
            .unique_by("name")
            .max_items(50)},
       {"skills", list("Skills laid out in its sandbox, at most 20.",
                       resource_name("A Skill of this workspace.").min_length(1).max_length(64))
                      .unique()
                      .max_items(20)},
       {"repository", repository()},
       {"selfImprove", boolean("Its playbook is edited after runs.").by_default(true)},
       {"history",
        object("How many run records stay; absent: all.",
               {{"successful", integer("Succeeded runs kept, 0 to 100000.").range(0, 100000)},
                {"failed", integer("Other runs kept, 0 to 100000.").range(0, 100000)}})}});
}

Node job_status() {
  return schema::status(
      {{"image", object("The image it runs in.",
                        {{"digest", text("Digest.")},
                         {"dockerfileHash", text("Hash of spec.sandbox.dockerfile.")},
                         {"build", text("The ImageBuild that made it.")}})
                     .open()},
       {"nextRunTime", text("When the schedule fires next.")},
       {"lastRun",
        object("The run that began last.", {{"name", text("Run.")}, {"phase", text("Its phase.")}})
            .open()},
       {"activeRuns", list("Runs not ended yet.", any("Name of a Run."))}});
}

json::Value none_if_empty(std::string text) {
  return text.empty() ? json::Value("<none>") : json::Value(std::move(text));
}

std::vector<Column> columns() {
  return {{"Schedule", "string", "Cron expression.", 0,
           [](const json::Value& o, Time) {
             return none_if_empty(o.at_path({"spec", "schedule"}).get_string("cron"));
           }},
          at("Network", "string", "Network mode.", {"spec", "network", "mode"}),
          {"Last", "string", "Phase of the last run.", 0,
           [](const json::Value& o, Time) {
             return none_if_empty(o.at_path({"status", "lastRun"}).get_string("phase"));
           }},
          {"Next", "string", "Time until the next scheduled run.", 0,
           [](const json::Value& o, Time now) {
             const std::string next = o.get("status").get_string("nextRunTime");
             return next.empty() ? json::Value("<none>") : format_age(parse_time(next) - now);
           }},
          {"Ready", "string", "Status of the condition Ready; Deleting while its last runs end.", 0,
           [](const json::Value& o, Time now) {
             return deleting(o) ? json::Value("Deleting")
                                : condition_column("", "Ready").cell(o, now);
           }},
          {"Image", "string", "Image, or <dockerfile>.", kWide,
           [](const json::Value& o, Time) {
             const json::Value& sandbox = o.at_path({"spec", "sandbox"});
             if (!sandbox.get_string("dockerfile").empty()) return json::Value("<dockerfile>");
             const std::string image = sandbox.get_string("image");
             return json::Value(image.empty() ? "<default>" : image);
           }},
          {"Model", "string", "Model, or <default>.", kWide,
           [](const json::Value& o, Time) {
             const std::string name = o.at_path({"spec", "model"}).get_string("name");
             return json::Value(name.empty() ? "<default>" : name);
           }},
          {"Timeout", "string", "Time limit of a run.", kWide, [](const json::Value& o, Time) {
             const int64_t s = o.at_path({"spec", "limits"}).get_int("timeoutSeconds", 900);
             return json::Value(std::to_string(s) + "s");
           }}};
}

constexpr std::pair<NetworkMode, std::string_view> kModes[] = {
    {NetworkMode::internet, "Internet"},
    {NetworkMode::allowed_domains, "AllowedDomains"},
    {NetworkMode::none, "None"}};
constexpr std::pair<OverlapPolicy, std::string_view> kPolicies[] = {
    {OverlapPolicy::skip, "Skip"},
    {OverlapPolicy::queue, "Queue"},
    {OverlapPolicy::parallel, "Parallel"}};

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

JobSpec::Sandbox sandbox_from(const json::Value& v) {
  JobSpec::Sandbox s;
  s.image = v.get_string("image");
  s.dockerfile = v.get_string("dockerfile");
  s.runtime = v.get_string("runtime");
  s.engine = v.get_string("engine");
  s.run_as_root = v.get_bool("runAsRoot");
  s.resources = resources_from(v.get("resources"));
  return s;
}

JobSpec::Network network_from(const json::Value& v) {
  JobSpec::Network n;
  n.mode = network_mode_from(v.get_string("mode", "Internet"));
  n.allow_private = v.get_bool("allowPrivateNetwork");
  std::set<std::string> seen;
  if (const json::Value& domains = v.get("allowedDomains"); domains.is_array())
    for (const json::Value& d : domains.items())
      if (seen.insert(lower(d.as_string())).second)
        n.allowed_domains.push_back(lower(d.as_string()));
  return n;
}

}  // namespace

std::string_view to_string(NetworkMode mode) {
  return std::find_if(std::begin(kModes), std::end(kModes),
                      [&](auto& m) { return m.first == mode; })
      ->second;
}
std::string_view to_string(OverlapPolicy policy) {
  return std::find_if(std::begin(kPolicies), std::end(kPolicies),
                      [&](auto& p) { return p.first == policy; })
      ->second;
}
NetworkMode network_mode_from(std::string_view text) {
  for (const auto& [mode, name] : kModes)
    if (name == text) return mode;
  return NetworkMode::internet;
}
OverlapPolicy overlap_policy_from(std::string_view text) {
  for (const auto& [policy, name] : kPolicies)
    if (name == text) return policy;
  return OverlapPolicy::skip;
}

JobSpec job_spec_from(const json::Value& v) {
  JobSpec s;
  s.instruction = v.get_string("instruction");
  s.suspend = v.get_bool("suspend");
  s.model = model_ref_from(v.get("model"));
  const json::Value& limits = v.get("limits");
  s.limits.timeout_seconds = limits.get_int("timeoutSeconds", s.limits.timeout_seconds);
  s.limits.max_turns = limits.get_int("maxTurns", s.limits.max_turns);
  s.limits.max_cost_usd = limits.get_double("maxCostUSD", s.limits.max_cost_usd);
  if (const json::Value& schedule = v.get("schedule"); schedule.is_object()) {
    s.schedule.cron = schedule.get_string("cron");
    s.schedule.time_zone = schedule.get_string("timeZone", "UTC");
    s.schedule.overlap = overlap_policy_from(schedule.get_string("overlapPolicy", "Skip"));
  }
  s.webhook_enabled = v.at_path({"triggers", "webhook"}).get_bool("enabled");
  if (const json::Value& inputs = v.get("inputs"); inputs.is_array())
    for (const json::Value& i : inputs.items())
      s.inputs.push_back({i.get_string("name"), i.get_bool("required")});
  if (const json::Value& outputs = v.get("outputs"); outputs.is_array())
    for (const json::Value& o : outputs.items()) s.outputs.push_back(o.get_string("name"));
  s.sandbox = sandbox_from(v.get("sandbox"));
  s.network = network_from(v.get("network"));
  if (const json::Value& secrets = v.get("secrets"); secrets.is_array())
    for (const json::Value& m : secrets.items())
      s.secrets.push_back({secret_ref_from(m), m.get_string("env")});
  s.self_improve = v.get_bool("selfImprove", true);
  s.history.successful = v.get("history").get_int("successful", -1);
  s.history.failed = v.get("history").get_int("failed", -1);
  return s;
}

json::Value to_json(const JobSpec& s) {
  json::Value v = json::Value::object({{"instruction", s.instruction}, {"suspend", s.suspend}});
  if (s.model != ModelRef()) v.set("model", to_json(s.model));
  v.set("limits", json::Value::object({{"timeoutSeconds", s.limits.timeout_seconds},
                                       {"maxTurns", s.limits.max_turns},
                                       {"maxCostUSD", s.limits.max_cost_usd}}));
  if (!s.schedule.cron.empty())
    v.set("schedule", json::Value::object({{"cron", s.schedule.cron},
                                           {"timeZone", s.schedule.time_zone},
                                           {"overlapPolicy", to_string(s.schedule.overlap)}}));
  v["triggers"]["webhook"].set("enabled", s.webhook_enabled);
  for (const JobSpec::Input& i : s.inputs)
    v["inputs"].push_back(json::Value::object({{"name", i.name}, {"required", i.required}}));
  for (const std::string& name : s.outputs)
    v["outputs"].push_back(json::Value::object({{"name", name}}));
  v.set("sandbox", json::Value::object({{"image", s.sandbox.image},
                                        {"dockerfile", s.sandbox.dockerfile},
                                        {"runAsRoot", s.sandbox.run_as_root},
                                        {"runtime", s.sandbox.runtime},
                                        {"engine", s.sandbox.engine},
                                        {"resources", to_json(s.sandbox.resources)}}));
  v.set("network",
        json::Value::object({{"mode", to_string(s.network.mode)},
                             {"allowedDomains", json::Value::strings(s.network.allowed_domains)},
                             {"allowPrivateNetwork", s.network.allow_private}}));
  for (const JobSpec::SecretEnv& m : s.secrets) {
    json::Value mapping = to_json(m.ref);
    mapping.set("env", m.env);
    v["secrets"].push_back(std::move(mapping));
  }
  v.set("selfImprove", s.self_improve);
  if (s.history.successful >= 0) v["history"].set("successful", s.history.successful);
  if (s.history.failed >= 0) v["history"].set("failed", s.history.failed);
  return v;
}

const Kind& job_kind() {
  static const Kind kind = [] {
    Kind k;
    k.kind = "Job";
    k.plural = "jobs";
    k.singular = "job";
    k.short_names = {"uj"};
    k.categories = {"all", "umpteenth"};
    k.description =
        "An instruction for an agent, its sandbox, network, secrets, schedule and "
        "budgets. Deleting one cancels its queued runs and lets the others end, then it goes; "
        "`umpctl cancel run/NAME` ends them sooner. What its runs left stays.";
    k.spec_schema = spec().take();
    k.status_schema = job_status().take();
    k.columns = columns();
    k.check = check_job;
    k.verbs = kAllVerbs;
    return k;
  }();
  return kind;
}

}  // namespace umpteenth::apis
