#include "controllers/runtime/manager.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "controllers/runtime/informer.h"
#include "controllers/runtime/work_queue.h"

namespace umpteenth::controllers {

struct Manager::Running {
  Running(Controller c, Clock& clock, Timer& timer)
      : controller(std::move(c)), queue(clock, timer, std::hash<std::string>{}(controller.name)) {}
  Controller controller;
  WorkQueue queue;
  std::vector<std::unique_ptr<Informer>> informers;
  std::atomic<uint64_t> reconciles{0}, errors{0}, conflicts{0}, overdue{0};
};

struct Manager::Core {
  Core(store::Store& s, Clock& c) : store(s), clock(c), timer(c) {}
  ~Core() { timer.stop(); }  // its tasks use the queues

  store::Store& store;
  Clock& clock;
  Timer timer;
  std::vector<std::shared_ptr<Running>> running;
  std::vector<std::thread> workers;
  std::stop_source stop;
  std::mutex mutex;
  std::condition_variable ended;
  size_t alive = 0;
  bool stopped = false;

  void work(Running& running);
  void reconcile_one(Running& running, const store::Key& key);
};

namespace {

void log_failure(const std::string& controller, const store::Key& key, std::string_view what) {
  log::warn("reconcile failed", {{"controller", controller},
                                 {"object", store::to_string(key)},
                                 {"error", log::clip(what, 500)}});
}

}  // namespace

void Manager::Core::work(Running& running) {
  while (auto key = running.queue.get(stop.get_token())) {
    reconcile_one(running, *key);
    running.queue.done(*key);
  }
  std::lock_guard lock(mutex);
  --alive;
  ended.notify_all();
}

void Manager::Core::reconcile_one(Running& running, const store::Key& key) {
  const Controller& controller = running.controller;
  std::stop_source late;
  std::stop_callback ending(stop.get_token(), [&late] { late.request_stop(); });
  auto overdue = std::make_shared<std::atomic<bool>>(false);
  Timer::Id alarm = timer.at(clock.now() + controller.deadline, [late, overdue]() mutable {
    overdue->store(true);
    late.request_stop();
  });
  ++running.reconciles;
  try {
    Outcome outcome = controller.reconcile(key, late.get_token());
    running.queue.forget(key);
    if (outcome.kind == Outcome::Kind::look_again) running.queue.add_after(key, outcome.after);
    if (outcome.kind == Outcome::Kind::terminal) {
      log::warn("reconcile cannot succeed until its object changes",
                {{"controller", controller.name},
                 {"object", store::to_string(key)},
                 {"reason", log::clip(outcome.reason)}});
    }
  } catch (const Error& e) {
    if (e.code() == Code::conflict && !overdue->load()) {
      ++running.conflicts;
    } else {
      ++running.errors;
      log_failure(controller.name, key, e.message());
    }
    running.queue.retry(key);
  } catch (const std::exception& e) {
    ++running.errors;
    log_failure(controller.name, key, e.what());
    running.queue.retry(key);
  } catch (...) {
    ++running.errors;
    log_failure(controller.name, key, "something that is no std::exception was thrown");
    running.queue.retry(key);
  }
  timer.cancel(alarm);
  if (!overdue->load()) return;
  ++running.overdue;
  log::warn("reconcile passed its deadline",
            {{"controller", controller.name}, {"object", store::to_string(key)}});
}

Manager::Manager(store::Store& store, Clock& clock) : core_(std::make_shared<Core>(store, clock)) {}

Manager::~Manager() { stop(Duration(10'000)); }

void Manager::add(Controller controller) {
  core_->running.push_back(
      std::make_shared<Running>(std::move(controller), core_->clock, core_->timer));
}

void Manager::start() {
  for (auto& running : core_->running) {
    for (const auto& source : running->controller.sources) {
      auto sink = [queue = &running->queue, keys = source.keys,
                   settle = running->controller.settle](const store::Event& event) {
        for (const auto& key : keys(event)) queue->add_after(key, settle);
      };
      running->informers.push_back(
          std::make_unique<Informer>(core_->store, source.kind, std::move(sink)));
      running->informers.back()->start();
    }
    schedule_resync(running);
  }
  for (auto& running : core_->running) {
    for (int i = 0; i < running->controller.workers; ++i) {
      {
        std::lock_guard lock(core_->mutex);
        ++core_->alive;
      }
      core_->workers.emplace_back([core = core_, running] { core->work(*running); });
    }
  }
}

void Manager::schedule_resync(const std::shared_ptr<Running>& running) {
  Core* core = core_.get();  // the timer that runs this is the core's own
  core->timer.at(core->clock.now() + running->controller.resync, [this, core, running] {
    if (core->stop.stop_requested()) return;
    schedule_resync(running);
    for (auto& informer : running->informers) informer->resync();
  });
}

void Manager::poke(const std::string& controller, const store::Key& key) {
  find(controller).queue.add(key);
}

bool Manager::stop(Duration within) {
  if (std::exchange(core_->stopped, true)) return core_->workers.empty();
  core_->stop.request_stop();
  for (auto& running : core_->running) {
    for (auto& informer : running->informers) informer->stop();
  }
  core_->timer.stop();
  std::unique_lock lock(core_->mutex);
  bool all = core_->ended.wait_for(lock, within, [this] { return core_->alive == 0; });
  lock.unlock();
  for (auto& worker : core_->workers) {
    if (all) {
      worker.join();
    } else {
      worker.detach();
    }
  }
  if (all) core_->workers.clear();
  if (!all) log::error("a reconcile did not end in time", {{"milliseconds", within.count()}});
  return all;
}

Manager::Running& Manager::find(const std::string& name) const {
  for (auto& running : core_->running) {
    if (running->controller.name == name) return *running;
  }
  throw Error(Code::not_found, "no controller is named " + name);
}

Manager::Stats Manager::stats(const std::string& controller) const {
  const Running& r = find(controller);
  return {r.reconciles, r.errors, r.conflicts, r.overdue};
}

std::vector<store::Key> own_key(const store::Event& event) { return {event.record->key}; }

}  // namespace umpteenth::controllers
