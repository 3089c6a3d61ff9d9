#include "engine/docker_json.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/docker_api.h"

namespace umpteenth::engine {
namespace {

TEST(DockerJson, a_hardened_container_is_asked_for) {
  ContainerSpec s;
  s.name = "ump-1";
  s.image = "sha256:ab";
  s.entrypoint = {"/usr/local/bin/ump", "init"};
  s.user = "0:0";
  s.cap_drop = {"ALL"};
  s.cpus = 0.5;
  s.memory_bytes = 64 << 20;
  s.pids = 256;
  s.disk_bytes = int64_t{2} << 30;
  s.networks = {{"run-net", "10.201.0.3", {}}, {"second", "", {}}};
  s.extra_hosts = {"umpteenth:10.201.0.2"};
  s.dns = {"127.0.0.1"};
  s.dns_options = {"timeout:1", "attempts:1"};
  s.mounts = {{"/run/ump", "/run/umpteenth", false}};
  const json::Value b = container_body(s);
  const json::Value& h = b.get("HostConfig");
  EXPECT_EQ(h.get("CapDrop").dump(), R"(["ALL"])");
  EXPECT_EQ(h.get("SecurityOpt").dump(), R"(["no-new-privileges"])");
  EXPECT_EQ(h.get_int("NanoCpus"), 500'000'000);
  EXPECT_EQ(h.get_int("Memory"), 64 << 20);
  EXPECT_EQ(h.get_int("MemorySwap"), 64 << 20);  // no swap
  EXPECT_EQ(h.get_int("PidsLimit"), 256);
  EXPECT_EQ(h.get("StorageOpt").dump(), R"({"size":"2147483648"})");
  EXPECT_EQ(h.get_string("NetworkMode"), "run-net");
  EXPECT_EQ(h.get("Dns").dump(), R"(["127.0.0.1"])");
  EXPECT_EQ(h.at_path({"RestartPolicy", "Name"}).as_string(), "no");
  EXPECT_EQ(h.at_path({"LogConfig", "Config", "max-size"}).as_string(), "1m");
  EXPECT_EQ(b.get("Healthcheck").dump(), R"({"Test":["NONE"]})");
  EXPECT_EQ(b.get("NetworkingConfig").dump(),
            R"({"EndpointsConfig":{"run-net":{"IPAMConfig":{"IPv4Address":"10.201.0.3"}}}})");
  EXPECT_FALSE(h.get_bool("Privileged"));
}

TEST(DockerJson, image_changes_are_quoted) {
  ImageChanges c;
  c.labels = {{"a", "x\" $HOME \\"}};
  c.entrypoint = {"/usr/local/bin/ump", "init"};
  c.user = "0:0";
  const auto lines = change_lines(c);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], R"(LABEL "a"="x\" \$HOME \\")");
  EXPECT_EQ(lines[1], "USER 0:0");
  EXPECT_EQ(lines[2], R"(ENTRYPOINT ["/usr/local/bin/ump","init"])");
}

TEST(DockerJson, containers_are_read_from_inspect_and_list) {
  const Container c = container_from_inspect(json::parse(R"({
    "Id":"abc","Name":"/ump-1","Image":"sha256:1","Created":"2026-01-01T00:00:00.5Z",
    "State":{"Status":"exited","Pid":0,"ExitCode":137,"OOMKilled":true,"StartedAt":"x"},
    "Config":{"Image":"base","Labels":{"umpteenth.run":"u1"}},
    "NetworkSettings":{"Networks":{"n":{"NetworkID":"nid","IPAddress":"",
      "IPAMConfig":{"IPv4Address":"10.0.0.2"}}}}})"));
  EXPECT_EQ(c.name, "ump-1");
  EXPECT_EQ(c.exit_code, 137);
  EXPECT_TRUE(c.oom_killed);
  EXPECT_EQ(c.labels.at("umpteenth.run"), "u1");
  EXPECT_EQ(c.networks.at("n").ipv4, "10.0.0.2");

  const Container l = container_from_list(json::parse(
      R"({"Id":"abc","Names":["/ump-1"],"State":"running","Created":1767225600,"Labels":null})"));
  EXPECT_EQ(l.name, "ump-1");
  EXPECT_EQ(l.created_at, "2026-01-01T00:00:00Z");
  EXPECT_TRUE(l.labels.empty());
}

