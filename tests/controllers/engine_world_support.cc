#include "tests/controllers/engine_world.h"

#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "apis/object.h"
#include "cmd/umpd/engine_parts.h"
#include "engine/docker.h"
#include "tests/support/engine_fixture.h"

namespace umpteenth::controllers {
namespace {

http::ListenOn adopt_only() {
  http::ListenOn listen;
  listen.adopt_only = true;
  return listen;
}

}  // namespace

std::string EngineWorld::instance() { return "driver-test-" + std::to_string(getpid()); }

void EngineWorld::SetUp() {
  const auto& test = support::test_engine();
  if (!test.skip.empty()) GTEST_SKIP() << test.skip;
  if (in_namespace() && geteuid() != 0) GTEST_SKIP() << "entering a namespace needs root";
  endpoint_ = test.endpoint;
  client_ = engine::make_docker_engine({.endpoint = endpoint_});
  const auto folder = dir_.path() / "broker";
  std::filesystem::create_directory(folder);
  chmod(folder.c_str(), 0755);
  broker_server_ = std::make_unique<http::Server>(adopt_only(), broker::limits(8), broker_.site());
  broker::FrontOptions door;
  door.resolve = [](const std::string&) {
    return std::vector<net::Address>{*net::parse_address("127.0.0.1")};
  };
  door.classify = [](const net::Address&) { return net::Class::is_public; };
  front_ = std::make_unique<broker::Front>(registry_, *broker_server_, std::move(door));
  front_->listen_unix(folder / "broker.sock", 0666);
  broker_server_->start();
  front_->start();
  ground_.patch("sandboxengines", "default", [&](json::Value& engine) {
    engine["spec"].set("image", "umpteenth-busybox:latest");
    engine["spec"].set("runtime", "runc");
    engine["spec"].set("subnetPool", "10.205.0.0/16");
    engine["spec"].set("attachment", GetParam());
    engine["spec"].set("egressFilter", "off");  // its bridges and probes are counted by no test
  });
  start(agent::run_agent);
}

void EngineWorld::TearDown() {
  controllers_.reset();
  if (front_) front_->stop();
  if (!client_) return;
  for (const auto& c : client_->list_containers({{engine::kLabelInstance, instance()}}))
    client_->remove_container(c.id);
  for (const auto& n : client_->list_networks({{engine::kLabelInstance, instance()}}))
    client_->remove_network(n.id);
}

void EngineWorld::TearDownTestSuite() {
  const auto& test = support::test_engine();
  if (!test.skip.empty()) return;
  const auto client = engine::make_docker_engine({.endpoint = test.endpoint});
  for (const auto& i : client->list_images({{engine::kLabelInstance, instance()}}))
    client->remove_image(i.id);
}

void EngineWorld::start(World::Agent agent, int64_t max_concurrent) {
  controllers_.reset();
  Options options;
  options.instance = instance();
  options.max_concurrent = max_concurrent;
  options.run_agent = std::move(agent);
  options.make_engine = [this](const apis::SandboxEngineSpec& spec) {
    apis::SandboxEngineSpec here = spec;
    here.endpoint = endpoint_;
    umpd::EnginePartsOptions parts;
    parts.instance = instance();
    parts.broker_socket_dir = dir_.path() / "broker";
    parts.adopt_listener = [this](Fd listening, const std::string& endpoint) {
      return front_->adopt_listener(std::move(listening), endpoint);
    };
    return umpd::make_engine_parts(here, parts);
  };
  controllers_ = std::make_unique<Controllers>(*ground_.store, system_clock(), registry_, sealer_,
                                               std::move(options));
  controllers_->start();
}

std::string EngineWorld::start_run(const std::string& job, const std::string& input_json) {
  job::StartRequest request;
  request.ns = "default";
  request.job = job;
  request.trigger = "Manual";
  request.actor = "person";
  request.input = json::parse(input_json);
  return apis::name_of(controllers_->start_run(request));
}

bool EngineWorld::ends(const std::string& run, apis::Phase phase) {
  return eventually([&] { return apis::terminal(ground_.status(run).phase); },
                    std::chrono::seconds(120)) &&
         ground_.status(run).phase == phase;
}

bool EngineWorld::runs(const std::string& run) {
  return eventually([&] { return ground_.status(run).phase == apis::Phase::running; },
                    std::chrono::seconds(120));
}

void EngineWorld::provider(const std::string& script) {
  ground_.create("modelproviders", "default", "script",
                 R"({"type":"Scripted","models":[{"name":"m","id":"m"}],"script":)" + script + "}");
}

void EngineWorld::job(const std::string& name, const std::string& more) {
  json::Value spec = json::parse(more);
  if (spec.get("model").is_null())
    spec.set("model", json::parse(R"({"provider":"main","name":"m"})"));
  ground_.create_job(name, spec.dump());
}

std::vector<engine::Container> EngineWorld::sandboxes() {
  return client_->list_containers(
      {{engine::kLabelInstance, instance()}, {engine::kLabelRole, "sandbox"}});
}

size_t EngineWorld::networks_of_runs() {
  return client_
      ->list_networks({{engine::kLabelInstance, instance()}, {engine::kLabelRole, "run-network"}})
      .size();
}

std::string in_sandbox(const agent::Params& params, const std::string& script) {
  runs::ExecRequest request;
  request.argv = {"sh", "-c", script};
  request.timeout = Duration(120'000);
  return params.sandbox.exec(request, params.run.stop().get_token()).output;
}

}  // namespace umpteenth::controllers
