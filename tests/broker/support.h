// A run with a broker before it, and a model that answers as it is told.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "base/error.h"
#include "broker/broker.h"
#include "store/open.h"

namespace umpteenth::broker {

// Each call runs the function that was set.
class ToldModel : public models::ModelClient {
 public:
  using Reply = std::function<models::Answer(const models::Prompt&, const std::stop_token&)>;

  void replies(Reply reply) {
    const std::lock_guard lock(mutex_);
    reply_ = std::move(reply);
  }
  void says(std::string text, int64_t input_tokens = 100, int64_t output_tokens = 10) {
    replies([=](const models::Prompt&, const std::stop_token&) {
      return answer(text, input_tokens, output_tokens);
    });
  }
  static models::Answer answer(const std::string& text, int64_t input_tokens,
                               int64_t output_tokens) {
    models::Answer answer;
    models::Part part;
    part.text = text;
    answer.parts.push_back(part);
    answer.usage.input_tokens = input_tokens;
    answer.usage.output_tokens = output_tokens;
    return answer;
  }
  models::Answer complete(const models::Prompt& prompt,
                          const std::function<void(const models::Delta&)>&,
                          std::stop_token stop) override {
    Reply reply;
    {
      const std::lock_guard lock(mutex_);
      reply = reply_;
      last_ = prompt;
      ++calls_;
    }
    return reply(prompt, stop);
  }
  models::Prompt last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  int calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  mutable std::mutex mutex_;
  Reply reply_;
  models::Prompt last_;
  int calls_ = 0;
};

// Something that calls wait for until the test opens it.
class Gate {
 public:
  void pass(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, stop, [&] { return open_; });
    --waiting_;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool reached_by(int calls) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return waiting_ == calls; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int waiting_ = 0;
  bool open_ = false;
};

class BrokerTest : public testing::Test {
 protected:
  BrokerTest() { start({}); }

  // 1 USD a million input tokens, 10 output: 1 and 10 micro-USD a token.
  void start(int64_t max_cost, std::chrono::milliseconds llm_timeout = std::chrono::minutes(5)) {
    add_run(max_cost);
    Options options;
    options.llm_timeout = llm_timeout;
    options.model = [this](const runs::LiveRun&, const std::string& which) {
      if (no_model) throw Error(Code::not_found, "no model is configured");
      models::Model found;
      found.client = model;
      found.id = "told-" + which;
      found.price = {.input = 1, .output = 10, .cache_read = 0, .cache_write = 0};
      return found;
    };
    broker = std::make_unique<Broker>(registry, options);
    site = broker->site();
  }
  // From here on `run` and `token` are the new run's.
  void add_run(int64_t max_cost) {
    runs::RunInfo info;
    info.ns = "default";
    info.name = "hello-1";
    info.job = "hello";
    info.uid = "uid-" + std::to_string(++runs_);
    info.max_cost_micro_usd = max_cost;
    run = std::make_shared<runs::LiveRun>(info, *store, clock);
    token = registry.add(run, "127.0.0.1");
  }

  http::Request request(std::string method, std::string path, std::string body = {}) const {
    http::Request request;
    request.method = std::move(method);
    request.target = path;
    request.path = std::move(path);
    request.body = std::move(body);
    request.headers.set("Authorization", "Bearer " + token);
    request.local.address = "127.0.0.1";
    return request;
  }
  // As a server does it.
  http::Response send(const http::Request& request) const {
    try {
      auto verdict = site.admit(request);
      if (auto* refused = std::get_if<http::Response>(&verdict)) return *refused;
      if (request.body.size() > std::get<http::Admitted>(verdict).body_limit)
        throw Error(Code::too_large, "the request's body is too large");
      return site.handle(request);
    } catch (const std::exception& e) {
      return site.error_response(request, http::ErrorView(e));
    }
  }
  http::Response call(std::string method, std::string path, std::string body = {}) const {
    return send(request(std::move(method), std::move(path), std::move(body)));
  }
  static std::string message(const http::Response& response) {
    return json::parse(response.body).get_string("message");
  }
  static std::string code(const http::Response& response) {
    return json::parse(response.body).get_string("code");
  }
  std::vector<json::Value> timeline() const {
    std::vector<json::Value> events;
    for (const store::TimelineRow& row : store->timeline_read(run->info().uid, 0, 10'000))
      events.push_back(json::parse(row.json));
    return events;
  }

  std::unique_ptr<store::Store> store = store::make_memory_store();
  FakeClock clock{Time{}};
  runs::Registry registry;
  std::shared_ptr<ToldModel> model = std::make_shared<ToldModel>();
  bool no_model = false;
  std::shared_ptr<runs::LiveRun> run;
  std::string token;
  std::unique_ptr<Broker> broker;
  http::Site site;

 private:
  int runs_ = 0;
};

}  // namespace umpteenth::broker
