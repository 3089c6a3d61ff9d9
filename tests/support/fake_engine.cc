#include "tests/support/fake_engine.h"

#include <algorithm>
#include <thread>

#include "engine/tar.h"
#include "tests/support/fake_engine_state.h"
#include "tests/support/fake_exec.h"

namespace umpteenth::support {

using engine::Labels;

bool labels_match(const Labels& have, const Labels& want) {
  return std::all_of(want.begin(), want.end(), [&](const auto& w) {
    const auto it = have.find(w.first);
    return it != have.end() && (w.second.empty() || it->second == w.second);
  });
}

FakeEngine::FakeEngine() = default;

FakeEngine::~FakeEngine() {
  std::vector<std::shared_ptr<FakeProcess::Shared>> running;
  {
    std::scoped_lock lock(mutex_);
    running = processes_;
  }
  for (const auto& p : running) {
    {
      std::scoped_lock lock(p->mutex);
      p->container_gone = true;
      p->changed.notify_all();
    }
    if (p->thread.joinable()) p->thread.join();
  }
}

// Every call passes here: it is recorded, may be held or failed, and then has the state's lock.
FakeEngine::Lock FakeEngine::enter(const std::string& call, const std::string& about) {
  std::function<void(const std::string&)> hook;
  {
    std::scoped_lock lock(mutex_);
    calls_.push_back(about.empty() ? call : call + " " + about);
    hook = hook_;
  }
  if (hook) hook(call);
  Lock lock(mutex_);
  if (down_)
    throw Error(Code::unavailable, "cannot reach the container engine: connection refused");
  if (const auto it = failures_.find(call); it != failures_.end()) {
    const Error error = it->second;
    failures_.erase(it);
    throw error;
  }
  return lock;
}

std::string FakeEngine::new_id() {
  static constexpr std::string_view kHex = "0123456789abcdef";
  uint64_t n = 0x9e3779b97f4a7c15U * static_cast<uint64_t>(next_++);
  std::string id;
  while (id.size() < 64) {
    n ^= n << 13U, n ^= n >> 7U, n ^= n << 17U;
    id += kHex[n & 15U];
  }
  return id;
}

void FakeEngine::set_down(bool down) {
  std::scoped_lock lock(mutex_);
  down_ = down;
  if (!down) return;
  for (const auto& s : subscribers_) s->broken = true;
  changed_.notify_all();
  for (const auto& p : processes_) {
    std::scoped_lock process_lock(p->mutex);
    if (!p->exit_code) p->engine_lost = true;
    p->changed.notify_all();
  }
}

void FakeEngine::kill_container(const std::string& id_or_name, int exit_code, bool oom) {
  std::scoped_lock lock(mutex_);
  end(container(id_or_name), exit_code, oom);
}

void FakeEngine::kill_commands(const ArgvMatch& match, int exit_code) {
  std::scoped_lock lock(mutex_);
  for (const auto& p : processes_) {
    std::scoped_lock process_lock(p->mutex);
    if (p->exit_code || !match(p->spec.argv)) continue;
    p->killed_with = exit_code;
    p->changed.notify_all();
  }
}

void FakeEngine::fail_next(const std::string& call, Error error) {
  std::scoped_lock lock(mutex_);
  failures_.emplace(call, std::move(error));
}

void FakeEngine::before_each(std::function<void(const std::string&)> hook) {
  std::scoped_lock lock(mutex_);
  hook_ = std::move(hook);
}

std::vector<std::string> FakeEngine::calls() const {
  std::scoped_lock lock(mutex_);
  return calls_;
}

size_t FakeEngine::count_calls(const std::string& name) const {
  std::scoped_lock lock(mutex_);
  return static_cast<size_t>(std::count_if(calls_.begin(), calls_.end(), [&](const auto& c) {
    return c == name || c.starts_with(name + " ");
  }));
}

void FakeEngine::forget_calls() {
  std::scoped_lock lock(mutex_);
  calls_.clear();
  execs_.clear();
}

std::optional<engine::ContainerSpec> FakeEngine::spec_of(const std::string& id_or_name) const {
  std::scoped_lock lock(mutex_);
  for (const auto& [id, c] : containers_)
    if (id == id_or_name || c->spec.name == id_or_name) return c->spec;
  return std::nullopt;
}

std::vector<engine::ExecSpec> FakeEngine::execs() const {
  std::scoped_lock lock(mutex_);
  return execs_;
}

FakeFiles FakeEngine::files_of(const std::string& id_or_name) const {
  std::scoped_lock lock(mutex_);
  for (const auto& [id, c] : containers_)
    if (id == id_or_name || c->spec.name == id_or_name) return c->files;
  return {};
}

void FakeEngine::put_file(const std::string& id_or_name, const std::string& path, FakeFile file) {
  std::scoped_lock lock(mutex_);
  container(id_or_name).files[path] = std::move(file);
}

engine::Info FakeEngine::info() {
  const Lock lock = enter("info", "");
  engine::Info i;
  i.engine = "Fake";
  i.version = "1.0";
  i.api_version = "1.41";
  i.arch = "amd64";
  i.os = "linux";
  i.id = "FAKE";
  i.default_runtime = "runc";
  i.runtimes = {"runc"};
  i.cgroup_version = "2";
  i.storage_driver = "memory";
  i.disk_limit = disk_limit_;
  i.memory_bytes = int64_t{8} << 30;
  i.cpus = 4;
  return i;
}

void FakeEngine::emit(const std::string& type, const std::string& action, const std::string& id,
                      Labels attributes) {
  for (const auto& s : subscribers_)
    if (type == "network" || labels_match(attributes, s->labels))
      s->queue.push_back({type, action, id, attributes});
  changed_.notify_all();
}

void FakeEngine::events(const Labels& labels, std::function<void(const engine::EngineEvent&)> sink,
                        std::stop_token stop) {
  Lock lock = enter("events", "");
  const auto me = std::make_shared<Subscriber>();
  me->labels = labels;
  subscribers_.insert(me);
  changed_.notify_all();
  for (;;) {
    changed_.wait(lock, stop, [&] { return me->broken || !me->queue.empty(); });
    while (!me->queue.empty()) {
      const engine::EngineEvent event = std::move(me->queue.front());
      me->queue.pop_front();
      lock.unlock();
      sink(event);
      lock.lock();
    }
    if (!me->broken && !stop.stop_requested()) continue;
    subscribers_.erase(me);
    if (me->broken) throw Error(Code::unavailable, "the engine's event stream broke");
    return;
  }
}

void FakeEngine::on_exec(ArgvMatch match, FakeCommand command) {
  std::scoped_lock lock(mutex_);
  commands_.emplace_front(std::move(match), std::move(command));
}

std::unique_ptr<engine::Exec> FakeEngine::exec(const std::string& id, const engine::ExecSpec& spec,
                                               engine::OutputSink on_output) {
  std::string about = id;
  for (const std::string& a : spec.argv) about += " " + a;
  const Lock lock = enter("exec", about);
  execs_.push_back(spec);
  FakeContainer& c = container(id);
  if (c.seen.state != "running")
    throw Error(Code::not_found,
                "sandbox is gone: container \"" + c.seen.name + "\" is not running");
  FakeCommand command = [](FakeProcess& p) {
    p.err("fake engine: no command is scripted for " + p.argv().front() + "\n");
    return 127;
  };
  for (const auto& [match, scripted] : commands_)
    if (match(spec.argv)) {
      command = scripted;
      break;
    }
  auto shared = std::make_shared<FakeProcess::Shared>();
  shared->spec = spec;
  shared->container = c.seen.id;
  shared->on_output = std::move(on_output);
  shared->input_closed = !spec.attach_stdin;
  processes_.push_back(shared);
  shared->thread = std::thread([this, shared, command = std::move(command)] {
    FakeProcess process(*this, shared);
    int code = 137;
    try {
      code = command(process);
    } catch (const Error& e) {
      // The container went while its command was reading or writing: the command went with it.
      if (e.code() != Code::not_found) throw;
    }
    std::scoped_lock done(shared->mutex);
    shared->exit_code = shared->killed_with.value_or(code);
    shared->changed.notify_all();
  });
  return std::make_unique<FakeExec>(shared);
}

}  // namespace umpteenth::support
