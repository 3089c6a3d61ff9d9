#!/usr/bin/env bash
# The kubectl suite against a umpd of its own.
. "$(dirname "$0")/../e2e/lib.sh"
if ! command -v kubectl >/dev/null; then
  skip "kubectl conformance" "kubectl is not installed"
  exit 0
fi
start_umpd "$WORK/data" || { bad "umpd starts"; exit 1; }
# Its own closing line is the last one; finish only cleans up.
trap 'rc=$?; finish >/dev/null; [ -z "${line:-}" ] || echo "$line"; exit $rc' EXIT
tests/conformance/kubectl_basic.sh "$WORK/data/kubeconfig" >"$WORK/out" 2>&1
rc=$?
cat "$WORK/out"
line=$(tail -1 "$WORK/out")
exit $rc
