#!/usr/bin/env bash
# What runs with Internet access reach: every class of address, by every protocol, as agent and as
# root, with and without allowPrivateNetwork; and that it stays so when somebody changes the host's
# firewall, bridges or ports under them.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

PUBLIC=(203.0.113.10 203.0.113.53 198.51.100.7)
PRIVATE=(10.20.0.5 172.31.250.9 192.168.77.10 100.64.3.4 198.18.0.9)
METADATA=(169.254.169.254 100.100.100.200)
IPV6=(2001:db8::10 fd00:ec2::254 2001:db8:2::2 ::ffff:10.20.0.5)
JOBS=(open-agent open-root private-agent private-root)
OTHERS=(keeper)
declare_network() { # job
  case $1 in
    open-* | keeper) printf '  network: {mode: Internet}\n' ;;
    private-*) printf '  network: {mode: Internet, allowPrivateNetwork: true}\n' ;;
  esac
}
begin

status() { umpctl get sandboxengine default -o "jsonpath={.status.egressFirewall.$1}"; }
state_is() { [ "$(status state)" = "$1" ]; }
eventually "the firewall is enforced" 60 state_is Enforced
expect "changes are noticed by events" 0 '^events$' status watch

bridge() { # network: its interface on the host
  echo "br-$(engine_api GET "/networks/$1" | jq -r .Id | cut -c1-12)"
}

# Another container, which listens and publishes a port.
neighbour=$(engine_api POST /containers/create -H 'Content-Type: application/json' -d "$(jq -nc --arg i "$ATTACK_IMAGE" '{Image: $i, Cmd: ["probe", "serve", "/tmp/hits"], ExposedPorts: {"7777/tcp": {}}, HostConfig: {PortBindings: {"7777/tcp": [{HostPort: "8443"}]}}}')" | jq -r .Id)
engine_api POST "/containers/$neighbour/start" >/dev/null
neighbour_state=$(engine_api GET "/containers/$neighbour/json")
neighbour_ip=$(jq -r .NetworkSettings.IPAddress <<<"$neighbour_state")
hits=/proc/$(jq -r .State.Pid <<<"$neighbour_state")/root/tmp/hits
eventually "another container listens" 20 bash -c 'exec 3<>/dev/tcp/192.0.2.2/8443'
: >"$hits"
forget

# A sandbox that stays and is tried; told to, it tries a public, two private and a metadata address
# all the time, and counts its rounds.
start_keeper() {
  keeper=$(launch keeper 'probe serve /workspace/hits & while :; do
    if [ -e /workspace/go ]; then
      for a in 203.0.113.10 10.20.0.5 169.254.169.254 192.0.2.2; do nc -w 1 $a 80 </dev/null >/dev/null 2>&1 & ping -c 1 -W 1 $a >/dev/null 2>&1 & done
      echo >>/workspace/rounds
    fi
    sleep 0.2
  done')
  eventually "a sandbox that stays runs" 120 running "$keeper"
  keeper_root=$(root_of "$keeper")
  eventually "it listens, and keeps what reaches it" 30 test -e "$keeper_root/workspace/hits"
}
keeper_tries() {
  touch "$keeper_root/workspace/go"
  eventually "the sandbox that stays reaches the internet" 30 arrived 'router tcp 203\.0\.113\.10:80 '
}
keeper_tried() { # NAME: that it went on for a while, since now
  local rounds; rounds=$(wc -l <"$keeper_root/workspace/rounds")
  eventually "$1: it was tried again" 30 bash -c "[ \$(wc -l <'$keeper_root/workspace/rounds') -ge $((rounds + 4)) ]"
}
start_keeper
keeper_state=$(engine_api GET "/containers/$(sandbox_of "$keeper")/json")
keeper_ip=$(jq -r '.NetworkSettings.Networks["ump-egress"].IPAddress' <<<"$keeper_state")
gateway=$(jq -r '.NetworkSettings.Networks["ump-egress"].Gateway' <<<"$keeper_state")

arrived() { # REGEX: whether such a line is in the logs
  arrivals >"$WORK/arrived"; grep -qE -- "$1" "$WORK/arrived"
}
script="
probe reach ${PUBLIC[*]} ${PRIVATE[*]} ${METADATA[*]} 192.0.2.2 $gateway ${IPV6[*]} $neighbour_ip $keeper_ip
probe frames
ip -6 addr; ip route
echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; ip route replace 10.20.0.0/16 via $gateway 2>&1
for name in public.lab.test ip-10-20-0-5.lab.test ip-169-254-169-254.lab.test mixed.lab.test rebind.lab.test rebind.lab.test v6.lab.test printer.local; do
  echo \"name \$name: \$(nslookup \$name 2>/dev/null | sed -n '/^Name/,\$s/^Address.*: *//p' | sort -u | tr '\\n' ' ')\"
done
nc -w 2 192.0.2.2 8443 </dev/null && echo published answered
b=\$(awk '/umpteenth/ { print \$1; exit }' /etc/hosts); nc -w 3 \$b 8081 -e true && echo the broker is there
echo the script ended
"
declare -A log runs
for job in "${JOBS[@]}"; do
  forget
  runs[$job]=$(launch "$job" "$script")
  await "${runs[$job]}"
  says "$job: the attack ran to its end" "${runs[$job]}" 'the script ended'
  says "$job: no raw socket" "${runs[$job]}" '!raw socket .* given|packet socket; sent'
  says "$job: no IPv6 address" "${runs[$job]}" '!inet6 [^:]*:[^:]*:.* scope (global|link)'
  says "$job: the broker stays reachable" "${runs[$job]}" 'the broker is there'
  arrivals >"$WORK/$job.log"
  case $job in   # (with allowPrivateNetwork it may go by the host, to the published port)
    open-*) [ ! -s "$hits" ] && ok "$job: nothing reached another container" || bad "$job: nothing reached another container" "$(sort "$hits" | uniq -c)" ;;
  esac
