#!/usr/bin/env bash
# Starting and stopping umpd: options, the data folder, signals, restarts, other users.
. "$(dirname "$0")/lib.sh"

D=$WORK/data
umpd() { "$BIN/umpd" "$@"; }

printf 'server:\n  prot: 1\n' >"$WORK/bad.yml"
expect "an unknown option names its line" 1 'bad.yml: line 2: unknown option server.prot' umpd serve --config "$WORK/bad.yml" --data-dir "$WORK/none"
expect "a bad value names option and rule" 1 'SERVER_PORT.*whole number' env SERVER_PORT=x "$BIN/umpd" serve --data-dir "$WORK/none"
[ ! -e "$WORK/none" ] && ok "a refused start makes nothing" || bad "a refused start makes nothing"
mkdir -m 0755 "$WORK/open"
expect "a data folder that others can read is refused" 1 'must be 0700' umpd serve --data-dir "$WORK/open" --port 0
expect "an unknown flag" 2 'unknown' umpd serve --nope
expect "an unknown command" 2 'unknown' umpd sevre
expect "version" 0 '^umpd [0-9]' umpd version

start_umpd "$D" --broker-port 18571 || { bad "umpd starts"; exit 1; }
ok "umpd starts"
(exec 3<>/dev/tcp/127.0.0.1/18571) 2>/dev/null && bad "no port of the host is open to sandboxes" || ok "no port of the host is open to sandboxes"
[ "$(stat -c %a "$D")" = 700 ] && ok "the data folder is 0700" || bad "the data folder is 0700"
[ "$(stat -c %a "$D/kubeconfig")" = 600 ] && ok "the kubeconfig is 0600" || bad "the kubeconfig is 0600"
[ "$(stat -c %a "$D/encryption.key")" = 600 ] && ok "the generated key is 0600" || bad "the generated key is 0600"
grep -qi 'back.*up' "$D.log" && ok "a generated key comes with a warning" || bad "a generated key comes with a warning"
expect "a second umpd on the same data is refused" 1 'another umpd uses' umpd serve --data-dir "$D" --port 0
port=$(sed -n 's/^ *server: .*:\([0-9]*\)"\{0,1\}$/\1/p' "$D/kubeconfig" | head -1)
expect "a port that is taken is named with its option" 1 "umpd: server.port $port: listen on 127.0.0.1:$port: Address already in use; .*another port" umpd serve --data-dir "$WORK/taken" --port "$port" --engine "unix://$ENGINE"
token=$(umpctl get --raw /version >/dev/null && sed -n 's/^ *token: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$D/kubeconfig" | head -1)
[ -n "$token" ] && ! grep -q "$token" "$D.log" && ok "the admin token is not in the log" || bad "the admin token is not in the log"
server=$(sed -n 's/^ *server: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$D/kubeconfig" | head -1)
expect "readyz answers without credentials" 0 '^ok' curl -sk "$server/readyz"
expect "no token is 401" 0 '^401$' curl -sk -o /dev/null -w '%{http_code}' "$server/apis/umpteenth.dev/v1alpha1/jobs"
openssl s_client -connect "${server#https://}" -servername localhost </dev/null 2>/dev/null | openssl x509 -noout -ext subjectAltName 2>/dev/null >"$WORK/san"
grep -q 'DNS:localhost' "$WORK/san" && grep -q 'IP Address:127.0.0.1' "$WORK/san" && grep -qi '0:0:0:0:0:0:0:1' "$WORK/san" && ok "the certificate names localhost, 127.0.0.1, ::1" || bad "the certificate names localhost, 127.0.0.1, ::1" "$(cat "$WORK/san")"

expect "doctor sees an unmet item and fails" 1 '^unmet +network.allow_private_targets' umpctl doctor
item() { umpctl doctor -o json | jq -r ".items[] | select(.id == \"$1\") | .state"; }
[ "$(item https) $(item ports) $(item keys)" = "met met not known" ] && ok "doctor reads umpd's own options and files" || bad "doctor reads umpd's own options and files" "$(umpctl doctor)"
chmod 644 "$D/encryption.key"
[ "$(item keys)" = unmet ] && ok "doctor sees a key that others can read" || bad "doctor sees a key that others can read" "$(umpctl doctor)"
chmod 600 "$D/encryption.key"
expect "doctor has no other form" 2 'must be json or yaml' umpctl doctor -o wide

sockets=$(find "/proc/$umpd_pid/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n')
ports=$(awk '$4 == "0A" {print $10, $2}' /proc/net/tcp /proc/net/tcp6 | grep -wFf <(echo "$sockets") | wc -l)
[ "$ports" = 1 ] && ok "one TCP port is open, the API's" || bad "one TCP port is open, the API's" "$ports are"

umpctl apply -f examples/jobs/ >/dev/null
long=$(umpctl get jobs -o name | grep -iE 'long|sleep|slow' | head -1 | sed 's|.*/||')
umpctl run "$long" >/dev/null
run=$(newest_run "$long")
eventually "a long run is running" 30 in_phase "$run" Running
revision=$(umpctl get jobs -o json | jq -r '[.items[].metadata.resourceVersion | tonumber] | max')
uid=$(umpctl get job hello -o 'jsonpath={.metadata.uid}')
begin=$SECONDS
stop_umpd 12; rc=$?
[ $rc = 0 ] && [ $((SECONDS - begin)) -le 10 ] && ok "SIGTERM ends umpd within 10 s, exit 0" || bad "SIGTERM ends umpd within 10 s, exit 0" "exit $rc after $((SECONDS - begin)) s"
containers=$(engine_api GET '/containers/json?all=1')
[[ $containers == *"$run"* ]] && bad "its sandbox is removed" || ok "its sandbox is removed"

start_umpd "$D" || { bad "umpd starts again"; exit 1; }
ok "umpd starts again"
in_phase "$run" Failed && ok "the run is failed" || bad "the run is failed" "$(phase "$run")"
expect "as interrupted" 0 'interrupted: ' umpctl get "run/$run" -o 'jsonpath={.status.message}'
[ "$(umpctl get job hello -o 'jsonpath={.metadata.uid}')" = "$uid" ] && ok "uids survive" || bad "uids survive"
umpctl label job hello e2e=1 >/dev/null
now=$(umpctl get job hello -o 'jsonpath={.metadata.resourceVersion}')
[ "$now" -gt "$revision" ] && ok "revisions only grow" || bad "revisions only grow" "$now after $revision"

port=$(umpctl get --raw /version >/dev/null && sed -n 's/^ *server: .*:\([0-9]*\)"\{0,1\}$/\1/p' "$D/kubeconfig" | head -1)
timeout 120 umpctl get jobs -w --show-labels >"$WORK/watch" 2>&1 & watcher=$!
eventually "a watch shows what is there" 10 grep -q '^hello .*e2e=1' "$WORK/watch"
kill -9 $umpd_pid; wait $umpd_pid 2>/dev/null
start_umpd "$D" --port "$port" && ok "umpd starts after kill -9" || { bad "umpd starts after kill -9"; exit 1; }
umpctl label job hello after=restart >/dev/null
eventually "the watch goes on after the restart" 20 grep -q '^hello .*after=restart' "$WORK/watch"
kill $watcher 2>/dev/null; wait $watcher 2>/dev/null
expect "nothing acknowledged is lost" 0 '1' umpctl get job hello -o 'jsonpath={.metadata.labels.e2e}'

expect "admin-token --rotate" 0 '' umpd admin-token --rotate --data-dir "$D"
eventually "the new token works" 5 umpctl get jobs
server=$(sed -n 's/^ *server: *"\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' "$D/kubeconfig" | head -1)
expect "the old token does not" 0 '^401$' curl -sk -H "Authorization: Bearer $token" -o /dev/null -w '%{http_code}' "$server/apis/umpteenth.dev/v1alpha1/jobs"
stop_umpd 12
expect "fsck is clean" 0 '' umpd fsck --data-dir "$D"

# The API at a Unix socket, for a proxy in front of it; the workspace's limit wins over the option.
mkdir -m 0700 "$WORK/unix"
expect "a Unix socket wants TLS off" 1 'server.tls.mode must be' umpd serve --data-dir "$D" --host "unix://$WORK/unix/api.sock"
RUNS_MAX_CONCURRENT=1 SERVER_TLS_MODE=off "$BIN/umpd" serve --data-dir "$D" --host "unix://$WORK/unix/api.sock" --engine "unix://$ENGINE" </dev/null >>"$WORK/unix.log" 2>&1 &
umpd_pid=$!
eventually "the API answers at a Unix socket" 20 curl -sf --unix-socket "$WORK/unix/api.sock" http://umpd/readyz
expect "and nobody else may open it" 0 '^600$' stat -c %a "$WORK/unix/api.sock"
expect "an option that differs from its resource is a warning" 0 'workspaces/default: spec.limits.maxConcurrentRuns is 3 and runs.max_concurrent says 1: the resource wins' cat "$WORK/unix.log"
stop_umpd 12

# As a user who may only reach the engine's socket.
if [ "$(id -u)" = 0 ] && getent passwd nobody >/dev/null; then
  mkdir -m 0700 "$WORK/nobody"; chown nobody "$WORK/nobody"; chmod 711 "$WORK"
  # Another name of the socket, in a folder that everybody may enter: the engine's own may be closed.
  ln "$ENGINE" "$WORK/engine.sock" 2>/dev/null || ln -s "$ENGINE" "$WORK/engine.sock"
  socket_mode=$(stat -c %a "$ENGINE"); chmod 660 "$ENGINE"
  bin=$(mktemp -d /tmp/ump-bin-XXXXXX); cp "$BIN"/ump* "$bin"; chmod -R a+rX "$bin"
  setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$bin/umpd" serve --data-dir "$WORK/nobody" --port 0 --engine "unix://$WORK/engine.sock" </dev/null >"$WORK/nobody.log" 2>&1 &
  umpd_pid=$! umpd_log=$WORK/nobody.log
  export UMPCONFIG=$WORK/nobody/kubeconfig
  if eventually "an unprivileged umpd is ready" 20 umpctl get --raw /readyz; then
    umpctl patch sandboxengine default -p "{\"spec\":{\"image\":\"$IMAGE\"}}" >/dev/null
    umpctl apply -f examples/jobs/ >/dev/null
    umpctl run hello --input '{"n":1}' >/dev/null
    run=$(newest_run hello)
    says_why() { umpctl timeline "run/$run" | grep -q 'waiting for it: .*Permission denied: .*group'; }
    eventually "without permission for the engine's socket a run waits and says why" 20 says_why
    expect "the engine's status says it too" 0 'False.*Permission denied' umpctl get sandboxengine default -o "jsonpath={.status.conditions[?(@.type==\"Ready\")]['status','message']}"
    chmod 666 "$ENGINE"
    eventually "with permission it goes on" 60 in_phase "$run" Succeeded
    expect "it runs a job" 0 'Succeeded' umpctl run hello --input '{"n":1}' --wait
  fi
  stop_umpd 12
  chmod "$socket_mode" "$ENGINE"; rm -rf "$bin"
else
  skip "an unprivileged umpd" "needs root to become another user"
fi
