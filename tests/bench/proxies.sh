#!/usr/bin/env bash
# The egress proxy against squid and tinyproxy, each with one origin on loopback; what is not
# installed is skipped aloud. --smoke measures once. The front door runs in a process of its own, so
# that its CPU and memory can be told from the rest of umpd's.
set -uo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." || exit
BIN=${UMPTEENTH_BIN:-$PWD/build/bin}
W=$(mktemp -d /tmp/ump-proxies-XXXXXX)
pids=()
trap 'for pid in "${pids[@]}"; do kill -9 "$pid"; done 2>/dev/null; exec 7>&-; wait 2>/dev/null; rm -rf "$W"' EXIT
trap 'exit 130' INT TERM
# Pairs, requests in each, MiB in each, tunnels, samples of the delay.
figures=(20 2000 256 2000 2000)
[ "${1:-}" != --smoke ] || figures=(1 50 8 50 20)

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
free_port() { local port; while port=$((20000 + RANDOM % 10000)); answers "$port"; do :; done; echo "$port"; }
proxies=()
started() { # NAME PORT PID [TOKENS]
  local deadline=$((SECONDS + 60))
  pids+=("$3")
  until answers "$2"; do
    if ! kill -0 "$3" 2>/dev/null || [ $SECONDS -ge $deadline ]; then
      echo "bench: $1 did not start" >&2; tail -5 "$W/$1.log" >&2; exit 1
    fi
    sleep 0.1
  done
  proxies+=("$1:$2:$3${4:+:$4}")
}

ulimit -n "$(ulimit -Hn)"
mkfifo "$W/input"
port=$(free_port)
"$BIN/front_host" "$port" 10 <"$W/input" >"$W/tokens" 2>"$W/umpteenth.log" &
pid=$!
exec 7>"$W/input"
started umpteenth "$port" "$pid" "$W/tokens"

if command -v squid >/dev/null; then
  port=$(free_port)
  echo "127.0.0.1 localhost" >"$W/hosts"
  mkdir "$W/squid"
  cat >"$W/squid.conf" <<CONF
http_port 127.0.0.1:$port
http_access allow all
hosts_file $W/hosts
cache deny all
access_log none
cache_log /dev/null
pid_filename none
coredump_dir $W/squid
pinger_enable off
netdb_filename none
via off
forwarded_for delete
max_filedescriptors 16384
shutdown_lifetime 0 seconds
CONF
  chmod 755 "$W"; chmod 777 "$W/squid"
  squid -N -f "$W/squid.conf" </dev/null >"$W/squid.log" 2>&1 &
  started squid "$port" $!
else
  echo "SKIPPED: the proxy against squid: squid is not installed"
fi

if command -v tinyproxy >/dev/null; then
  port=$(free_port)
  printf 'Port %s\nListen 127.0.0.1\nMaxClients 4096\nTimeout 600\nAllow 127.0.0.1\nDisableViaHeader Yes\nLogLevel Error\nLogFile "%s"\n' \
    "$port" "$W/tinyproxy.log" >"$W/tinyproxy.conf"
  tinyproxy -d -c "$W/tinyproxy.conf" </dev/null >"$W/tinyproxy.out" 2>&1 &
  started tinyproxy "$port" $!
else
  echo "SKIPPED: the proxy against tinyproxy: tinyproxy is not installed"
fi

"$BIN/proxy_load" "${figures[@]}" "${proxies[@]}"
