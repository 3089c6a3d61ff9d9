// broker: the server name of a TLS client, however its records are cut.
#include "broker/client_hello.h"

#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using State = broker::ClientHello::State;
  const std::string_view bytes = fuzz::text_of(data, size);
  const broker::ClientHello hello = broker::parse_client_hello(bytes);
  for (const char c : hello.server_name)
    fuzz::require(c < 'A' || c > 'Z', "server names are in lower case");
  if (hello.state == State::complete) {
    std::string longer(bytes);
    longer += "more";
    const broker::ClientHello again = broker::parse_client_hello(longer);
    fuzz::require(again.state == State::complete && again.server_name == hello.server_name,
                  "what follows a hello does not change it");
  }
  if (hello.state == State::not_tls || hello.state == State::bad) {
    std::string longer(bytes);
    longer += '\x16';
    fuzz::require(broker::parse_client_hello(longer).state == hello.state,
                  "what is no hello does not become one");
  }
  return 0;
}
