#include <thread>

#include "base/error.h"
#include "base/fd.h"
#include "base/log.h"
#include "engine/firewall/host_access.h"
#include "engine/names.h"
#include "engine/sandbox_images.h"
#include "engine/tar.h"

namespace umpteenth::engine::firewall {
namespace {

constexpr std::chrono::minutes kLifetime{1};
constexpr Duration kPoll{20};
constexpr size_t kMaxText = 16U << 20;
constexpr char kRules[] = "rules", kAnswer[] = "answer";

std::string tar_of(const std::string& rules) {
  TarWriter w;
  w.add_file(kRules, rules, 0600);
  return w.finish();
}

std::string answer_in(const std::string& tar) {
  TarLimits limits;
  limits.max_entries = 1;
  for (const TarEntry& entry : read_tar(tar, limits))
    if (entry.name == kAnswer && entry.type == TarEntry::Type::file) return std::string(entry.data);
  throw Error(Code::bad_gateway, "the firewall helper left no answer");
}

class HelperAccess : public HostFirewall {
 public:
  HelperAccess(Engine& engine, HelperOptions options)
      : engine_(engine), options_(std::move(options)) {}

  Host read() override { return parse_host(run({"save"})); }

  void restore(const std::string& backend, const Restore& rules) override {
    if (rules.empty()) return;
    run({"restore", backend, std::string("/") + kRules}, restore_text(rules));
  }

  void isolate(const std::vector<std::string>& bridges) override {
    std::vector<std::string> arguments{"isolate"};
    arguments.insert(arguments.end(), bridges.begin(), bridges.end());
    run(arguments);
  }

  void remove_link(const std::string& interface) override { run({"remove", interface}); }

 private:
  // What entering PID 1's mount namespace and running its iptables takes, and no more.
  ContainerSpec spec(const std::vector<std::string>& arguments) const {
    ContainerSpec s;
    s.name = own_name(options_.instance, "firewall");
    s.image = options_.image();
    s.entrypoint = {kHelperUmpPath, "hostfw", "--out", std::string("/") + kAnswer};
    s.cmd = arguments;
    s.user = "0:0";
    s.cap_drop = {"ALL"};
    s.cap_add = {"NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_CHROOT", "SYS_PTRACE", "DAC_OVERRIDE"};
    s.security_options = {"seccomp=unconfined", "apparmor=unconfined", "label=disable"};
    s.memory_bytes = 128 << 20;
    s.pids = 64;
    s.network_mode = "host";
    s.host_pid = true;
    s.labels = {{kLabelInstance, options_.instance}, {kLabelRole, "firewall"}};
    return s;
  }

  std::string run(const std::vector<std::string>& arguments, const std::string& rules = "") {
    const ContainerSpec wanted = spec(arguments);
    engine_.remove_container(wanted.name);  // of one that was cut short
    const std::string id = engine_.create_container(wanted);
    const Defer remove([&] {
      try {
        engine_.remove_container(id);
      } catch (const Error& e) {  // the next one begins with removing it
        log::warn("firewall helper not removed", {{"error", log::clip(e.message())}});
      }
    });
    if (!rules.empty()) engine_.put_archive(id, "/", tar_of(rules));
    engine_.start_container(id);
    const int code = wait(id);
    if (code != 0)
      throw Error(Code::unavailable, "the firewall helper exited with " + std::to_string(code) +
                                         ": " + log::clip(engine_.container_logs(id, 4096)));
    return answer_in(engine_.get_archive(id, std::string("/") + kAnswer, kMaxText));
  }

  int wait(const std::string& id) {
    const auto until = std::chrono::steady_clock::now() + kLifetime;
    while (std::chrono::steady_clock::now() < until) {
      const auto c = engine_.find_container(id);
      if (!c) throw Error(Code::unavailable, "the firewall helper was removed");
      if (c->state == "exited" || c->state == "dead") return c->exit_code;
      std::this_thread::sleep_for(kPoll);
    }
    throw Error(Code::timeout, "the firewall helper did not end within a minute");
  }

  Engine& engine_;
  const HelperOptions options_;
};

}  // namespace

std::unique_ptr<HostFirewall> make_helper_access(Engine& engine, HelperOptions options) {
  return std::make_unique<HelperAccess>(engine, std::move(options));
}

}  // namespace umpteenth::engine::firewall
