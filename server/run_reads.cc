#include "server/run_reads.h"

#include <algorithm>
#include <atomic>
#include <charconv>

#include "apis/object.h"
#include "apis/run.h"
#include "base/log.h"
#include "server/read.h"

namespace umpteenth::server {
namespace {

constexpr size_t kPage = 500;
constexpr size_t kMostFollowers = 200;
constexpr size_t kMaxQueued = 4U << 20;
constexpr std::chrono::milliseconds kLookAgain{100};

std::atomic<size_t> g_followers{0};

using Render = std::function<std::string(const store::TimelineRow&)>;

std::string as_json_line(const store::TimelineRow& row) { return row.json + "\n"; }
std::string as_text_line(const store::TimelineRow& row) {
  return log_line(json::parse(row.json)) + "\n";
}

uint64_t number(const http::Request& request, std::string_view name, uint64_t otherwise) {
  const std::string_view text = request.param(name);
  if (text.empty()) return otherwise;
  uint64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(Code::bad_request, std::string(name) + ": Invalid value: " + json::quote(text) +
                                       ": must be a number that is not negative");
  return n;
}

bool finished(const store::RecordPtr& run) {
  return !run || apis::terminal(apis::phase_from(run->parse().get("status").get_string("phase")));
}

// Feeds one client with what the timeline gains, until the run has ended and all was sent.
class Follower {
 public:
  Follower(Env& env, store::Key key, std::string uid, uint64_t after, Render render)
      : store_(env.store),
        key_(std::move(key)),
        uid_(std::move(uid)),
        after_(after),
        render_(std::move(render)),
        stream_(std::make_shared<http::Stream>(kMaxQueued)),
        ended_(std::make_shared<std::atomic<bool>>(false)) {
    ++g_followers;
    stream_->on_end([ended = ended_] { *ended = true; });
  }
  ~Follower() { --g_followers; }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  const std::shared_ptr<http::Stream>& stream() const { return stream_; }

  // On the periodic thread; false at the end.
  bool tick() {
    if (*ended_) return false;
    const bool over = finished(store_.find(key_));  // asked before the rows: none is missed
    const auto rows = store_.timeline_read(uid_, after_, kPage);
    for (const auto& row : rows) {
      if (!stream_->push(render_(row))) {
        if (stream_->overflowed()) stream_->abort();  // the client goes on with ?after=
        return false;
      }
      after_ = row.seq;
    }
    if (!over || rows.size() == kPage) return true;
    stream_->close();
    return false;
  }

