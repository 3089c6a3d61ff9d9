#include "cmd/umpd/daemon.h"

#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <thread>

#include "apis/sandbox_engine.h"
#include "apis/seal.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/http/server.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/dns/forwarder.h"
#include "broker/front.h"
#include "cmd/umpd/adapters.h"
#include "cmd/umpd/data_dir.h"
#include "cmd/umpd/edits.h"
#include "cmd/umpd/engine_parts.h"
#include "cmd/umpd/engine_topology.h"
#include "cmd/umpd/hardening_facts.h"
#include "cmd/umpd/identity.h"
#include "controllers/controllers.h"
#include "runs/registry.h"
#include "server/api.h"
#include "server/kubeconfig.h"
#include "store/open.h"

namespace umpteenth::umpd {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

// Of all workspaces together; each has limits.maxConcurrentRuns of its own.
constexpr int64_t kRunsAtOnce = 1000;
// admin-token --rotate asks the running umpd for a new token by it.
constexpr int kRotate = SIGUSR1;

controllers::sandbox_engine::Seeds seeds_of(const Config& config) {
  controllers::sandbox_engine::Seeds seeds;
  seeds.engine.endpoint = config.engine.endpoint;
  seeds.engine.egress_filter = config.sandbox.egress_filter;
  seeds.engine.image = config.sandbox.image;
  seeds.engine.blocked_targets = config.network.blocked_targets;
  seeds.max_concurrent_runs = config.runs.max_concurrent;
  seeds.retention_days = config.runs.retention_days;
  seeds.given = {config.given.begin(), config.given.end()};
  return seeds;
}

OutboundPolicy outbound_of(const Config& config) {
  OutboundPolicy policy;
  policy.allow_private = config.network.allow_private_targets;
  for (const std::string& text : config.network.blocked_targets)
    if (const auto cidr = net::parse_cidr(text)) policy.topology.blocked.push_back(*cidr);
  policy.topology.known = true;
  return policy;
}

// Only here is known which option chose the port.
template <typename F>
auto listening(const char* option, int64_t port, const F& listen) {
  try {
    return listen();
  } catch (const Error& e) {
    const bool taken = e.message().find("already in use") != std::string::npos;
    throw Error(e.code(), std::string(option) + " " + std::to_string(port) + ": " + e.message() +
                              (taken ? "; end the program that listens there (ss -ltnp shows it) "
                                       "or set another port"
                                     : ""));
  }
}

// The parts, in the order of their making; destroyed the other way round.
class Daemon {
 public:
  explicit Daemon(const Config& config)
      : config_(config),
        data_(config.app.data_dir),
        sealer_(data_.instance_id(), data_.master_keys(config.app.encryption_key)),
        store_(store::open_store(store_options())),
        tokens_(*store_, clock_),
        identity_(load_identity(config, data_.path(), clock_.now())),
        broker_(registry_, broker_options()),
        broker_server_(adopt_only(), broker::limits(static_cast<int>(config_.runs.max_concurrent)),
                       broker_.site()),
        front_(registry_, broker_server_, front_options()),
        dns_(registry_, dns_options()),
        controllers_(*store_, clock_, registry_, sealer_, controller_options()),
        trigger_port_(controllers_),
        plan_port_(controllers_),
        api_(api_deps()) {
    if (data_.made_key())
      log::warn("made an encryption key: back it up, secrets cannot be opened without it",
                {{"file", (data_.path() / "encryption.key").string()}});
    for (const std::string& warning :
         controllers::sandbox_engine::ensure_seeds(*store_, clock_, seeds_of(config)))
      log::warn("an option differs from the resource", {{"difference", warning}});
    open_front();
  }

  int run();

 private:
  store::Options store_options() {
    store::Options options;
    options.data_dir = data_.path();
    options.instance_id = data_.instance_id();
    options.admit_edit = [this](const store::Key& key, json::Value object,
                                const store::RecordPtr& live) {
      return admit_edit({sealer_, clock_, controllers::finalizers()}, key, std::move(object), live);
    };
    return options;
  }

  broker::Options broker_options() {
    broker::Options options;
    options.model = [this](const runs::LiveRun& run, const std::string& which) {
      return controllers_.model_of(run, which);
    };
    return options;
  }

  broker::dns::ForwarderOptions dns_options() {
    broker::dns::ForwarderOptions options;
    options.topology = [this] { return topology_.now(); };
    if (const auto address = net::parse_address(config_.sandbox.dns); address && address->is_v4())
      options.upstreams = {broker::dns::upstream(*address)};
    return options;
  }

  static http::ListenOn adopt_only() {
    http::ListenOn listen;
    listen.adopt_only = true;
    return listen;
  }

  broker::FrontOptions front_options() {
    broker::FrontOptions options;
    options.topology = [this] { return topology_.now(); };
    return options;
  }

