#include "cmd/umpd/engine_parts.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/docker.h"
#include "engine/firewall/host_access.h"
#include "engine/firewall/watch.h"
#include "engine/namespaces.h"
#include "engine/netns.h"
#include "engine/relay.h"
#include "engine/sandbox_images.h"

namespace umpteenth::umpd {

namespace fs = std::filesystem;

namespace {

std::string read_or_empty(const char* path) {
  try {
    return read_file(path, 4U << 20);
  } catch (const Error&) {
    return "";  // not there: nothing is known, which the callers allow for
  }
}

std::string own_host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

// `ump` stands beside umpd, or in the folder of a package.
std::map<std::string, fs::path> ump_programs() {
  const fs::path beside = fs::read_symlink("/proc/self/exe").parent_path();
  std::map<std::string, fs::path> found;
  for (const fs::path& folder : {beside, beside.parent_path() / "lib/umpteenth"}) {
    found.emplace("amd64", folder / "ump");
    found.emplace("arm64", folder / "ump-arm64");
    if (fs::exists(folder / "ump")) break;
    found.clear();
  }
  return found;
}

// Made at the first use: an engine that is down must not stop the start.
struct Lazy {
  Lazy(const apis::SandboxEngineSpec& engine_spec, EnginePartsOptions parts_options)
      : spec(engine_spec),
        options(std::move(parts_options)),
        engine(engine::make_docker_engine({spec.endpoint, 3})),
        images(*engine, options.instance, ump_programs()),
        namespaces(*engine, images, options.instance, spec.endpoint) {}

  engine::RunNetworks& networks() {
    std::lock_guard lock(mutex);
    if (!made) {
      engine::AttachmentOptions attachment;
      attachment.instance = options.instance;
      attachment.subnet_pool = spec.subnet_pool;
      attachment.socket_folder = options.broker_socket_dir.string();
      attachment.broker_port = options.broker_port;
      attachment.dns = true;
      attachment.read_routes = [] { return read_or_empty("/proc/net/route"); };
      attachment.own_container = options.own_container;
      made = std::make_unique<engine::RunNetworks>(*engine, images, std::move(attachment));
    }
    return *made;
  }