done
missing() { # LOG ADDRESS…: fails with what did not arrive
  local file=$1 a kind rc=0; shift
  for a in "$@"; do for kind in "tcp $a:80" "udp $a:7778" "icmp $a"; do grep -qF "$kind " "$file" || { echo "$kind"; rc=1; }; done; done
  return $rc
}
found() { # LOG ADDRESS…: prints what arrived there
  local file=$1 a; shift
  for a in "$@"; do grep -F " $a" "$file" | grep -E " (tcp|udp|icmp|dns|ip[0-9]+) ${a//./\\.}[: ]"; done
  return 0
}
for job in "${JOBS[@]}"; do
  file=$WORK/$job.log
  expect "$job: the internet is reached by TCP, UDP and ICMP" 0 '' missing "$file" "${PUBLIC[@]}"
  expect "$job: metadata is not" 0 '!.' found "$file" "${METADATA[@]}"
  expect "$job: nothing by IPv6" 1 '' grep -qE '\[|icmp6|frame86dd' "$file"
  case $job in
    open-*)
      expect "$job: private addresses and the host are not" 0 '!.' found "$file" "${PRIVATE[@]}" 192.0.2.2 "$gateway"
      says "$job: nor a published port" "${runs[$job]}" '!published answered' ;;
    private-*)
      expect "$job: private addresses and the host are" 0 '' missing "$file" "${PRIVATE[@]}" 192.0.2.2
      says "$job: and a published port" "${runs[$job]}" 'OPEN tcp 192.0.2.2 8443' ;;
  esac
  says "$job: public names resolve" "${runs[$job]}" '^name public.lab.test: 203\.0\.113\.10 *$'
  says "$job: names of metadata do not, nor those that turn into one" "${runs[$job]}" '!^name .*(169\.254|fd00)'
  says "$job: nor local ones" "${runs[$job]}" '^name printer.local: *$'
  case $job in
    open-*) says "$job: nor those of private addresses" "${runs[$job]}" '!^name .*10\.20' ;;
    private-*) says "$job: those of private addresses do" "${runs[$job]}" '^name ip-10-20-0-5.lab.test: 10\.20\.0\.5 *$' ;;
  esac
  says "$job: other containers are not reached" "${runs[$job]}" "!OPEN .* (${neighbour_ip//./\\.}|${keeper_ip//./\\.}) "
done
[ ! -s "$keeper_root/workspace/hits" ] && ok "nothing reached another sandbox" || bad "nothing reached another sandbox" "$(sort "$keeper_root/workspace/hits" | uniq -c)"

