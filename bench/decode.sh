#!/usr/bin/env bash
# One table of how fast the decoders of Program Flow Trace are, all in one run: millions of ranges per second of CPU time
# (of wall time where two threads work), and in brackets times OpenCSD.
set -euo pipefail

case ${1:-} in
    --help | -h)
        cat <<'HELP'
usage: bench/decode.sh [--instructions] [repetitions]

Needs the bench preset built (build/bench/bin/pft_rates) and python3; the best of so many repetitions counts, 3 if not
given. On a busy machine, as root: chrt -r 50 bench/decode.sh
    --instructions  machine instructions per range on stream b instead, by callgrind (valgrind), of 2 million waypoints
                    (OpenCSD: 100 000)
WAYMARK_CORPUS names the folder of the real captures (stream a), WAYMARK_BENCH_WAYPOINTS the length of the others.
HELP
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
program=build/bench/bin/pft_rates
[ -x "$program" ] || {
    printf 'decode.sh: no %s; run: cmake --preset bench && cmake --build --preset bench\n' "$program" >&2
    exit 2
}

if [ "${1:-}" = --instructions ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    for decoder in reference fast counts opencsd; do
        waypoints=2000000
        [ "$decoder" != opencsd ] || waypoints=100000
        WAYMARK_BENCH_WAYPOINTS=$waypoints valgrind --tool=callgrind --callgrind-out-file="$folder/out" \
            --collect-atstart=no --toggle-collect='*decode_all*' "$program" --once "$decoder/b" >"$folder/told" \
            2>"$folder/log"
        awk -v d="$decoder" -v n="$(sed -n 's/.*Collected : //p' "$folder/log")" \
            '{ printf "%-10s %8.1f instructions per range\n", d, n / $1 }' "$folder/told"
    done
    exit 0
fi

"$program" --benchmark_repetitions="${1:-3}" --benchmark_format=json 2>/dev/null | python3 -c '
import json, sys
best = {}
for run in json.load(sys.stdin)["benchmarks"]:
    if run.get("run_type") != "iteration" or "rate" not in run: continue
    decoder, stream = run["name"].split("/")[:2]
    best[decoder, stream] = max(best.get((decoder, stream), 0), run["rate"] / 1e6)
decoders = list(dict.fromkeys(d for d, _ in best))
print("stream " + "".join(f"{d:>14}" for d in decoders))
for stream in sorted({s for _, s in best}):
    row = f"{stream:<7}"
    for d in decoders:
        rate = best.get((d, stream))
        peer = best.get(("opencsd", stream))
        text = "" if rate is None else f"{rate:.1f}"
        if rate and peer and d != "opencsd": text += f" ({rate / peer:.0f})"
        row += f"{text:>14}"
    print(row)
'
