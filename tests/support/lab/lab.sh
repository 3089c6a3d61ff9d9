#!/bin/bash
# A small internet around an engine of its own: hosts that a sandbox may or may not reach, each
# with addresses that exist only inside this lab, and logs of whatever arrived at them.
#
#   lab.sh up DIR            starts it where it is not up; prints the engine's socket
#   lab.sh down DIR          ends it: no process, namespace, mount or address is left
#   lab.sh host DIR CMD…     runs a command on the engine's host (its network and resolv.conf)
#   lab.sh router DIR CMD…   … on the router, which has every address outside
#   lab.sh attacker DIR CMD… … on a host of the same LAN, with routes to the engine's bridges
#   lab.sh arrivals DIR      prints what arrived since `up` or `forget`, in the order of time
#   lab.sh forget DIR        empties the logs
#
#   engine's host  192.0.2.2    dockerd (engine.sh), services; default route to the router
#   router         192.0.2.1    internet 203.0.113.10, 198.51.100.7; resolver 203.0.113.53;
#                               LAN 10.20.0.5, 172.31.250.9, 192.168.77.10; CGNAT 100.64.3.4;
#                               198.18.0.9; metadata 169.254.169.254, 100.100.100.200;
#                               IPv6 2001:db8::10, fd00:ec2::254, fd12:3456::5
#   attacker       192.0.2.66   and 2001:db8:2::66
#
# Each serves HTTP on TCP 80, 443 and 7777, a banner on 22, an echo on UDP 7778, names on 53
# (services.py says which). LAB_DNS is the resolver in the host's resolv.conf; by default one on its
# loopback, where an engine forwards names even from internal networks (CVE-2024-29018).
# Labs of different DIRs know nothing of each other. Needs root, iproute2, python3, and engine.sh's.
set -u

die() { echo "lab.sh: $*" >&2; exit 1; }
usage() { sed -n '5,11s/^#   //p' "$0" >&2; exit 2; }