 private:
  store::Store& store_;
  const store::Key key_;
  const std::string uid_;
  uint64_t after_;
  const Render render_;
  const std::shared_ptr<http::Stream> stream_;
  const std::shared_ptr<std::atomic<bool>> ended_;
};

http::Response stream_head(const char* type) {
  http::Response response;
  response.headers.set("Content-Type", type);
  response.headers.set("Cache-Control", "no-cache, private");
  response.headers.set("X-Content-Type-Options", "nosniff");
  return response;
}

http::Response follow(Env& env, const Call& call, const std::string& uid, uint64_t after,
                      const char* type, const Render& render) {
  if (g_followers >= kMostFollowers)
    throw Error(Code::too_many_requests,
                std::to_string(kMostFollowers) + " timelines are followed already")
        .retry_after(5);
  const auto follower = std::make_shared<Follower>(env, call.key(), uid, after, render);
  http::Response response = stream_head(type);
  response.stream = follower->stream();
  if (follower->tick()) env.periodic.add(kLookAgain, [follower] { return follower->tick(); });
  return response;
}

// The highest sequence number before the last `lines`.
uint64_t skip_to_tail(const store::Store& store, const std::string& uid, uint64_t lines) {
  uint64_t last = 0;
  while (true) {
    const auto rows = store.timeline_read(uid, last, kPage);
    if (rows.empty()) break;
    last = rows.back().seq;
  }
  return last > lines ? last - lines : 0;
}

std::string all_rows(const store::Store& store, const std::string& uid, uint64_t after,
                     size_t limit, const Render& render) {
  std::string text;
  size_t left = limit;
  while (left > 0) {
    const auto rows = store.timeline_read(uid, after, std::min(left, kPage));
    for (const auto& row : rows) text += render(row);
    if (rows.size() < std::min(left, kPage)) break;
    left -= rows.size();
    after = rows.back().seq;
  }
  return text;
}

std::string blob_digest(const std::string& digest) {
  constexpr std::string_view kPrefix = "sha256:";
  return digest.starts_with(kPrefix) ? digest.substr(kPrefix.size()) : digest;
}

std::string file_name(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  std::erase_if(name,
                [](unsigned char c) { return c < 0x20 || c == '"' || c == '\\' || c > 0x7e; });
  return name.empty() ? "artifact" : name;
}

std::string text_of(const json::Value& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

}  // namespace

std::string log_line(const json::Value& event) {
  std::string line = event.get_string("time") + " " + event.get_string("type");
  for (const json::Member& m : event.members()) {
    if (m.key == "time" || m.key == "type" || m.key == "seq" || m.value.is_null()) continue;
    line += " " + m.key + "=";
    std::string text = text_of(m.value);
    // One event, one line: what a command printed must not look like other events.
    const bool plain = m.value.is_string() && !text.empty() &&
                       std::none_of(text.begin(), text.end(), [](unsigned char c) {
                         return c <= 0x20 || c == '"' || c == '=' || c == 0x7f;
                       });
    line += plain || !m.value.is_string() ? text : json::quote(text);
  }
  return line;
}

http::Response run_timeline(Env& env, Call& call) {
  const std::string uid = apis::uid_of(find_record(env, call)->parse());
  const uint64_t after = number(call.http, "after", 0);
  constexpr char kType[] = "application/x-ndjson";
  if (flag(call.http, "watch")) return follow(env, call, uid, after, kType, as_json_line);
  http::Response response = stream_head(kType);
  const size_t limit = number(call.http, "limit", SIZE_MAX);
  response.body = all_rows(env.store, uid, after, limit, as_json_line);
  return response;
}

http::Response run_log(Env& env, Call& call) {
  const std::string uid = apis::uid_of(find_record(env, call)->parse());
  const uint64_t tail = number(call.http, "tailLines", UINT64_MAX);
  const uint64_t after = tail == UINT64_MAX ? 0 : skip_to_tail(env.store, uid, tail);
  constexpr char kType[] = "text/plain; charset=utf-8";
  if (flag(call.http, "follow")) return follow(env, call, uid, after, kType, as_text_line);
  http::Response response = stream_head(kType);
  response.body = all_rows(env.store, uid, after, SIZE_MAX, as_text_line);
  return response;
}

http::Response run_artifacts(Env& env, Call& call) {
  const json::Value run = find_record(env, call)->parse();
  const json::Value& artifacts = run.get("status").get("artifacts");
  if (call.target.rest.empty()) {
    const json::Value items = artifacts.is_array() ? artifacts : json::Value::array();
    return answer(call, 200, json::Value::object({{"items", items}}).dump());
  }
  if (artifacts.is_array()) {
    for (const json::Value& artifact : artifacts.items()) {
      if (artifact.get_string("path") != call.target.rest) continue;
      http::Response response = stream_head("application/octet-stream");
      response.headers.set("Content-Disposition",
                           "attachment; filename=\"" + file_name(call.target.rest) + "\"");
      response.body = env.store.blob_get(blob_digest(artifact.get_string("digest")));
      return response;
    }
  }
  throw Error(Code::not_found, "run " + json::quote(call.target.name) + " has no artifact " +
                                   json::quote(log::clip(call.target.rest)));
}

}  // namespace umpteenth::server
