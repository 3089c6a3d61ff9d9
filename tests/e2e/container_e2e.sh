#!/usr/bin/env bash
# umpd in a container, on the engine that it drives: there it needs no relay, for it is a member of
# its runs' networks itself.
. "$(dirname "$0")/lib.sh"

NAME=umpd-e2e-$$
TAG=umpteenth-e2e-$$:latest
engine() { "$(command -v /usr/bin/docker || echo docker)" -H "unix://$ENGINE" "$@"; }
inside() { engine exec -e UMPCONFIG=/data/kubeconfig "$NAME" "$@"; }
ends_all() {
  local rc instance
  instance=$(inside cat /data/instance 2>/dev/null)
  engine rm -f -v "$NAME" >/dev/null 2>&1
  [ -z "$instance" ] || remove_instance "$instance"
  engine rmi -f "$TAG" >/dev/null 2>&1
  finish; rc=$?
  exit $rc
}
trap ends_all EXIT

# An image of what umpd needs: its programs and their libraries, time zones, and the examples.
root=$WORK/root
mkdir -p "$root/usr/bin" "$root/usr/share"
cp "$BIN"/{umpd,umpctl,ump} "$root/usr/bin"
ldd "$BIN/umpd" "$BIN/umpctl" | awk '/=> \// { print $3 } /^\t\/lib/ { print $1 }' | sort -u | while read -r library; do
  mkdir -p "$root$(dirname "$library")" && cp -L "$library" "$root$library"
done
cp -r /usr/share/zoneinfo "$root/usr/share"
cp -r examples "$root"
printf 'FROM %s\nCOPY root /\nENTRYPOINT ["umpd"]\n' "$IMAGE" >"$WORK/Dockerfile"
tar -C "$WORK" -c Dockerfile root | engine_api POST "/build?t=$TAG" --max-time 300 -H 'Content-Type: application/x-tar' --data-binary @- >"$WORK/build"
grep -q 'Successfully tagged' "$WORK/build" || { bad "an image with umpd" "$(tail -5 "$WORK/build")"; exit 1; }

engine run -d --name "$NAME" -v "$ENGINE:/run/engine.sock" --tmpfs /data:mode=0700 -e SANDBOX_IMAGE="$IMAGE" \
  "$TAG" serve --data-dir /data --engine unix:///run/engine.sock >"$WORK/run" 2>&1 || { bad "umpd starts in a container" "$(cat "$WORK/run")"; exit 1; }
says() { engine logs "$NAME" 2>&1 | tail -15; }
eventually "umpd is ready in a container" 20 inside umpctl get --raw /readyz || { says; exit 1; }
expect "it takes manifests" 0 created inside umpctl apply -f /examples/jobs
expect "a job runs to its outputs" 0 Succeeded inside umpctl run hello --input '{"n":2}' --follow || says
expect "its code reaches the broker" 0 '"rows":' inside umpctl run csv-pipeline --wait -o json || says
instance=$(inside cat /data/instance)
[ -n "$instance" ] && [ -z "$(left_of "$instance" | grep relay)" ] && ok "there is no relay" || bad "there is no relay" "$(left_of "$instance")"
none_left() { [ -z "$(left_of "$instance" | grep -v ump-egress)" ]; }
eventually "nothing of the runs is left" 20 none_left
begin=$SECONDS
engine stop -t 15 "$NAME" >/dev/null
[ "$(engine inspect -f '{{.State.ExitCode}}' "$NAME")" = 0 ] && [ $((SECONDS - begin)) -le 11 ] && ok "SIGTERM ends it" || bad "SIGTERM ends it" "$(says)"