  // A folder that the relay container mounts: nothing but the sockets is in it. The data folder
  // above is closed to everybody else. Where umpd itself is a container of the engine, it is a
  // member of each run network.
  void open_front() {
    const fs::path folder = data_.path() / "broker";
    fs::create_directories(folder);
    fs::permissions(folder, fs::perms(0755));
    front_.listen_unix((folder / "broker.sock").string(), 0666);
    dns_.listen_unix((folder / "dns.sock").string(), 0666);
    const store::RecordPtr engine = store_->find({"sandboxengines", "", "default"});
    if (engine)
      own_container_ =
          find_own_container(apis::sandbox_engine_spec_from(engine->parse().get("spec")).endpoint);
    if (own_container_.empty()) return;  // the relay comes over the sockets
    dns_.listen(53);
    http::ListenOn listen;
    listen.host = "0.0.0.0";
    listen.port = static_cast<int>(config_.server.broker_port);
    listening("server.broker_port", listen.port, [&] { front_.listen(listen); });
  }

  // The API is for people: connections over a run's network, or from one by whatever way, are
  // closed.
  bool sandbox_facing(const http::Endpoint& end) const {
    const auto address = net::parse_address(end.address);
    if (!address) return false;
    for (const store::RecordPtr& record : store_->list({"sandboxengines", "", 0, ""}).items) {
      const auto spec = apis::sandbox_engine_spec_from(record->parse().get("spec"));
      if (const auto pool = net::parse_cidr(spec.subnet_pool))
        if (pool->contains(*address)) return true;
    }
    return false;
  }

  controllers::Options controller_options() {
    controllers::Options options;
    options.instance = data_.instance_id();
    options.max_concurrent = kRunsAtOnce;
    options.broker_port = static_cast<int>(config_.server.broker_port);
    options.outbound = outbound_of(config_);
    options.make_engine = [this](const apis::SandboxEngineSpec& spec) { return make_parts(spec); };
    return options;
  }

  controllers::EngineHandle::Parts make_parts(const apis::SandboxEngineSpec& spec) {
    EnginePartsOptions options;
    options.instance = data_.instance_id();
    options.broker_socket_dir = data_.path() / "broker";
    options.broker_port = static_cast<int>(config_.server.broker_port);
    options.own_container = own_container_;
    options.adopt_listener = [this](Fd listening, const std::string& endpoint) {
      return front_.adopt_listener(std::move(listening), endpoint);
    };
    options.adopt_resolver = [this](Fd datagrams, Fd listener, const std::string& endpoint) {
      return dns_.adopt(std::move(datagrams), std::move(listener), endpoint);
    };
    return make_engine_parts(spec, options);
  }

  server::ServerDeps api_deps() {
    server::ServerDeps deps{*store_,     sealer_, clock_, tokens_, &trigger_port_,
                            &plan_port_, {},      {},     {},      {}};
    deps.not_ready = [this]() -> std::optional<std::string> {
      if (ready_) return std::nullopt;
      return "umpd is starting or stopping";
    };
    deps.sandbox_facing = [this](const http::Endpoint& end) { return sandbox_facing(end); };
    deps.finalizers = controllers::finalizers();
    deps.remove_firewall = [this](const std::string& engine) {
      return controllers_.remove_firewall(engine);
    };
    deps.hardening_facts = [this] {
      server::HardeningFacts facts = hardening_facts(config_, data_.path());
      facts.api_port = api_server_->port();
      facts.in_container = !own_container_.empty();
      return facts;
    };
    return deps;
  }

  void write_kubeconfig(bool rotate) {
    ensure_kubeconfig(data_.path(), tokens_, identity_, local_url(config_, api_server_->port()),
                      rotate);
  }
  void renew_certificate();
  int wait_for_signal();
  http::ListenOn where_to_listen() const;

  const Config config_;
  Clock& clock_ = system_clock();
  DataDir data_;
  apis::Sealer sealer_;
  std::unique_ptr<store::Store> store_;
  server::Tokens tokens_;
  Identity identity_;
  runs::Registry registry_;
  broker::Broker broker_;
  http::Server broker_server_;
  EngineTopology topology_{*store_, outbound_of(config_).topology.blocked};
  broker::Front front_;
  broker::dns::Forwarder dns_;
  std::string own_container_;
  controllers::Controllers controllers_;
  TriggerPort trigger_port_;
  PlanPort plan_port_;
  std::atomic<bool> ready_{false};
  server::Api api_;
  std::unique_ptr<http::Server> api_server_;
  Time next_renewal_check_{};
};

// Certificates live for months: looked at daily.
void Daemon::renew_certificate() {
  if (clock_.now() < next_renewal_check_ || config_.server.tls_mode != "self") return;
  next_renewal_check_ = clock_.now() + 24h;
  Identity now = load_identity(config_, data_.path(), clock_.now());
  if (!now.renewed) return;
  identity_ = std::move(now);
  api_server_->replace_tls(*identity_.tls);
  write_kubeconfig(false);
  log::info("renewed the server's certificate");
}

int Daemon::wait_for_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int s : {SIGTERM, SIGINT, SIGHUP, kRotate}) sigaddset(&signals, s);
  for (;;) {
    const timespec half_a_minute{30, 0};
    const int signal = ::sigtimedwait(&signals, nullptr, &half_a_minute);
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) return signal;
    ::malloc_trim(0);
    try {
      if (signal == kRotate) {
        write_kubeconfig(true);
        log::info("rotated the admin token");
      }
      renew_certificate();
    } catch (const Error& e) {
      log::error("could not renew", {{"error", e.message()}});
    }
  }
}

