#!/usr/bin/env bash
# Answers from samples against perf, in CPU time: one table, all rows from one run.
set -euo pipefail

case "${1-}" in
    -h | --help)
        cat <<'HELP'
bench/spe.sh [ROUNDS]: samples a program with the virtual Statistical Profiling unit, and has Waymark and perf read the file.

CPU time of user mode, the least of three; wall time of all cores beside it. Needs build/bin/waymark (scripts/build),
qemu-user, the AArch64 cross compiler and perf (linux-perf). Ten rounds give about 30 MB. On a busy machine, as root:
chrt -r 50 bench/spe.sh
HELP
        exit 0
        ;;
esac
rounds=${1:-40}
[[ "$rounds" =~ ^[1-9][0-9]*$ ]] || {
    printf 'spe.sh: %s is no number of rounds; see bench/spe.sh --help\n' "$rounds" >&2
    exit 2
}

cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
aarch64-linux-gnu-gcc -O2 -g -static -o "$folder/program" bench/record_program.c
waymark=build/bin/waymark

# least <what> <command…>: CPU milliseconds, wall milliseconds
least() {
    local best_cpu='' best_wall='' i took
    TIMEFORMAT='%U %R'
    for i in 1 2 3; do
        took=$({ time "$@" >"$folder/out" 2>/dev/null; } 2>&1)
        read -r cpu wall <<<"$took"
        best_cpu=$(awk -v a="$cpu" -v b="${best_cpu:-999999}" 'BEGIN { print (a < b) ? a : b }')
        best_wall=$(awk -v a="$wall" -v b="${best_wall:-999999}" 'BEGIN { print (a < b) ? a : b }')
    done
    echo "$best_cpu $best_wall"
}
# row <name> <peer seconds, or nothing> <command…>
row() {
    local name=$1 peer=$2 cpu wall
    shift 2
    read -r cpu wall < <(least "$@")
    awk -v n="$name" -v c="$cpu" -v w="$wall" -v p="$peer" -v r="$records" \
        'BEGIN { printf "  %-44s %8.2f s %8.2f s %8.1f", n, c, w, r / c / 1e6; if (p != "") printf " %8.1f x", p / c; print "" }'
    last=$cpu
}

for what in 'everything:' 'loads and stores:load_filter=1,store_filter=1,'; do
    "$waymark" record -q --unit spe -c 256 -e "arm_spe/${what#*:}ts_enable=1,pa_enable=1,jitter=1/" \
        -o "$folder/perf.data" -- "$folder/program" "$rounds" >/dev/null 2>&1
    records=$("$waymark" spe report "$folder/perf.data" --format json 2>/dev/null | sed -n 's/^ *"records": \([0-9]*\),*/\1/p' | head -1)
    printf '%s: %s records, %s MB\n' "${what%%:*}" "$records" $(($(stat -c %s "$folder/perf.data") / 1000000))
    printf '  %-44s %10s %10s %8s %10s\n' '' 'CPU' 'wall' 'M rec/s' 'CPU of perf'
    row 'perf script --itrace=M' '' perf script -i "$folder/perf.data" --itrace=M
    peer=$last
    row 'waymark spe records --format tsv --jobs 1' "$peer" "$waymark" spe records "$folder/perf.data" --format tsv --jobs 1
    row 'waymark spe records --format tsv' "$peer" "$waymark" spe records "$folder/perf.data" --format tsv
    row 'waymark spe records --kind ldst --jobs 1' "$peer" "$waymark" spe records "$folder/perf.data" --format tsv --kind ldst --jobs 1
    row 'perf report --stdio' '' perf report --stdio -i "$folder/perf.data"
    peer=$last
    row 'waymark spe report --jobs 1' "$peer" "$waymark" spe report "$folder/perf.data" --jobs 1
    row 'waymark spe report' "$peer" "$waymark" spe report "$folder/perf.data"
done