  const apis::SandboxEngineSpec spec;
  const EnginePartsOptions options;
  std::shared_ptr<engine::Engine> engine;
  engine::SandboxImages images;
  engine::Namespaces namespaces;
  std::mutex mutex;
  std::unique_ptr<engine::RunNetworks> made;
};

// A sandbox that is on a network is one with Internet access, and has a resolver.
bool has_network(engine::Engine& engine, const std::string& container) {
  const auto seen = engine.find_container(container);
  return seen && std::ranges::any_of(seen->networks,
                                     [](const auto& network) { return network.first != "none"; });
}

std::shared_ptr<controllers::BrokerDoor> open_door(Lazy& parts, const std::string& run_uid,
                                                   const std::string& container) {
  const bool resolver = parts.options.adopt_resolver && has_network(*parts.engine, container);
  auto made =
      engine::listen_in_sandbox(*parts.engine, container, parts.options.broker_port, resolver);
  const std::string endpoint = "netns:" + run_uid;
  auto held = std::make_shared<std::vector<std::shared_ptr<void>>>();
  held->push_back(parts.options.adopt_listener(std::move(made.socket), endpoint));
  if (resolver)
    held->push_back(parts.options.adopt_resolver(std::move(made.dns_datagrams),
                                                 std::move(made.dns_listener), endpoint));
  return std::make_shared<controllers::BrokerDoor>(endpoint, std::move(made.process),
                                                   std::move(held));
}

fs::path own_ump() {
  utsname machine{};
  const bool arm = ::uname(&machine) == 0 && std::string_view(machine.machine) == "aarch64";
  const auto programs = ump_programs();
  const auto found = programs.find(arm ? "arm64" : "amd64");
  if (found == programs.end())
    throw Error(Code::unavailable, "this installation has no ump for umpd's own machine");
  return found->second;
}

// Where umpd is root on the engine's machine it acts itself and is told of changes; elsewhere a
// helper container acts.
controllers::firewall::Access open_host(Lazy& lazy, const std::function<void()>& changed) {
  namespace fw = engine::firewall;
  controllers::firewall::Access access;
  try {
    const auto host =
        std::make_shared<const fw::HostNamespace>(fw::HostNamespace::find(lazy.spec.endpoint));
    auto direct = fw::make_direct_access(host, own_ump(), system_runner());
    direct->read();  // there may be no iptables here
    access.host = std::move(direct);
    access.watch = std::make_unique<fw::HostWatch>(*host, changed);
  } catch (const Error& e) {
    log::debug("the egress firewall is not kept directly", {{"reason", log::clip(e.message())}});
  }
  if (!access.host)
    access.host = fw::make_helper_access(
        *lazy.engine, {lazy.options.instance, [&lazy] { return lazy.images.ensure_helper(); }});
  return access;
}

bool broker_in(engine::Engine& engine, const controllers::RunNetwork& network) {
  const auto found = engine.find_network(network.id);
  return found && std::any_of(found->members.begin(), found->members.end(),
                              [&](const auto& m) { return m.second.ipv4 == network.broker_ip; });
}

}  // namespace

std::string find_own_container(const std::string& endpoint) {
  const std::string mountinfo = read_or_empty("/proc/self/mountinfo");
  const std::string cgroup = read_or_empty("/proc/self/cgroup");
  if (engine::container_id_candidates(mountinfo, cgroup, own_host_name()).empty()) return "";
  try {
    const auto engine = engine::make_docker_engine({endpoint, 1});
    return engine::find_own_container(*engine, mountinfo, cgroup, own_host_name()).value_or("");
  } catch (const Error& e) {
    log::warn("cannot ask the engine whether umpd runs in it: taken as no",
              {{"error", e.message()}});
    return "";
  }
}

controllers::EngineHandle::Parts make_engine_parts(const apis::SandboxEngineSpec& spec,
                                                   const EnginePartsOptions& options) {
  const auto lazy = std::make_shared<Lazy>(spec, options);
  controllers::EngineHandle::Parts parts;
  parts.engine = lazy->engine;
  parts.prepare_image = [lazy](const std::string& image, std::stop_token stop) {
    const engine::Image base = lazy->images.ensure_base(image, stop);
    return controllers::PreparedImage{lazy->images.ensure_prepared(base.id), base.id};
  };
  parts.create_network = [lazy](const std::string& run_uid, const engine::Labels& labels) {
    const engine::RunNetwork made = lazy->networks().create(run_uid, labels);
    return controllers::RunNetwork{made.id, made.name, made.broker_address, made.sandbox_address};
  };
  parts.remove_network = [lazy](const std::string& id) { lazy->engine->remove_network(id); };
  parts.broker_attached = [lazy](const controllers::RunNetwork& network) {
    return broker_in(*lazy->engine, network);
  };
  parts.namespace_obstacle = [lazy](const std::string& runtime) {
    return lazy->namespaces.obstacle(runtime);
  };
  parts.open_door = [lazy](const std::string& run_uid, const std::string& container) {
    return open_door(*lazy, run_uid, container);
  };
  parts.collect_garbage = [lazy](std::stop_token) {
    const size_t gone = lazy->images.collect_garbage();
    std::vector<std::string> notes;
    if (gone > 0) notes.push_back("removed " + std::to_string(gone) + " outdated images");
    return notes;
  };
  controllers::firewall::GuardOptions guard;
  guard.instance = options.instance;
  guard.engine = lazy->engine;
  guard.open_host = [lazy](const std::function<void()>& changed) {
    return open_host(*lazy, changed);
  };
  guard.helper_image = [lazy] { return lazy->images.ensure_helper(); };
  parts.guard = std::make_shared<controllers::firewall::Guard>(std::move(guard), system_clock());
  return parts;
}

}  // namespace umpteenth::umpd
