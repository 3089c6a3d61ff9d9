#include "base/outbound.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <mutex>

#include "base/error.h"
#include "base/handle.h"
#include "base/net/url.h"

namespace umpteenth {
namespace {

using Steady = std::chrono::steady_clock;
using Easy = Handle<CURL, curl_easy_cleanup>;
using Multi = Handle<CURLM, curl_multi_cleanup>;
using HeaderList = Handle<curl_slist, curl_slist_free_all>;

constexpr size_t kMaxErrorBody = 1U << 20;
constexpr Duration kResolveTimeout{5'000};
constexpr std::string_view kRefusal = " points to a private or local network address";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

bool allowed(const OutboundPolicy& policy, const net::Address& wrapped) {
  const net::Address address = net::unwrap(wrapped);
  // Asked first: an operator may block loopback, which classify() calls host-local.
  for (const net::Cidr& range : policy.topology.blocked)
    if (range.contains(address)) return false;
  const net::Class c = net::classify(address, policy.topology);
  if (c == net::Class::is_public) return true;
  // Models and MCP servers may live on the LAN or beside us; credentials of the machine never do.
  return policy.allow_private && c != net::Class::metadata && c != net::Class::blocked;
}

std::optional<net::Address> address_of(const curl_sockaddr& dialled) {
  net::Address address;
  if (dialled.family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&dialled.addr);
    address.bytes[10] = address.bytes[11] = 0xff;
    const auto* octets = reinterpret_cast<const uint8_t*>(&v4->sin_addr);
    std::copy(octets, octets + 4, address.bytes.begin() + 12);
    return address;
  }
  if (dialled.family != AF_INET6) return std::nullopt;
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&dialled.addr);
  std::copy(v6->sin6_addr.s6_addr, v6->sin6_addr.s6_addr + 16, address.bytes.begin());
  return address;
}

// One call. Lives on the caller's stack while libcurl calls back into it; the callbacks are C, so
// nothing may be thrown through them.
struct Transfer {
  const OutboundPolicy& policy;
  const OutboundRequest& request;
  bool dial = true;  // false: look at the addresses only
  OutboundResponse response;
  Steady::time_point last_byte = Steady::now();
  curl_off_t moved = 0;
  size_t dials = 0, taken = 0;
  bool refused = false, too_large = false, enough = false;
  std::exception_ptr thrown;
};

curl_socket_t on_socket(void* data, curlsocktype, curl_sockaddr* address) noexcept {
  auto& transfer = *static_cast<Transfer*>(data);
  ++transfer.dials;
  const auto ip = address_of(*address);
  if (!ip || !allowed(transfer.policy, *ip)) {
    transfer.refused = true;
    return CURL_SOCKET_BAD;
  }
  if (!transfer.dial) return CURL_SOCKET_BAD;
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

size_t on_header(char* bytes, size_t size, size_t count, void* data) noexcept {
  auto& transfer = *static_cast<Transfer*>(data);
  const std::string_view line(bytes, size * count);
  transfer.last_byte = Steady::now();
  if (line.starts_with("HTTP/")) {
    transfer.response.headers.clear();  // of an interim answer
    const size_t space = std::min(line.find(' '), line.size());
    transfer.response.status = 0;
    std::from_chars(bytes + std::min(space + 1, line.size()), bytes + line.size(),
                    transfer.response.status);
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  value = value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
  transfer.response.headers.emplace_back(lower(std::string(line.substr(0, colon))), value);
  return line.size();
}

size_t on_body(char* bytes, size_t size, size_t count, void* data) noexcept {
  auto& transfer = *static_cast<Transfer*>(data);
  const std::string_view part(bytes, size * count);
  transfer.last_byte = Steady::now();
  OutboundResponse& response = transfer.response;
  if (response.status / 100 != 2) {
    response.body.append(part.substr(0, kMaxErrorBody - response.body.size()));
    transfer.enough = response.body.size() == kMaxErrorBody;
    return transfer.enough ? 0 : part.size();
  }
  transfer.taken += part.size();
  transfer.too_large = transfer.taken > transfer.request.max_body;
  if (transfer.too_large) return 0;
  if (!transfer.request.on_data) {
    response.body.append(part);
    return part.size();
  }
  try {
    transfer.enough = !transfer.request.on_data(part);
  } catch (...) {  // rethrown once libcurl's frames are gone
    transfer.thrown = std::current_exception();
    return 0;
  }
  return transfer.enough ? 0 : part.size();
}

int on_progress(void* data, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) noexcept {
  auto& transfer = *static_cast<Transfer*>(data);
  if (down + up != transfer.moved) transfer.last_byte = Steady::now();
  transfer.moved = down + up;
  return 0;
}

template <typename T>
void set(const Easy& easy, CURLoption option, T value) {
  const CURLcode code = curl_easy_setopt(easy.get(), option, value);
  if (code != CURLE_OK)
    throw Error(Code::internal, std::string("prepare a call: ") + curl_easy_strerror(code));
}

HeaderList header_list(const OutboundRequest& request) {
  HeaderList list;
  const auto add = [&](const std::string& line) {
    curl_slist* longer = curl_slist_append(list.get(), line.c_str());
    if (longer == nullptr) throw Error(Code::internal, "prepare a call: out of memory");
    (void)list.release();
    list.reset(longer);
  };
  add("Expect:");  // no waiting for 100 Continue
  for (const auto& [name, value] : request.headers) {
    if (name.empty() || name.find_first_of("\r\n: ") != std::string::npos ||
        value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos)
      throw Error(Code::bad_request, "a request header has a line break");
    add(value.empty() ? name + ";" : name + ": " + value);
  }
  return list;
}

Easy prepare(Transfer& transfer, const HeaderList& headers, char* error_text) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const OutboundRequest& request = transfer.request;
  Easy easy(curl_easy_init());
  if (!easy) throw Error(Code::internal, "prepare a call: out of memory");
  set(easy, CURLOPT_URL, request.url.c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_PROXY, "");
  set(easy, CURLOPT_NOPROXY, "*");
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_SSL_VERIFYPEER, 1L);
  set(easy, CURLOPT_SSL_VERIFYHOST, 2L);
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  if (!transfer.policy.ca_file.empty()) set(easy, CURLOPT_CAINFO, transfer.policy.ca_file.c_str());
  set(easy, CURLOPT_USERAGENT, "umpteenth/" UMPTEENTH_VERSION);
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout.count()));
  set(easy, CURLOPT_ERRORBUFFER, error_text);
  set(easy, CURLOPT_HTTPHEADER, headers.get());
  set(easy, CURLOPT_OPENSOCKETFUNCTION, &on_socket);
  set(easy, CURLOPT_OPENSOCKETDATA, &transfer);
  set(easy, CURLOPT_HEADERFUNCTION, &on_header);
  set(easy, CURLOPT_HEADERDATA, &transfer);
  set(easy, CURLOPT_WRITEFUNCTION, &on_body);
  set(easy, CURLOPT_WRITEDATA, &transfer);
  set(easy, CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(easy, CURLOPT_XFERINFODATA, &transfer);
  set(easy, CURLOPT_NOPROGRESS, 0L);
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT" ||
      request.method == "PATCH") {
    set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(easy, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  if (request.method == "HEAD")
    set(easy, CURLOPT_NOBODY, 1L);
  else
    set(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  return easy;
}

// Through the multi interface, because that one can be woken by stop at once.
CURLcode perform(Transfer& transfer, CURL* easy, const std::stop_token& stop) {
  const OutboundRequest& request = transfer.request;
  const Multi multi(curl_multi_init());
  if (!multi || curl_multi_add_handle(multi.get(), easy) != CURLM_OK)
    throw Error(Code::internal, "prepare a call: out of memory");
  struct Detach {
    CURLM* multi;
    CURL* easy;
    ~Detach() { curl_multi_remove_handle(multi, easy); }
  } const detach{multi.get(), easy};
  const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi.get()); });
  const auto end = Steady::now() + request.total_timeout;
  for (;;) {
    int running = 0;
    if (curl_multi_perform(multi.get(), &running) != CURLM_OK)
      throw Error(Code::internal, "run a call: libcurl gave up");
    if (running == 0) break;
    if (stop.stop_requested()) throw Error(Code::unavailable, "stopped");
    // Until the first byte libcurl's own connect timeout comes on top.
    const bool talking = transfer.moved > 0 || transfer.response.status > 0;
    const auto until = transfer.last_byte + request.idle_timeout +
                       (talking ? Duration(0) : request.connect_timeout);
    const auto left = std::chrono::ceil<Duration>(std::min(end, until) - Steady::now());
    if (left.count() <= 0) throw Error(Code::timeout, "timed out");
    curl_multi_poll(multi.get(), nullptr, 0,
                    static_cast<int>(std::min<int64_t>(left.count(), 60'000)), nullptr);
  }
  int in_queue = 0;
  const CURLMsg* message = curl_multi_info_read(multi.get(), &in_queue);
  return message != nullptr ? message->data.result : CURLE_FAILED_INIT;
}

// An answer that was ended by us is an answer; the rest is told apart.
void check(const Transfer& transfer, CURLcode code, const char* error_text,
           const std::string& host) {
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (transfer.too_large)
    throw Error(Code::too_large, host + ": the answer is larger than " +
                                     std::to_string(transfer.request.max_body) + " bytes");
  if (code == CURLE_OK || transfer.enough) return;
  if (transfer.refused && transfer.response.status == 0)
    throw Error(Code::forbidden, host + std::string(kRefusal));
  const std::string text = *error_text != '\0' ? error_text : curl_easy_strerror(code);
  if (code == CURLE_OPERATION_TIMEDOUT) throw Error(Code::timeout, host + ": " + text);
  throw Error(Code::bad_gateway, host + ": " + text);
}

net::Url http_url(std::string_view text) {
  net::Url url = net::parse_url(text);
  if (url.scheme != "http" && url.scheme != "https")
    throw Error(Code::bad_request, "must be an http(s) URL");
  return url;
}

}  // namespace

std::string OutboundResponse::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers)
    if (name == lower_case_name) return value;
  return {};
}

