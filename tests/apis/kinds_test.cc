// Each kind: its example is accepted, structs come and go without loss, each rule says what it
// means.
#include "apis/kind.h"

#include <chrono>
#include <functional>

#include "apis/cron.h"
#include "apis/model_provider.h"
#include "apis/run.h"
#include "apis/sandbox_engine.h"
#include "apis/secret.h"
#include "apis/workspace.h"
#include "tests/apis/objects.h"

namespace umpteenth::apis {
namespace {

constexpr char kCompleteJob[] = R"(
instruction: |
  Fetch the open pull requests of acme/api with curl, and summarise them.
suspend: false
model: {provider: main, name: claude-sonnet, utility: claude-haiku}
limits: {timeoutSeconds: 900, maxTurns: 60, maxCostUSD: 2}
schedule: {cron: "0 9 * * 1-5", timeZone: Europe/Berlin, overlapPolicy: Skip}
triggers: {webhook: {enabled: true}}
inputs:  [{name: since, required: false}]
outputs: [{name: digest}]
sandbox:
  image: ""
  dockerfile: |
    FROM umpteenth-sandbox:latest
    RUN apt-get update && apt-get install -y --no-install-recommends ffmpeg
  runAsRoot: false
  runtime: ""
  engine: ""
  resources: {cpus: 1, memoryMiB: 1024, pids: 256, diskMiB: 0}
network: {mode: AllowedDomains, allowedDomains: [api.github.com, "*.githubusercontent.com"], allowPrivateNetwork: false}
secrets: [{secret: github-token, env: GITHUB_TOKEN}]
mcpServers: [{name: tracker, tools: [search, get_issue]}]
skills: [release-notes]
repository: {name: api, access: Isolated, branch: {policy: Integrate}, guard: {protectedPaths: [".github/**"], maxChangedLines: 400}}
selfImprove: true
history: {}
)";

TEST(Kinds, are_found_by_every_name) {
  for (const char* word : {"jobs", "job", "uj", "Job", "jobs.umpteenth.dev", "job.umpteenth.dev",
                           "jobs.v1alpha1.umpteenth.dev"})
    EXPECT_EQ(resolve_kind(word), &job_kind()) << word;
  EXPECT_EQ(resolve_kind("jobs.batch"), nullptr);
  EXPECT_EQ(resolve_kind("pods"), nullptr);
  EXPECT_EQ(resolve_kind(""), nullptr);
  EXPECT_EQ(find_kind("secrets"), &secret_kind());
  EXPECT_EQ(find_kind("secret"), nullptr);
  EXPECT_EQ(find_kind_by_name("Run"), &run_kind());
}

// A client compares a list as a whole: with a value in it that the manifest has not, each apply of
// kubectl would send the list again and say "configured".
TEST(Kinds, fill_in_nothing_inside_of_lists) {
  size_t lists = 0;
  const std::function<void(const json::Value&, bool, const std::string&)> visit =
      [&](const json::Value& schema, bool in_list, const std::string& path) {
        if (in_list) {
          EXPECT_EQ(schema.find("default"), nullptr) << path;
        }
        if (const json::Value& properties = schema.get("properties"); properties.is_object())
          for (const json::Member& m : properties.members())
            visit(m.value, in_list, path + "." + m.key);
        if (const json::Value* items = schema.find("items")) {
          ++lists;
          visit(*items, true, path + "[]");
        }
      };
  for (const Kind* kind : kinds()) visit(kind->spec_schema, false, kind->kind);
  EXPECT_GT(lists, 5U);
}

TEST(Job, the_complete_example_is_accepted_and_kept) {
  const json::Value given = parse_yaml_one(kCompleteJob);
  const json::Value made = created(job_kind(), make_object(job_kind(), "default", "a", given));
  for (const json::Member& m : given.members())
    EXPECT_EQ(made.get("spec").get(m.key), m.value) << m.key;
  const JobSpec spec = job_spec_from(made.get("spec"));
  EXPECT_EQ(spec.model.utility, "claude-haiku");
  EXPECT_EQ(spec.schedule.time_zone, "Europe/Berlin");
  EXPECT_TRUE(spec.webhook_enabled);
  EXPECT_EQ(spec.inputs.size(), 1u);
  EXPECT_EQ(spec.outputs, std::vector<std::string>{"digest"});
  EXPECT_EQ(spec.network.mode, NetworkMode::allowed_domains);
  EXPECT_EQ(spec.secrets[0].env, "GITHUB_TOKEN");
  EXPECT_EQ(spec.history.failed, -1);
  EXPECT_EQ(job_spec_from(to_json(spec)), spec);
}

TEST(Job, the_smallest_gets_the_defaults_of_the_struct) {
  JobSpec expected;
  expected.instruction = "do it";
  EXPECT_EQ(job_spec_from(created(job_kind(), a_job()).get("spec")), expected);
}

TEST(Job, domains_compare_without_case_and_once) {
  const json::Value job = created(
      job_kind(),
      a_job("{instruction: x, network: {mode: AllowedDomains, allowedDomains: [API.example.com, "
            "api.example.com]}}"));
  EXPECT_EQ(job_spec_from(job.get("spec")).network.allowed_domains,
            std::vector<std::string>{"api.example.com"});
}

TEST(Job, what_does_not_exist_may_be_named) {
  EXPECT_EQ(create_complaint(job_kind(),
                             "{instruction: x, model: {provider: none, name: none}, secrets: "
                             "[{secret: none, env: A}], sandbox: {engine: none}, skills: [none]}"),
            "");
}

std::string many(const std::string& item, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) {
    std::string one = item;
    one.replace(one.find('#'), 1, std::to_string(i));
    all += (all.empty() ? "" : ", ") + one;
  }
  return "[" + all + "]";
}

