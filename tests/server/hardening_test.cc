#include "server/hardening.h"

#include <map>

#include "apis/yaml.h"
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

json::Value object(const std::string& yaml) { return apis::parse_yaml_one(yaml); }
json::Value job(const std::string& name, const std::string& spec) {
  return object("{metadata: {name: " + name + ", namespace: web}, spec: " + spec + "}");
}
json::Value engine(const std::string& state, const std::string& message = "why") {
  return object(
      "{metadata: {name: e}, spec: {runtime: runc}, status: {egressFirewall: {state: " + state +
      "}, conditions: [{type: EgressFirewall, status: 'False', reason: R, "
      "message: " +
      message + "}]}}");
}
json::Value model(const std::string& url) {
  return object("{metadata: {name: m, namespace: web}, spec: {type: OpenAICompatible, baseURL: '" +
                url + "'}}");
}

// An instance in which everything is as it should be, as far as can be seen.
HardeningSubject a_good_one() {
  HardeningSubject subject;
  subject.facts.app_url = "https://ump.example.com";
  subject.facts.api_host = "127.0.0.1";
  subject.facts.api_port = 8080;
  subject.facts.broker_port = 8081;
  subject.facts.allow_private_targets = false;
  subject.facts.secret_files = {{"config.yml", 0600}, {"data/encryption.key", 0600}};
  subject.engines = {
      object("{metadata: {name: e}, spec: {runtime: runsc}, status: "
             "{egressFirewall: {state: Enforced}}}")};
  subject.jobs = {job("quiet", "{network: {mode: None}}")};
  return subject;
}

HardeningItem item(const HardeningSubject& subject, const std::string& id) {
  for (const HardeningItem& found : check_hardening(subject))
    if (found.id == id) return found;
  ADD_FAILURE() << "there is no item " << id;
  return {};
}

TEST(Hardening, a_hardened_instance_leaves_only_what_cannot_be_seen) {
  std::vector<std::string> unsure;
  for (const HardeningItem& found : check_hardening(a_good_one())) {
    EXPECT_NE(found.met, Met::no) << found.id << ": " << found.found;
    EXPECT_FALSE(found.found.empty()) << found.id;
    if (found.met == Met::unknown) unsure.push_back(found.id);
  }
  EXPECT_EQ(unsure, std::vector<std::string>{"keys"});  // where the copies of the key are
}

TEST(Hardening, https) {
  struct Case {
    std::string url;
    bool tls;
    Met met;
  };
  for (const Case& c : {Case{"https://a", false, Met::yes}, Case{"http://a", true, Met::no},
                        Case{"", true, Met::yes}, Case{"", false, Met::no}}) {
    HardeningSubject subject = a_good_one();
    subject.facts.app_url = c.url;
    subject.facts.tls = c.tls;
    const HardeningItem found = item(subject, "https");
    EXPECT_EQ(found.met, c.met) << c.url << c.tls;
    EXPECT_EQ(found.todo.empty(), c.met == Met::yes) << found.todo;
  }
}

TEST(Hardening, ports_beyond_loopback_and_in_a_container_are_for_somebody_else_to_see) {
  for (const char* host : {"127.0.0.1", "127.8.9.1", "localhost", "::1"}) {
    HardeningSubject subject = a_good_one();
    subject.facts.api_host = host;
    EXPECT_EQ(item(subject, "ports").met, Met::yes) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1", "ump.example.com"}) {
    HardeningSubject subject = a_good_one();
    subject.facts.api_host = host;
    EXPECT_EQ(item(subject, "ports").met, Met::unknown) << host;
  }
  HardeningSubject subject = a_good_one();
  subject.facts.in_container = true;
  EXPECT_EQ(item(subject, "ports").met, Met::unknown);
  EXPECT_NE(item(subject, "ports").todo.find("8081"), std::string::npos);
}

TEST(Hardening, a_file_of_keys_that_others_can_read_is_named) {
  HardeningSubject subject = a_good_one();
  subject.facts.secret_files[0].mode = 0640;
  const HardeningItem found = item(subject, "keys");
  EXPECT_EQ(found.met, Met::no);
  EXPECT_EQ(found.found, "others may read or write config.yml");
  EXPECT_TRUE(found.todo.starts_with("chmod 600 config.yml")) << found.todo;
}

TEST(Hardening, tokens_are_the_ways_in) {
  HardeningSubject subject = a_good_one();
  subject.tokens = {"ci", "laptop"};
  EXPECT_NE(item(subject, "sign-in").found.find("2 API tokens are the ways in (ci, laptop)"),
            std::string::npos)
      << item(subject, "sign-in").found;
}

