#!/usr/bin/env bash
# Floods of the broker and of the egress proxy from inside: connections, headers, bodies, calls,
# outputs, steps, events, state, tunnels. Meanwhile another run is served, and afterwards umpd is as
# small as before.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

JOBS=(none-agent listed-agent)
begin

# In the sandbox: `ask LINE BODY BYTES` prints a request for flood, whose BODY is that large.
# shellcheck disable=SC2016
ASK='
b=$(awk "/umpteenth/ { print \$1; exit }" /etc/hosts)
ask() { # the length is that of the body when flood has filled it in
  numbers=$(printf %s "$2" | sed "s/[^%]//g"); body=$(printf %s "$2" | sed s/BODY//)
  printf "%s HTTP/1.1\nHost: umpteenth\nAuthorization: Bearer TOKEN\nContent-Length: %d\n\n%s" "$1" $((${#body} + 4 * ${#numbers} + ${3:-0})) "$2"
}
at() { echo "$1: $(shift; flood "$@" 2>&1)"; }
'
# At ordinary times: a little of everything, so that each of umpd's threads has worked and its caches
# are full. What it takes then is what it is measured by.
for job in "${JOBS[@]}"; do
  run=$(launch "$job" "$ASK
ump state set k v; ump step one; ump output set o 1; ask 'GET /v1/state/none' '' | at calls repeat \$b 8081 20
ask 'GET /v1/state/none' '' | at crowd many \$b 8081 150 10
ask 'PUT /v1/state/big%N' '{\"value\":\"BODY\"}' 1000000 | at values repeat \$b 8081 4 1000000
ask 'PUT /v1/state/key%N' '{\"value\":\"BODY\"}' 100 | at keys repeat \$b 8081 100 100
ask 'GET /v1/state' '' | at readers many \$b 8081 8 3"); await "$run"
  says "$job: it is served at ordinary times" "$run" '^calls: repeat: 404:20 '
done
victim=$(launch victim "$ASK
ump state set beat 1; ask 'GET /v1/state/beat' '' | sed 's/Content-Length/Connection: close\n&/' | flood beat \$b 8081 /workspace/beat")
eventually "another run calls its broker" 150 running "$victim"
beats=$(root_of "$victim")/workspace/beat
eventually "and is answered" 60 grep -q ' 200$' "$beats"
memory=$(umpd_memory)

broker=$(launch none-agent "$ASK
at hostile mixed \$b 8081 5
at silent many \$b 8081 600 20 </dev/null
printf 'GET /v1/state HTTP/1.1\nHost: umpteenth\nX: ' | at headers many \$b 8081 300 2 4000
printf 'GET /v1/state HTTP/1.1\nHost: umpteenth\nX: ' | at 'long headers' many \$b 8081 300 20 40000
printf 'GET /v1/state HTTP/1.1\nHost: umpteenth\nAuthorization: Bearer nothing\n\n' | at strangers repeat \$b 8081 300
ask 'PUT /v1/state/body' '' 8388608 | at bodies many \$b 8081 60 60 8388000
ask 'PUT /v1/state/body' '' 8388608 | at 'slow bodies' many \$b 8081 200 2 10
ask 'PUT /v1/state/big%N' '{\"value\":\"BODY\"}' 1000000 | at 'large values' repeat \$b 8081 20 1000000
ask 'GET /v1/state' '' | at 'readers that do not read' many \$b 8081 120 20
ask 'PUT /v1/state/key%N' '{\"value\":\"BODY\"}' 100 | at 'keys' repeat \$b 8081 1100 100
ask 'POST /v1/output' '{\"key\":\"key%N\",\"value\":\"BODY\"}' 1000 | at outputs repeat \$b 8081 150 1000
ask 'POST /v1/output' '{\"key\":\"key%N\",\"value\":\"BODY\"}' 600000 | at 'large outputs' repeat \$b 8081 5 600000
ask 'POST /v1/step' '{\"name\":\"step%N\"}' | at steps repeat \$b 8081 1100
ask 'POST /v1/summary' '{\"summary\":\"BODY\"}' 20000 | at summaries repeat \$b 8081 20 20000
ask 'GET /v1/state/none%N' '' | at events repeat \$b 8081 1500
ask 'GET /v1/state/none' '' | at 'still there' repeat \$b 8081 1
echo the script ended")
proxy=$(launch listed-agent "$ASK
login=\"Proxy-Authorization: Basic \$(printf ump:\$UMP_TOKEN | base64 | tr -d '\n')\"
connect() { printf 'CONNECT %s HTTP/1.1\nHost: %s\n%s\n\n' \"\$1\" \"\$1\" \"\$login\"; }
connect listed.lab.test:80 | at tunnels many \$b 8081 310 20
connect listed.lab.test:80 | at 'tunnels half closed' many \$b 8081 200 20 half
connect listed.lab.test:443 | at 'tunnels that push' many \$b 8081 50 4 4000000
printf 'GET http://listed.lab.test/ HTTP/1.1\nHost: listed.lab.test\n%s\n\n' \"\$login\" | at 'requests without reading' many \$b 8081 300 2
printf '\005' | at 'silent socks' many \$b 8081 310 2
printf 'CONNECT listed.lab.test:80 HTTP/1.1\nHost: x\n' | at 'heads without end' many \$b 8081 310 2 3000
connect 'other%N.lab.test:80' | at 'other hosts' repeat \$b 8081 1500
connect listed.lab.test:80 | sed /^Proxy-Auth/d | at 'without a login' many \$b 8081 1 20
connect listed.lab.test:80 | at 'still there' many \$b 8081 1 20
echo the script ended")
peak=0
while ! { ended "$broker" && ended "$proxy"; }; do
  now=$(umpd_memory); [ "${now:-0}" -le $peak ] || peak=$now
  [ $SECONDS -lt 900 ] || { bad "the floods end"; break; }
  sleep 0.2
done
output "$broker" | sed 's/^/tried, broker: /'
output "$proxy" | sed 's/^/tried, proxy: /'
at_most() { # NAME RUN LABEL WHAT MOST: in the line of LABEL the count of WHAT
  local n; n=$(output "$2" | sed -n "s/^$3: .* $4:\([0-9]*\).*/\1/p"); n=${n:-0}
  [ "$n" -le "$5" ] && ok "$1 ($n)" || bad "$1" "$n, not at most $5: $(output "$2" | grep "^$3:")"
}
for run in "$broker" "$proxy"; do
  says "$run: the flood ran to its end" "$run" 'the script ended'
done
says "hostile connections were made" "$broker" '^hostile: mixed: [0-9]{3,} connections'
at_most "silent connections of one sandbox have a limit" "$broker" silent silent 320
says "and the rest are closed" "$broker" '^silent: .*closed:[1-9]'
says "headers without end are closed" "$broker" '^long headers: .*(431|closed):[1-9]'
says "strangers are refused" "$broker" '^strangers: repeat: 401:300 '
says "bodies of one sandbox have a limit together" "$broker" '^bodies: .*503:[1-9]'
at_most "the state has a limit" "$broker" 'large values' 204 16
says "and the rest is refused" "$broker" '^large values: .*422:[1-9]'
says "readers that do not read fill their own queue" "$broker" '^readers that do not read: .*429:[1-9]'
at_most "keys of the state have a limit" "$broker" keys 204 1000
says "and the rest are refused" "$broker" '^keys: .*422:[1-9]'
says "outputs have a limit" "$broker" '^outputs: repeat: 204:100 422:50 '
at_most "and their size has" "$broker" 'large outputs' 204 1
says "steps have a limit" "$broker" '^steps: repeat: 204:1000 422:100 '
says "summaries have a limit" "$broker" '^summaries: repeat: 422:20 '
says "calls are served however many" "$broker" '^events: repeat: 404:1500 '
events=$(umpctl timeline "run/$broker" -o json | jq -r 'select(.type == "broker.call") | .type' | wc -l)
[ "$events" -gt 0 ] && [ "$events" -le 1001 ] && ok "what is kept of them has a limit ($events)" || bad "what is kept of them has a limit" "$events"
says "the broker still answers it" "$broker" '^still there: repeat: 404:1 '
at_most "tunnels of one run have a limit" "$proxy" tunnels 200 256
says "and the rest are refused" "$proxy" '^tunnels: .*429:[1-9]'
at_most "silent SOCKS clients have a limit" "$proxy" 'silent socks' silent 320
says "hosts that are not listed are refused" "$proxy" '^other hosts: repeat: 403:1500 '
says "nobody is served without a login" "$proxy" '^without a login: many: 407:1 '
says "the proxy still serves it" "$proxy" '^still there: many: 200:1 '
events=$(umpctl timeline "run/$proxy" -o json | jq -r 'select(.type == "broker.call") | .type' | wc -l)
[ "$events" -gt 0 ] && [ "$events" -le 1001 ] && ok "what is kept of the hosts has a limit ($events)" || bad "what is kept of the hosts has a limit" "$events"

slowest=$(sort -n "$beats" | tail -1)
echo "another run's calls meanwhile: $(wc -l <"$beats"), the slowest: $slowest"
[ "$(wc -l <"$beats")" -gt 50 ] && ! grep -qv ' 200$' "$beats" && ok "another run was answered each time" || bad "another run was answered each time" "$(sort -k 2 "$beats" | awk '{ print $2 }' | uniq -c)"
[ "${slowest% *}" -lt $((10000 * ${UMPTEENTH_PATIENCE:-3})) ] && ok "and soon" || bad "and soon" "$slowest ms"

echo "umpd: $memory KiB before, $peak KiB at most"
[ $peak -gt 0 ] && [ $peak -lt $((memory + 300000)) ] && ok "umpd's memory is bounded in the flood" || bad "umpd's memory is bounded in the flood" "$peak KiB"
small_again() { local now; now=$(umpd_memory); echo "$now KiB after $memory"; [ "$now" -le $((memory * 12 / 10)) ]; }
eventually "afterwards it is within 20 % of before" 20 small_again
umpctl cancel "run/$victim" >/dev/null
await "$victim" 60
umpd_lives "after all"
echo "umpd: $(umpd_memory) KiB at the end"
