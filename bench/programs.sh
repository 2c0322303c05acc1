#!/usr/bin/env bash
# Prints how fast streams of real programs are decoded: millions of ranges per second of CPU time, on one thread.
set -euo pipefail

case ${1:-} in
    --help | -h)
        cat <<'HELP'
usage: bench/programs.sh FOLDER [CAPTURE_RATES...]

Records programs with each setting into FOLDER, where they are not there yet, and decodes each recording with `capture_rates`: to a sink
that looks up each block (elements), and counting only (counts). Several programs CAPTURE_RATES, of several versions, take turns, and the
rates of the others follow as ratios to the first. The best of REPETITIONS (3) turns counts. Fails if the number of instructions is not
that of the recorder. OpenCSD, whose elements are only counted, takes turns with them if the benchmarks were built with it: its rate, and both
rates divided by it; none where it crashes. The last two columns are rates of two threads, per second of wall time, divided by the rates of
one. Needs the bench preset built, qemu-user, both cross compilers and python3.

Programs: mix is bench/record_program.c; functions has 4,000 generated functions with some 88,000 distinct ranges; sqlite3, python, lua
and cc1, a compiler, are Debian's for arm64 (ETE, ETMv4) and armhf (PTM), which are downloaded from where the system's apt has its own.
PROGRAMS and SETTINGS choose among them: PROGRAMS='mix lua' SETTINGS='ete ete-stack'. ROUNDS (100) is how long they run, when they are
recorded.
HELP
        exit 0
        ;;
esac
[ $# != 0 ] || {
    printf 'programs.sh: no folder for the recordings; see bench/programs.sh --help\n' >&2
    exit 2
}
mkdir -p "$1"
folder=$(realpath "$1")
shift
source=$(dirname "$(realpath "$0")")
built=$source/../build/bench/bin
[ $# != 0 ] || set -- "$built/capture_rates"
for needed in "$built/waymark" "$@"; do
    [ -x "$needed" ] || {
        printf 'programs.sh: no %s; run: cmake --preset bench && cmake --build --preset bench\n' "$needed" >&2
        exit 2
    }
done
rounds=${ROUNDS:-100}

# unpack ARCHITECTURE: the packages into $folder/ARCHITECTURE.
unpack() {
    local apt=$folder/apt-$1
    [ ! -e "$folder/$1/complete" ] || return 0
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$folder/$1"
    touch "$apt/status"
    local options=(-qq -o "APT::Architecture=$1" -o "APT::Architectures=$1" -o APT::Install-Recommends=false -o "Dir::State=$apt"
        -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache"
        -o Dir::Etc::preferencesparts=- -o Debug::NoLocking=true -o APT::Sandbox::User= -o Acquire::Languages=none)
    # If one list cannot be downloaded, apt takes packages from the others.
    apt-get "${options[@]}" update >&2 || :
    apt-get "${options[@]}" install --yes --download-only sqlite3 python3-minimal lua5.4 cpp-12 >&2
    for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$folder/$1"; done
    rm -rf "$apt"
    touch "$folder/$1/complete"
}

# What each program does: ROUNDS is the number of rounds.
sql="create table t(a integer primary key, b text, c int); begin; with recursive n(i) as (select 1 union all select i + 1 from n
where i < ROUNDS00) insert into t select i, hex(i * 7919 % 10007), i * 31 % 997 from n; commit; create index i on t(c);
select c % 10, count(*), sum(a), max(b) from t where b like '3%' group by 1 order by 3; select count(*) from t x, t y where x.c = y.c
and x.a < 300;"
python='
import sys
class Node:
    def __init__(self, key): self.key, self.left, self.right = key, None, None
def insert(node, key):
    if node is None: return Node(key)
    if key < node.key: node.left = insert(node.left, key)
    else: node.right = insert(node.right, key)
    return node
