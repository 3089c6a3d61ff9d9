"""The services of one host of the lab, and the log of what arrived at it. See lab.sh.

services.py NAME LOG READY [INTERFACE]

A line of the log: TIME NAME KIND DESTINATION from SOURCE [NOTE]. Without INTERFACE it has each packet
that was delivered here: raw sockets get their copies behind the firewall's INPUT, so a refused
packet is not among them. With INTERFACE it has each frame that came in there, of any protocol.
Packets between addresses of this host are left out. Names asked of port 53 are logged always.

Names: ip-10-20-0-5.… has that address; mixed.… a public and a private one; rebind.… a public one
at the first question and 169.254.169.254 at each later one; v6.… fd00:ec2::254 for AAAA; nx.… does
not exist; all others have 203.0.113.10. Nothing may be kept (TTL 0).
"""
import re
import selectors
import socket
import struct
import sys
import time

HTTP_PORTS, BANNER_PORT, ECHO_PORT, DNS_PORT = (80, 443, 7777), 22, 7778, 53
PUBLIC, METADATA, METADATA6 = "203.0.113.10", "169.254.169.254", "fd00:ec2::254"
IP_PKTINFO, MAX_CLIENTS = 8, 512

name, log_path, ready_path = sys.argv[1:4]
interface = sys.argv[4] if len(sys.argv) > 4 else None
log_file = open(log_path, "a", buffering=1)
sel = selectors.DefaultSelector()
clients = 0
asked = {}


def log(kind, destination, source, note=""):
    log_file.write(f"{time.time():.3f} {name} {kind} {destination} from {source} {note}".rstrip() + "\n")


def plain(address):
    return address[7:] if address.startswith("::ffff:") else address


# What arrived.
def ports(protocol, segment):
    """(source suffix, destination suffix, worth a line)"""
    if protocol in (6, 17) and len(segment) >= 4:
        source, destination = struct.unpack(">HH", segment[:4])
        first = protocol == 17 or (len(segment) > 13 and segment[13] & 0x12 == 0x02)  # SYN alone
        return f":{source}", f":{destination}", first
    if protocol == 1:
        return "", "", bool(segment) and segment[0] == 8  # an echo request
    if protocol == 58:
        return "", "", bool(segment) and segment[0] == 128
    return "", "", True


KINDS = {1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6"}


def log_ipv4(packet):
    length = (packet[0] & 15) * 4
    source, destination = socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
    from_port, to_port, first = ports(packet[9], packet[length:])
    if first and source != destination and not source.startswith("127."):
        log(KINDS.get(packet[9], f"ip{packet[9]}"), destination + to_port, source + from_port)


def log_ipv6(packet):
    source = socket.inet_ntop(socket.AF_INET6, packet[8:24])
    destination = socket.inet_ntop(socket.AF_INET6, packet[24:40])
    from_port, to_port, first = ports(packet[6], packet[40:])
    if first and packet[6] in KINDS:  # not what neighbours say to each other
        log(KINDS[packet[6]], f"[{destination}]{to_port}", f"[{source}]{from_port}")


def on_frame(s):
    frame, address = s.recvfrom(65536)
    if address[2] == socket.PACKET_OUTGOING:
        return
    kind = struct.unpack(">H", frame[12:14])[0]
    if kind == 0x0800 and len(frame) >= 34:
        log_ipv4(frame[14:])
    elif kind == 0x86DD and len(frame) >= 54:
        log_ipv6(frame[14:])
    elif kind not in (0x0806, 0x86DD):
        log(f"frame{kind:04x}", frame[0:6].hex(":"), frame[6:12].hex(":"))


def watch():
    if interface:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        s.bind((interface, 0))
        sel.register(s, selectors.EVENT_READ, on_frame)
        return
    for protocol in (1, 6, 17, 47, 132):
        s = socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)
        sel.register(s, selectors.EVENT_READ, lambda s: log_ipv4(s.recv(65536)))
    for protocol in (6, 17, 58):  # the header is not handed out: the addresses come apart
        s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, protocol)
        sel.register(s, selectors.EVENT_READ, lambda s, p=protocol: on_ipv6_segment(s, p))


