#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <set>

#include "apis/object.h"
#include "base/crypto.h"
#include "base/error.h"
#include "tests/controllers/world.h"

namespace umpteenth::controllers {
namespace {

std::string kind_of(const std::string& plural) { return apis::find_kind(plural)->kind; }

// Commands as a real sandbox would run them, as far as the driver needs them.
void script_sandbox(support::FakeEngine& engine) {
  using support::FakeProcess;
  engine.on_exec(support::argv_has("cat > "), [](FakeProcess& p) {
    const auto& argv = p.argv();
    try {
      p.write_file(argv.at(argv.size() - 2), p.read_all_stdin());
    } catch (const Error&) {  // its container was removed meanwhile: the command died with it
      return 137;
    }
    return 0;
  });
  engine.on_exec(support::argv_is({"/usr/local/bin/ump", "version"}),
                 [](FakeProcess&) { return 0; });
  engine.on_exec(support::argv_has("--kill"), [&engine](FakeProcess& p) {
    engine.kill_commands(support::argv_has(p.argv().back()));
    return 0;
  });
}

}  // namespace

bool FakeDoors::asked(const std::string& runtime) const {
  std::lock_guard lock(mutex_);
  return asked_.contains(runtime);
}

std::string FakeDoors::tell_obstacle(const std::string& runtime) {
  std::lock_guard lock(mutex_);
  asked_.insert(runtime);
  return obstacle;
}

// An eventfd in a pidfd's place: both become readable, and stay so.
std::shared_ptr<BrokerDoor> FakeDoors::open_door(const std::string& run_uid,
                                                 const std::string& container) {
  if (on_open) on_open(container);
  Fd process(eventfd(0, EFD_CLOEXEC));
  Fd own(fcntl(process.get(), F_DUPFD_CLOEXEC, 0));
  ++*open_;
  std::shared_ptr<void> listener(nullptr, [open = open_](void*) { --*open; });
  std::lock_guard lock(mutex_);
  processes_[container] = std::move(own);
  return std::make_shared<BrokerDoor>("netns:" + run_uid, std::move(process), listener);
}

void FakeDoors::end_process(const std::string& container) {
  std::lock_guard lock(mutex_);
  eventfd_write(processes_.at(container).get(), 1);
}

Ground::Ground() {
  engine->add_image("busybox");
  engine::ContainerSpec spec;
  spec.name = "relay";
  spec.image = "busybox";
  spec.labels = {{engine::kLabelInstance, kInstance}, {engine::kLabelRole, "relay"}};
  relay = engine->create_container(spec);
  engine->start_container(relay);
  script_sandbox(*engine);
  create("workspaces", "", "default", R"({"limits":{"maxConcurrentRuns":10}})");
  create("sandboxengines", "", "default", R"({"type":"Docker","image":"busybox","runtime":""})");
  create("modelproviders", "default", "main",
         R"({"type":"Scripted","models":[{"name":"m","id":"m"}],"script":[]})");
}

void Ground::create(const std::string& kind_plural, const std::string& ns, const std::string& name,
                    const std::string& spec_json) {
  json::Value metadata = json::Value::object({{"name", name},
                                              {"uid", crypto::uuid4()},
                                              {"generation", 1},
                                              {"creationTimestamp", format_time(clock.now())}});
  if (!ns.empty()) metadata.set("namespace", ns);
  json::Value object = json::Value::object({{"apiVersion", apis::kGroupVersion},
                                            {"kind", kind_of(kind_plural)},
                                            {"metadata", metadata},
                                            {"spec", json::parse(spec_json)}});
  store->commit_one({store::Verb::create, {kind_plural, ns, name}, object, std::nullopt}, "test",
                    "create");
}

void Ground::create_job(const std::string& name, const std::string& spec_json) {
  json::Value spec = json::parse(R"({"instruction":"do it","model":{"provider":"main","name":"m"},
                                     "network":{"mode":"None"}})");
  json::Value given = json::parse(spec_json);
  for (const auto& [field, value] : given.members()) spec.set(field, value);
  create("jobs", "default", name, spec.dump());
}

json::Value Ground::get(const std::string& kind_plural, const std::string& ns,
                        const std::string& name) const {
  auto record = store->find({kind_plural, ns, name});
  return record ? record->parse() : json::Value();
}

apis::RunStatus Ground::status(const std::string& name) const {
  return apis::run_status_from(run(name).get("status"));
}

std::vector<json::Value> Ground::runs() const {
  std::vector<json::Value> all;
  for (const auto& record : store->list({.kind = "runs", .ns = "", .limit = 0, .next = ""}).items) {
    all.push_back(record->parse());
  }
  return all;
}

void Ground::patch(const std::string& kind_plural, const std::string& name,
                   const std::function<void(json::Value&)>& change) {
  bool cluster = kind_plural == "workspaces" || kind_plural == "sandboxengines";
  store::Key key{kind_plural, cluster ? "" : "default", name};
  while (true) {
    auto record = store->find(key);
    json::Value object = record->parse();
    change(object);
    try {
      store->commit_one({store::Verb::update, key, object, record->revision}, "test", "patch");
      return;
    } catch (const Error& e) {
      if (e.code() != Code::conflict) throw;
    }
  }
}

