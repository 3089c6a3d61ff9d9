// base/net: addresses, ranges and URLs; the policy is total.
#include "base/net/address.h"
#include "base/net/url.h"
#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  if (const auto address = net::parse_address(text)) {
    const auto again = net::parse_address(net::format(*address));
    fuzz::require(again && *again == *address, "an address survives writing and reading");
    net::Topology topology;
    fuzz::require(!net::class_name(net::classify(*address, topology)).empty(),
                  "every address has a class");
    topology.known = true;
    fuzz::require(
        net::classify(net::unwrap(*address), topology) == net::classify(*address, topology),
        "a mapped address is judged as the address that it maps");
  }
  if (const auto range = net::parse_cidr(text)) {
    const auto again = net::parse_cidr(net::format(*range));
    fuzz::require(again && *again == *range, "a range survives writing and reading");
    fuzz::require(range->contains(range->base), "a range holds its base");
  }
  fuzz::accepted([&] {
    const net::Url url = net::parse_url(text);
    if (url.scheme == "unix")
      fuzz::require(url.path.starts_with('/'), "a socket's path is absolute");
    else
      fuzz::require(!url.host.empty() && url.port > 0 && url.port < 65536, "a URL has a target");
  });
  return 0;
}
