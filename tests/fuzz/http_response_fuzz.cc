// base/http: answers of the engine, of models, of whatever a URL points to.
#include "base/http/parser.h"
#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool without_body = (data[0] & 1) != 0;
  const size_t step = 1 + (data[0] >> 1);
  std::string_view rest = fuzz::text_of(data + 1, size - 1);
  http::ResponseParser parser(without_body, 4096);
  fuzz::accepted([&] {
    size_t shown = 0;
    while (!parser.done()) {
      if (shown < rest.size()) shown = std::min(rest.size(), shown + step);
      const size_t used = parser.put(rest.substr(0, shown));
      fuzz::require(used <= shown, "no more is consumed than came");
      rest.remove_prefix(used);
      shown -= used;
      if (used == 0 && shown == rest.size()) break;
    }
    if (!parser.done()) parser.put_eof();
    if (parser.head_done())
      fuzz::require(parser.response().body.size() <= 4096, "the body's limit holds");
  });
  return 0;
}