OutboundResponse Outbound::send(const OutboundRequest& request, std::stop_token stop) const {
  const std::string host = http_url(request.url).host;
  if (request.method.empty() || request.method.find_first_of("\r\n ") != std::string::npos)
    throw Error(Code::bad_request, "a request needs a method");
  Transfer transfer{.policy = policy_, .request = request, .response = {}, .thrown = nullptr};
  std::array<char, CURL_ERROR_SIZE> error_text{};
  const HeaderList headers = header_list(request);
  const Easy easy = prepare(transfer, headers, error_text.data());
  CURLcode code = CURLE_OK;
  try {
    code = perform(transfer, easy.get(), stop);
  } catch (Error& e) {
    throw e.in(host);
  }
  check(transfer, code, error_text.data(), host);
  return std::move(transfer.response);
}

void Outbound::check_target(std::string_view text) const {
  net::Url url;
  try {
    url = http_url(text);
  } catch (const Error& e) {  // here it is a field's value that is wrong
    throw Error(Code::invalid, e.message());
  }
  if (const auto literal = net::parse_address(url.host)) {
    if (!allowed(policy_, *literal)) throw Error(Code::invalid, url.host + std::string(kRefusal));
    return;
  }
  // Without a rule that a name could break, saving must not depend on a resolver.
  if (policy_.allow_private && policy_.topology.blocked.empty()) return;
  OutboundRequest request;
  request.url = text;
  request.connect_timeout = request.total_timeout = kResolveTimeout;
  Transfer transfer{
      .policy = policy_, .request = request, .dial = false, .response = {}, .thrown = nullptr};
  std::array<char, CURL_ERROR_SIZE> error_text{};
  const Easy easy = prepare(transfer, nullptr, error_text.data());
  try {
    perform(transfer, easy.get(), {});
  } catch (const Error& e) {  // not resolved in time is not resolved
    if (e.code() != Code::timeout) throw;
  }
  if (transfer.refused) throw Error(Code::invalid, url.host + std::string(kRefusal));
  if (transfer.dials == 0) throw Error(Code::invalid, url.host + ": host cannot be resolved");
}