TEST(Job, each_rule_says_field_value_and_rule) {
  const std::pair<std::string, std::string> table[] = {
      {"suspend: true", "spec.instruction: Required value"},
      {"instruction: ''",
       "spec.instruction: Invalid value: \"\": spec.instruction in body should be at least 1 chars "
       "long"},
      {"instruction: " + std::string(20001, 'x'),
       "spec.instruction: Too long: may not be more than 20000 characters"},
      {"{instruction: x, limits: {timeoutSeconds: 29}}",
       "spec.limits.timeoutSeconds: Invalid value: 29: spec.limits.timeoutSeconds in body should "
       "be greater than or equal to 30"},
      {"{instruction: x, limits: {timeoutSeconds: 86401}}",
       "should be less than or equal to 86400"},
      {"{instruction: x, limits: {maxTurns: 1001}}", "spec.limits.maxTurns: Invalid value: 1001"},
      {"{instruction: x, limits: {maxCostUSD: -1}}", "spec.limits.maxCostUSD: Invalid value: -1"},
      {"{instruction: x, limits: {maxCostUSD: 0}}", ""},
      {"{instruction: x, sandbox: {resources: {cpus: 0.05}}}",
       "spec.sandbox.resources.cpus: Invalid value: 0.05"},
      {"{instruction: x, sandbox: {resources: {cpus: 65}}}", "less than or equal to 64"},
      {"{instruction: x, sandbox: {resources: {memoryMiB: 63}}}", "greater than or equal to 64"},
      {"{instruction: x, sandbox: {resources: {memoryMiB: 262145}}}",
       "less than or equal to 262144"},
      {"{instruction: x, network: {mode: Wide}}",
       "spec.network.mode: Unsupported value: \"Wide\": supported values: \"Internet\", "
       "\"AllowedDomains\", \"None\""},
      {"{instruction: x, network: {mode: AllowedDomains}}",
       "spec.network.allowedDomains: Required value: mode AllowedDomains needs 1 to 100 domains"},
      {"{instruction: x, network: {allowedDomains: [a.b]}}",
       "spec.network.allowedDomains: Forbidden: only with mode AllowedDomains, and the mode is "
       "Internet"},
      {"{instruction: x, network: {mode: None, allowedDomains: [a.b]}}", "and the mode is None"},
      {"{instruction: x, network: {mode: AllowedDomains, allowedDomains: " + many("a#.b", 101) +
           "}}",
       "spec.network.allowedDomains: Too many: 101: must have at most 100 items"},
      {"{instruction: x, network: {mode: AllowedDomains, allowedDomains: " + many("a#.b", 100) +
           "}}",
       ""},
      {"{instruction: x, schedule: {cron: 0 0 30 2 *}}",
       "spec.schedule.cron: Invalid value: \"0 0 30 2 *\": not a cron expression: it never fires"},
      {"{instruction: x, schedule: {cron: '* * *'}}", "expected 5 fields"},
      {"{instruction: x, schedule: {timeZone: UTC}}", "spec.schedule.cron: Required value"},
      {"{instruction: x, schedule: {cron: '@daily', timeZone: Mars/Phobos}}",
       "spec.schedule.timeZone: Invalid value: \"Mars/Phobos\": spec.schedule.timeZone in body "
       "must be an IANA time zone"},
      {"{instruction: x, schedule: {cron: '@daily', timeZone: Local}}",
       "must be an IANA time zone"},
      {"{instruction: x, schedule: {cron: '@daily', overlapPolicy: Never}}",
       "supported values: \"Skip\", \"Queue\", \"Parallel\""},
      {"{instruction: x, secrets: [{secret: a, env: A}, {secret: b, env: A}]}",
       "spec.secrets[1]: Duplicate value: {\"env\":\"A\"}"},
      {"{instruction: x, secrets: [{secret: a, env: 1A}]}",
       "spec.secrets[0].env: Invalid value: \"1A\""},
      {"{instruction: x, secrets: [{secret: a, env: 'A=B'}]}",
       "spec.secrets[0].env: Invalid value"},
      {"{instruction: x, secrets: [{secret: a, env: UMP_TOKEN}]}",
       "spec.secrets[0].env: Invalid value: \"UMP_TOKEN\": is reserved for umpteenth"},
      {"{instruction: x, secrets: [{secret: a, env: UMP_ANYTHING}]}", "is reserved"},
      {"{instruction: x, secrets: [{secret: a, env: https_proxy}]}", "is reserved"},
      {"{instruction: x, secrets: [{secret: a, env: NO_PROXY}]}", "is reserved"},
      {"{instruction: x, secrets: [{secret: a, env: NODE_USE_ENV_PROXY}]}", "is reserved"},
      {"{instruction: x, secrets: [{env: A}]}", "spec.secrets[0].secret: Required value"},
      {"{instruction: x, secrets: [{secret: a, key: 'x y', env: A}]}",
       "spec.secrets[0].key: Invalid value: \"x y\""},
      {"{instruction: x, outputs: [{name: a}, {name: a}]}",
       "spec.outputs[1]: Duplicate value: {\"name\":\"a\"}"},
      {"{instruction: x, inputs: [{name: a}, {name: a}]}", "spec.inputs[1]: Duplicate value"},
      {"{instruction: x, inputs: [{name: 'a b'}]}", "spec.inputs[0].name: Invalid value: \"a b\""},
      {"{instruction: x, outputs: [plain]}", "spec.outputs[0] in body must be of type object"},
      {"{instruction: x, outputs: " + many("{name: o#}", 101) + "}", "spec.outputs: Too many: 101"},
      {"{instruction: x, skills: " + many("s#", 21) + "}",
       "spec.skills: Too many: 21: must have at most 20 items"},
      {"{instruction: x, skills: [a, a]}", "spec.skills[1]: Duplicate value: \"a\""},
      {"{instruction: x, mcpServers: [{name: a}, {name: a}]}",
       "spec.mcpServers[1]: Duplicate value"},
      {"{instruction: x, mcpServers: [{tools: [a]}]}", "spec.mcpServers[0].name: Required value"},
      {"{instruction: x, repository: {access: Isolated}}", "spec.repository.name: Required value"},
      {"{instruction: x, repository: {name: a, branch: {policy: Named}}}",
       "spec.repository.branch.name: Required value"},
      {"{instruction: x, history: {successful: -1}}", "spec.history.successful: Invalid value: -1"},
      {"{instruction: x, limits: 5}", "spec.limits in body must be of type object"},
      {"{instruction: [x]}", "spec.instruction in body must be of type string: \"array\""},
      {"{instruction: x, suspend: yes}",
       "spec.suspend in body must be of type boolean: \"string\""},
  };
  for (const auto& [yaml, part] : table) {
    const std::string said = create_complaint(job_kind(), yaml);
    if (part.empty())
      EXPECT_EQ(said, "") << yaml.substr(0, 100);
    else
      EXPECT_NE(said.find(part), std::string::npos) << yaml.substr(0, 100) << "\n  said: " << said;
  }
}

