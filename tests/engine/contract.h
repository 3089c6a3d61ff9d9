// What every Engine does, told once. contract_test.cc runs it on FakeEngine,
// contract_engine_test.cc on a real Docker engine. Names carry a prefix of their own so that
// programs can share an engine.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/tar.h"

namespace umpteenth::engine {

struct EngineUnderTest {
  Engine* engine = nullptr;
  std::string skip;  // a reason not to run
};

inline constexpr char kTestImage[] = "umpteenth-busybox:latest";

class Contract : public ::testing::TestWithParam<std::function<EngineUnderTest()>> {
 protected:
  void SetUp() override {
    const EngineUnderTest under_test = GetParam()();
    if (!under_test.skip.empty()) GTEST_SKIP() << under_test.skip;
    engine_ = under_test.engine;
    mine_ = {{"umpteenth.test", prefix_}};
  }

  void TearDown() override {
    if (engine_ == nullptr) return;
    for (const Container& c : engine_->list_containers(mine_)) engine_->remove_container(c.id);
    for (const Network& n : engine_->list_networks(mine_)) engine_->remove_network(n.id);
    for (const Image& i : engine_->list_images(mine_)) engine_->remove_image(i.id);
  }

  ContainerSpec spec(const std::string& name) const {
    ContainerSpec s;
    s.name = prefix_ + name;
    s.image = kTestImage;
    s.entrypoint = {"sleep", "600"};
    s.labels = mine_;
    s.network_mode = "none";
    s.cap_drop = {"ALL"};
    s.memory_bytes = 64 << 20;
    s.pids = 32;
    return s;
  }

  // One for all tests that leave it as it is: a start takes most of a second.
  std::string shared_running() {
    ContainerSpec s = spec("shared");
    s.labels = {{"umpteenth.test-shared", prefix_}};
    if (const auto there = engine_->find_container(s.name)) return there->id;
    const std::string id = engine_->create_container(s);
    engine_->start_container(id);
    Engine* engine = engine_;
    remove_shared_ = [engine, id] { engine->remove_container(id); };
    return id;
  }
  static void TearDownTestSuite() {
    if (remove_shared_) remove_shared_();
    remove_shared_ = nullptr;
  }

  std::string running(const std::string& name) {
    const std::string id = engine_->create_container(spec(name));
    engine_->start_container(id);
    return id;
  }

  NetworkSpec network(const std::string& name, const std::string& subnet) const {
    NetworkSpec n;
    n.name = prefix_ + name;
    n.internal = true;
    n.subnet = subnet;
    n.labels = mine_;
    n.options = {{"com.docker.network.bridge.inhibit_ipv4", "true"}};
    return n;
  }