def on_ipv6_segment(s, protocol):
    segment, source = s.recvfrom(65536)
    _, to_port, first = ports(protocol, segment)
    if first and source[0] != "::1":
        log(KINDS[protocol] if protocol == 58 else KINDS[protocol] + "6", "[here]" + to_port, f"[{source[0]}]")


# Services.
def listener(kind, port):
    s = socket.socket(socket.AF_INET6, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    s.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
    s.bind(("::", port))
    s.setblocking(False)
    if kind == socket.SOCK_STREAM:
        s.listen(256)
    return s


def on_connection(s):
    global clients
    c, peer = s.accept()
    if clients >= MAX_CLIENTS:
        c.close()
        return
    clients += 1
    c.setblocking(False)
    me = c.getsockname()
    if me[1] == BANNER_PORT:
        c.send(b"SSH-2.0-lab\r\n")
    sel.register(c, selectors.EVENT_READ, lambda c: on_request(c, me, peer))


def on_request(c, me, peer):
    global clients
    try:
        data = c.recv(65536)
        if data and me[1] == DNS_PORT and len(data) > 14:
            reply = dns_reply(data[2:], f"{plain(me[0])}:53", plain(peer[0]))
            c.send(struct.pack(">H", len(reply)) + reply)
        elif data and me[1] in HTTP_PORTS:
            body = f"{name} {plain(me[0])}:{me[1]} from {plain(peer[0])}\n".encode()
            c.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    finally:
        sel.unregister(c)
        c.close()
        clients -= 1


def on_datagram(s):
    data, ancillary, _, peer = s.recvmsg(4096, 512)
    info = [d for level, kind, d in ancillary if level == socket.IPPROTO_IPV6 and kind == socket.IPV6_PKTINFO]
    me = plain(socket.inet_ntop(socket.AF_INET6, info[0][:16])) if info else "?"
    if s.getsockname()[1] == DNS_PORT:
        if len(data) < 12 or data[2] & 0x80:
            return
        reply = dns_reply(data, f"{me}:53", plain(peer[0]))
    else:
        reply = b"echo of " + name.encode() + b"\n"
    s.sendmsg([reply], [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, info[0])] if info else [], 0, peer)


def answers(question, kind):
    if kind == 28:
        return [METADATA6] if question.startswith("v6.") else []
    if kind != 1:
        return []
    asked[question] = asked.get(question, 0) + 1
    literal = re.match(r"ip-(\d+)-(\d+)-(\d+)-(\d+)\.", question)
    if literal:
        return [".".join(literal.groups())]
    if question.startswith("mixed."):
        return [PUBLIC, "10.20.0.5"]
    if question.startswith("rebind.") and asked[question] > 1:
        return [METADATA]
    return [PUBLIC]


def dns_reply(query, me, peer):
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin1"))
        at += query[at] + 1
    question = ".".join(labels).lower()
    kind = struct.unpack(">H", query[at + 1 : at + 3])[0]
    log("dns", me, peer, f"{question} type {kind}")
    missing = question.startswith("nx.")
    records = b""
    found = [] if missing else answers(question, kind)
    for address in found:
        data = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
        records += b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, 0, len(data)) + data
    flags = b"\x81\x83" if missing else b"\x81\x80"
    return query[:2] + flags + struct.pack(">HHHH", 1, len(found), 0, 0) + query[12 : at + 5] + records


watch()
for port in HTTP_PORTS + (BANNER_PORT, DNS_PORT):
    sel.register(listener(socket.SOCK_STREAM, port), selectors.EVENT_READ, on_connection)
for port in (ECHO_PORT, DNS_PORT):
    sel.register(listener(socket.SOCK_DGRAM, port), selectors.EVENT_READ, on_datagram)
open(ready_path, "w").close()
while True:
    for key, _ in sel.select():
        try:
            key.data(key.fileobj)
        except (OSError, ValueError, IndexError, struct.error) as e:  # hostile bytes end nothing
            log("error", "-", "-", repr(e))
