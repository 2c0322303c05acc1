#!/usr/bin/env bash
# Compares the way from perf.data with CoreSight trace to a compiler's profile with perf, and measures large files.
set -euo pipefail

case "${1-}" in
    -h | --help)
        cat <<'HELP'
bench/perf.sh [ROUNDS]: records a program with a virtual ETE as perf.data, and has Waymark and perf read the file.

  profile    CPU time of 'perf inject --itrace=i100000il64' and of 'waymark pgo --for autofdo', of which the latter also
             converts what the former only writes; then wall time of pgo on two cores. The least of three each (of perf:
             of two), and perf's time over Waymark's. Of a recording with a ring for each CPU, and of one for each thread.
  processes  a file in which 1,000 processes take turns, each with 5 maps of which 4 are its own, against one in which one
             process ran the same 1,000 times: CPU time of 'waymark pgo', and the ratio. Fails if both do not give the same
             profile.
  large      1 GB of trace: wall time of 'waymark info', CPU time and memory of 'waymark pgo'.

Needs waymark and clone_perf in build/release-test/bin (cmake --preset release-test && cmake --build --preset release-test
--target waymark clone_perf) or in the folder that WAYMARK_BIN names, qemu-user, the AArch64 cross compiler, perf
(linux-perf) and python3. 9 rounds, the default, give some 16 MiB of trace. On a busy machine, as root:
chrt -r 50 bench/perf.sh. WAYMARK_BENCH_PARTS selects parts: "profile processes large".
HELP
        exit 0
        ;;
esac
rounds=${1:-9}
[[ "$rounds" =~ ^[1-9][0-9]*$ ]] || {
    printf 'perf.sh: %s is not a number of rounds; see bench/perf.sh --help\n' "$rounds" >&2
    exit 2
}
cd "$(dirname "$0")/.."
bin=${WAYMARK_BIN:-build/release-test/bin}
parts=${WAYMARK_BENCH_PARTS:-profile processes large}
for needed in "$bin/waymark" "$bin/clone_perf"; do
    [ -x "$needed" ] || {
        printf 'perf.sh: no %s; see bench/perf.sh --help\n' "$needed" >&2
        exit 2
    }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
aarch64-linux-gnu-gcc -O2 -g -static -o "$folder/program" bench/record_program.c

# least <times> <command…>: seconds of wall time and of CPU time, and MiB of memory, the minimum of each
least() {
    python3 - "$@" <<'MEASURE'
import os, subprocess, sys, time
best = None
for _ in range(int(sys.argv[1])):
    began = time.monotonic()
    process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status: sys.exit(f"perf.sh: {' '.join(sys.argv[2:])}: status {status >> 8}\n{errors.decode()}")
    now = time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    best = now if best is None else tuple(map(min, best, now))
print("%.4f %.4f %.1f" % best)
MEASURE
}
record() { "$bin/waymark" record -q --unit ete --as perf "${@:2}" -o "$folder/$1" -- "$folder/program" "$rounds" >/dev/null; }
# perf looks for files by build ID in its cache, where it would keep copies of them.
export HOME=$folder

profile() {
    local mode data wall cpu memory peer
    printf '%-12s %8s %12s %12s %12s %8s %8s\n' recording MiB 'perf, CPU s' 'pgo, CPU s' 'two, wall s' ratio 'on two'
    for mode in cpu thread; do
        data=$folder/$mode.data
        if [ $mode = thread ]; then record $mode.data --per-thread; else record $mode.data; fi
        read -r wall peer memory < <(least 2 perf inject --itrace=i100000il64 -i "$data" -o "$folder/injected")
        read -r wall cpu memory < <(least 3 "$bin/waymark" pgo "$data" --for autofdo --jobs 1 -o "$folder/profile")
        read -r wall _ _ < <(least 3 "$bin/waymark" pgo "$data" --for autofdo --jobs 2 -o "$folder/profile-2")
        cmp "$folder/profile" "$folder/profile-2"
        awk -v m="$mode" -v b="$(stat -c %s "$data")" -v p="$peer" -v c="$cpu" -v w="$wall" 'BEGIN {
            printf "%-12s %8.1f %12.3f %12.3f %12.3f %8.1f %8.1f\n", "per " m, b / 1048576, p, c, w, p / c, p / w }'
    done
}

processes() {
    local one many memory count=1000 rounds=1
    record few.data --aux-buffer 8192 --limit 600000
    "$bin/clone_perf" "$folder/few.data" "$folder/one.data" --times $count
    "$bin/clone_perf" "$folder/few.data" "$folder/many.data" --processes $count --more-maps 4
    read -r _ one _ < <(least 3 "$bin/waymark" pgo "$folder/one.data" --for autofdo --jobs 1 -o "$folder/one")
    read -r _ many memory < <(least 3 "$bin/waymark" pgo "$folder/many.data" --for autofdo --jobs 1 -o "$folder/many")
    cmp "$folder/one" "$folder/many"
    awk -v o="$one" -v m="$many" -v r="$memory" -v b="$(stat -c %s "$folder/many.data")" 'BEGIN {
        printf "%d MB: one process %.3f s, 1,000 processes %.3f s, %.0f MiB; ratio %.2f\n", b / 1e6, o, m, r, m / o }'
}

large() {
    local bytes count info wall cpu memory
    [ -e "$folder/cpu.data" ] || record cpu.data
    bytes=$(stat -c %s "$folder/cpu.data")
    count=$((1000000000 / bytes + 1))
    "$bin/clone_perf" "$folder/cpu.data" "$folder/large.data" --times $count
    read -r info _ memory < <(least 3 "$bin/waymark" info "$folder/large.data")
    printf '%d MB: info %.3f s, %.0f MiB' $(($(stat -c %s "$folder/large.data") / 1000000)) "$info" "$memory"
    read -r wall cpu memory < <(least 1 "$bin/waymark" pgo "$folder/large.data" --for autofdo --jobs 1 -o "$folder/profile")
    printf '; pgo %.2f s, %.0f MiB' "$cpu" "$memory"
    read -r wall cpu memory < <(least 1 "$bin/waymark" pgo "$folder/large.data" --for autofdo --jobs 2 -o "$folder/profile")
    printf '; on two cores %.2f s wall, %.0f MiB\n' "$wall" "$memory"
}
for part in $parts; do "$part"; done