  struct Ran {
    std::optional<int> code;
    std::string out, err;
  };
  Ran run(const std::string& id, ExecSpec exec_spec, const std::string& input = {}) {
    Ran ran;
    const auto exec = engine_->exec(id, exec_spec, [&](Output which, std::string_view bytes) {
      (which == Output::out ? ran.out : ran.err) += bytes;
    });
    if (exec_spec.attach_stdin) {
      exec->write_stdin(input);
      exec->close_stdin();
    }
    ran.code = exec->wait(Duration{20'000});
    return ran;
  }

  template <typename F>
  std::optional<Error> error_of(F call) {
    try {
      call();
    } catch (const Error& e) {
      return e;
    }
    return std::nullopt;
  }
  template <typename F>
  Code code_of(F call) {
    const auto e = error_of(call);
    EXPECT_TRUE(e) << "it was accepted";
    return e ? e->code() : Code::not_implemented;
  }

  inline static std::function<void()> remove_shared_;
  Engine* engine_ = nullptr;
  const std::string prefix_ = "ct-" + std::to_string(getpid()) + "-";
  Labels mine_;
};

TEST_P(Contract, a_container_lives_from_create_to_remove) {
  const std::string id = engine_->create_container(spec("life"));
  EXPECT_EQ(engine_->find_container(id)->state, "created");
  engine_->start_container(id);
  engine_->start_container(id);  // already running is success
  const auto seen = engine_->find_container(prefix_ + "life");
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->id, id);
  EXPECT_EQ(seen->name, prefix_ + "life");
  EXPECT_EQ(seen->state, "running");
  EXPECT_GT(seen->pid, 0);
  EXPECT_EQ(seen->labels.at("umpteenth.test"), prefix_);
  EXPECT_FALSE(seen->started_at.empty());
  EXPECT_TRUE(seen->image_id.starts_with("sha256:"));

  engine_->stop_container(id, Duration{0});
  engine_->stop_container(id, Duration{0});
  EXPECT_EQ(engine_->find_container(id)->state, "exited");
  EXPECT_EQ(engine_->find_container(id)->pid, 0);
  engine_->remove_container(id);
  engine_->remove_container(id);  // gone is success
  EXPECT_FALSE(engine_->find_container(id));
}

TEST_P(Contract, a_name_is_taken_once_and_found_whole) {
  const std::string id = engine_->create_container(spec("name"));
  EXPECT_EQ(code_of([&] { engine_->create_container(spec("name")); }), Code::conflict);
  EXPECT_FALSE(engine_->find_container(prefix_ + "nam"));
  EXPECT_FALSE(engine_->find_container(id.substr(0, 12)));  // a prefix is not a name
}

TEST_P(Contract, what_is_absent_is_not_found) {
  ContainerSpec no_image = spec("no-image");
  no_image.image = "umpteenth-nowhere:latest";
  EXPECT_EQ(code_of([&] { engine_->create_container(no_image); }), Code::not_found);
  EXPECT_EQ(code_of([&] { engine_->start_container("0123456789ab"); }), Code::not_found);
  EXPECT_EQ(code_of([&] {
              engine_->exec("0123456789ab", {{"true"}, {}, "", "", false}, {});
            }),
            Code::not_found);
  EXPECT_FALSE(engine_->find_network(prefix_ + "none"));
  EXPECT_FALSE(engine_->find_image("umpteenth-nowhere:latest"));
  engine_->remove_network(prefix_ + "none");  // gone is success
}

TEST_P(Contract, lists_hold_what_carries_all_labels) {
  ContainerSpec a = spec("list-a");
  a.labels["umpteenth.run"] = prefix_ + "1";
  const std::string id = engine_->create_container(a);
  engine_->create_container(spec("list-b"));
  EXPECT_EQ(engine_->list_containers(mine_).size(), 2U);
  const auto one = engine_->list_containers({{"umpteenth.run", prefix_ + "1"}});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].id, id);
  EXPECT_EQ(one[0].name, a.name);
  EXPECT_EQ(one[0].state, "created");
  EXPECT_EQ(one[0].labels, engine_->find_container(id)->labels);
  Labels any_run = mine_;
  any_run["umpteenth.run"] = "";
  EXPECT_EQ(engine_->list_containers(any_run).size(), 1U);
}

TEST_P(Contract, exec_tells_streams_apart_and_returns_the_code) {
  const std::string id = shared_running();
  const Ran ran = run(id, {{"sh", "-c", "echo out; echo err >&2; exit 3"}, {}, "", "", false});
  EXPECT_EQ(ran.code, 3);
  EXPECT_EQ(ran.out, "out\n");
  EXPECT_EQ(ran.err, "err\n");
}