TEST(DockerJson, what_an_engine_leaves_out_reads_as_empty) {
  EXPECT_EQ(container_from_inspect(json::parse("{}")), Container{});
  EXPECT_EQ(network_from(json::parse(R"({"Containers":null,"IPAM":null,"Options":null})")),
            Network{});
  EXPECT_TRUE(image_from_inspect(json::parse(R"({"Config":null})")).labels.empty());
  EXPECT_EQ(info_from(json::parse("{}"), json::parse("{}")).engine, "Docker");
}

TEST(DockerJson, an_image_is_named_exactly) {
  Image i;
  i.id = "sha256:bb12";
  i.tags = {"cafe:latest"};
  EXPECT_TRUE(names_image(i, "cafe"));
  EXPECT_FALSE(names_image(i, "bb1"));  // the beginning of an id is no name
  EXPECT_TRUE(names_image(i, "sha256:bb12"));
  EXPECT_FALSE(names_image(i, "sha256:bb"));
}

TEST(DockerApi, versions_are_negotiated_down_and_old_engines_refused) {
  EXPECT_EQ(negotiate("1.12", "1.41"), "1.41");
  EXPECT_EQ(negotiate("1.24", "1.52"), "1.47");
  EXPECT_EQ(negotiate("1.24", "1.40"), "1.40");
  EXPECT_THROW(negotiate("1.12", "1.39"), Error);
  EXPECT_THROW(negotiate("1.48", "1.60"), Error);
  EXPECT_THROW(negotiate("", ""), Error);
}

struct Meaning {
  int status;
  const char* body;
  Code code;
};

TEST(DockerApi, answers_mean_the_same_from_docker_and_podman) {
  const Meaning table[] = {
      {404, R"({"message":"No such container: x"})", Code::not_found},
      {500, R"({"cause":"no such container","message":"no such container"})", Code::not_found},
      {409, R"({"message":"Conflict. The container name is already in use"})", Code::conflict},
      {500, R"({"message":"network name x already used"})", Code::conflict},
      {500, R"({"message":"container state improper"})", Code::conflict},
      {403, R"({"message":"network x has active endpoints"})", Code::conflict},
      {403, R"({"message":"Pool overlaps with other one on this address space"})", Code::conflict},
      {404,
       R"({"message":"could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network"})",
       Code::conflict},
      {400, R"({"message":"invalid reference format"})", Code::invalid},
      {500, R"({"message":"driver failed"})", Code::internal},
      {503, "", Code::unavailable},
      {502, "<html>bad gateway</html>", Code::internal},
  };
  for (const Meaning& m : table) {
    const Error e = engine_error(m.status, m.body);
    EXPECT_EQ(e.code(), m.code) << m.status << " " << m.body << ": " << e.message();
    EXPECT_FALSE(e.message().empty());
  }
  EXPECT_NE(engine_error(404, table[7].body).message().find("remove unused networks"),
            std::string::npos);
}

TEST(DockerApi, foreign_texts_are_clipped) {
  const std::string huge = R"({"message":")" + std::string(100'000, 'x') + R"("})";
  EXPECT_LT(engine_error(500, huge).message().size(), 400U);
}

TEST(DockerApi, paths_and_queries_are_encoded) {
  EXPECT_EQ(path_segment("../x y?"), "..%2Fx%20y%3F");
  EXPECT_EQ(image_path("repo:5000/a/b:tag"), "repo:5000/a/b:tag");
  EXPECT_EQ(image_path("a?b#c"), "a%3Fb%23c");
  EXPECT_EQ(query_text({{"a", "1 2"}, {"b", "&"}}), "?a=1%202&b=%26");
}

}  // namespace
}  // namespace umpteenth::engine