TEST(Hardening, the_worst_engine_decides_and_its_condition_says_why) {
  HardeningSubject subject = a_good_one();
  subject.engines.push_back(engine("NotEnforced", "no iptables"));
  EXPECT_EQ(item(subject, "egress-firewall").met, Met::no);
  EXPECT_EQ(item(subject, "egress-firewall").found,
            "e: private networks blocked; e: not enforced, no iptables");
  subject.engines = {engine("''"), engine("'Off'")};
  EXPECT_EQ(item(subject, "egress-firewall").met, Met::no);
  subject.engines = {engine("'Off'"), engine("''")};
  EXPECT_EQ(item(subject, "egress-firewall").met, Met::no);
  subject.engines = {engine("''")};
  EXPECT_EQ(item(subject, "egress-firewall").met, Met::unknown);
  subject.engines.clear();
  EXPECT_EQ(item(subject, "egress-firewall").met, Met::unknown);
}

TEST(Hardening, jobs_with_the_whole_internet_are_named) {
  HardeningSubject subject = a_good_one();
  for (const char* name : {"a", "b", "c", "d", "e", "f"})
    subject.jobs.push_back(job(name, "{network: {mode: Internet}}"));
  const HardeningItem found = item(subject, "job-networks");
  EXPECT_EQ(found.met, Met::unknown);
  EXPECT_EQ(found.found,
            "6 of 7 jobs may reach the whole internet: web/a, web/b, web/c, web/d, web/e and 1 "
            "more");
  subject.jobs = {job("unsaid", "{}")};  // the default is Internet
  EXPECT_EQ(item(subject, "job-networks").met, Met::unknown);
}

TEST(Hardening, private_targets_need_a_model_server_on_the_network) {
  HardeningSubject subject = a_good_one();
  subject.facts.allow_private_targets = true;
  EXPECT_EQ(item(subject, "private-targets").met, Met::no);
  for (const char* url : {"http://10.1.2.3:11434/v1", "http://127.0.0.1:1", "http://localhost"}) {
    subject.models = {model(url)};
    EXPECT_EQ(item(subject, "private-targets").met, Met::yes) << url;
  }
  for (const char* url : {"https://93.184.216.34/v1", "https://api.example.com", "no url"}) {
    subject.models = {model(url)};
    EXPECT_EQ(item(subject, "private-targets").met, Met::no) << url;
  }
}

TEST(Hardening, gvisor_is_looked_for_on_engines_and_in_jobs) {
  HardeningSubject subject = a_good_one();
  subject.jobs.push_back(job("own", "{sandbox: {runtime: runc}}"));
  const HardeningItem found = item(subject, "gvisor");
  EXPECT_EQ(found.met, Met::unknown);
  EXPECT_NE(found.found.find("job web/own (runc)"), std::string::npos) << found.found;
}

class DoctorTest : public ApiTest {
 protected:
  static constexpr char kPath[] = "/umpteenth/v1alpha1/doctor";
  ServerDeps deps() {
    ServerDeps made{*store, sealer, clock, tokens, &trigger, nullptr, {}, {}, {}};
    made.hardening_facts = [] { return a_good_one().facts; };
    return made;
  }
};

TEST_F(DoctorTest, looks_at_the_instance_as_it_is) {
  make_job("wide");
  token_for(Role::member, {"default"});
  Api with_facts(deps());
  const http::Response response =
      with_facts.answer(a_request("GET", kPath, "", {{"Authorization", "Bearer " + token}}));
  ASSERT_EQ(response.status, 200) << response.body;
  std::map<std::string, json::Value> items;
  const json::Value report = json::parse(response.body);
  for (const json::Value& found : report.get("items").items())
    items[found.get_string("id")] = found;
  EXPECT_EQ(items.size(), 8U);
  EXPECT_EQ(items["https"].get_string("state"), "met");
  EXPECT_EQ(items["job-networks"].get_string("state"), "not known");
  EXPECT_NE(items["job-networks"].get_string("found").find("default/wide"), std::string::npos);
  EXPECT_NE(items["sign-in"].get_string("found").find("1 API token "), std::string::npos)
      << items["sign-in"].dump();
}

TEST_F(DoctorTest, is_for_the_instances_admin) {
  const std::string admin = token;
  token = token_for(Role::owner, {"default"});
  EXPECT_EQ(send("GET", kPath).status, 403);
  token = "none";
  EXPECT_EQ(send("GET", kPath).status, 401);
  token = admin;
  EXPECT_EQ(send("POST", kPath, "{}").status, 405);
  EXPECT_EQ(send("GET", kPath).status, 503);  // this fixture has no options
}

}  // namespace
}  // namespace umpteenth::server