TEST_P(Contract, exec_passes_user_env_folder_and_stdin) {
  const std::string id = shared_running();
  ExecSpec s{{"sh", "-c", "cat; echo \"$GREETING $(id -u) $(pwd)\""},
             {"GREETING=hello there"},
             "1000:1000",
             "/workspace",
             true};
  const std::string input(300'000, 'i');
  const Ran ran = run(id, s, input);
  EXPECT_EQ(ran.code, 0);
  ASSERT_EQ(ran.out.size(), input.size() + std::string("hello there 1000 /workspace\n").size());
  EXPECT_EQ(ran.out.substr(input.size()), "hello there 1000 /workspace\n");
}

TEST_P(Contract, exec_waits_until_its_deadline_or_a_stop) {
  const std::string id = shared_running();
  const auto exec = engine_->exec(id, {{"sleep", "60"}, {}, "", "", false}, {});
  EXPECT_EQ(exec->wait(Duration{50}), std::nullopt);
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(exec->wait(Duration{60'000}, stop.get_token()), std::nullopt);
}

TEST_P(Contract, a_container_that_dies_ends_its_execs_as_gone) {
  const std::string id = running("exec-gone");
  const auto exec = engine_->exec(id, {{"sleep", "60"}, {}, "", "", false}, {});
  std::jthread killer([&] { engine_->remove_container(id); });
  const auto error = error_of([&] { exec->wait(Duration{20'000}); });
  killer.join();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::not_found);
  EXPECT_TRUE(error->message().starts_with("sandbox is gone")) << error->message();
}

TEST_P(Contract, exec_in_a_stopped_container_is_gone) {
  const std::string id = running("exec-stopped");
  engine_->stop_container(id, Duration{0});
  const auto error = error_of([&] {
    engine_->exec(id, {{"true"}, {}, "", "", false}, {})->wait(Duration{5'000});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), Code::not_found);
  EXPECT_TRUE(error->message().starts_with("sandbox is gone")) << error->message();
}

TEST_P(Contract, archives_go_in_and_come_out) {
  const std::string id = engine_->create_container(spec("archive"));
  TarWriter w;
  w.add_directory("ump", 0755, 1000, 1000);
  w.add_file("ump/input.json", "{\"n\":3}", 0640, 1000, 1000);
  engine_->put_archive(id, "/", w.finish());
  const std::string tar = engine_->get_archive(id, "/ump", 1 << 20);
  bool found = false;
  read_tar(tar, {}, [&](const TarEntry& e) {
    if (e.name != "ump/input.json") return;
    found = true;
    EXPECT_EQ(e.data, "{\"n\":3}");
    EXPECT_EQ(e.mode, 0640);
    EXPECT_EQ(e.uid, 1000);
  });
  EXPECT_TRUE(found);
  EXPECT_EQ(code_of([&] { engine_->get_archive(id, "/ump", 100); }), Code::too_large);
  EXPECT_EQ(code_of([&] { engine_->get_archive(id, "/nowhere", 100); }), Code::not_found);
}

TEST_P(Contract, networks_have_static_members_and_go_with_them) {
  const NetworkSpec wanted = network("net", "10.203.7.0/29");
  const std::string id = engine_->create_network(wanted);
  EXPECT_EQ(code_of([&] { engine_->create_network(wanted); }), Code::conflict);
  EXPECT_EQ(code_of([&] { engine_->create_network(network("net2", "10.203.7.0/28")); }),
            Code::conflict);

  ContainerSpec first = spec("member");
  first.network_mode.clear();
  first.networks = {{wanted.name, "10.203.7.3", {}}};
  const std::string member = engine_->create_container(first);
  engine_->start_container(member);
  const auto seen = engine_->find_network(wanted.name);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->id, id);
  EXPECT_TRUE(seen->internal);
  EXPECT_FALSE(seen->ipv6);
  EXPECT_EQ(seen->subnets, std::vector<std::string>{"10.203.7.0/29"});
  EXPECT_EQ(seen->labels.at("umpteenth.test"), prefix_);
  EXPECT_EQ(seen->options.at("com.docker.network.bridge.inhibit_ipv4"), "true");
  ASSERT_EQ(seen->members.count(member), 1U);
  EXPECT_EQ(seen->members.at(member).ipv4, "10.203.7.3");
  EXPECT_EQ(engine_->find_container(member)->networks.at(wanted.name).ipv4, "10.203.7.3");
  EXPECT_EQ(engine_->list_networks(mine_).size(), 1U);

  EXPECT_EQ(code_of([&] { engine_->connect_network(id, member, {id, "", {}}); }), Code::conflict);
  engine_->disconnect_network(id, member);
  engine_->connect_network(id, member, {id, "10.203.7.4", {}});
  EXPECT_EQ(engine_->find_network(id)->members.at(member).ipv4, "10.203.7.4");

  engine_->remove_network(id);  // with a member in it
  engine_->remove_network(id);
  EXPECT_FALSE(engine_->find_network(id));
  EXPECT_FALSE(engine_->find_container(member)->networks.contains(wanted.name));
}

TEST_P(Contract, images_are_committed_with_labels_found_and_removed) {
  const auto base = engine_->find_image(kTestImage);
  ASSERT_TRUE(base);
  EXPECT_TRUE(base->id.starts_with("sha256:"));
  EXPECT_TRUE(base->arch == "amd64" || base->arch == "arm64") << base->arch;
  ContainerSpec from = spec("commit");
  from.labels = mine_;
  const std::string container = engine_->create_container(from);
  TarWriter w;
  w.add_file("marker", "made", 0644);
  engine_->put_archive(container, "/", w.finish());
  ImageChanges changes;
  changes.labels = mine_;
  changes.labels["umpteenth.role"] = "prepared";
  const std::string id = engine_->commit_container(container, prefix_ + "image:1", changes);
  const auto made = engine_->find_image(prefix_ + "image:1");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->id, id);
  EXPECT_EQ(made->labels.at("umpteenth.role"), "prepared");
  EXPECT_EQ(made->arch, base->arch);
  EXPECT_EQ(engine_->list_images(mine_).size(), 1U);

  ContainerSpec uses = spec("uses");
  uses.image = id;
  const std::string user = engine_->create_container(uses);
  EXPECT_EQ(read_tar(engine_->get_archive(user, "/marker", 4096), {}).at(0).data, "made");
  EXPECT_EQ(code_of([&] { engine_->remove_image(id); }), Code::conflict);
  engine_->remove_container(user);
  engine_->remove_image(id);
  engine_->remove_image(id);
  EXPECT_FALSE(engine_->find_image(id));
}

TEST_P(Contract, events_tell_of_ours_and_end_on_stop) {
  std::mutex mutex;
  std::vector<EngineEvent> seen;
  std::stop_source stop;
  std::jthread listener([&] {
    engine_->events(
        mine_,
        [&](const EngineEvent& e) {
          std::scoped_lock lock(mutex);
          seen.push_back(e);
        },
        stop.get_token());
  });
  const auto saw = [&](const std::string& action, const std::string& id) {
    std::scoped_lock lock(mutex);
    for (const EngineEvent& e : seen)
      if (e.type == "container" && e.action == action && e.id == id) return true;
    return false;
  };
  ContainerSpec foreign = spec("foreign");
  foreign.labels = {{"umpteenth.other", prefix_}};
  // The stream may open after the first of these: make containers until one is seen.
  std::string id;
  for (int i = 0; i < 50; ++i) {
    id = engine_->create_container(spec("events"));
    const std::string other = engine_->create_container(foreign);
    engine_->remove_container(other);
    engine_->remove_container(id);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (!saw("destroy", id) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    if (saw("destroy", id)) break;
  }
  EXPECT_TRUE(saw("destroy", id));
  stop.request_stop();
  listener.join();
  for (const EngineEvent& e : seen) {
    if (e.type == "container") {
      EXPECT_EQ(e.attributes.at("umpteenth.test"), prefix_) << e.action;
    }
  }
}

TEST_P(Contract, info_names_the_engine) {
  const Info info = engine_->info();
  EXPECT_FALSE(info.engine.empty());
  EXPECT_FALSE(info.version.empty());
  EXPECT_TRUE(info.arch == "amd64" || info.arch == "arm64") << info.arch;
  EXPECT_GT(info.cpus, 0);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_FALSE(info.runtimes.empty());
}

TEST_P(Contract, disk_use_and_logs_are_read) {
  ContainerSpec s = spec("disk");
  const std::string id = engine_->create_container(s);
  TarWriter w;
  w.add_file("big", std::string(1 << 20, 'b'));
  engine_->put_archive(id, "/", w.finish());
  EXPECT_GE(engine_->container_disk_bytes(id), 1 << 20);
  EXPECT_LE(engine_->container_logs(id, 10).size(), 10U);
}

}  // namespace umpteenth::engine
