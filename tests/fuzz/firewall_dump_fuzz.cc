// engine/firewall: what iptables-save says of the host.
#include "engine/firewall/dump.h"

#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::accepted([&] {
    const engine::firewall::Dump dump = engine::firewall::parse_dump(text);
    engine::firewall::reaches_late(dump, "filter", "FORWARD", "DOCKER-USER", "br-0");
    engine::firewall::holds(dump, "filter", "FORWARD", {"-j DOCKER-USER"});
  });
  engine::firewall::words_of(text);
  return 0;
}