http::ListenOn Daemon::where_to_listen() const {
  http::ListenOn listen;
  listen.tls = identity_.tls;
  listen.port = static_cast<int>(config_.server.port);
  listen.host = config_.server.host == "localhost" ? "127.0.0.1" : config_.server.host;
  if (const std::string socket = unix_socket_of(config_.server.host); !socket.empty()) {
    listen.host.clear();
    listen.unix_path = socket;
  }
  return listen;
}

int Daemon::run() {
  const http::ListenOn listen = where_to_listen();
  // Before anything is done to a run: a start that cannot listen leaves all as it was.
  api_server_ = listening("server.port", listen.port, [&] {
    return std::make_unique<http::Server>(listen, http::api_limits(), api_.site());
  });
  broker_server_.start();
  front_.start();
  dns_.start();
  controllers_.start();
  write_kubeconfig(false);
  ready_ = true;
  api_server_->start();
  next_renewal_check_ = clock_.now() + 24h;
  log::info("umpd is ready", {{"url", local_url(config_, api_server_->port())},
                              {"kubeconfig", (data_.path() / "kubeconfig").string()},
                              {"instance", data_.instance_id()}});
  wait_for_signal();
  log::info("umpd is stopping");
  ready_ = false;
  api_server_->stop(1s);
  // Runs first, while the engine and the store still serve them.
  const bool done = controllers_.stop(Duration(7'500));
  dns_.stop();
  front_.stop();
  broker_server_.stop(200ms);
  if (!done) {
    log::warn("some work did not end in time: the next start cleans up after it");
    std::cerr.flush();
    std::_Exit(0);
  }
  return 0;
}

// By itself glibc raises the size from which a block is mapped, and with it what each thread's
// arena keeps when it is freed, to megabytes once large blocks come and go: a flood of large bodies
// would stay in all of them. What still lies between live blocks is given back from time to time.
void keep_little_memory() {
  constexpr int kMapped = 256 << 10, kKept = 512 << 10;
  ::mallopt(M_MMAP_THRESHOLD, kMapped);
  ::mallopt(M_TRIM_THRESHOLD, kKept);
}

// Each tunnel of a sandbox takes two descriptors.
void allow_descriptors() {
  constexpr rlim_t kWanted = 32768;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, kWanted);
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    log::warn("cannot allow more descriptors", {{"limit", std::to_string(limit.rlim_cur)}});
}

}  // namespace

int serve(const Config& config) {
  log::configure(config.log.level, config.log.json);
  allow_descriptors();
  keep_little_memory();
  sigset_t signals;  // before any thread: all of them inherit it
  sigemptyset(&signals);
  for (int s : {SIGTERM, SIGINT, SIGHUP, kRotate}) sigaddset(&signals, s);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Daemon daemon(config);
  return daemon.run();
}

int admin_token(const Config& config, bool rotate) {
  const fs::path file = fs::path(config.app.data_dir) / "kubeconfig";
  const std::string before = server::kubeconfig_token(file);
  if (!rotate) {
    if (before.empty())
      throw Error(Code::not_found,
                  "there is no token in " + file.string() + "; has umpd run there?");
    std::cout << before << "\n";
    return 0;
  }
  if (const auto pid = DataDir::running_pid(config.app.data_dir)) {
    if (::kill(*pid, kRotate) != 0) throw errno_error(Code::internal, "signal umpd");
    for (int i = 0; i < 100; ++i) {
      if (server::kubeconfig_token(file) != before) {
        std::cerr << "made a new admin token; it is in " << file.string() << "\n";
        return 0;
      }
      std::this_thread::sleep_for(100ms);
    }
    throw Error(Code::timeout,
                "umpd (pid " + std::to_string(*pid) + ") made no new token within 10 s");
  }
  DataDir data(config.app.data_dir);
  store::Options options;
  options.data_dir = data.path();
  options.instance_id = data.instance_id();
  const auto store = store::open_store(options);
  server::Tokens tokens(*store, system_clock());
  const Identity identity = load_identity(config, data.path(), system_clock().now());
  ensure_kubeconfig(data.path(), tokens, identity,
                    local_url(config, static_cast<int>(config.server.port)), true);
  std::cerr << "made a new admin token; it is in " << file.string() << "\n";
  return 0;
}

}  // namespace umpteenth::umpd
