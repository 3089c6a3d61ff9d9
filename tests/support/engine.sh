#!/bin/bash
# A Docker engine of its own: dockerd in a network namespace and a mount namespace of its own, all
# its data below one folder. Nothing of the machine's firewall, bridges or images changes.
#
#   engine.sh up DIR         starts it where it is not up; prints its socket
#   engine.sh down DIR       ends it: no process, mount, namespace or cgroup is left; DIR/engine goes
#   engine.sh status DIR     exit 0 and the socket where it answers
#   engine.sh run DIR CMD…   runs a command in the engine's network namespace
#   engine.sh image DIR ENDPOINT   imports the image into another engine (unix:///…)
#   engine.sh clean DIR ENDPOINT INSTANCE   removes what that umpd made on an engine
#   engine.sh stop DIR       ends dockerd alone: containers keep running; `up` starts it again
#
# Needs root, dockerd, curl or /usr/bin/docker, and a static busybox for the image
# umpteenth-busybox:latest. Engines of different DIRs know nothing of each other.
set -u

die() { echo "engine.sh: $*" >&2; exit 1; }

usage() { sed -n '5,11s/^#   //p' "$0" >&2; exit 2; }

[ $# -ge 2 ] || usage
verb=$1
[ "$verb" = up ] || [ "$verb" = image ] || [ "$verb" = clean ] || [ -d "$2" ] || exit 0   # nothing was ever up there
mkdir -p "$2" || die "cannot make $2"
base=$(cd "$2" && pwd -P) || die "cannot enter $2"
shift 2

E=$base/engine                  # all that is ours
SOCK=$E/docker.sock
NETNS=$E/netns
CGROUP=umpteenth-$(printf %s "$base" | sha256sum | cut -c1-8)

api() { # METHOD PATH [curl arguments]
  local method=$1 path=$2; shift 2
  curl -sS -f --max-time 60 --unix-socket "$SOCK" -X "$method" "$@" "http://engine$path"
}
# Debian's client speaks the engine's version; one elsewhere on PATH may be too new for it.
client() { if [ -x /usr/bin/docker ]; then /usr/bin/docker -H "unix://$SOCK" "$@"; else docker -H "unix://$SOCK" "$@"; fi; }

answers() {
  [ -S "$SOCK" ] || return 1
  if command -v curl >/dev/null; then api GET /_ping --max-time 5 >/dev/null 2>&1
  else client version >/dev/null 2>&1; fi
}

in_netns() { nsenter --net="$NETNS" "$@"; }

netns_mounted() { awk -v n="$NETNS" '$2 == n { f = 1 } END { exit !f }' /proc/self/mounts; }

# The pids of ours: whoever is in our network namespace (dockerd, containerd, shims) and all their
# descendants (the containers' processes, whatever namespace they are in).
own_pids() {
  netns_mounted || return 0
  local inode pid parent line grew=1
  local -A parent_of=() ours=()
  inode=$(stat -L -c %i "$NETNS") || return 0
  while read -r line pid; do
    pid=${pid#/proc/}; pid=${pid%/ns/net}
    [ "$line" = "$inode" ] && ours[$pid]=1
  done < <(stat -L -c '%i %n' /proc/[0-9]*/ns/net 2>/dev/null)
  for pid in /proc/[0-9]*; do
    pid=${pid#/proc/}
    { read -r line <"/proc/$pid/stat"; } 2>/dev/null || continue
    line=${line##*) }; line=${line#* }; parent_of[$pid]=${line%% *}
  done
  while [ $grew = 1 ]; do
    grew=0
    for pid in "${!parent_of[@]}"; do
      parent=${parent_of[$pid]}
      if [ -z "${ours[$pid]:-}" ] && [ -n "${ours[$parent]:-}" ]; then ours[$pid]=1; grew=1; fi
    done
  done
  [ ${#ours[@]} = 0 ] || printf '%s\n' "${!ours[@]}"
}

write_config() {
  echo "nameserver 192.0.2.53" >"$E/resolv.conf"   # TEST-NET-1: the namespace has no way there
  cat >"$E/daemon.json" <<JSON
{
  "data-root": "$E/data",
  "exec-root": "$E/x",
  "pidfile": "$E/dockerd.pid",
  "hosts": ["unix://$SOCK"],
  "cgroup-parent": "/$CGROUP",
  "exec-opts": ["native.cgroupdriver=cgroupfs"],
  "live-restore": true,
  "default-address-pools": [{"base": "10.202.0.0/16", "size": 28}]
}
JSON
}

make_netns() {
  netns_mounted && return 0
  : >"$NETNS" || die "cannot write below $E"
  unshare --net="$NETNS" true || die "cannot make a network namespace (root is needed)"
  in_netns ip link set lo up || die "cannot bring up lo in the engine's namespace"
  # dockerd sets FORWARD's policy to DROP only where it turns forwarding on itself.
  in_netns sh -c 'echo 0 >/proc/sys/net/ipv4/ip_forward'
}

runs() { stat -L "/proc/$1/ns/net" >/dev/null 2>&1; }   # false for zombies

# One process that does nothing keeps the mount namespace while dockerd is stopped: containers that
# live on have their roots mounted there. In it: another resolv.conf, and folders of our own where
# engines meet, so that a system containerd is not used and no key or socket is left on the machine.
# (nsenter --net, never `ip netns exec`: that mounts another /sys.)
start_holder() {
  local pid
  pid=$(cat "$E/holder.pid" 2>/dev/null) && own_pids | grep -qx "$pid" && return 0
  rm -f "$E/holder.ready"
  # shellcheck disable=SC2016
  E=$E setsid nsenter --net="$NETNS" unshare -m --propagation slave bash -c '
    mount --bind "$E/resolv.conf" /etc/resolv.conf || exit 1
    for d in /run/containerd /run/docker /etc/docker; do
      mkdir -p $d "$E/host$d" && mount --bind "$E/host$d" $d || exit 1
    done
    : >"$E/holder.ready"
    exec sleep infinity' </dev/null >>"$E/dockerd.log" 2>&1 9>&- &
  echo $! >"$E/holder.pid"
  until [ -e "$E/holder.ready" ]; do
    runs $! || die "cannot prepare the engine's mount namespace: $(tail -n 1 "$E/dockerd.log")"
    sleep .02
  done
}

start_dockerd() {
  rm -f "$SOCK" "$E/dockerd.pid" "$E/x/containerd/containerd.pid"
  setsid nsenter --net="$NETNS" --mount="/proc/$(cat "$E/holder.pid")/ns/mnt" \
    dockerd --config-file "$E/daemon.json" </dev/null >>"$E/dockerd.log" 2>&1 9>&- &
  local pid=$! deadline=$((SECONDS + 60))
  until answers; do
    if ! runs $pid || [ $SECONDS -ge $deadline ]; then
      echo "dockerd did not start; the end of $E/dockerd.log:" >&2
      tail -n 8 "$E/dockerd.log" >&2
      return 1
    fi
    sleep .05
  done
}

make_rootfs() {
  local root=$1 applet
  mkdir -p "$root"/{bin,etc,tmp,proc,sys,dev,root,usr/local/bin,usr/bin,run,var/tmp,workspace,home/agent,home/mcp}
  cp "$(command -v busybox)" "$root/bin/busybox"
  for applet in $(busybox --list); do
    [ "$applet" = busybox ] || ln -sf busybox "$root/bin/$applet"
  done
  ln -sf ../../bin/env "$root/usr/bin/env"
  # Commands run by `bash -lc`; busybox's shell understands both options but not the name.
  printf '#!/bin/sh\nexec /bin/sh "$@"\n' >"$root/bin/bash"
  chmod 0755 "$root/bin/bash"
  printf 'root:x:0:0::/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\nmcp:x:1001:1001::/home/mcp:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nagent:x:1000:\nmcp:x:1001:\n' >"$root/etc/group"
  echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
  chown 1000:1000 "$root/workspace" "$root/home/agent"
  chown 1001:1001 "$root/home/mcp"
  chmod 1777 "$root/tmp" "$root/var/tmp"
}

make_image() {
  if command -v curl >/dev/null; then
    api GET /images/umpteenth-busybox:latest/json >/dev/null 2>&1 && return 0
  else
    client image inspect umpteenth-busybox:latest >/dev/null 2>&1 && return 0
  fi
  command -v busybox >/dev/null || die "busybox (package busybox-static) is needed for the test image"
  local root=$E/rootfs
  rm -rf "$root"
  make_rootfs "$root"
  if command -v curl >/dev/null; then
    tar -C "$root" -c . | api POST "/images/create?fromSrc=-&repo=umpteenth-busybox&tag=latest" \
      -H 'Content-Type: application/x-tar' --data-binary @- >/dev/null
  else
    tar -C "$root" -c . | client import - umpteenth-busybox:latest >/dev/null
  fi || die "cannot import the busybox image"
  rm -rf "$root"
}

kill_own() {
  local pids deadline=$((SECONDS + 10))
  while pids=$(own_pids); [ -n "$pids" ]; do
    [ $SECONDS -lt $deadline ] || die "these processes of the engine do not end: $pids"
    # shellcheck disable=SC2086
    kill -9 $pids 2>/dev/null
    sleep .05
  done
}

# dockerd and its containerd; the shims and containers live on, and the next dockerd adopts them.
stop_daemons() {
  end_daemon dockerd; end_daemon containerd   # dockerd first: it ends its containerd itself
}
end_daemon() {
  # With a command attached it may wait for it: live-restore does well without a farewell.
  local pid deadline=$((SECONDS + 5))
  for pid in $(own_pids); do
    [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] || continue
    kill "$pid"   # once: the third TERM makes dockerd leave without saving
    while runs "$pid"; do
      [ $SECONDS -lt $deadline ] || kill -9 "$pid" 2>/dev/null
      [ $SECONDS -lt $((deadline + 5)) ] || die "$1 (pid $pid) does not end"
      sleep .05
    done
  done
}

remove_cgroups() {
  local root
  for root in /sys/fs/cgroup/"$CGROUP" /sys/fs/cgroup/*/"$CGROUP"; do
    [ -d "$root" ] && find "$root" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  return 0
}

up() {
  [ "$(id -u)" = 0 ] || die "root is needed to start an engine"
  command -v dockerd >/dev/null || die "dockerd (package docker.io) is not installed"
  command -v curl >/dev/null || command -v docker >/dev/null || die "curl or docker is needed"
  [ ${#base} -le 60 ] || die "the folder's path is longer than 60 characters: socket names would not fit: $base"
  mkdir -p "$E"; chmod 0711 "$E"
  answers || { stop_daemons; write_config; make_netns; start_holder; start_dockerd || { down; exit 1; }; }
  make_image
  echo "$SOCK"
}

down() {
  kill_own
  if netns_mounted; then umount "$NETNS" || umount -l "$NETNS"; fi
  remove_cgroups
  awk -v d="$E/" 'index($2, d) == 1 { print $2 }' /proc/self/mounts | sort -r | while read -r m; do umount -l "$m"; done
  rm -rf "$E"
}

# Everything with the instance's label, in the order in which it can go.
clean() { # INSTANCE
  local filter id
  answers || die "no engine answers at $SOCK"
  filter=%7B%22label%22%3A%5B%22umpteenth.instance%3D$1%22%5D%7D
  for id in $(api GET "/containers/json?all=1&filters=$filter" | jq -r '.[].Id'); do api DELETE "/containers/$id?force=1&v=1" >/dev/null; done
  for id in $(api GET "/networks?filters=$filter" | jq -r '.[].Id'); do api DELETE "/networks/$id" >/dev/null; done
  for id in $(api GET "/images/json?filters=$filter" | jq -r '.[].Id'); do api DELETE "/images/$id?force=1" >/dev/null; done
}

locked() { exec 9<"$base" && flock 9; }

case $verb in
  up) locked; up ;;
  down) locked; down ;;
  stop) locked; stop_daemons ;;
  status) answers && echo "$SOCK" ;;
  image) [ $# -eq 1 ] || usage; SOCK=${1#unix://}; answers || die "no engine answers at $1"; mkdir -p "$E"; make_image ;;
  clean) [ $# -eq 2 ] || usage; SOCK=${1#unix://}; clean "$2" ;;
  run) netns_mounted || die "no engine is up at $base"; in_netns "$@" ;;
  *) usage ;;
esac
