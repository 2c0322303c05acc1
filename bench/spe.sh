#!/usr/bin/env bash
# Compares answers from samples with perf in CPU time: one table, all rows from one run.
set -euo pipefail

case "${1-}" in
    -h | --help)
        cat <<'HELP'
bench/spe.sh [ROUNDS]: samples a program with the virtual Statistical Profiling unit, and has Waymark and perf read the file.

CPU time in user mode, all CPU time, and wall time, the least of five each; records a second and perf's time over
Waymark's. The kernel splits a few milliseconds badly between the modes: their sum is exact. Three streams: all operations
of a program, its loads and stores, and a program whose loads miss every cache. Needs build/bin/waymark (scripts/build),
qemu-user, the AArch64 cross compiler and perf (linux-perf). Ten rounds give about 50 MB. On a busy machine, as root:
chrt -r 50 bench/spe.sh
HELP
        exit 0
        ;;
esac
rounds=${1:-40}
[[ "$rounds" =~ ^[1-9][0-9]*$ ]] || {
    printf 'spe.sh: %s is not a number of rounds; see bench/spe.sh --help\n' "$rounds" >&2
    exit 2
}

cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
aarch64-linux-gnu-gcc -O2 -g -static -o "$folder/program" bench/record_program.c
aarch64-linux-gnu-gcc -O2 -g -static -o "$folder/chase" tests/data/spe/chase.c
waymark=build/bin/waymark

# least <command…>: seconds of user mode, of all CPU time, and of wall time
least() {
    local i
    TIMEFORMAT='%U %S %R'
    for i in 1 2 3 4 5; do
        { time "$@" >"$folder/out" 2>/dev/null; } 2>&1
    done | awk '{ all = $1 + $2 }
        NR == 1 { user = $1; both = all; wall = $3 }
        { if ($1 < user) user = $1; if (all < both) both = all; if ($3 < wall) wall = $3 }
        END { print user, both, wall }'
}
# row <name> <user and CPU seconds of the peer, or nothing> <command…>
row() {
    local name=$1 peer=$2 user both wall
    shift 2
    read -r user both wall < <(least "$@")
    awk -v n="$name" -v u="$user" -v b="$both" -v w="$wall" -v p="$peer" -v r="$records" 'BEGIN {
        split(p, peer, " ")
        printf "  %-44s %8.3f s %8.3f s %8.3f s %8.1f", n, u, b, w, r / b / 1e6
        if (p != "") printf " %8.1f x %6.1f x", peer[1] / (u ? u : 0.001), peer[2] / b
        print ""
    }'
    last="$user $both"
}

# stream <name> <event fields> <program> <argument>: all rows of one recording
stream() {
    "$waymark" record -q --unit spe -c 256 -e "arm_spe/$2ts_enable=1,pa_enable=1,jitter=1/" \
        -o "$folder/perf.data" -- "$folder/$3" "$4" >/dev/null 2>&1
    records=$("$waymark" spe report "$folder/perf.data" --format json 2>/dev/null | sed -n 's/^ *"records": \([0-9]*\),*/\1/p' | head -1)
    printf '%s: %s records, %s MB\n' "$1" "$records" $(($(stat -c %s "$folder/perf.data") / 1000000))
    printf '  %-44s %10s %10s %10s %8s %20s\n' '' 'user' 'user+sys' 'wall' 'M rec/s' 'perf: user, user+sys'
    row 'perf script --itrace=M' '' perf script -i "$folder/perf.data" --itrace=M
    peer=$last
    row 'waymark spe records --format tsv --jobs 1' "$peer" "$waymark" spe records "$folder/perf.data" --format tsv --jobs 1
    row 'waymark spe records --format tsv' "$peer" "$waymark" spe records "$folder/perf.data" --format tsv
    row 'waymark spe records --kind ldst --jobs 1' "$peer" "$waymark" spe records "$folder/perf.data" --format tsv --kind ldst --jobs 1
    row 'perf report --stdio' '' perf report --stdio -i "$folder/perf.data"
    peer=$last
    row 'waymark spe report --jobs 1' "$peer" "$waymark" spe report "$folder/perf.data" --jobs 1
    row 'waymark spe report' "$peer" "$waymark" spe report "$folder/perf.data"
}
stream 'everything' '' program "$rounds"
stream 'loads and stores' load_filter=1,store_filter=1, program "$rounds"
stream 'misses' '' chase $((rounds * 3 / 2))
