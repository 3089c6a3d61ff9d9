#!/usr/bin/env bash
# Standing in for the broker inside a sandbox: taking its address while umpd listens there, and while
# umpd is away. A run whose broker somebody else may have been is not gone on with.
# attachment: namespace
. "$(dirname "$(readlink -f "$0")")/lib.sh"

begin
script='
for address in 127.0.0.1 0.0.0.0; do timeout 3 httpd -f -p $address:8081 2>&1 | sed "s/^/tried: /"; done
ump state set key value && echo the broker answers
echo yes >/workspace/tried
until httpd -p 127.0.0.1:8081 -h /workspace 2>/dev/null; do sleep 0.1; done
echo yes >/workspace/taken; sleep 590
'
declare -A runs roots sandboxes
for job in none-agent none-root listed-root; do runs[$job]=$(launch "$job" "$script"); done
for job in "${!runs[@]}"; do
  eventually "$job: its sandbox runs" 150 running "${runs[$job]}"
  roots[$job]=$(root_of "${runs[$job]}"); sandboxes[$job]=$(sandbox_of "${runs[$job]}")
  eventually "$job: it tried" 60 test -s "${roots[$job]}/workspace/tried"
  [ ! -e "${roots[$job]}/workspace/taken" ] && ok "$job: it got nothing while umpd listens" || bad "$job: it got nothing while umpd listens"
done

kill -9 "$umpd_pid"; wait "$umpd_pid" 2>/dev/null
for job in "${!runs[@]}"; do
  eventually "$job: without umpd it takes the address (the attack is real)" 60 test -s "${roots[$job]}/workspace/taken"
done
start_umpd "$D" || { bad "umpd starts again"; exit 1; }
removed() { [ "$(engine_api GET "/containers/$1/json" -o /dev/null -w '%{http_code}')" = 404 ]; }
for job in "${!runs[@]}"; do
  await "${runs[$job]}" 60
  expect "$job: its run is not gone on with" 0 '^Failed Interrupted interrupted: ' umpctl get "run/${runs[$job]}" -o 'jsonpath={.status.phase} {.status.reason} {.status.message}'
  eventually "$job: its sandbox is removed" 60 removed "${sandboxes[$job]}"
done

run=$(launch none-agent 'ump state get key; echo the script ended'); await "$run"
says "the next run has its broker" "$run" '^value$'
umpd_lives "after all"
