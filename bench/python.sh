#!/usr/bin/env bash
# Measures the cost of the Python module: ranges of stream b as arrays, beside the same decoder in C++, and its
# memory.
set -euo pipefail

case ${1:-} in
    --help | -h)
        cat <<'HELP'
usage: bench/python.sh [repetitions]

Needs pft_rates and library_ranges of the preset bench, and the Python module of the preset release-test. Decodes a file, stream
b repeated, by turns in C++ and in Python, on one thread; the best of so many repetitions counts, 3 if not given. Prints
millions of ranges per second of processor time (user and system) from the start of the process to its end, the ratio, and
how much memory each needed at most.

In C++ that is library_ranges, which adds up the instructions of all ranges; in Python a loop over `flow.ranges()`, which adds
up the lengths of the arrays, and one that also sums up their instructions. WAYMARK_BENCH_MEGABYTES (300) is the size of the
file, which is made in TMPDIR; BENCH_BIN and PYTHONPATH name other builds. On a busy machine, as root: chrt -r 1
bench/python.sh 1.
HELP
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
bin=${BENCH_BIN:-build/bench/bin}
export PYTHONPATH=${PYTHONPATH:-build/release-test/python}
repetitions=${1:-3}
[[ "$repetitions" =~ ^[1-9][0-9]*$ ]] || {
    printf 'python.sh: %s is not a number of repetitions; see bench/python.sh --help\n' "$repetitions" >&2
    exit 2
}
if [ ! -x "$bin/pft_rates" ] || [ ! -x "$bin/library_ranges" ] || ! /usr/bin/python3 -c 'import waymark' 2>/dev/null; then
    printf 'python.sh: %s/pft_rates, library_ranges and the module are needed; build the presets bench and release-test\n' \
        "$bin" >&2
    exit 2
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$bin/pft_rates" --write b "$folder"
mv "$folder/trace.bin" "$folder/once.bin"
times=$((${WAYMARK_BENCH_MEGABYTES:-300} * 1000000 / $(stat -c %s "$folder/once.bin") + 1))
for ((i = 0; i < times; ++i)); do cat "$folder/once.bin"; done >"$folder/trace.bin"

cat >"$folder/ranges.py" <<'PYTHON'
import pathlib, sys, waymark
folder, sums = pathlib.Path(sys.argv[1]), sys.argv[2] == "instructions"
# The registers of tests/support/measured_streams.h.
image = [f"{code}@{code.stem.removeprefix('code-')}" for code in folder.glob("code-*.bin")]
capture = waymark.open(folder / "trace.bin", protocol="ptm", buffer_format="source_data", etmcr=0, etmccer=0x34c01ac2,
                       etmidr=0x411cf312, image=image)
flow, ranges, instructions = capture.flow(), 0, 0
if sums:
    for batch in flow:
        ranges += len(batch)
        instructions += int(batch.instructions.sum())
else:
    for array in flow.ranges():
        ranges += len(array)
assert ranges == flow.totals["ranges"] and (not sums or instructions == flow.totals["instructions"]), flow.totals
print(f"{ranges} ranges")
PYTHON

/usr/bin/python3 - "$folder" "$bin/library_ranges" "$repetitions" <<'PYTHON'
import os, re, subprocess, sys
folder, cpp, repetitions = sys.argv[1], sys.argv[2], int(sys.argv[3])
script = ["/usr/bin/python3", f"{folder}/ranges.py", folder]
kinds = {"C++": [cpp, folder], "Python, ranges": [*script, "ranges"], "Python, instructions": [*script, "instructions"]}
best = {}
for _ in range(repetitions):
    for kind, command in kinds.items():
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        ranges = re.match(r"(\d+) ranges", printed)
        if status != 0 or ranges is None:
            sys.exit(f"python.sh: {' '.join(command)} ended with status {status}: {printed}")
        row = (int(ranges[1]) / (usage.ru_utime + usage.ru_stime) / 1e6, usage.ru_maxrss / 1024, int(ranges[1]))
        best[kind] = max(best.get(kind, row), row)
if len({ranges for *_, ranges in best.values()}) != 1:
    sys.exit(f"python.sh: they do not give the same number of ranges: {best}")
size = os.path.getsize(f"{folder}/trace.bin")
print(f"stream b, {size / 1e6:.0f} MB, {best['C++'][2]} ranges\n{'':<22}{'M ranges/s':>12}{'to C++':>10}{'most memory':>14}")
for kind, (rate, memory, _) in best.items():
    print(f"{kind:<22}{rate:>12.1f}{rate / best['C++'][0]:>10.2f}{memory:>11.0f} MB")
PYTHON