namespace net {
namespace {

int default_port(std::string_view scheme) {
  if (scheme == "http" || scheme == "ws") return 80;
  if (scheme == "https" || scheme == "wss") return 443;
  return scheme == "ssh" ? 22 : 0;
}

std::string part_of(CURLU* url, CURLUPart part, unsigned flags) {
  Handle<char, curl_free> text;
  curl_url_get(url, part, out(text), flags);  // a part that is absent leaves it null
  return text ? text.get() : std::string();
}

}  // namespace

Url parse_url(std::string_view text) {
  const auto refuse = [](const std::string& why) { throw Error(Code::bad_request, why); };
  if (text.size() > 8192 || text.find('\0') != std::string_view::npos)
    refuse("not a URL: too long, or with a NUL");
  Url url;
  if (text.starts_with("unix://")) {
    url.scheme = "unix";
    url.path = text.substr(7);
    if (!url.path.starts_with('/')) refuse("not a URL: unix:// needs an absolute path");
    return url;
  }
  // libcurl forgives a slash too many and takes the path's first part for the host.
  const size_t slashes = text.find("://");
  if (slashes == std::string_view::npos || text.substr(slashes + 3).starts_with('/'))
    refuse("not a URL: SCHEME://HOST/PATH is needed");
  const Handle<CURLU, curl_url_cleanup> parsed(curl_url());
  const CURLUcode code = curl_url_set(parsed.get(), CURLUPART_URL, std::string(text).c_str(),
                                      CURLU_NON_SUPPORT_SCHEME);
  if (code != CURLUE_OK) refuse(std::string("not a URL: ") + lower(curl_url_strerror(code)));
  url.scheme = lower(part_of(parsed.get(), CURLUPART_SCHEME, 0));
  url.user = part_of(parsed.get(), CURLUPART_USER, CURLU_URLDECODE);
  url.password = part_of(parsed.get(), CURLUPART_PASSWORD, CURLU_URLDECODE);
  url.host = lower(part_of(parsed.get(), CURLUPART_HOST, 0));
  url.path = part_of(parsed.get(), CURLUPART_PATH, 0);
  url.query = part_of(parsed.get(), CURLUPART_QUERY, 0);
  url.port = default_port(url.scheme);
  if (url.port == 0) refuse("not a URL of a scheme served here: http, https, ws, wss, ssh, unix");
  if (url.host.size() > 2 && url.host.front() == '[')
    url.host = url.host.substr(1, url.host.size() - 2);
  if (url.host.empty()) refuse("not a URL: it names no host");
  const std::string port = part_of(parsed.get(), CURLUPART_PORT, 0);
  if (!port.empty()) std::from_chars(port.data(), port.data() + port.size(), url.port);
  return url;
}

}  // namespace net
}  // namespace umpteenth
