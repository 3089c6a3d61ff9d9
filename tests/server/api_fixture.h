// The API over a memory store, called without a socket.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "apis/object.h"
#include "apis/run.h"
#include "server/api.h"
#include "store/open.h"

namespace umpteenth::server {

inline const std::string kGv = "/apis/umpteenth.dev/v1alpha1";
inline const std::string kNs = kGv + "/namespaces/default";

// Makes the Run that it is asked for; what it was asked is kept.
class FakeTrigger : public Trigger {
 public:
  explicit FakeTrigger(store::Store& store) : store_(store) {}
  json::Value start(const Request& request) override {
    last = request;
    const std::string name = request.name.empty() ? request.job + "-1" : request.name;
    json::Value run = apis::make_object(
        apis::run_kind(), request.ns, name,
        json::Value::object(
            {{"job", request.job}, {"trigger", request.trigger}, {"input", request.input}}));
    run["metadata"].set("uid", "uid-" + name);
    if (request.dry_run) return run;
    return store_
        .commit_one({store::Verb::create, {"runs", request.ns, name}, run, {}}, request.actor,
                    "create run")
        ->parse();
  }
  Request last;

 private:
  store::Store& store_;
};

inline http::Request a_request(const std::string& method, const std::string& target,
                               const std::string& body = "", http::Headers headers = {}) {
  http::Request request;
  request.method = method;
  request.target = target;
  const size_t mark = target.find('?');
  request.path = http::percent_decode(target.substr(0, mark), false);
  if (mark != std::string::npos) request.query = http::parse_query(target.substr(mark + 1));
  request.body = body;
  request.headers = std::move(headers);
  return request;
}

inline std::string a_job(const std::string& name, const std::string& instruction = "say hello",
                         const std::string& labels = "{}") {
  return R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Job","metadata":{"name":")" + name +
         R"(","labels":)" + labels + R"(},"spec":{"instruction":")" + instruction + R"("}})";
}

class ApiTest : public ::testing::Test {
 protected:
  ApiTest() { ok("POST", kGv + "/workspaces", workspace("default"), 201); }

  static std::string workspace(const std::string& name) {
    return R"({"apiVersion":"umpteenth.dev/v1alpha1","kind":"Workspace","metadata":{"name":")" +
           name + R"("},"spec":{}})";
  }

  http::Response send(const std::string& method, const std::string& target,
                      const std::string& body = "", http::Headers headers = {}) {
    if (!headers.has("Authorization")) headers.set("Authorization", "Bearer " + token);
    return api.answer(a_request(method, target, body, std::move(headers)));
  }
  http::Response patch(const std::string& target, const std::string& type,
                       const std::string& body) {
    return send("PATCH", target, body, {{"Content-Type", "application/" + type}});
  }
  json::Value ok(const std::string& method, const std::string& target, const std::string& body = "",
                 int status = 200) {
    const http::Response response = send(method, target, body);
    EXPECT_EQ(response.status, status) << method << " " << target << "\n" << response.body;
    return json::parse(response.body);
  }
  // A Status of that code and text.
  json::Value refused(const http::Response& response, int code, const std::string& message) {
    EXPECT_EQ(response.status, code) << response.body;
    const json::Value status = json::parse(response.body);
    EXPECT_EQ(status.get_string("kind"), "Status");
    EXPECT_EQ(status.get_int("code"), code);
    EXPECT_EQ(status.get_string("message"), message);
    return status;
  }
  json::Value make_job(const std::string& name, const std::string& instruction = "say hello",
                       const std::string& labels = "{}") {
    return ok("POST", kNs + "/jobs", a_job(name, instruction, labels), 201);
  }
  std::string token_for(Role role, std::vector<std::string> workspaces) {
    TokenInfo info;
    info.name = std::string(to_string(role));
    info.role = role;
    info.workspaces = std::move(workspaces);
    return tokens.create(info).token;
  }
  static std::vector<std::string> names(const json::Value& list) {
    std::vector<std::string> all;
    for (const json::Value& item : list.get("items").items()) all.push_back(apis::name_of(item));
    return all;
  }
  static bool eventually(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  bool exists(const std::string& kind, const std::string& name, const std::string& ns = "default") {
    return store->find({kind, ns, name}) != nullptr;
  }

  FakeClock clock{parse_time("2026-11-30T08:00:00Z")};
  std::unique_ptr<store::Store> store = store::make_memory_store();
  apis::Sealer sealer{"test-instance", {"0123456789abcdef0123456789abcdef"}};
  Tokens tokens{*store, clock};
  std::string token = tokens.rotate_admin();
  FakeTrigger trigger{*store};
  std::vector<std::string> cleared;  // engines whose hosts' rules were taken out
  Api api{{*store,
           sealer,
           clock,
           tokens,
           &trigger,
           nullptr,
           {},
           {},
           {},
           {},
           [this](const std::string& engine) {
             cleared.push_back(engine);
             return json::Value::object({{"removed", json::Value::array({"-X UMPTEENTH-HOST"})}});
           }}};
};

}  // namespace umpteenth::server
