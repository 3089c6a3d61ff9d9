#include "broker/dns/forwarder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include "base/error.h"
#include "base/http/listener.h"
#include "base/log.h"
#include "broker/dns/client.h"
#include "broker/dns/datagram.h"
#include "broker/dns/policy.h"
#include "broker/recorder.h"

namespace umpteenth::broker::dns {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kFresh{30};
constexpr int kTick = 250;  // milliseconds
constexpr int kAtOnce = 64;
constexpr size_t kMostByTcp = 16'384;

struct Socket {  // a listener, or datagrams
  Fd fd;
  std::string endpoint;  // "": the address that was asked
  bool datagrams = false;
  bool by_address = false;  // connections without a header
};

// Where an answer goes.
struct Asker {
  uint64_t client = 0, socket = 0;  // one of them
  DatagramEnds ends;                // of a datagram
};

struct Open {
  Query query;
  Asker asker;
  std::string run_uid;
  Lookup lookup;
};

struct RunUse {
  std::shared_ptr<runs::LiveRun> run;
  size_t open = 0;
  double credit = 0;
  Steady::time_point counted{};
  std::set<std::string> names;
};

}  // namespace

struct Forwarder::Impl {
  Impl(runs::Registry& r, ForwarderOptions o)
      : registry(r), options(std::move(o)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!wake) throw errno_error(Code::internal, "make an eventfd");
  }

  // From other threads.
  void post(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex);
      posted.push_back(std::move(work));
    }
    const uint64_t one = 1;
    if (::write(wake.get(), &one, sizeof one) < 0) {
      // The counter is full: it is awake already.
    }
  }

  void refresh(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      lock.unlock();
      net::Topology fresh = options.topology();
      std::vector<sockaddr_in> servers = options.upstreams;
      try {
        if (servers.empty()) servers = upstreams_in(read_file("/etc/resolv.conf", 64U << 10));
      } catch (const Error&) {
        servers = upstreams_in("");
      }
      lock.lock();
      topology = std::make_shared<const net::Topology>(std::move(fresh));
      upstreams = std::move(servers);
      changed.wait_for(lock, stop, kFresh, [] { return false; });
    }
  }

  std::pair<std::shared_ptr<const net::Topology>, std::vector<sockaddr_in>> known() {
    const std::lock_guard lock(mutex);
    return {topology, upstreams};
  }

  void reply(const Asker& to, const Query& query, uint8_t rcode,
             const std::vector<Record>& records) {
    if (to.client != 0) {
      const auto client = clients.find(to.client);
      if (client == clients.end()) return;
      const size_t most = client->second.datagram() ? query.udp_bytes : kMostByTcp;
      client->second.answer(answer_text(query, rcode, records, most));
      return;
    }
    const auto socket = sockets.find(to.socket);
    if (socket == sockets.end()) return;
    send_datagram(socket->second.fd.get(), to.ends,
                  answer_text(query, rcode, records, query.udp_bytes));
  }

  // Null where no run with Internet access has the endpoint.
  RunUse* use_of(const std::string& endpoint) {
    const auto run = registry.find_by_endpoint(endpoint);
    if (!run || run->info().egress.mode != apis::NetworkMode::internet) return nullptr;
    RunUse& use = runs[run->info().uid];
    if (use.run != run) use = {run, 0, static_cast<double>(options.questions_a_second), {}, {}};
    return &use;
  }

  bool within_rate(RunUse& use) const {
    const auto now = Steady::now();
    const double most = static_cast<double>(options.questions_a_second);
    const std::chrono::duration<double> since = now - use.counted;
    use.counted = now;
    use.credit = std::min(most, use.credit + since.count() * most);
    if (use.credit < 1) return false;
    use.credit -= 1;
    return true;
  }

  void note(RunUse& use, const Question& q, const std::string& error) {
    const std::string name = q.name();
    if (use.names.size() >= options.recorded_names || !use.names.insert(name).second) return;
    json::Value data = json::Value::object({{"name", name}, {"allowed", error.empty()}});
    if (!error.empty()) data.set("error", error);
    recorder.record(use.run, "dns " + name, std::move(data));
  }

  void ask(const Asker& asker, const std::string& endpoint, std::string_view message) {
    const auto query = parse_query(message);
    if (!query) return;
    RunUse* use = use_of(endpoint);
    if (!use) return;  // others have no resolver at all
    if (use->open >= options.open_questions || !within_rate(*use))
      return reply(asker, *query, kRefused, {});
    switch (fate_of(query->question)) {
      case Fate::empty:
        return reply(asker, *query, kNoError, {});
      case Fate::no_such_name:
        return reply(asker, *query, kNoSuchName, {});
      case Fate::refused:
        return reply(asker, *query, kRefused, {});
      case Fate::forward:
        break;
    }
    auto servers = known().second;
    ++use->open;
    const uint64_t id = next_id++;
    open.emplace(id,
                 Open{*query, asker, use->run->info().uid,
                      Lookup(query->question, std::move(servers), options.timing, Steady::now())});
  }

  void finish(const Open& done) {
    const auto found = runs.find(done.run_uid);
    if (found == runs.end()) return;
    RunUse& use = found->second;
    --use.open;
    const std::optional<Answer>& answer = done.lookup.answer();
    if (!answer || (answer->rcode != kNoError && answer->rcode != kNoSuchName)) {
      note(use, done.query.question, "no answer");
      return reply(done.asker, done.query, kServerFailure, {});
    }
    const auto refused =
        refused_address(*answer, *known().first, use.run->info().egress.allow_private);
    if (refused) {
      note(use, done.query.question, "it has the address " + net::format(*refused));
      return reply(done.asker, done.query, kRefused, {});
    }
    note(use, done.query.question, "");
    reply(done.asker, done.query, answer->rcode, answer->records);
  }

  void take_datagrams(uint64_t id, const Socket& from) {
    std::string question;
    for (int i = 0; i < kAtOnce; ++i) {
      Asker asker;
      asker.socket = id;
      if (!receive_datagram(from.fd.get(), question, asker.ends)) return;
      ask(asker, from.endpoint.empty() ? text_of(asker.ends.local) : from.endpoint, question);
    }
  }

  void accept_some(const Socket& from) {
    bool exhausted = false;
    for (int i = 0; i < kAtOnce; ++i) {
      auto accepted = http::accept_from(from.fd.get(), exhausted);
      if (!accepted) return;
      if (clients.size() >= options.clients) continue;
      clients.emplace(next_id++, Client(std::move(accepted->socket),
                                        from.by_address ? accepted->local.address : from.endpoint,
                                        Steady::now()));
    }
  }

  // False when the client is to go.
  bool serve(uint64_t id, Client& client, short ready) {
    if ((ready & POLLOUT) != 0 && !client.write()) return false;
    if ((ready & (POLLIN | POLLHUP | POLLERR)) != 0 && (ready & POLLOUT) == 0 &&
        !client.read(Steady::now()))
      return false;
    Asker asker;
    asker.client = id;
    while (const auto question = client.next_question()) ask(asker, client.endpoint(), *question);
    return true;
  }

  void run() {
    std::vector<pollfd> polled;
    std::vector<std::pair<char, uint64_t>> what;  // s, c or l, and its id
    while (!ended) {
      polled.assign(1, {wake.get(), POLLIN, 0});
      what.assign(1, {'w', 0});
      const auto add = [&](int fd, short events, char kind, uint64_t id) {
        polled.push_back({fd, events, 0});
        what.emplace_back(kind, id);
      };
      for (const auto& [id, s] : sockets) add(s.fd.get(), POLLIN, 's', id);
      for (const auto& [id, c] : clients) add(c.fd(), c.events(), 'c', id);
      for (const auto& [id, o] : open) add(o.lookup.fd(), o.lookup.events(), 'l', id);
      const bool idle = clients.empty() && open.empty();
      if (::poll(polled.data(), polled.size(), idle ? -1 : kTick) < 0) continue;
      if (polled[0].revents != 0) take_posted();
      for (size_t i = 1; i < polled.size(); ++i)
        if (polled[i].revents != 0) on_ready(what[i].first, what[i].second, polled[i].revents);
      on_time();
    }
    open.clear();
    clients.clear();
    sockets.clear();
  }

  void on_ready(char kind, uint64_t id, short ready) {
    if (kind == 's') {
      const auto socket = sockets.find(id);
      if (socket == sockets.end()) return;
      if (socket->second.datagrams)
        take_datagrams(id, socket->second);
      else
        accept_some(socket->second);
    } else if (kind == 'c') {
      const auto client = clients.find(id);
      if (client != clients.end() && !serve(id, client->second, ready)) clients.erase(client);
    } else if (kind == 'l') {
      step(id);
    }
  }

  void step(uint64_t id) {
    const auto it = open.find(id);
    if (it == open.end() || !it->second.lookup.step(Steady::now())) return;
    const auto node = open.extract(it);
    finish(node.mapped());
  }

  void on_time() {
    const auto now = Steady::now();
    std::vector<uint64_t> late;
    for (const auto& [id, o] : open)
      if (now >= o.lookup.deadline()) late.push_back(id);
    for (const uint64_t id : late) step(id);
    std::erase_if(clients, [&](const auto& c) { return now - c.second.heard() > options.idle; });
    if (now < next_sweep) return;
    next_sweep = now + std::chrono::seconds(1);
    std::erase_if(runs, [&](const auto& r) {
      return r.second.open == 0 && registry.find_by_uid(r.first) != r.second.run;
    });
  }

  void take_posted() {
    uint64_t count = 0;
    if (::read(wake.get(), &count, sizeof count) < 0) {
      // Somebody else's wake-up: nothing to take.
    }
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(mutex);
      work.swap(posted);
    }
    for (const auto& w : work) w();
  }

  void add(Fd fd, const std::string& endpoint, bool datagrams, bool by_address = false) {
    ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    if (datagrams) ask_for_addresses(fd.get());
    sockets.emplace(next_id++, Socket{std::move(fd), endpoint, datagrams, by_address});
  }

  runs::Registry& registry;
  const ForwarderOptions options;
  Recorder recorder;
  Fd wake;
  // Of the thread that runs.
  uint64_t next_id = 1;
  bool ended = false;
  std::map<uint64_t, Socket> sockets;
  std::map<uint64_t, Client> clients;
  std::map<uint64_t, Open> open;
  std::unordered_map<std::string, RunUse> runs;
  Steady::time_point next_sweep{};

  std::mutex mutex;
  std::condition_variable_any changed;
  std::vector<std::function<void()>> posted;
  // Not known: private addresses are refused.
  std::shared_ptr<const net::Topology> topology = std::make_shared<const net::Topology>();
  std::vector<sockaddr_in> upstreams;
  std::vector<std::string> paths;
  std::jthread refresher;
  std::thread thread;
};