root = None
for i in range(ROUNDS0): root = insert(root, i * 7919 % 10007)
words = sorted((str(i * 31 % 997) for i in range(ROUNDS00)), key=lambda s: s[::-1])
counts = {}
for w in words: counts[w] = counts.get(w, 0) + 1
print(len(counts), "".join(words)[:20])'
lua='
local t = {} for i = 1, ROUNDS00 do t[i] = tostring(i * 7919 % 10007) end table.sort(t)
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local s = 0 for i = 1, ROUNDS0 do s = s + #t[i]:gsub("1", "22") + fib(i % 13) end print(s)'

# Writes a C program of 4,000 functions, each with eleven branches and two calls. Which function is called next is random. A branch
# counts what ran, since a compiler would make a conditional instruction of anything simpler.
functions='
print("#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\ntypedef uint32_t function(uint32_t, int);")
print("static uint32_t ran[44000];\nextern function* const all[4000];")
for n in reversed(range(4000)):
    print(f"static __attribute__((noinline)) uint32_t f{n}(uint32_t x, int depth) {{")
    for i in range(11): print(f"if (x >> {(n * 7 + i * 5) % 29} & 1) ran[{n * 11 + i}]++;")
    print(f"x = x * {1664525 + 8 * n} + {1013904223 + 2 * n};")
    print(f"return depth ? all[(x >> 8) % 4000](x, depth - 1) + f{n + 1}(x ^ {n}, 0) : x;" if n < 3999 else "return x + depth;", "}")
print("function* const all[] = {", ", ".join(f"f{n}" for n in range(4000)), "};")
print("int main(int argc, char** argv) { uint32_t sum = 1; for (int i = atoi(argv[argc - 1]) * 1000; i > 0; i--)")
print("sum += all[sum % 4000](sum * 2654435761u, 4); printf(\"%u\\n\", sum); }")'

# command_of PROGRAM ARCHITECTURE: sets `command`.
command_of() {
    local root=$folder/$2 machine=aarch64
    [ "$2" = arm64 ] || machine=arm
    case $1 in
        mix) command=("$folder/mix-$2" $((rounds / 10 + 1))) ;;
        functions) command=("$folder/functions-$2" "$rounds") ;;
        sqlite3) command=("$root/usr/bin/sqlite3" :memory: "${sql//ROUNDS/$rounds}") ;;
        python) command=("$root/usr/bin/python3.11" -I -S -c "${python//ROUNDS/$rounds}") ;;
        lua) command=("$root/usr/bin/lua5.4" -e "${lua//ROUNDS/$rounds}") ;;
        cc1) command=("$(echo "$root"/usr/lib/gcc/"$machine"-linux-gnu*/12/cc1)" -quiet -O2 -o /dev/null "$folder/compiled.c") ;;
    esac
}
# options_of SETTING: of `waymark record`. Cycle counts of an ETE as Linux programs them: a threshold of 256, and timestamps; ete-speculation-counts
# has one for nearly every commit.
options_of() {
    local cycles="--cycle-accurate --timestamps"
    case $1 in
        ptm) echo --unit ptm ;;
        ptm-stack) echo --unit ptm --return-stack ;;
        ptm-cycles) echo "--unit ptm $cycles" ;;
        ete) echo --unit ete ;;
        ete-stack) echo --unit ete --return-stack ;;
        ete-cycles) echo "--unit ete $cycles --cycle-threshold 256" ;;
        ete-speculation) echo --unit ete --speculation 8 ;;
        ete-speculation-counts) echo --unit ete --speculation 8 --cycle-accurate ;;
        ete-speculation-cycles) echo "--unit ete --speculation 8 $cycles --cycle-threshold 256" ;;
        etmv4) echo --unit etmv4 ;;
        etmv4-stack) echo --unit etmv4 --return-stack ;;
        etmv4-cycles) echo "--unit etmv4 $cycles --cycle-threshold 256" ;;
        *)
            printf 'programs.sh: no setting %s\n' "$1" >&2
            return 1
            ;;
    esac
}
programs=${PROGRAMS:-mix functions sqlite3 python lua cc1}
settings=${SETTINGS:-ptm ptm-stack ptm-cycles ete ete-stack ete-cycles ete-speculation ete-speculation-counts ete-speculation-cycles etmv4 etmv4-stack etmv4-cycles}