TEST(Job, domain_forms) {
  const std::pair<std::string, bool> table[] = {{"example.com", true},
                                                {"*.example.com", true},
                                                {"localhost", true},
                                                {"xn--bcher-kva.example", true},
                                                {"a-b.c", true},
                                                {"EXAMPLE.com", true},
                                                {"*", false},
                                                {"*.", false},
                                                {"a.*.com", false},
                                                {"*example.com", false},
                                                {"https://a.com", false},
                                                {"a.com:443", false},
                                                {"a.com/x", false},
                                                {"10.0.0.1", false},
                                                {"127.1", false},
                                                {"2130706433", false},
                                                {"0x7f.1", false},
                                                {"a.0x7f", false},
                                                {"[::1]", false},
                                                {"::1", false},
                                                {"a..b", false},
                                                {".a", false},
                                                {"a.", false},
                                                {"-a.com", false},
                                                {"a_b.com", false},
                                                {"bücher.example", false},
                                                {"a b", false},
                                                {std::string(64, 'a') + ".com", false},
                                                {"a." + std::string(63, 'b') + ".com", true}};
  for (const auto& [domain, good] : table) {
    const json::Value spec = json::Value::object(
        {{"instruction", "x"},
         {"network", json::Value::object({{"mode", "AllowedDomains"},
                                          {"allowedDomains", json::Value::array({domain})}})}});
    const std::string said = complaint([&] {
      prepare_create(job_kind(), make_object(job_kind(), "default", "a", spec), options());
    });
    EXPECT_EQ(said.empty(), good) << domain << ": " << said;
  }
}