# Drift: each change is undone, and the sandbox reaches no more than before.
keeper_tries
own=$(iptables-save | grep -oE -- '-i br-[0-9a-f]+ -j UMPTEENTH-[0-9a-f]{8}$' | grep -oE 'UMPTEENTH-.*' | head -1)
strict=$(bridge ump-egress)
keeper_port() { # (a probe sandbox may be on the bridge too)
  local index
  for index in $(nsenter -t "$(engine_api GET "/containers/$(sandbox_of "$keeper")/json" | jq -r .State.Pid)" -n ip -o link | sed -n 's/.*eth[0-9]*@if\([0-9]*\):.*/\1/p'); do
    ip -o link show master "$strict" | sed -n "s/^$index: \([^@:]*\).*/\1/p"
  done
}
repaired_beyond() { [ "$(status repairs)" -gt "$1" ] && state_is Enforced; }
drift() { # NAME COMMAND…
  local name=$1 before; shift
  before=$(status repairs)
  "$@" >"$WORK/drift" 2>&1 || bad "$name can be done" "$(cat "$WORK/drift")"
  eventually "$name: repaired" 15 repaired_beyond "$before" || { status reason; return; }
  forget
  keeper_tried "$name"
  expect "$name: the internet is reached" 0 '' arrived 'router tcp 203\.0\.113\.10:80 '
  arrivals >"$WORK/after"
  expect "$name: nothing else is" 0 '!.' found "$WORK/after" "${PRIVATE[@]}" "${METADATA[@]}" 192.0.2.2
}
drift "a jump is removed" iptables -D DOCKER-USER -i "$strict" -j UMPTEENTH-PRIVATE
drift "a rule is removed" iptables -D UMPTEENTH-PRIVATE -d 10.0.0.0/8 -p tcp -j REJECT --reject-with tcp-reset
drift "a chain is flushed" iptables -F UMPTEENTH-HOST
drift "the second line's jump is removed" iptables -t security -D FORWARD -j "$own"
drift "the second line is flushed" iptables -t security -F "$own"
drift "an accept is put first" iptables -I FORWARD 1 -i "$strict" -j ACCEPT
iptables -D FORWARD -i "$strict" -j ACCEPT
drift "a port is no longer isolated" bridge link set dev "$(keeper_port)" isolated off
drift "IPv6 is turned on on the bridge" sh -c "echo 0 >/proc/sys/net/ipv6/conf/$strict/disable_ipv6"
drift "the bridge is deleted" ip link del "$strict"
strict=$(bridge ump-egress)
expect "its sandbox is told" 0 'connected to ump-egress again' umpctl timeline "run/$keeper"
before=$(status repairs)
iptables -F
eventually "iptables -F: repaired" 15 repaired_beyond "$before"
forget
keeper_tried "iptables -F"
arrivals >"$WORK/after"
expect "iptables -F: nothing private is reached" 0 '!.' found "$WORK/after" "${PRIVATE[@]}" "${METADATA[@]}" 192.0.2.2

forget
"$ATTACKS/../support/engine.sh" stop "$ATTACK_LAB"   # only the engine's restart brings its own rules back
"$ATTACKS/../support/engine.sh" up "$ATTACK_LAB" >/dev/null
eventually "after the engine's restart: enforced" 60 state_is Enforced
expect "the run whose commands broke with the engine has ended" 0 '' await "$keeper" 60
start_keeper
keeper_tries
keeper_tried "after the engine's restart"
arrivals >"$WORK/after"
expect "after the engine's restart: nothing private is reached" 0 '!.' found "$WORK/after" "${PRIVATE[@]}" "${METADATA[@]}" 192.0.2.2

# required: without the rules no run starts, and none keeps its access.
umpctl patch sandboxengine default -p '{"spec":{"egressFilter":"required"}}' >"$WORK/out" || bad "required is set" "$(cat "$WORK/out")"
echo 0 >/proc/sys/net/bridge/bridge-nf-call-iptables
run=$(launch open-agent 'probe reach 203.0.113.10; echo it ran')
await "$run" 60
expect "required: no run without the rules" 0 'Failed the egress firewall is required but not installed: net.bridge' umpctl get "run/$run" -o 'jsonpath={.status.phase} {.status.message}'
expect "required: the sandbox that runs is cut off" 0 'cut off from ump-egress' umpctl timeline "run/$keeper"
forget
keeper_tried "required"
arrivals >"$WORK/after"
expect "required: it reaches nothing" 0 '!.' found "$WORK/after" "${PUBLIC[@]}" "${PRIVATE[@]}" "${METADATA[@]}" 192.0.2.2
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
eventually "required: once repaired, enforced" 30 state_is Enforced
eventually "required: and the internet is there again" 30 arrived 'router tcp 203\.0\.113\.10:80 '

in_phase "$keeper" Running && ok "the sandbox that stays was there all the time" || bad "the sandbox that stays was there all the time"
umpctl cancel "run/$keeper" >/dev/null
engine_api DELETE "/containers/$neighbour?force=1" >/dev/null
umpd_lives "after all"
