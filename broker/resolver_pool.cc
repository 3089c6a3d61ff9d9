#include "broker/resolver_pool.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "base/error.h"
#include "base/handle.h"

namespace umpteenth::broker {
namespace {

constexpr size_t kMaxAnswers = 64;

struct Job {
  std::string run_uid, host;
  std::function<void(Resolved)> done;
};

}  // namespace

struct ResolverPool::State {
  Options options;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> waiting;
  std::map<std::string, size_t> at_work;  // by run
  bool ended = false;
  std::shared_mutex alive;  // shared while what the pool's owner gave is used

  std::deque<Job>::iterator next() {
    return std::ranges::find_if(waiting, [&](const Job& job) {
      const auto mine = at_work.find(job.run_uid);
      return mine == at_work.end() || mine->second < options.threads_per_run;
    });
  }
};

ResolverPool::ResolverPool(Options options) : state_(std::make_shared<State>()) {
  state_->options = std::move(options);
  if (!state_->options.resolve) state_->options.resolve = resolve_ipv4;
  // A look-up cannot be cancelled, and may take longer than umpd has to stop.
  for (size_t i = 0; i < state_->options.threads; ++i)
    std::thread([state = state_] { work(state); }).detach();
}

ResolverPool::~ResolverPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ended = true;
    state_->waiting.clear();
  }
  state_->changed.notify_all();
  const std::unique_lock gone(state_->alive);
}

void ResolverPool::submit(std::string run_uid, std::string host,
                          std::function<void(Resolved)> done) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back({std::move(run_uid), std::move(host), std::move(done)});
  }
  state_->changed.notify_one();
}

void ResolverPool::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (true) {
    auto next = state->waiting.end();
    state->changed.wait(lock, [&] {
      next = state->next();
      return state->ended || next != state->waiting.end();
    });
    if (state->ended) return;
    const Job job = std::move(*next);
    state->waiting.erase(next);
    ++state->at_work[job.run_uid];
    lock.unlock();
    Resolved answer;
    try {
      answer.addresses = state->options.resolve(job.host);
    } catch (const std::exception& e) {  // one name must not end the thread
      answer.error = e.what();
    }
    {
      const std::shared_lock used(state->alive);
      lock.lock();
      if (state->ended) return;
      lock.unlock();
      try {
        for (const net::Address& address : answer.addresses)
          answer.classes.push_back(state->options.classify(address));
      } catch (const std::exception& e) {  // without a verdict nothing is dialled
        answer = {{}, {}, e.what()};
      }
      job.done(std::move(answer));
    }
    lock.lock();
    if (--state->at_work[job.run_uid] == 0) state->at_work.erase(job.run_uid);
    state->changed.notify_all();  // a run that had to wait may go on
  }
}

std::vector<net::Address> resolve_ipv4(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  Handle<addrinfo, freeaddrinfo> found;
  const int failure = getaddrinfo(host.c_str(), nullptr, &hints, out(found));
  if (failure != 0) throw Error(Code::bad_gateway, gai_strerror(failure));
  std::vector<net::Address> addresses;
  for (const addrinfo* at = found.get(); at; at = at->ai_next) {
    // Those beyond would be neither checked nor dialled.
    if (addresses.size() == kMaxAnswers) break;
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(at->ai_addr);
    const auto* octets = reinterpret_cast<const uint8_t*>(&v4->sin_addr);
    net::Address address;
    address.bytes[10] = address.bytes[11] = 0xff;
    std::copy(octets, octets + 4, address.bytes.begin() + 12);
    addresses.push_back(address);
  }
  if (addresses.empty()) throw Error(Code::bad_gateway, "the name has no IPv4 address");
  return addresses;
}

}  // namespace umpteenth::broker