void Ground::cancel(const std::string& name) {
  patch("runs", name, [](json::Value& run) {
    run["spec"].set("cancelRequested", true);
    run["metadata"]["annotations"].set(apis::kCancelledBy, "person");
  });
}

void Ground::remove(const std::string& kind_plural, const std::string& name) {
  store->commit_one({store::Verb::remove, {kind_plural, "default", name}, nullptr, std::nullopt},
                    "test", "remove");
}

std::vector<std::string> Ground::timeline(const std::string& name) const {
  std::vector<std::string> lines;
  for (const auto& row : store->timeline_read(apis::uid_of(run(name)), 0, 1000)) {
    json::Value event = json::parse(row.json);
    std::string line = event.get_string("type");
    if (line == "run.status") line += " " + event.get_string("phase");
    lines.push_back(line);
  }
  return lines;
}

std::string Ground::timeline_text(const std::string& name) const {
  std::string text;
  for (const auto& row : store->timeline_read(apis::uid_of(run(name)), 0, 1000)) {
    text += row.json + "\n";
  }
  return text;
}

size_t Ground::sandboxes() const {
  return engine->list_containers({{engine::kLabelRole, "sandbox"}}).size();
}

size_t Ground::run_networks() const {
  return engine->list_networks({{engine::kLabelRole, "run-network"}}).size();
}

EngineHandle::Parts Ground::parts() const {
  EngineHandle::Parts parts;
  parts.engine = engine;
  auto client = engine;
  auto endpoint = relay;
  parts.prepare_image = [client](const std::string& image, std::stop_token) {
    auto found = client->find_image(image);
    if (!found) throw Error(Code::not_found, "no such image: " + image);
    return PreparedImage{found->id, found->id};
  };
  auto next = std::make_shared<std::atomic<int>>(0);
  parts.create_network = [client, endpoint, next](const std::string& run_uid,
                                                  const engine::Labels& labels) {
    std::string base = "10.201.0.";
    int offset = 8 * ((*next)++ % 30);
    engine::NetworkSpec spec;
    spec.name = "net-" + run_uid;
    spec.internal = true;
    spec.subnet = base + std::to_string(offset) + "/29";
    spec.labels = labels;
    RunNetwork network;
    network.name = spec.name;
    network.broker_ip = base + std::to_string(offset + 2);
    network.sandbox_ip = base + std::to_string(offset + 3);
    network.id = client->create_network(spec);
    try {
      client->connect_network(network.id, endpoint, {network.id, network.broker_ip, {"umpteenth"}});
    } catch (const Error&) {
      client->remove_network(network.id);
      throw;
    }
    return network;
  };
  parts.remove_network = [client](const std::string& id) { client->remove_network(id); };
  parts.broker_attached = [client, endpoint](const RunNetwork& network) {
    auto found = client->find_network(network.id);
    return found && found->members.contains(endpoint);
  };
  parts.namespace_obstacle = [doors = doors](const std::string& runtime) {
    return doors->tell_obstacle(runtime);
  };
  parts.open_door = [doors = doors](const std::string& run_uid, const std::string& container) {
    return doors->open_door(run_uid, container);
  };
  parts.guard = guard;
  return parts;
}

World::World(std::shared_ptr<Ground> on, Agent agent, int64_t max_concurrent)
    : ground(std::move(on)), sealer("test", {"0123456789abcdef0123456789abcdef"}) {
  Options options;
  options.instance = kInstance;
  options.max_concurrent = max_concurrent;
  options.make_engine = [parts = ground->parts()](const apis::SandboxEngineSpec&) { return parts; };
  options.run_agent = std::move(agent);
  controllers = std::make_unique<Controllers>(*ground->store, ground->clock, registry, sealer,
                                              std::move(options));
}

World::~World() { controllers->stop(Duration(10'000)); }

std::string World::start_run(const std::string& job, const std::string& input_json) {
  job::StartRequest request;
  request.ns = "default";
  request.job = job;
  request.trigger = "Manual";
  request.actor = "person";
  request.input = json::parse(input_json);
  return apis::name_of(controllers->start_run(request));
}

bool World::passes(const std::function<bool()>& condition) {
  return eventually([&] {
    if (condition()) return true;
    ground->clock.advance(Duration(10));
    return false;
  });
}

bool World::ends(const std::string& name, apis::Phase phase) {
  return passes([&] { return ground->status(name).phase == phase; });
}

agent::Result succeed(const std::string& summary) {
  agent::Result result;
  result.end = agent::Result::End::succeeded;
  result.summary = summary;
  result.turns = 1;
  return result;
}

agent::Result work_until_stopped(const agent::Params& params) {
  auto stop = params.run.stop().get_token();
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, stop, [] { return false; });
  agent::Result result;
  result.end = agent::Result::End::stopped;
  return result;
}

}  // namespace umpteenth::controllers