// --- Run --------------------------------------------------------------------------------------

json::Value a_run(const char* phase = "") {
  json::Value run = created(run_kind(), an_object(run_kind(),
                                                  "{job: pr-digest, jobGeneration: 3, jobSpec: "
                                                  "{instruction: x, any: {thing: [1]}}, trigger: "
                                                  "API, input: {n: 3, deep: [null]}, instructions: "
                                                  "more, scheduledFor: '2026-11-30T08:00:00Z'}"));
  run["metadata"].set("resourceVersion", "5");
  if (*phase) run.set("status", json::Value::object({{"phase", phase}}));
  return run;
}

TEST(Run, comes_and_goes_without_loss) {
  const json::Value run = a_run();
  const RunSpec spec = run_spec_from(run.get("spec"));
  EXPECT_EQ(spec.input.dump(), R"({"n":3,"deep":[null]})");
  EXPECT_EQ(spec.mode, "Explore");
  EXPECT_EQ(run_spec_from(to_json(spec)), spec);
  EXPECT_EQ(to_json(spec), run.get("spec"));
  RunSpec bare;
  bare.job = "a";
  EXPECT_EQ(run_spec_from(to_json(bare)), bare);

  RunStatus status;
  status.phase = Phase::timed_out;
  status.reason = "TimedOut";
  status.message = "the run exceeded its time limit";
  status.start_time = "2026-11-30T08:00:00Z";
  status.completion_time = "2026-11-30T08:15:00Z";
  status.queue_ms = 1, status.image_ms = 2, status.provision_ms = 3, status.model_ms = 4;
  status.tools_ms = 5, status.total_ms = 6;
  status.input_tokens = 100, status.output_tokens = 7, status.cost_micro_usd = 1'234'567;
  status.turns = 12;
  status.outputs = parse_yaml_one("{digest: 'a'}");
  status.summary = "s";
  status.artifacts = {{"a/b.txt", "sha", 9}};
  status.sandbox = {"c", "n", "e", "i", "r", "g"};
  EXPECT_EQ(run_status_from(to_json(status)), status);
  json::Value given = run;
  given.set("status", to_json(status));
  EXPECT_EQ(prepare_status_update(run_kind(), run, given, options()).object.get("status"),
            to_json(status));
}

