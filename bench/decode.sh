#!/usr/bin/env bash
# Prints a table of decoders of Program Flow Trace and one of those of ETMv4, measured in one run: millions of ranges per
# second of CPU time (of wall time with two threads), and in brackets the ratio to OpenCSD.
set -euo pipefail

case ${1:-} in
    --help | -h)
        cat <<'HELP'
usage: bench/decode.sh [--instructions | --program] [repetitions]

Needs the bench preset built (build/bench/bin/pft_rates, etm4_flow_rates and waymark) and python3; the best of so many repetitions counts,
3 if not given. On a busy machine, as root: chrt -r 50 bench/decode.sh. Fails if a decoder gives anything but what the
streams were made of. Tables: decoders of each protocol, and what two threads gain; and the whole program, `waymark flow --format
summary`, on stream b again and again, beside the library doing the same.
    --program       the last of them only
    --instructions  machine instructions per range on every stream instead, by callgrind (valgrind), of
                    WAYMARK_BENCH_WAYPOINTS waypoints (2 million if not given; reference and OpenCSD: 100 000 of b only)
WAYMARK_CORPUS names the folder of the real captures (stream a), WAYMARK_BENCH_WAYPOINTS the length of the others,
WAYMARK_BENCH_MEGABYTES (300) the size of the capture for the whole program, which is made in TMPDIR.
HELP
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
program=build/bench/bin/pft_rates
etm4=build/bench/bin/etm4_flow_rates
waymark=build/bench/bin/waymark
needs=("$program" "$etm4")
[ "${1:-}" = --instructions ] || needs+=("$waymark")
for needed in "${needs[@]}"; do
    [ -x "$needed" ] || {
        printf 'decode.sh: no %s; run: cmake --preset bench && cmake --build --preset bench\n' "$needed" >&2
        exit 2
    }
done

if [ "${1:-}" = --instructions ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    # instructions PROGRAM DECODER STREAM WAYPOINTS: machine instructions per range.
    instructions() {
        WAYMARK_BENCH_WAYPOINTS=$4 valgrind --tool=callgrind --callgrind-out-file="$folder/out" \
            --collect-atstart=no --toggle-collect='*decode_all*' "$1" --once "$2/$3" >"$folder/collected" 2>"$folder/log"
        awk -v n="$(sed -n 's/.*Collected : //p' "$folder/log")" '{ printf "%.1f", n / $1 }' "$folder/collected"
    }
    for measured in "$program bcdef" "$etm4 bcdefns"; do
        read -r binary streams <<<"$measured"
        printf '%s\nstream %10s %10s %10s %10s\n' "${binary##*/}" reference fast counts opencsd
        for ((i = 0; i < ${#streams}; ++i)); do
            stream=${streams:i:1}
            row=()
            for decoder in reference fast counts opencsd; do
                waypoints=${WAYMARK_BENCH_WAYPOINTS:-2000000}
                case $decoder in reference | opencsd) waypoints=100000 ;; esac
                if [[ $decoder = @(reference|opencsd) && $stream != b ]]; then
                    row+=('')
                else
                    row+=("$(instructions "$binary" "$decoder" "$stream" "$waypoints")")
                fi
            done
            printf '%-6s %10s %10s %10s %10s\n' "$stream" "${row[@]}"
        done
    done
    exit 0
fi

only_program=false
if [ "${1:-}" = --program ]; then
    only_program=true
    shift
fi
repetitions=${1:-3}
[[ "$repetitions" =~ ^[1-9][0-9]*$ ]] || {
    printf 'decode.sh: %s is not a number of repetitions; see bench/decode.sh --help\n' "$repetitions" >&2
    exit 2
}

# decoders PROGRAM: its table.
decoders() {
    printf '%s\n' "${1##*/}"
    "$1" --benchmark_repetitions="$repetitions" --benchmark_format=json | python3 -c '
import json, sys
best, wrong = {}, []
for run in json.load(sys.stdin)["benchmarks"]:
    decoder, stream = run["name"].split("/")[:2]
    if run.get("error_message") == "wrong": wrong.append(decoder + "/" + stream)
    if run.get("run_type") != "iteration" or "rate" not in run: continue
    best[decoder, stream] = max(best.get((decoder, stream), 0), run["rate"] / 1e6)
if wrong: sys.exit("decode.sh: not what the stream was made of: " + ", ".join(sorted(set(wrong))))
decoders = list(dict.fromkeys(d for d, _ in best))
streams = sorted({s for _, s in best})
print("stream " + "".join(f"{d:>14}" for d in decoders))
for stream in streams:
    row = f"{stream:<7}"
    for d in decoders:
        rate = best.get((d, stream))
        peer = best.get(("opencsd", stream))
        text = "" if rate is None else f"{rate:.1f}"
        if rate and peer and d != "opencsd": text += f" ({rate / peer:.0f})"
        row += f"{text:>14}"
    print(row)
print("two threads, times one")
for d in ("fast", "counts"):
    two = d + "-2"
    gains = [f"{s} {best[two, s] / best[d, s]:.2f}" for s in streams if (two, s) in best]
    print(f"{d:<7}" + "".join(f"{g:>9}" for g in gains))
'
}

# The whole program and the library alone: seconds from opening the file to the end, the minimum of all repetitions.
whole_program() {
    local times i code jobs seconds hash began took library program_took
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    "$program" --write b "$folder"
    mv "$folder/trace.bin" "$folder/once.bin"
    times=$((${WAYMARK_BENCH_MEGABYTES:-300} * 1000000 / $(stat -c %s "$folder/once.bin") + 1))
    for ((i = 0; i < times; ++i)); do cat "$folder/once.bin"; done >"$folder/trace.bin"
    # The registers of tests/support/measured_streams.h.
    local given=(--protocol ptm --buffer-format source_data --etmcr 0 --etmccer 0x34c01ac2 --etmidr 0x411cf312)
    for code in "$folder"/code-*.bin; do
        i=${code##*/code-}
        given+=(--image "$code@${i%.bin}")
    done
    printf '\nwaymark flow --format summary, %d MB\n' $(($(stat -c %s "$folder/trace.bin") / 1000000))
    for jobs in 1 2; do
        library='' program_took=''
        for ((i = 0; i < repetitions; ++i)); do
            seconds=$("$program" --summary "$jobs" "$folder") || {
                printf 'decode.sh: the library gave %s, which is not what the stream was made of\n' "$seconds" >&2
                return 1
            }
            hash=${seconds##* }
            # shellcheck disable=SC2086
            library=$(printf '%s\n' $library "${seconds%% *}" | sort -n | head -1)
            began=$(date +%s%N)
            "$waymark" flow "${given[@]}" --jobs "$jobs" --format summary "$folder/trace.bin" >"$folder/summary"
            took=$(($(date +%s%N) - began))
            # shellcheck disable=SC2086
            program_took=$(printf '%s\n' $program_took "$took" | sort -n | head -1)
            grep -q "hash *$hash\$" "$folder/summary" || {
                printf 'decode.sh: waymark flow does not give the hash of the library, %s\n' "$hash" >&2
                return 1
            }
        done
        awk -v j="$jobs" -v p="$program_took" -v l="$library" \
            'BEGIN { printf "--jobs %d %10.2f s   library %7.2f s   %.2f\n", j, p / 1e9, l, p / 1e9 / l }'
    done
}

if ! $only_program; then
    decoders "$program"
    printf '\n'
    decoders "$etm4"
fi
whole_program
