#include "base/error.h"
#include "base/log.h"
#include "engine/firewall/host_access.h"

namespace umpteenth::engine::firewall {
namespace {

constexpr Duration kTimeout{60'000};  // iptables-restore itself waits 30 s for its lock
constexpr size_t kMaxText = 16U << 20;

class DirectAccess : public HostFirewall {
 public:
  DirectAccess(std::shared_ptr<const HostNamespace> host, std::filesystem::path ump, Runner& runner)
      : host_(std::move(host)), ump_(std::move(ump)), runner_(runner) {}

  Host read() override { return parse_host(hostfw({"save"})); }

  void restore(const std::string& backend, const Restore& rules) override {
    if (rules.empty()) return;
    hostfw({"restore", backend}, restore_text(rules));
  }

  void isolate(const std::vector<std::string>& bridges) override {
    std::vector<std::string> arguments{"isolate"};
    arguments.insert(arguments.end(), bridges.begin(), bridges.end());
    hostfw(arguments);
  }

  void remove_link(const std::string& interface) override { hostfw({"remove", interface}); }

 private:
  std::string hostfw(std::vector<std::string> arguments, std::string input = "") {
    Command command;
    command.argv = {ump_.string(), "hostfw", "--here"};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.stdin_bytes = std::move(input);
    command.timeout = kTimeout;
    command.max_output = kMaxText;
    CommandResult result;
    host_->run([&] { result = runner_.run(command); });
    if (result.exit_code != 0 || result.truncated)
      throw Error(Code::unavailable, "ump hostfw " + arguments.front() + ": exit code " +
                                         std::to_string(result.exit_code) + ": " +
                                         log::clip(result.err));
    return std::move(result.out);
  }

  const std::shared_ptr<const HostNamespace> host_;
  const std::filesystem::path ump_;
  Runner& runner_;
};

}  // namespace

std::unique_ptr<HostFirewall> make_direct_access(std::shared_ptr<const HostNamespace> host,
                                                 std::filesystem::path ump, Runner& runner) {
  return std::make_unique<DirectAccess>(std::move(host), std::move(ump), runner);
}

}  // namespace umpteenth::engine::firewall
