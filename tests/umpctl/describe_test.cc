#include "cmd/umpctl/describe.h"

#include <gtest/gtest.h>

#include "apis/yaml.h"
#include "tests/support/golden.h"

namespace umpteenth::umpctl {
namespace {

std::string described(const char* kind, const char* object, const char* events = "{}") {
  return describe_text(*apis::find_kind_by_name(kind), apis::parse_yaml_one(object),
                       apis::parse_yaml_one(events));
}

TEST(FieldTitle, spells_words_and_units) {
  EXPECT_EQ(field_title("timeoutSeconds"), "Timeout Seconds");
  EXPECT_EQ(field_title("memoryMiB"), "Memory MiB");
  EXPECT_EQ(field_title("maxCostUSD"), "Max Cost USD");
  EXPECT_EQ(field_title("inputPerMTok"), "Input Per MTok");
  EXPECT_EQ(field_title("apiKey"), "API Key");
  EXPECT_EQ(field_title("cpus"), "CPUs");
  EXPECT_EQ(field_title("baseURL"), "Base URL");
  EXPECT_EQ(field_title("imageMs"), "Image ms");
  EXPECT_EQ(field_title("runAsRoot"), "Run As Root");
  EXPECT_EQ(field_title("x"), "X");
}

TEST(Describe, a_job) {
  EXPECT_TRUE(testing::golden("tests/golden/describe_job.txt", described("Job", R"(
apiVersion: umpteenth.dev/v1alpha1
kind: Job
metadata:
  name: nightly
  namespace: default
  generation: 3
  creationTimestamp: "2026-01-02T03:04:05Z"
  labels: {team/owner: ops, tier: "1"}
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", note: kept}
spec:
  instruction: |
    Read the log.

    Say what is wrong.
  model: {provider: rehearsal, name: scripted}
  schedule: {cron: "0 3 * * *", timeZone: Europe/Berlin}
  sandbox: {runAsRoot: false, resources: {cpus: 2, memoryMiB: 512}}
  network: {mode: AllowedDomains, allowedDomains: [a.example, b.example]}
  secrets: [{secret: one, env: ONE}, {secret: two, env: TWO, key: other}]
  limits: {maxCostUSD: 0.5, timeoutSeconds: 60}
status:
  observedGeneration: 3
  lastRun: {name: nightly-abc, phase: Succeeded}
  nextRun: null
  conditions:
  - {type: Ready, status: "False", reason: SecretMissing, message: "secret two\ndoes not exist", lastTransitionTime: "2026-01-02T03:05:00Z", observedGeneration: 2}
  - {type: ModelResolved, status: "True", reason: Found, message: "", lastTransitionTime: "2026-01-02T03:04:06Z", observedGeneration: 3}
)",
                                                                         R"(
items:
- {type: Warning, reason: Refused, message: later, count: 3, lastTimestamp: "2026-01-03T03:00:00Z"}
- {type: Normal, reason: Ready, message: first, lastTimestamp: "2026-01-02T03:05:00Z"}
)")));
}

TEST(Describe, tells_events_of_one_second_in_their_order) {
  const std::string text =
      described("Job", "{kind: Job, metadata: {name: a, namespace: default}, spec: {}}", R"(
items:
- {reason: RunFailed, lastTimestamp: "2026-01-03T03:00:00Z", metadata: {resourceVersion: "10"}}
- {reason: RunStarted, lastTimestamp: "2026-01-03T03:00:00Z", metadata: {resourceVersion: "9"}}
)");
  EXPECT_LT(text.find("RunStarted"), text.find("RunFailed")) << text;
}

TEST(Describe, a_run_shows_its_outputs_as_the_job_named_them) {
  EXPECT_TRUE(testing::golden("tests/golden/describe_run.txt", described("Run", R"(
apiVersion: umpteenth.dev/v1alpha1
kind: Run
metadata: {name: hello-abc, namespace: default, generation: 1, creationTimestamp: "2026-01-02T03:04:05Z"}
spec: {job: hello, trigger: Manual, jobSpec: {instruction: Greet., sandbox: {image: "", resources: {memoryMiB: 64, pids: 8}}}, input: {n: 3}}
status:
  phase: Succeeded
  durations: {queueMs: 3, totalMs: 2100}
  costUSD: 0.0
  outputs: {sumOfAll: 6, list: [1, 2]}
  artifacts: [{path: a.txt, size: 12, digest: abc}, {path: b.txt, size: 1, digest: def}]
)")));
}

TEST(Describe, shows_what_a_sandbox_wanted_the_terminal_to_do) {
  const std::string text = described(
      "Run", R"({metadata: {name: r}, status: {summary: "\e[2Jgone", outputs: {"\e]x": "a\rb"}}})",
      R"({items: [{reason: X, message: "\e[A", lastTimestamp: ""}]})");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("^[[2Jgone"), std::string::npos) << text;
}

TEST(Describe, a_secret_names_its_keys_only) {
  const std::string text = described(
      "Secret", "{metadata: {name: s}, spec: {sealedData: {token: v1.abc, user: v1.def}}}");
  EXPECT_NE(text.find("    token:  sealed\n    user:   sealed\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("v1."), std::string::npos);
}

TEST(Describe, says_nothing_of_what_is_not_there) {
  const std::string text = described("Workspace", "metadata: {name: a}\nspec: {}\n");
  EXPECT_EQ(text, "Name:  a\nKind:  Workspace\nEvents:  <none>\n");
}

}  // namespace
}  // namespace umpteenth::umpctl
