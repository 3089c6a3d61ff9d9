// The small languages that clients send: cron, selectors, jsonpath, patches. The first byte
// chooses.
#include "apis/cron.h"
#include "apis/patch.h"
#include "apis/selectors.h"
#include "base/json.h"
#include "client/jsonpath.h"
#include "tests/fuzz/fuzz.h"

using namespace umpteenth;

namespace {

const json::Value& an_object() {
  static const json::Value object = json::parse(
      R"({"kind":"Job","metadata":{"name":"a","labels":{"team":"web"}},"spec":{"list":[{"n":1},{"n":2}],"text":"x"}})");
  return object;
}

void patch(std::string_view text) {
  json::Value target = an_object();
  const json::Value operations = json::parse(text);
  if (operations.is_array())
    apis::json_patch(target, operations);
  else
    apis::merge_patch(target, operations);
  fuzz::require(json::parse(target.dump()) == target, "what was patched is JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  const std::string text(fuzz::text_of(data + 1, size - 1));
  fuzz::accepted([&] {
    switch (data[0]) {
      case 'c': {
        const Time from = parse_time("2026-03-28T23:59:30Z");
        if (const auto next = apis::Cron(text).next(from, "Europe/Berlin"))
          fuzz::require(*next > from, "a schedule moves forward");
        break;
      }
      case 'l':
        apis::LabelSelector(text).matches(an_object());
        break;
      case 'f':
        apis::FieldSelector(text, {"metadata.name", "spec.text"}).matches(an_object());
        break;
      case 'j':
        client::jsonpath(text, an_object());
        break;
      default:
        patch(text);
    }
  });
  return 0;
}
