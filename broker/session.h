// One connection at the front door: from its first byte through the handshake and the dial to the
// end of its tunnel. On the front's io thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/http/message.h"
#include "broker/front_core.h"
#include "broker/proxy_head.h"
#include "broker/socks5.h"

namespace umpteenth::broker {

class Session {
 public:
  struct Origin {
    uint64_t listener = 0;
    http::Endpoint peer, local;
    bool proxy_v2 = false;
  };
  Session(Core& core, uint64_t id, Fd client, Origin origin);
  ~Session();

  // Each is false once the connection is over: the caller destroys it.
  bool begin();
  bool on_client(uint32_t events);
  bool on_server(uint32_t events);
  bool on_resolved(Resolved answer);
  bool on_time(Steady::time_point now);

  uint64_t listener() const { return origin_.listener; }

 private:
  enum class Phase {
    proxy_header,
    first_bytes,
    socks_greeting,
    socks_login,
    socks_request,
    http_head,
    resolving,
    dialling,
    relaying,
    closing
  };
  // What came from one side and could not be passed on yet; nothing more is read until it is.
  struct Pipe {
    std::string pending;
    bool ended = false;     // its source has no more
    bool finished = false;  // and its target was told
    bool done() const { return ended && pending.empty(); }
  };
  enum class Go { on, wait, over };

  // Handshake (session.cc).
  bool read_handshake();
  Go step();
  Go read_proxy_header();
  Go choose();
  Go hand_over();
  Go greet();
  Go login();
  Go socks_request();
  Go http_head();
  bool count_endpoint();
  Go authorise(const std::string& password);
  Go open(const std::string& host, int port);
  Go refuse(int status, const std::string& text);  // recorded where the run is known
  Go refuse_quietly(int status, const std::string& text);
  Go close_after(const std::string& answer);
  bool dial_next();
  bool dialled();

  // Tunnel (tunnel.cc).
  bool begin_relay();
  bool relay();
  bool pump(int from, int to, Pipe& pipe, bool upwards);
  bool flush(int to, Pipe& pipe);
  bool accept_upwards(std::string_view bytes);
  bool accept_downwards(std::string_view bytes);
  bool check_hello();
  bool watch_both();
  void send_upwards(std::string_view bytes);
  bool drain_client();

  bool socks() const { return socks_; }
  void set_deadline(std::chrono::milliseconds from_now) { deadline_ = Steady::now() + from_now; }
  void clear_deadline() { deadline_ = Steady::time_point::max(); }

  Core& core_;
  const uint64_t id_;
  Fd client_, server_;
  Origin origin_;
  Phase phase_ = Phase::first_bytes;
  Steady::time_point deadline_ = Steady::time_point::max();
  uint32_t client_events_ = Core::kAbsent, server_events_ = Core::kAbsent;
  bool counted_ = false, socks_ = false;

  std::string in_;       // handshake bytes, then a ClientHello that is not whole yet
  std::string run_uid_;  // "" until authorised
  std::string host_;
  int port_ = 0;
  bool name_checked_ = false;  // the client's first bytes have been looked at, or need not be
  bool plain_http_ = false;    // absolute-form
  bool answered_ = false;      // the HTTP server's head has been passed on
  BodyFrame body_;
  std::string forward_;  // an absolute-form request's head, or the held answer head
  std::vector<net::Address> addresses_;
  size_t next_address_ = 0;
  int dial_error_ = 0;
  Pipe up_, down_;
};

}  // namespace umpteenth::broker
