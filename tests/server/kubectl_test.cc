// The real kubectl against the API behind a TLS server on loopback: tests/conformance/
// kubectl_basic.sh, whose checks are named in its output.
#include <cstdlib>
#include <iostream>

#include "base/fd.h"
#include "base/http/server.h"
#include "base/subprocess.h"
#include "server/kubeconfig.h"
#include "server/pki.h"
#include "tests/server/api_fixture.h"

namespace umpteenth::server {
namespace {

bool have_kubectl() {
  try {
    Command command;
    command.argv = {"kubectl", "version", "--client"};
    return system_runner().run(command).exit_code == 0;
  } catch (const Error&) {
    return false;
  }
}

TEST(Kubectl, basic_conformance) {
  if (!have_kubectl()) GTEST_SKIP() << "kubectl is not on PATH";
  const TempDir dir;
  const auto store = store::make_memory_store();
  const apis::Sealer sealer("test-instance", {"0123456789abcdef0123456789abcdef"});
  Tokens tokens(*store, system_clock());
  const std::string token = tokens.rotate_admin();
  FakeTrigger trigger(*store);
  Api api({*store, sealer, system_clock(), tokens, &trigger, nullptr, {}, {}, {}});
  const http::Headers headers = {{"Authorization", "Bearer " + token}};
  ASSERT_EQ(api.answer(a_request("POST", "/api/v1/namespaces", R"({"metadata":{"name":"default"}})",
                                 headers))
                .status,
            201);
  const Pki pki = ensure_pki(dir.path() / "pki", server_names("", ""), system_clock().now());
  http::Server server({"127.0.0.1", 0, "", 0600, pki.tls, false}, http::api_limits(), api.site());
  server.start();
  const auto config = dir.path() / "kubeconfig";
  write_kubeconfig(config, {"https://127.0.0.1:" + std::to_string(server.port()), pki.authority_pem,
                            token, "default"});
  Command command;
  command.argv = {"bash", UMPTEENTH_SOURCE_DIR "/tests/conformance/kubectl_basic.sh",
                  config.string()};
  command.env = {std::string("PATH=") + std::getenv("PATH"), "HOME=" + dir.path().string()};
  command.timeout = std::chrono::minutes(9);
  const CommandResult result = system_runner().run(command);
  std::cout << result.out;
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  server.stop(std::chrono::seconds(1));
}

}  // namespace
}  // namespace umpteenth::server