for setting in $settings; do
    for program in $programs; do
        capture=$folder/$program-$setting
        [ ! -e "$capture/truth.txt" ] || continue
        case $setting in
            ptm*) architecture=armhf compiler=arm-linux-gnueabihf-gcc ;;
            *) architecture=arm64 compiler=aarch64-linux-gnu-gcc ;;
        esac
        case $program in mix | functions) ;; *) unpack "$architecture" ;; esac
        [ -e "$folder/mix-$architecture" ] || "$compiler" -O2 -static -o "$folder/mix-$architecture" "$source/record_program.c"
        if [ "$program" = functions ] && [ ! -e "$folder/functions-$architecture" ]; then
            python3 -c "$functions" | "$compiler" -O1 -static -x c -o "$folder/functions-$architecture" -
        fi
        # What cc1 compiles: without #include, since only the compiler proper is unpacked.
        [ -e "$folder/compiled.c" ] || gcc -E -P "$source/record_program.c" -D__extension__= -D_Float128=double -o "$folder/compiled.c"
        command_of "$program" "$architecture"
        sysroot=()
        case $program in mix | functions) ;; *) sysroot=(--sysroot "$folder/$architecture") ;; esac
        # shellcheck disable=SC2046
        "$built/waymark" record -q --from-start $(options_of "$setting") "${sysroot[@]}" -o "$capture" -- "${command[@]}" >/dev/null
    done
done

captures=()
for setting in $settings; do for program in $programs; do captures+=("$folder/$program-$setting"); done; done
python3 - "${REPETITIONS:-3}" "$#" "$@" "${captures[@]}" <<'PYTHON'
import pathlib, re, subprocess, sys
turns, count = int(sys.argv[1]), int(sys.argv[2])
versions, captures = sys.argv[3:3 + count], sys.argv[3 + count:]
print(f"{'stream':32} {'elements':>9} {'counts':>9} {'opencsd':>8} {'ratios':>11} {'two threads':>12}" + "     ratios of the others" * (count > 1))
for capture in map(pathlib.Path, captures):
    truth = sum(map(int, re.findall(r"^source .* instructions (\d+) hash", (capture / "truth.txt").read_text(), re.M)))
    best = {}
    for turn in range(turns):
        for version in versions:
            peer = ["--opencsd", "--two"] if version == versions[0] else []
            words = subprocess.run([version, "--once", *peer, capture], check=True, capture_output=True, text=True).stdout.split()
            given = dict(zip(words[1::2], words[2::2]))
            if int(given["instructions"]) != truth:
                sys.exit(f"programs.sh: {version} gave {given['instructions']} instructions of {capture}, which has {truth}")
            for what in ("elements", "counts"):
                best[version, what] = max(best.get((version, what), 0), float(given[what]))
            for what in ("opencsd", "two-elements", "two-counts") if peer else ():
                if what in given: best[what] = max(best.get(what, 0), float(given[what]))
    row = f"{capture.name:32} " + " ".join(f"{best[versions[0], what]:9.1f}" for what in ("elements", "counts"))
    if "opencsd" in best:
        row += f" {best['opencsd']:8.2f} " + " ".join(f"{best[versions[0], what] / best['opencsd']:5.0f}" for what in ("elements", "counts"))
    else:
        row += " " * 21
    row += " " + " ".join(f"{best['two-' + what] / best[versions[0], what]:6.2f}" for what in ("elements", "counts"))
    for version in versions[1:]:
        row += "    " + " ".join(f"{best[version, what] / best[versions[0], what]:5.2f}" for what in ("elements", "counts"))
    print(row, flush=True)
PYTHON
