#include "server/negotiate.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "apis/yaml.h"
#include "base/error.h"
#include "server/kube_proto.h"

namespace umpteenth::server {
namespace {

constexpr size_t kMaxBody = 3U << 20;
constexpr size_t kMaxRanges = 64;

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view s, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = s.find(by);
    parts.push_back(trim(s.substr(0, at)));
    if (at == std::string_view::npos) return parts;
    s.remove_prefix(at + 1);
  }
}

std::string lower(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

struct MediaRange {
  std::string type;
  std::string as, group, version;
};

std::vector<MediaRange> media_ranges(std::string_view accept) {
  std::vector<MediaRange> ranges;
  for (std::string_view part : split(accept, ',')) {
    if (part.empty()) continue;
    if (ranges.size() == kMaxRanges) break;
    const auto pieces = split(part, ';');
    MediaRange range{lower(pieces.front()), "", "", ""};
    for (size_t i = 1; i < pieces.size(); ++i) {
      const std::string_view p = pieces[i];
      if (p.starts_with("as=")) range.as = p.substr(3);
      if (p.starts_with("g=")) range.group = p.substr(2);
      if (p.starts_with("v=")) range.version = p.substr(2);
    }
    ranges.push_back(std::move(range));
  }
  return ranges;
}

bool is_json(const std::string& type) {
  return type == "application/json" || type == "*/*" || type == "application/*";
}

}  // namespace

Accepted negotiate(std::string_view accept) {
  if (trim(accept).empty()) return {};
  for (const MediaRange& range : media_ranges(accept)) {
    const bool yaml = range.type == "application/yaml";
    if (!yaml && !is_json(range.type)) continue;
    if (range.as.empty()) return {Shape::object, yaml, "v1"};
    if (range.group != "meta.k8s.io" || (range.version != "v1" && range.version != "v1beta1"))
      continue;
    if (range.as == "Table") return {Shape::table, yaml, range.version};
    if (range.as == "PartialObjectMetadata") return {Shape::partial, yaml, range.version};
    if (range.as == "PartialObjectMetadataList") return {Shape::partial_list, yaml, range.version};
  }
  throw Error(Code::not_acceptable,
              "only the following media types are accepted: application/json, application/yaml");
}

std::string aggregated_version(std::string_view accept) {
  for (const MediaRange& range : media_ranges(accept)) {
    if (!is_json(range.type)) continue;
    if (range.as.empty()) return "";
    if (range.as == "APIGroupDiscoveryList" && range.group == "apidiscovery.k8s.io" &&
        (range.version == "v2" || range.version == "v2beta1"))
      return range.version;
  }
  return "";
}

BodyType body_type(const http::Request& request) {
  const std::string_view header = request.headers.get("Content-Type");
  const std::string type = lower(split(header, ';').front());
  if (type.empty() || type == "application/json") return BodyType::json;
  if (type == "application/yaml" || type == "application/x-yaml" || type == "text/yaml")
    return BodyType::yaml;
  if (type == kProtobufType) return BodyType::protobuf;
  if (type == "application/merge-patch+json") return BodyType::merge_patch;
  if (type == "application/json-patch+json") return BodyType::json_patch;
  if (type == "application/apply-patch+yaml") return BodyType::apply_patch;
  if (type == "application/strategic-merge-patch+json") return BodyType::strategic;
  return BodyType::other;
}

json::Value read_body(const http::Request& request, bool protobuf_too) {
  switch (body_type(request)) {
    case BodyType::json:
      return json::parse(request.body, {64, kMaxBody});
    case BodyType::yaml:
      return apis::parse_yaml_one(request.body, kMaxBody);
    case BodyType::protobuf:
      if (protobuf_too) return decode_kube_proto(request.body);
      break;
    default:
      break;
  }
  throw Error(Code::unsupported_media_type,
              "the body of the request was in an unknown format - accepted media types include: "
              "application/json, application/yaml");
}

}  // namespace umpteenth::server
