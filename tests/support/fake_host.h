// The host of a FakeEngine as the firewall sees it: tables that take iptables-restore's text, the
// bridges of the engine's networks, their ports.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "engine/firewall/host_access.h"
#include "tests/support/fake_engine.h"

namespace umpteenth::support {

// As dockerd 20.10 leaves the filter table behind with two networks of icc=false: iptables-save's
// text, and parsed.
extern const char kDockerTables[];
engine::firewall::Dump docker_tables();

// What the kernel holds after the restore. Fails the test where iptables-restore would refuse.
engine::firewall::Dump restored(engine::firewall::Dump dump, std::string_view script);

class FakeHost : public engine::firewall::HostFirewall {
 public:
  explicit FakeHost(FakeEngine& engine) : engine_(engine) {}

  engine::firewall::Host read() override;
  void restore(const std::string& backend, const engine::firewall::Restore& rules) override;
  void isolate(const std::vector<std::string>& bridges) override;
  void remove_link(const std::string& interface) override;

  // What somebody else does.
  void change(const std::function<void(engine::firewall::Dump& ipv4)>& how);
  void lose_bridge(const std::string& interface);
  void open_port(const std::string& interface);
  void add_link(const std::string& interface);
  void fail(const std::string& why);  // every call, until ""

  int restores() const;
  bool has_link(const std::string& interface);

 private:
  void may_fail() const;

  FakeEngine& engine_;
  mutable std::mutex mutex_;
  engine::firewall::Dump ipv4_ = docker_tables(), ipv6_;
  std::set<std::string> lost_, isolated_, links_{"lo", "docker0"};
  std::string failure_;
  int restores_ = 0;
};

// One way to a host that outlives it, as hosts do.
class BorrowedHost : public engine::firewall::HostFirewall {
 public:
  explicit BorrowedHost(FakeHost& host) : host_(host) {}
  engine::firewall::Host read() override { return host_.read(); }
  void restore(const std::string& backend, const engine::firewall::Restore& rules) override {
    host_.restore(backend, rules);
  }
  void isolate(const std::vector<std::string>& bridges) override { host_.isolate(bridges); }
  void remove_link(const std::string& interface) override { host_.remove_link(interface); }

 private:
  FakeHost& host_;
};

}  // namespace umpteenth::support
