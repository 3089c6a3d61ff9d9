#include "server/watch.h"

#include <atomic>
#include <charconv>
#include <memory>
#include <mutex>

#include "apis/object.h"
#include "server/read.h"

namespace umpteenth::server {
namespace {

using std::chrono::steady_clock;

constexpr size_t kMaxQueuedBytes = 4U << 20;
constexpr std::chrono::seconds kBookmarkEvery{30};
constexpr char kInitialEnd[] = "k8s.io/initial-events-end";

std::atomic<size_t> g_open{0};

std::string event_line(std::string_view type, std::string_view object) {
  std::string line;
  line.reserve(object.size() + 40);
  line += "{\"type\":\"";
  line += type;
  line += "\",\"object\":";
  line += object;
  line += "}\n";
  return line;
}

// Many watches see the same record one after the other: it is parsed once a thread.
const json::Value& parsed(const Resource& resource, const store::RecordPtr& record) {
  thread_local struct {
    store::RecordPtr record;
    const Resource* resource = nullptr;
    json::Value object;
  } last[2];
  thread_local size_t next = 0;
  for (const auto& slot : last)
    if (slot.record == record && slot.resource == &resource) return slot.object;
  auto& slot = last[next++ % 2];
  slot.object = resource.object_of(*record);
  slot.record = record;
  slot.resource = &resource;
  return slot.object;
}

struct Options {
  uint64_t from = 0;
  bool initial = false;  // current objects come first, as ADDED
  bool bookmarks = false;
  bool end_of_initial = false;  // a marked bookmark after them
  std::chrono::seconds timeout{0};
};

Options read_options(Env& env, const Call& call) {
  const http::Request& request = call.http;
  Options options;
  const std::string_view revision = request.param("resourceVersion");
  options.from = parse_revision(revision);
  options.initial = options.from == 0;
  options.bookmarks = flag(request, "allowWatchBookmarks");
  if (request.has_param("sendInitialEvents")) {
    if (request.param("resourceVersionMatch") != "NotOlderThan")
      throw invalid_field("sendInitialEvents",
                          "Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                          "NotOlderThan",
                          "FieldValueForbidden");
    options.initial = flag(request, "sendInitialEvents");
    options.end_of_initial = options.initial && options.bookmarks;
  } else if (request.has_param("resourceVersionMatch")) {
    throw invalid_field("resourceVersionMatch",
                        "Forbidden: resourceVersionMatch is forbidden for watch unless "
                        "sendInitialEvents is provided",
                        "FieldValueForbidden");
  }
  refuse_future(options.from, env.store.revision());
  if (!options.initial && options.from == 0) options.from = env.store.revision();
  if (const std::string_view text = request.param("timeoutSeconds"); !text.empty()) {
    uint32_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (error != std::errc() || end != text.data() + text.size())
      throw Error(Code::bad_request, "timeoutSeconds: Invalid value: " + json::quote(text) +
                                         ": must be a number of seconds");
    options.timeout = std::chrono::seconds(seconds);
  }
  return options;
}

class Watch {
 public:
  Watch(const Call& call, const Options& options)
      : resource_(call.resource()),
        ns_(call.target.ns),
        name_(call.target.name),
        who_(call.who),
        selection_(selection_of(call)),
        accepted_(negotiate(call.http.headers.get("Accept"))),
        include_(include_object(call.http)),
        options_(options),
        stream_(std::make_shared<http::Stream>(kMaxQueuedBytes)),
        ended_(std::make_shared<std::atomic<bool>>(false)),
        seen_(options.from),
        next_bookmark_(steady_clock::now() + kBookmarkEvery) {
    if (options.timeout.count() > 0) deadline_ = steady_clock::now() + options.timeout;
    stream_->on_end([ended = ended_] { *ended = true; });
    ++g_open;
  }
  ~Watch() {
    subscription_.reset();  // waits for on_event under way; the members it uses still live
    --g_open;
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  const std::shared_ptr<http::Stream>& stream() const { return stream_; }

  // What is there now, as ADDED; the watch goes on from that snapshot.
  std::string initial_events(Env& env, Time now) {
    const store::Page page = env.store.list({resource_.stored_as, ns_, 0, ""});
    std::lock_guard lock(mutex_);
    seen_ = page.revision;
    std::string text;
    for (const auto& record : page.items)
      if (concerns(record->key) && matches(record)) text += line("ADDED", record, now);
    if (options_.end_of_initial) text += bookmark(true);
    return text;
  }

  void start(Env& env) {
    clock_ = &env.clock;
    subscription_ = env.store.watch("", seen_, [this](const store::Event& e) { on_event(e); });
  }

  // On the periodic thread; false when there is nothing left to do.
  bool tick() {
    if (*ended_) return false;
    const auto now = steady_clock::now();
    std::lock_guard lock(mutex_);
    const bool over = deadline_ && now >= *deadline_;
    if (options_.bookmarks && (over || now >= next_bookmark_)) {
      stream_->push(bookmark(false));
      next_bookmark_ = now + kBookmarkEvery;
    }
    if (over) stream_->close();
    return !over;
  }

 private:
  bool concerns(const store::Key& key) const {
    return key.kind == resource_.stored_as && (ns_.empty() || key.ns == ns_) &&
           (name_.empty() || key.name == name_) &&
           may_see(who_, resource_.group, resource_.kind->plural, key.ns, key.name);
  }
  bool matches(const store::RecordPtr& record) const {
    return selection_.empty() || selection_.matches(parsed(resource_, record));
  }

  // On the store's thread: must not block.
  void on_event(const store::Event& event) {
    std::lock_guard lock(mutex_);
    seen_ = event.record->revision;
    if (*ended_ || !concerns(event.record->key)) return;
    const Time now = clock_->now();
    using Type = store::Event::Type;
    if (event.type == Type::removed) {
      if (matches(event.record)) send(line("DELETED", event.record, now));
      return;
    }
    const bool is = matches(event.record);
    const bool was = event.type == Type::modified && (!event.previous || matches(event.previous));
    if (is) send(line(was ? "MODIFIED" : "ADDED", event.record, now));
    if (was && !is) send(left_line(event, now));
  }

  void send(std::string text) {
    if (!stream_->push(std::move(text))) *ended_ = true;  // gone or too slow: the client resumes
  }

  std::string line(std::string_view type, const store::RecordPtr& record, Time now) {
    if (accepted_.shape == Shape::object && !resource_.is_view())
      return event_line(type, record->json);
    return event_line(type, shaped(parsed(resource_, record), now));
  }

  // An object that left the selector: its old state, under the new revision.
  std::string left_line(const store::Event& event, Time now) {
    json::Value object = parsed(resource_, event.previous);
    object["metadata"].set("resourceVersion", std::to_string(event.record->revision));
    return event_line("DELETED", shaped(object, now));
  }

  std::string shaped(const json::Value& object, Time now) {
    if (accepted_.shape == Shape::object) return object.dump();
    if (accepted_.shape != Shape::table) return partial_of(object, accepted_.meta_version).dump();
    json::Value table = apis::make_table(*resource_.kind, {object}, include_, now, !columns_sent_);
    columns_sent_ = true;
    table.set("apiVersion", "meta.k8s.io/" + accepted_.meta_version);
    table.set("metadata", json::Value::object({{"resourceVersion",
                                                object.at_path({"metadata", "resourceVersion"})}}));
    return table.dump();
  }

  std::string bookmark(bool end_of_initial) {
    json::Value meta = json::Value::object(
        {{"resourceVersion", std::to_string(seen_)}, {"creationTimestamp", nullptr}});
    if (end_of_initial) meta.set("annotations", json::Value::object({{kInitialEnd, "true"}}));
    json::Value object = json::Value::object({{"kind", resource_.kind->kind},
                                              {"apiVersion", resource_.group_version()},
                                              {"metadata", std::move(meta)}});
    if (accepted_.shape != Shape::table) return event_line("BOOKMARK", object.dump());
    json::Value table = json::Value::object(
        {{"kind", "Table"},
         {"apiVersion", "meta.k8s.io/" + accepted_.meta_version},
         {"metadata", json::Value::object({{"resourceVersion", std::to_string(seen_)}})},
         {"columnDefinitions", json::Value::array()},
         {"rows", json::Value::array({json::Value::object(
                      {{"cells", json::Value::array()},
                       {"object", partial_of(object, accepted_.meta_version)}})})}});
    return event_line("BOOKMARK", table.dump());
  }

  const Resource& resource_;
  const std::string ns_, name_;
  const Identity who_;
  const Selection selection_;
  const Accepted accepted_;
  const apis::IncludeObject include_;
  const Options options_;
  const Clock* clock_ = nullptr;
  const std::shared_ptr<http::Stream> stream_;
  const std::shared_ptr<std::atomic<bool>> ended_;

  std::mutex mutex_;  // the store's thread and the periodic one
  uint64_t seen_;     // every event up to here was sent or was none of ours
  bool columns_sent_ = false;
  steady_clock::time_point next_bookmark_;
  std::optional<steady_clock::time_point> deadline_;
  std::unique_ptr<store::Subscription> subscription_;
};

http::Response stream_head() {
  http::Response response;
  response.headers.set("Content-Type", "application/json");
  response.headers.set("Cache-Control", "no-cache, private");
  return response;
}

// A revision that history no longer reaches is told inside the stream, always: clients list again.
http::Response expired_watch(const Call& call, uint64_t from, uint64_t oldest) {
  const Error error(Code::expired, "too old resource version: " + std::to_string(from) + " (" +
                                       std::to_string(oldest) + ")");
  http::Response response = stream_head();
  response.stream = std::make_shared<http::Stream>();
  response.body = event_line("ERROR", apis::status_of(error, call.resource().subject("")).dump());
  response.stream->close();
  return response;
}

}  // namespace

size_t open_watches() { return g_open; }

http::Response watch_objects(Env& env, Call& call) {
  const Options options = read_options(env, call);
  const auto watch = std::make_shared<Watch>(call, options);
  http::Response response = stream_head();
  response.stream = watch->stream();
  try {
    if (options.initial) response.body = watch->initial_events(env, call.now);
    watch->start(env);
  } catch (const Error& e) {
    if (e.code() != Code::expired) throw;
    return expired_watch(call, options.from, env.store.oldest_watchable());
  }
  env.periodic.add(std::chrono::milliseconds(250), [watch] { return watch->tick(); });
  return response;
}

}  // namespace umpteenth::server
