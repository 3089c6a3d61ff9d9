// Commands in a container: a hijacked connection each, read by a thread of its own.
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "engine/docker_engine.h"
#include "engine/docker_json.h"
#include "engine/frames.h"

namespace umpteenth::engine {
namespace {

constexpr Duration kSilence{1'000};   // after so long without output the engine is asked
constexpr Duration kExitWait{5'000};  // from the stream's end to the exit code
constexpr Duration kExitPoll{20};
constexpr int kPollsUntilContainerAsked = 5;
constexpr Duration kStdinWait{std::chrono::hours(24)};

class DockerExec : public Exec {
 public:
  DockerExec(std::shared_ptr<DockerApi> api, std::string container, std::string id,
             std::unique_ptr<http::Duplex> stream, OutputSink sink)
      : api_(std::move(api)),
        container_(std::move(container)),
        id_(std::move(id)),
        stream_(std::move(stream)),
        frames_(std::move(sink)),
        reader_([this](const std::stop_token& stop) { read_all(stop); }) {}

  ~DockerExec() override {
    reader_.request_stop();
    stream_->cancel();
  }

  // A command may end without reading its input: wait() tells, so a failed write is not an error.
  void write_stdin(std::string_view bytes) override {
    try {
      stream_->write(bytes, kStdinWait);
    } catch (const Error&) {
    }
  }

  void close_stdin() override {
    try {
      stream_->shutdown_write();
    } catch (const Error&) {
    }
  }

  std::optional<int> wait(Duration timeout, std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, timeout, [&] { return exit_code_ || error_; });
    if (error_) throw Error(*error_);
    return exit_code_;
  }

 private:
  void read_all(const std::stop_token& stop) {
    std::optional<int> code;
    std::optional<Error> error;
    try {
      if (!read_stream(stop)) return;
      code = find_exit_code(stop);
    } catch (const Error& e) {  // the reader's end; wait() throws it
      error = e;
    }
    stream_->cancel();  // frees a writer that is blocked on a command that has ended
    const std::scoped_lock lock(mutex_);
    exit_code_ = code;
    error_ = error;
    changed_.notify_all();
  }

  // Until the stream's end; false where the exec was destroyed. Some engines never end it, so after
  // a silence they are asked whether the command still runs.
  bool read_stream(const std::stop_token& stop) {
    std::array<char, 32'768> buffer{};
    while (!stop.stop_requested()) {
      try {
        const size_t n = stream_->read(buffer.data(), buffer.size(), kSilence);
        if (n == 0) return true;
        frames_.feed({buffer.data(), n});
      } catch (const Error& e) {
        if (stop.stop_requested()) return false;
        if (e.code() == Code::unavailable) return true;  // a reset: the exit code decides
        if (e.code() != Code::timeout) throw;
        const auto state = inspect(stop);
        if (!state || !state->get_bool("Running")) return true;
      }
    }
    return false;
  }

  std::optional<json::Value> inspect(const std::stop_token& stop) {
    ApiCall call;
    call.path = "/exec/" + path_segment(id_) + "/json";
    call.also_fine = {404};
    const http::Response answer = api_->send(call, stop);
    if (answer.status == 404) return std::nullopt;
    return json::parse(answer.body);
  }

  int find_exit_code(const std::stop_token& stop) {
    const int polls = static_cast<int>(kExitWait / kExitPoll);
    for (int poll = 0; poll < polls && !stop.stop_requested(); ++poll) {
      const auto state = inspect(stop);
      const bool ended = state && !state->get_bool("Running") && state->get("ExitCode").is_int();
      const int code = ended ? static_cast<int>(state->get_int("ExitCode")) : -1;
      if (code == 0) return code;
      // A failed command and a killed sandbox look alike from here.
      if (ended || !state || poll % kPollsUntilContainerAsked == kPollsUntilContainerAsked - 1)
        if (const auto gone = gone_error(*api_, container_, stop)) throw Error(*gone);
      if (ended) return code;
      if (!state)
        throw Error(Code::unavailable, "the engine no longer knows the command: it was restarted");
      std::this_thread::sleep_for(kExitPoll);
    }
    throw Error(Code::internal, "the engine does not tell the command's exit code");
  }

  const std::shared_ptr<DockerApi> api_;
  const std::string container_, id_;
  const std::unique_ptr<http::Duplex> stream_;
  FrameReader frames_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<int> exit_code_;
  std::optional<Error> error_;
  std::jthread reader_;  // last: it uses all of the above
};

}  // namespace

std::optional<Error> gone_error(DockerApi& api, const std::string& container,
                                std::stop_token stop) {
  ApiCall call;
  call.path = "/containers/" + path_segment(container) + "/json";
  call.also_fine = {404};
  const http::Response answer = api.send(call, std::move(stop));
  if (answer.status == 404)
    return Error(Code::not_found, "sandbox is gone: its container was removed");
  const Container c = container_from_inspect(json::parse(answer.body));
  if (c.state == "running" || c.state == "paused") return std::nullopt;
  std::string why = "sandbox is gone: its container is " + c.state + " (exit code " +
                    std::to_string(c.exit_code) + ")";
  if (c.oom_killed) why += "; it may have run out of memory";
  return Error(Code::not_found, why);
}

std::unique_ptr<Exec> start_exec(std::shared_ptr<DockerApi> api, const std::string& container,
                                 const ExecSpec& spec, OutputSink on_output) {
  try {
    const json::Value made =
        api->post("/containers/" + path_segment(container) + "/exec", exec_body(spec));
    const std::string id = made.get_string("Id");
    ApiCall call;
    call.method = "POST";
    call.path = "/exec/" + path_segment(id) + "/start";
    call.body = R"({"Detach":false,"Tty":false})";
    auto stream = api->upgrade(call);
    return std::make_unique<DockerExec>(api, container, id, std::move(stream),
                                        std::move(on_output));
  } catch (Error& e) {
    if (e.code() == Code::unavailable || e.code() == Code::timeout) throw;
    if (const auto gone = gone_error(*api, container)) throw Error(*gone);
    throw e.in("run a command in container " + container.substr(0, 12));
  }
}

std::unique_ptr<Exec> DockerEngine::exec(const std::string& container, const ExecSpec& spec,
                                         OutputSink on_output) {
  return start_exec(api_, container, spec, std::move(on_output));
}

}  // namespace umpteenth::engine