Forwarder::Forwarder(runs::Registry& registry, ForwarderOptions options)
    : impl_(std::make_shared<Impl>(registry, std::move(options))) {}

Forwarder::~Forwarder() { stop(); }

void Forwarder::listen_unix(const std::string& path, int mode) {
  http::ListenOn where;
  where.unix_path = path;
  where.unix_mode = mode;
  impl_->add(http::listen_on(where), "", false);
  impl_->paths.push_back(path);
}

void Forwarder::listen(int port) {
  try {
    http::ListenOn where;
    where.host = "0.0.0.0";
    where.port = port;
    Fd stream = http::listen_on(where), datagrams = bind_datagrams(port);
    impl_->add(std::move(stream), "", false, true);
    impl_->add(std::move(datagrams), "", true);
  } catch (const Error& e) {  // the host may have a resolver of its own there
    log::warn("runs with Internet access have no resolver", {{"error", e.message()}});
  }
}

void Forwarder::start() {
  impl_->refresher =
      std::jthread([impl = impl_.get()](const std::stop_token& stop) { impl->refresh(stop); });
  impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
}

void Forwarder::stop() {
  if (!impl_->thread.joinable()) return;
  impl_->post([impl = impl_.get()] { impl->ended = true; });
  impl_->thread.join();
  impl_->refresher.request_stop();
  impl_->refresher.join();
  for (const std::string& path : impl_->paths) ::unlink(path.c_str());
}

