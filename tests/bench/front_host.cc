// The front door in a process of its own, for measuring it: `front_host PORT RUNS`. Listens on
// 127.0.0.1 … 127.0.0.RUNS, one run's endpoint each, of which `localhost` is allowed; prints the
// token of each on a line and ends with its standard input.
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "base/log.h"
#include "broker/broker.h"
#include "broker/front.h"
#include "store/open.h"

namespace umpteenth::broker {
namespace {

runs::RunInfo a_run(const std::string& endpoint) {
  runs::RunInfo info;
  info.ns = "default";
  info.name = info.uid = "run-" + endpoint;
  info.egress = {apis::NetworkMode::allowed_domains, {"localhost"}, false};
  return info;
}

int serve(int port, int runs) {
  const auto store = store::make_memory_store();
  runs::Registry registry;
  Broker broker(registry, {});
  http::ListenOn none;
  none.adopt_only = true;
  http::Server api(none, limits(runs), broker.site());
  FrontOptions options;  // loopback counts as public here; all else is as umpd has it
  options.resolve = [](const std::string&) {
    return std::vector<net::Address>{*net::parse_address("127.0.0.1")};
  };
  options.classify = [](const net::Address&) { return net::Class::is_public; };
  Front front(registry, api, options);
  std::string tokens;
  for (int i = 1; i <= runs; ++i) {
    const std::string endpoint = "127.0.0." + std::to_string(i);
    tokens += registry.add(std::make_shared<runs::LiveRun>(a_run(endpoint), *store, system_clock()),
                           endpoint) +
              "\n";
  }
  std::cout << tokens << std::flush;  // before the port answers: who waits for it has them
  for (int i = 1; i <= runs; ++i) {
    http::ListenOn where;
    where.host = "127.0.0." + std::to_string(i);
    where.port = port;
    front.listen(where);
  }
  api.start();
  front.start();
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  front.stop();
  api.stop(std::chrono::seconds(1));
  return 0;
}

}  // namespace
}  // namespace umpteenth::broker

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: front_host PORT RUNS\n";
    return 2;
  }
  return umpteenth::broker::serve(std::atoi(argv[1]), std::atoi(argv[2]));
}