TEST(Run, its_spec_never_changes_but_for_cancel) {
  const json::Value old = a_run();
  const auto with = [&](const char* field, json::Value value) {
    json::Value given = old;
    given["spec"].set(field, std::move(value));
    return complaint([&] { prepare_update(run_kind(), old, given, options()); });
  };
  EXPECT_EQ(with("cancelRequested", true), "");
  EXPECT_EQ(with("job", "other"),
            "spec.job: Forbidden: a run's spec never changes, except cancelRequested from false to "
            "true");
  EXPECT_EQ(with("input", 5).substr(0, 11), "spec.input:");
  EXPECT_EQ(with("jobSpec", parse_yaml_one("{instruction: y}")).substr(0, 13), "spec.jobSpec:");
  json::Value cancelled = old;
  cancelled["spec"].set("cancelRequested", true);
  cancelled = prepare_update(run_kind(), old, cancelled, options()).object;
  EXPECT_EQ(generation_of(cancelled), 2);
  json::Value back = cancelled;
  back["spec"].set("cancelRequested", false);
  EXPECT_EQ(complaint([&] { prepare_update(run_kind(), cancelled, back, options()); }),
            "spec.cancelRequested: Forbidden: a cancellation cannot be taken back");
}

TEST(Run, phases_only_move_forward) {
  const char* phases[] = {"Queued", "Provisioning", "Running",   "Verifying", "Succeeded",
                          "Failed", "TimedOut",     "Cancelled", "Skipped"};
  for (const char* from : phases)
    for (const char* to : phases) {
      const int a =
          from == phases[0] ? 0 : static_cast<int>(std::find(phases, phases + 9, from) - phases);
      const int b = static_cast<int>(std::find(phases, phases + 9, to) - phases);
      bool allowed = a == b || (a < 4 && b > a);
      if (b == 8 && a != 0 && a != 8) allowed = false;  // Skipped follows Queued only
      EXPECT_EQ(may_follow(phase_from(from), phase_from(to)), allowed) << from << " " << to;
      const json::Value old = a_run(from);
      json::Value given = old;
      given["status"].set("phase", to);
      const std::string said =
          complaint([&] { prepare_status_update(run_kind(), old, given, options()); });
      EXPECT_EQ(said.empty(), allowed) << from << " " << to << ": " << said;
    }
  EXPECT_THROW(phase_from("Odd"), Error);
  EXPECT_EQ(phase_from(""), Phase::queued);
  EXPECT_TRUE(terminal(Phase::skipped));
  EXPECT_FALSE(terminal(Phase::verifying));
}

TEST(Run, limits) {
  EXPECT_EQ(create_complaint(run_kind(), "{}"), "spec.job: Required value");
  EXPECT_NE(create_complaint(run_kind(), "{job: a, instructions: " + std::string(10001, 'x') + "}")
                .find("may not be more than 10000 characters"),
            std::string::npos);
  EXPECT_NE(create_complaint(run_kind(), "{job: a, trigger: Cron}").find("Unsupported value"),
            std::string::npos);
  EXPECT_NE(create_complaint(run_kind(), "{job: a, scheduledFor: soon}").find("an RFC 3339 time"),
            std::string::npos);
}

TEST(Run, names_sort_by_time_and_fit) {
  const std::string a = make_run_name("job", kNow),
                    b = make_run_name("job", kNow + std::chrono::milliseconds(1));
  EXPECT_LT(a.substr(0, 13), b.substr(0, 13));
  EXPECT_NE(make_run_name("job", kNow), a);
  const std::string longest = make_run_name(std::string(253, 'x'), kNow);
  EXPECT_TRUE(valid_dns_subdomain(longest));
  EXPECT_EQ(longest.size(), 216u);
  EXPECT_TRUE(valid_dns_subdomain(make_run_name(std::string(199, 'x') + ".y", kNow)));
}

// --- the others -------------------------------------------------------------------------------

