#!/usr/bin/env bash
# Somebody with the engine's socket takes away what umpd made, at random: sandboxes, the relay,
# networks, and umpd itself. Every run comes to an end, nothing is left over, and the next runs work.
# attachment: network
. "$(dirname "$(readlink -f "$0")")/lib.sh"

begin
instance=$(cat "$D/instance")
filter=$(printf '{"label":["umpteenth.instance=%s"]}' "$instance" | jq -sRr @uri)
containers() { engine_api GET "/containers/json?all=1&filters=$filter" | jq -r '.[] | .Id + " " + .Labels["umpteenth.role"]'; }
networks() { engine_api GET "/networks?filters=$filter" | jq -r '.[].Id'; }
take_one() { # prints what was done
  local id role network
  case $((RANDOM % 5)) in
    0) read -r id role < <(containers | shuf -n 1); engine_api DELETE "/containers/$id?force=1" >/dev/null; echo "removed a container: $role" ;;
    1) read -r id role < <(containers | shuf -n 1); engine_api POST "/containers/$id/kill" >/dev/null; echo "killed a container: $role" ;;
    2) read -r id role < <(containers | grep ' relay$'); [ -n "$id" ] && engine_api DELETE "/containers/$id?force=1" >/dev/null; echo "removed the relay" ;;
    3)
      network=$(networks | shuf -n 1); id=$(containers | shuf -n 1); id=${id% *}
      engine_api POST "/networks/$network/disconnect" -H 'Content-Type: application/json' -d "{\"Container\":\"$id\",\"Force\":true}" >/dev/null; echo "disconnected a container" ;;
    4) kill -9 "$umpd_pid"; wait "$umpd_pid" 2>/dev/null; start_umpd "$D" || bad "umpd starts again"; echo "killed umpd" ;;
  esac
}
declare -A runs
phases=
some_runs() { for job in "${JOBS[@]}"; do ! in_phase "${runs[$job]}" Running || return 0; done; return 1; }
for round in 1 2 3 4; do
  for job in "${JOBS[@]}"; do runs[$job]=$(launch "$job" 'for i in $(seq 20); do ump state set k $i; sleep 0.2; done'); done
  eventually "round $round: a run is at work" 150 some_runs
  for _ in 1 2 3; do take_one >>"$WORK/taken"; done
  for job in "${JOBS[@]}"; do await "${runs[$job]}"; phases+="$(phase "${runs[$job]}") "; done
done
sed 's/^/tried: /' "$WORK/taken"
if tr ' ' '\n' <<<"$phases" | grep -qvE '^(Succeeded|Failed|)$'; then bad "every run ends, as a success or a failure" "$phases"; else ok "every run ends, as a success or a failure"; fi
grep -q Failed <<<"$phases" && ok "some of them failed (the losses were real)" || bad "some of them failed (the losses were real)" "$phases"
# At once: what is missing is made again before the sandbox is.
for job in "${JOBS[@]}"; do runs[$job]=$(launch "$job" 'ump state set k last && ump state get k'); done
for job in "${JOBS[@]}"; do
  await "${runs[$job]}"
  says "$job: the next run has its broker" "${runs[$job]}" '^last$'
done
none_left() { left_of "$instance" | grep -vE 'relay|ump-egress' >"$WORK/left"; cat "$WORK/left"; [ ! -s "$WORK/left" ]; }
eventually "no sandbox and no network is left" 60 none_left
relays() { containers | grep -c ' relay$'; }
[ "$(relays)" = 1 ] && ok "there is one relay" || bad "there is one relay" "$(containers)"
umpd_lives "after all"
