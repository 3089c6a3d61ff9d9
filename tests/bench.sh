#!/usr/bin/env bash
# Figures, each as a ratio against a named alternative in the same run. Never a gate: exit 0 unless
# something could not be measured at all. --smoke runs each once, to show that it works.
#
# A row: the medians of 20 interleaved pairs after a warm-up, the median of the pairwise ratios, and
# its 95 % interval (the 6th and 15th of 20 sorted ratios).
. "$(dirname "$0")/e2e/lib.sh"
trap 'finish >/dev/null; exit $rc' EXIT
rc=0
pairs=20 warm=3
[ "${1:-}" != --smoke ] || { pairs=1 warm=1; }

milliseconds() { # COMMAND…: wall time of one run
  local begin=${EPOCHREALTIME/[^0-9]/}
  "$@" >/dev/null 2>&1 || { echo "bench: failed: $*" >&2; rc=1; return 1; }
  echo $(((${EPOCHREALTIME/[^0-9]/} - begin) / 10))
}

row() { # NAME ALTERNATIVE -- A… -- B…
  local name=$1 other=$2; shift 3
  local a=() i
  while [ "$1" != -- ]; do a+=("$1"); shift; done
  shift
  for i in $(seq $warm); do milliseconds "${a[@]}" >/dev/null && milliseconds "$@" >/dev/null || return; done
  for i in $(seq $pairs); do echo "$(milliseconds "${a[@]}") $(milliseconds "$@")"; done |
    awk -v name="$name" -v other="$other" '
      { a[NR] = $1 / 100; b[NR] = $2 / 100; r[NR] = $2 > 0 ? $1 / $2 : 0 }
      function sorted(x, n,   i, j, t) { for (i = 2; i <= n; i++) for (j = i; j > 1 && x[j-1] > x[j]; j--) { t = x[j]; x[j] = x[j-1]; x[j-1] = t } }
      function median(x, n) { return n % 2 ? x[(n+1)/2] : (x[n/2] + x[n/2+1]) / 2 }
      END { n = NR; sorted(a, n); sorted(b, n); sorted(r, n)
        printf "%-34s %8.2f ms   %-22s %8.2f ms   ratio %.2f  [%.2f, %.2f]  n=%d\n", name, median(a, n), other, median(b, n), median(r, n), r[n >= 20 ? 6 : 1], r[n >= 20 ? 15 : n], n }'
}

start_umpd "$WORK/data" || { rc=1; exit 1; }
umpctl apply -f examples/jobs/ >/dev/null
echo "$(uname -srm), $(nproc) processors, $(awk '/MemTotal/{printf "%.0f GiB", $2/1048576}' /proc/meminfo)"
if command -v kubectl >/dev/null; then
  export HOME=$WORK
  row "umpctl get jobs" "kubectl get jobs" -- umpctl get jobs -- kubectl get jobs.umpteenth.dev
  row "umpctl apply, unchanged" "kubectl apply" -- umpctl apply -f examples/jobs/ -- kubectl apply -f examples/jobs/
else
  echo "SKIPPED: umpctl against kubectl: kubectl is not installed"
fi