TEST(Workspace, the_example_is_accepted_and_comes_back) {
  const json::Value made = created(workspace_kind(), an_object(workspace_kind(), R"(
displayName: Web team
members: [{user: user@example.com, role: Owner}, {group: web-devs, role: Member}]
defaults: {image: "", model: {provider: main, name: claude-sonnet}, resources: {cpus: 1, memoryMiB: 1024, pids: 256}, network: Internet}
limits: {dailySpendUSD: 0, maxConcurrentRuns: 3}
retention: {days: 90}
notifications: {url: "https://hooks.example.com/x", secret: hook-secret, events: [RunFailed, JobDemoted]}
)",
                                                               "web"));
  const WorkspaceSpec spec = workspace_spec_from(made.get("spec"));
  EXPECT_EQ(spec.members[1].group, "web-devs");
  EXPECT_EQ(spec.defaults.model.name, "claude-sonnet");
  EXPECT_EQ(workspace_spec_from(to_json(spec)), spec);
  EXPECT_EQ(
      workspace_spec_from(created(workspace_kind(), an_object(workspace_kind(), "{}")).get("spec")),
      WorkspaceSpec());
}

TEST(Workspace, rules) {
  const auto named = [](const std::string& name) {
    return complaint([&] {
      prepare_create(workspace_kind(), an_object(workspace_kind(), "{}", name), options());
    });
  };
  EXPECT_EQ(named("web"), "");
  EXPECT_NE(named("a.b").find(
                "a workspace is a namespace, so its name must be a lowercase RFC 1123 label"),
            std::string::npos);
  EXPECT_NE(named(std::string(64, 'a')).find("must be no more than 63 characters"),
            std::string::npos);
  const std::pair<const char*, const char*> table[] = {
      {"members: [{role: Owner}]",
       "spec.members[0]: Invalid value: object: exactly one of user and group"},
      {"members: [{user: a, group: b}]", "exactly one of user and group"},
      {"members: [{user: a}, {user: a, role: Admin}]", "spec.members[1]: Duplicate value: \"a\""},
      {"members: [{user: a, role: King}]", "spec.members[0].role: Unsupported value"},
      {"retention: {days: 0}", "spec.retention.days: Invalid value: 0"},
      {"retention: {days: 3651}", "spec.retention.days: Invalid value: 3651"},
      {"limits: {maxConcurrentRuns: 0}", "spec.limits.maxConcurrentRuns: Invalid value: 0"},
      {"limits: {dailySpendUSD: -1}", "spec.limits.dailySpendUSD: Invalid value: -1"},
      {"notifications: {}", "spec.notifications.url: Required value"},
      {"notifications: {url: nonsense}", "spec.notifications.url: Invalid value"},
  };
  for (const auto& [yaml, part] : table)
    EXPECT_NE(create_complaint(workspace_kind(), yaml).find(part), std::string::npos)
        << yaml << "\n"
        << create_complaint(workspace_kind(), yaml);
}

TEST(ModelProvider, the_example_is_accepted_and_comes_back) {
  const json::Value made = created(model_provider_kind(), an_object(model_provider_kind(), R"(
type: Anthropic
baseURL: ""
apiKey: {secret: anthropic, key: value}
models: [{name: claude-sonnet, id: claude-sonnet-4-5, contextWindow: 200000, price: {inputPerMTok: 3, outputPerMTok: 15, cacheReadPerMTok: 0.3}}]
limits: {maxConcurrent: 8}
script: []
)",
                                                                    "main"));
  const ModelProviderSpec spec = model_provider_spec_from(made.get("spec"));
  EXPECT_EQ(spec.models[0].price_cache_read, 0.3);
  EXPECT_EQ(spec.api_key, (SecretRef{"anthropic", "value"}));
  EXPECT_EQ(model_provider_spec_from(to_json(spec)), spec);
  const json::Value scripted = created(model_provider_kind(), an_object(model_provider_kind(), R"(
type: Scripted
models: [{name: m}]
script: [{match: {turn: 1}, say: "hi", call: {tool: bash, arguments: {command: "true"}}}]
)"));
  EXPECT_EQ(
      model_provider_spec_from(scripted.get("spec")).script.dump(),
      R"([{"match":{"turn":1},"say":"hi","call":{"tool":"bash","arguments":{"command":"true"}}}])");
  EXPECT_EQ(model_provider_spec_from(scripted.get("spec")).models[0].id, "m");
}