[ $# -ge 2 ] || usage
here=$(dirname "$(readlink -f "$0")")
verb=$1
[ "$verb" = up ] || [ -d "$2/lab" ] || { [ "$verb" = down ] && exec "$here/../engine.sh" down "$2"; die "no lab is up at $2"; }
mkdir -p "$2/lab" || die "cannot make $2"
base=$(cd "$2" && pwd -P) || die "cannot enter $2"
shift 2

L=$base/lab
HOST_NET=$base/engine/netns
OUTSIDE4="203.0.113.10 203.0.113.53 198.51.100.7 10.20.0.5 172.31.250.9 192.168.77.10 100.64.3.4 198.18.0.9 169.254.169.254 100.100.100.200"
OUTSIDE6="2001:db8::10 fd00:ec2::254 fd12:3456::5"
BRIDGES="172.16.0.0/12 10.201.0.0/16 10.202.0.0/16"   # the engine's pools and umpd's

inside() { # router|attacker CMD…
  local net=$L/$1.netns
  mounted "$net" || net=/proc/$(cat "$L/$1.pid")/ns/net   # the host's mount namespace does not have it
  shift
  nsenter --net="$net" "$@"
}
on_host() {
  nsenter --net="$HOST_NET" --mount="/proc/$(cat "$base/engine/holder.pid")/ns/mnt" --wd="$PWD" "$@"
}
mounted() { awk -v n="$1" '$2 == n { f = 1 } END { exit !f }' /proc/self/mounts; }

make_namespace() { # name
  mounted "$L/$1.netns" && return 0
  { : >"$L/$1.netns" && unshare --net="$L/$1.netns" true; } || die "cannot make a network namespace (root is needed)"
  inside "$1" ip link set lo up
}

# A number is a process of ours only while it is in the namespace where it was started.
serving() { # name namespace
  local pid
  pid=$(cat "$L/$1.pid" 2>/dev/null) && [ "$(stat -L -c %i "/proc/$pid/ns/net" 2>/dev/null)" = "$(stat -L -c %i "$2" 2>/dev/null)" ]
}
serve() { # name namespace [interface to watch]
  serving "$1" "$2" && return 0
  rm -f "$L/$1.ready"
  setsid nsenter --net="$2" /usr/bin/python3 "$here/services.py" "$1" "$L/$1.log" "$L/$1.ready" ${3:+"$3"} </dev/null >>"$L/$1.out" 2>&1 9>&- &
  echo $! >"$L/$1.pid"
  local deadline=$((SECONDS + 30))
  until [ -e "$L/$1.ready" ]; do
    # (not yet `serving`: nsenter has still to enter)
    { [ $SECONDS -lt $deadline ] && kill -0 "$(cat "$L/$1.pid")" 2>/dev/null; } || die "the services of $1 did not start: $(tail -n 1 "$L/$1.out")"
    sleep .05
  done
}

make_links() {
  local a
  inside router ip link show lan0 >/dev/null 2>&1 && return 0
  inside router ip link add lan0 type bridge
  inside router ip link add to-host type veth peer name up0 netns "$(cat "$base/engine/holder.pid")" || die "cannot link the host"
  inside router ip link add to-attacker type veth peer name up0 netns "$(cat "$L/attacker.holder")" || die "cannot link the attacker"
  for a in to-host to-attacker; do inside router ip link set "$a" master lan0 up; done
  for a in $OUTSIDE4; do inside router ip addr add "$a/32" dev lo; done
  for a in $OUTSIDE6; do inside router ip addr add "$a/128" dev lo nodad; done
  inside router ip addr add 192.0.2.1/24 dev lan0
  inside router ip addr add 2001:db8:2::1/64 dev lan0 nodad
  inside router ip link set lan0 up
  inside attacker ip addr add 192.0.2.66/24 dev up0
  inside attacker ip addr add 2001:db8:2::66/64 dev up0 nodad
  inside attacker ip link set up0 up
  inside attacker ip route add default via 192.0.2.1
  nsenter --net="$HOST_NET" ip addr add 192.0.2.2/24 dev up0
  nsenter --net="$HOST_NET" ip addr add 2001:db8:2::2/64 dev up0 nodad
  nsenter --net="$HOST_NET" ip link set up0 up
  nsenter --net="$HOST_NET" ip route add default via 192.0.2.1
  nsenter --net="$HOST_NET" ip -6 route add default via 2001:db8:2::1
  for a in $BRIDGES; do
    inside router ip route add "$a" via 192.0.2.2
    inside attacker ip route add "$a" via 192.0.2.2
  done
  inside router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
}

up() {
  local socket
  socket=$("$here/../engine.sh" up "$base" 9>&- | tail -n 1)
  [ -S "$socket" ] || die "no engine"
  echo "nameserver ${LAB_DNS:-127.0.0.53}" >"$base/engine/resolv.conf"   # the same inode: it is mounted
  make_namespace router; make_namespace attacker
  if ! inside attacker ip link show up0 >/dev/null 2>&1; then   # a pid names the namespace to `ip`
    nsenter --net="$L/attacker.netns" sleep 60 </dev/null >/dev/null 2>&1 9>&- &
    echo $! >"$L/attacker.holder"
    until [ "$(stat -L -c %i "/proc/$!/ns/net" 2>/dev/null)" = "$(stat -L -c %i "$L/attacker.netns")" ]; do sleep .01; done
    make_links
    kill "$(cat "$L/attacker.holder")"; rm -f "$L/attacker.holder"
  fi
  serve router "$L/router.netns" lan0; serve attacker "$L/attacker.netns"; serve host "$HOST_NET"
  echo "$socket"
}

down() {
  local name
  serving host "$HOST_NET" && kill "$(cat "$L/host.pid")"
  "$here/../engine.sh" down "$base" 9>&-
  for name in router attacker; do
    serving "$name" "$L/$name.netns" && kill "$(cat "$L/$name.pid")"
    if mounted "$L/$name.netns"; then umount "$L/$name.netns" || umount -l "$L/$name.netns"; fi
  done
  rm -rf "$L"
}

# The logs are written in the order of arrival: once a mark stands in each, what came before it does.
knock() { # name HOST port
  # shellcheck disable=SC2016
  inside "$1" bash -c 'exec 3<>"/dev/udp/$1/$2" && echo >&3; timeout 2 bash -c "exec 4<>/dev/tcp/$1/$2"' - "$2" "$3" 2>/dev/null
}
arrivals() {
  local port=$((60000 + RANDOM % 1000)) deadline=$((SECONDS + 30)) name
  knock attacker 192.0.2.1 $port; knock attacker 192.0.2.2 $port; knock router 192.0.2.66 $port
  for name in router attacker host; do
    until grep -q "tcp [0-9.]*:$port " "$L/$name.log" && grep -q "udp [0-9.]*:$port " "$L/$name.log"; do
      [ $SECONDS -lt $deadline ] || { echo "lab.sh: the log of $name does not see a mark" ; break; }
      sleep .05
    done
  done
  cat "$L"/*.log | sort -s -n -k 1,1 | sed -E '/:60[0-9]{3} from 192\.0\.2\.(1|66):/d'
}

locked() { exec 9<"$L" && flock 9; }

case $verb in
  up) locked; up ;;
  down) locked; down ;;
  host) on_host "$@" ;;
  router | attacker) inside "$verb" "$@" ;;
  arrivals) arrivals ;;
  forget) arrivals >/dev/null; for f in "$L"/*.log; do : >"$f"; done ;;
  *) usage ;;
esac
