#!/usr/bin/env bash
# Measures what many captures take: planning, decoding in shards beside one process, memory, workers, merging.
set -euo pipefail

case "${1-}" in
    -h | --help)
        cat <<'HELP'
bench/fleet.sh: figures of docs/fleet.md. Each is CPU time (user and system), wall time and memory, the least of three.

  plan      100,000 small perf.data files (one recording, linked 100,000 times): 'waymark fleet plan'
  merge     1,000 answers files of a program with 50,000 functions, of which each capture ran 2,000: 'waymark merge'
  overhead  40 captures of 25 MB: 'waymark fleet local -j 1' beside one process that makes the same (all as one shard), and
            beside 'waymark profile --jobs 1' and 'waymark pgo --jobs 1', which make less: no code, timelines or hashes
  memory    a shard of one capture of 25 MB and of one of 200 MB, with --contents ranges, code and all, and the interpreter of
            the examples
  workers   the same 40 captures with one worker and with two

Needs waymark, clone_perf and made_answers in build/release-test/bin (cmake --preset release-test && cmake --build --preset
release-test --target waymark clone_perf made_answers) or in the folder that WAYMARK_BIN names, qemu-user, the AArch64 cross
compiler and python3; 3 GB below TMPDIR. WAYMARK_BENCH_PARTS selects parts: "plan merge overhead memory workers". On a busy
machine CPU times count, and wall times are the best of three.
HELP
        exit 0
        ;;
esac
[ $# -eq 0 ] || {
    printf 'fleet.sh: no arguments are known; see bench/fleet.sh --help\n' >&2
    exit 2
}
cd "$(dirname "$0")/.."
bin=$(realpath "${WAYMARK_BIN:-build/release-test/bin}")
parts=${WAYMARK_BENCH_PARTS:-plan merge overhead memory workers}
rounds=${WAYMARK_BENCH_ROUNDS:-3}
for needed in "$bin"/{waymark,clone_perf,made_answers}; do
    [ -x "$needed" ] || {
        printf 'fleet.sh: no %s; see bench/fleet.sh --help\n' "$needed" >&2
        exit 2
    }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# measure <name> <command for a shell>: the minimum of some runs; FRESH is made empty before each
measure() {
    python3 - "$rounds" "$folder/fresh" "$@" <<'MEASURE'
import os, shutil, subprocess, sys, time
rounds, fresh, name, command = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
best = None
for _ in range(rounds):
    shutil.rmtree(fresh, ignore_errors=True)
    began = time.monotonic()
    process = subprocess.Popen(["sh", "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "FRESH": fresh})
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status: sys.exit(f"fleet.sh: {command}: status {status >> 8}\n{errors.decode()}")
    now = usage.ru_utime + usage.ru_stime, time.monotonic() - began, usage.ru_maxrss / 1024
    best = now if best is None else tuple(map(min, best, now))
print("%-44s %8.2f s CPU %8.2f s wall %8.1f MiB" % (name, *best), flush=True)
MEASURE
}
has() { [[ " $parts " == *" $1 "* ]]; }
waymark=$bin/waymark

if has merge; then
    mkdir "$folder/answers"
    "$bin/made_answers" "$folder/answers" 1000 50000 2000
    measure "merge of 1,000 files, 50,000 functions" "'$waymark' merge '$folder'/answers/*.answers -o '$folder/sum.answers'"
    rm -r "$folder/answers"
fi

has plan || has overhead || has memory || has workers || exit 0
aarch64-linux-gnu-gcc -O1 -g -static -Wl,--build-id -o "$folder/interpreter" examples/interpreter/interpreter.c
record() { "$waymark" record -q --unit ete --as perf -o "$folder/$1" -- "$folder/interpreter" "${@:2}" >/dev/null; }

if has plan; then
    record small.data fibonacci 2
    mkdir "$folder/many"
    python3 - "$folder" <<'LINKS'
import os, sys
# A file has at most 65,000 links.
for n in range(100_000):
    if n % 50_000 == 0:
        first = f"{sys.argv[1]}/many/{n:06}.data"
        with open(f"{sys.argv[1]}/small.data", "rb") as small, open(first, "wb") as copy: copy.write(small.read())
    else:
        os.link(first, f"{sys.argv[1]}/many/{n:06}.data")
LINKS
    measure "plan of 100,000 captures" "'$waymark' fleet plan '$folder/many' -o \"\$FRESH\""
    rm -r "$folder/many"
fi

has overhead || has memory || has workers || exit 0
record one.data sieve 4000
bytes=$(stat -c %s "$folder/one.data")
times=$((25000000 / bytes + 1))
"$bin/clone_perf" "$folder/one.data" "$folder/large.data" --times $times
mkdir "$folder/captures"
for ((n = 0; n < 40; n++)); do
    ln "$folder/large.data" "$folder/captures/$(printf %02d.data "$n")"
done
printf '40 captures of %d bytes\n' "$(stat -c %s "$folder/large.data")"
for contents in code ranges; do
    "$waymark" fleet plan "$folder/captures" -o "$folder/$contents" --contents $contents >/dev/null 2>&1
done
run_local="cp -r '$folder/\$contents' \"\$FRESH\" && '$waymark' fleet local \"\$FRESH\""
of() { printf '%s' "${run_local/\$contents/$1}"; }

if has overhead; then
    for contents in code ranges; do
        "$waymark" fleet plan "$folder/captures" -o "$folder/whole-$contents" --contents $contents --cores 1 \
            --shard-seconds 100000 >/dev/null 2>&1
        measure "fleet local -j 1, $contents" "$(of $contents) -j 1"
        measure "one process: all as one shard, $contents" \
            "cp -r '$folder/whole-$contents' \"\$FRESH\" && '$waymark' fleet run-shard \"\$FRESH\" 0"
    done
    measure "one process: profile --jobs 1" "'$waymark' profile '$folder'/captures/* --jobs 1"
    measure "one process: pgo --jobs 1" "'$waymark' pgo '$folder'/captures/* --jobs 1 --for bolt -o '$folder/profile'"
fi
if has workers; then
    measure "fleet local -j 1" "$(of code) -j 1"
    measure "fleet local -j 2" "$(of code) -j 2"
fi
if has memory; then
    "$bin/clone_perf" "$folder/one.data" "$folder/huge.data" --times $((times * 8))
    for capture in large huge; do
        for contents in ranges code all; do
            "$waymark" fleet plan "$folder/$capture.data" -o "$folder/$capture-$contents" --contents $contents >/dev/null 2>&1
            measure "run-shard, $(stat -c %s "$folder/$capture.data") bytes, $contents" \
                "cp -r '$folder/$capture-$contents' \"\$FRESH\" && '$waymark' fleet run-shard \"\$FRESH\" 0"
        done
    done
fi
