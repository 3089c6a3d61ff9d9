#include "server/metrics.h"

#include "apis/kind.h"
#include "server/watch.h"

namespace umpteenth::server {
namespace {

void head(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  text += "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " +
          std::string(name) + " " + std::string(type) + "\n";
}

}  // namespace

void Metrics::count(std::string_view method, int status, std::chrono::microseconds took) {
  static constexpr std::string_view kMethods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"};
  std::string_view verb = "OTHER";  // a client must not be able to make labels
  for (std::string_view known : kMethods)
    if (known == method) verb = known;
  std::lock_guard lock(mutex_);
  ++requests_[{std::string(verb), status}];
  Taken& taken = taken_[std::string(verb)];
  ++taken.count;
  taken.seconds += std::chrono::duration<double>(took).count();
}

std::string Metrics::text(const store::Store& store) const {
  std::string text;
  {
    std::lock_guard lock(mutex_);
    head(text, "umpteenth_api_requests_total", "counter",
         "API requests by method and HTTP status.");
    for (const auto& [key, n] : requests_)
      text += "umpteenth_api_requests_total{method=\"" + key.first + "\",code=\"" +
              std::to_string(key.second) + "\"} " + std::to_string(n) + "\n";
    head(text, "umpteenth_api_request_seconds", "summary", "Time in the handler, by method.");
    for (const auto& [verb, taken] : taken_) {
      const std::string label = "{method=\"" + verb + "\"} ";
      text += "umpteenth_api_request_seconds_sum" + label + std::to_string(taken.seconds) + "\n";
      text += "umpteenth_api_request_seconds_count" + label + std::to_string(taken.count) + "\n";
    }
  }
  head(text, "umpteenth_api_watches", "gauge", "Watches that are open.");
  text += "umpteenth_api_watches " + std::to_string(open_watches()) + "\n";
  head(text, "umpteenth_store_revision", "gauge", "Newest resourceVersion.");
  text += "umpteenth_store_revision " + std::to_string(store.revision()) + "\n";
  head(text, "umpteenth_store_healthy", "gauge", "1 while the store takes writes.");
  text += std::string("umpteenth_store_healthy ") + (store.health().ok ? "1" : "0") + "\n";
  head(text, "umpteenth_objects", "gauge", "Objects by kind.");
  for (const apis::Kind* kind : apis::kinds()) {
    const store::Page page = store.list({kind->plural, "", 1, ""});
    text += "umpteenth_objects{kind=\"" + kind->kind + "\"} " +
            std::to_string(page.items.size() + page.remaining) + "\n";
  }
  return text;
}

}  // namespace umpteenth::server