std::shared_ptr<void> Forwarder::adopt(Fd datagrams, Fd listener, std::string endpoint) {
  const auto udp = std::make_shared<Fd>(std::move(datagrams));
  const auto tcp = std::make_shared<Fd>(std::move(listener));
  impl_->post([impl = impl_.get(), udp, tcp, endpoint] {
    impl->add(std::move(*udp), endpoint, true);
    impl->add(std::move(*tcp), endpoint, false);
  });
  return {nullptr, [weak = std::weak_ptr(impl_), endpoint](void*) {
            const auto impl = weak.lock();
            if (!impl) return;
            impl->post([to = impl.get(), endpoint] {
              std::erase_if(to->sockets,
                            [&](const auto& s) { return s.second.endpoint == endpoint; });
              std::erase_if(to->clients,
                            [&](const auto& c) { return c.second.endpoint() == endpoint; });
            });
          }};
}

std::vector<sockaddr_in> upstreams_in(std::string_view resolv_conf) {
  std::vector<sockaddr_in> found;
  while (!resolv_conf.empty()) {
    const size_t end = std::min(resolv_conf.find('\n'), resolv_conf.size());
    std::string_view line = resolv_conf.substr(0, end);
    resolv_conf.remove_prefix(std::min(end + 1, resolv_conf.size()));
    constexpr std::string_view kKey = "nameserver";
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    const size_t from = line.find_first_not_of(" \t");
    if (from == 0 || from == std::string_view::npos) continue;
    line.remove_prefix(from);
    line = line.substr(0, line.find_first_of(" \t\r"));
    const auto address = net::parse_address(line);
    if (address && address->is_v4() && found.size() < 3) found.push_back(upstream(*address));
  }
  if (found.empty()) found.push_back(upstream(*net::parse_address("127.0.0.1")));
  return found;
}

sockaddr_in upstream(const net::Address& address, int port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  std::memcpy(&to.sin_addr, address.bytes.data() + 12, 4);
  return to;
}

}  // namespace umpteenth::broker::dns