TEST(ModelProvider, rules) {
  const std::pair<const char*, const char*> table[] = {
      {"{}", "spec.type: Required value"},
      {"type: OpenAICompatible",
       "spec.baseURL: Required value: type OpenAICompatible has no official one"},
      {"{type: OpenAI, baseURL: 'ftp://x'}",
       "spec.baseURL: Invalid value: \"ftp://x\": must be an http(s) URL"},
      {"{type: OpenAI, baseURL: 'not a url'}", "spec.baseURL: Invalid value"},
      {"{type: OpenAI, script: [{say: x}]}", "spec.script: Forbidden: only with type Scripted"},
      {"{type: OpenAI, models: [{name: a}, {name: a}]}", "spec.models[1]: Duplicate value"},
      {"{type: OpenAI, models: [{name: a, price: {inputPerMTok: -1}}]}",
       "spec.models[0].price.inputPerMTok"},
  };
  for (const auto& [yaml, part] : table)
    EXPECT_NE(create_complaint(model_provider_kind(), yaml).find(part), std::string::npos)
        << yaml << "\n"
        << create_complaint(model_provider_kind(), yaml);
}

TEST(SandboxEngine, the_example_is_accepted_and_comes_back) {
  const json::Value made = created(sandbox_engine_kind(), an_object(sandbox_engine_kind(), R"(
type: Docker
endpoint: unix:///var/run/docker.sock
runtime: runc
egressFilter: auto
attachment: auto
subnetPool: 10.201.0.0/16
warmPool: {}
blockedTargets: [203.0.113.0/24, "2001:db8::/32"]
)",
                                                                    "default"));
  const SandboxEngineSpec spec = sandbox_engine_spec_from(made.get("spec"));
  EXPECT_EQ(spec.blocked_targets.size(), 2u);
  EXPECT_EQ(sandbox_engine_spec_from(to_json(spec)), spec);
  EXPECT_EQ(sandbox_engine_spec_from(
                created(sandbox_engine_kind(), an_object(sandbox_engine_kind(), "{}")).get("spec")),
            SandboxEngineSpec());
}

TEST(SandboxEngine, rules) {
  const std::pair<const char*, const char*> table[] = {
      {"type: LXC", "spec.type: Unsupported value: \"LXC\""},
      {"endpoint: /var/run/docker.sock", "spec.endpoint: Invalid value"},
      {"subnetPool: 10.201.0.1/16", "spec.subnetPool: Invalid value: \"10.201.0.1/16\""},
      {"subnetPool: 10.201.0.0/30", "must be an IPv4 range with a prefix of 8 to 24"},
      {"subnetPool: 'fd00::/16'", "must be an IPv4 range"},
      {"blockedTargets: [10.0.0.0]", "spec.blockedTargets[0]: Invalid value: \"10.0.0.0\""},
      {"egressFilter: on", "spec.egressFilter: Unsupported value: \"on\""},
  };
  for (const auto& [yaml, part] : table)
    EXPECT_NE(create_complaint(sandbox_engine_kind(), yaml).find(part), std::string::npos)
        << yaml << "\n"
        << create_complaint(sandbox_engine_kind(), yaml);
}

TEST(Secret, rules) {
  EXPECT_EQ(create_complaint(secret_kind(), "{stringData: {a.b_c-D: x}}"), "");
  EXPECT_NE(create_complaint(secret_kind(), "{stringData: {'a b': x}}")
                .find("spec.stringData: Invalid value: \"a b\": a key is 1 to 100"),
            std::string::npos);
  EXPECT_NE(create_complaint(secret_kind(), "{stringData: {a: " + std::string(65537, 'x') + "}}")
                .find("spec.stringData.a: Too long"),
            std::string::npos);
  EXPECT_NE(complaint([&] {
              prepare_create(secret_kind(), an_object(secret_kind(), "{}", std::string(101, 'a')),
                             options());
            }).find("must be no more than 100 characters"),
            std::string::npos);
}

// A guard against a slow path (a deep copy, an uncached pattern), not a benchmark.
TEST(Job, preparing_one_costs_little) {
  json::Value job = make_object(job_kind(), "default", "a", parse_yaml_one(kCompleteJob));
  created(job_kind(), job);
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kTimes = 200;
  for (int i = 0; i < kTimes; ++i) prepare_create(job_kind(), job, options());
  const auto each = (std::chrono::steady_clock::now() - begin) / kTimes;
  RecordProperty("nanoseconds", std::to_string(each.count()));
  EXPECT_LT(each, std::chrono::milliseconds(20));
}

}  // namespace
}  // namespace umpteenth::apis
