#!/bin/bash
# From a recording to a faster program, for AArch64: build, record, make profiles, build again with clang, change the layout with
# BOLT, count what each executes under QEMU, and compare the profile with that of instrumentation. Needs Debian's clang,
# lld, llvm, bolt-16, qemu-user, libc6-dev-arm64-cross, libclang-rt-dev, python3.
#
#     examples/pgo/run.sh [WAYMARK [FOLDER [PACKETS]]]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
waymark=$(realpath "${1:-$here/../../build/bin/waymark}")
mkdir -p "${2:-build/pgo}"
cd "${2:-build/pgo}"
packets=${3:-20000}
root=/usr/aarch64-linux-gnu
build=(clang --target=aarch64-linux-gnu -fuse-ld=lld -O2 -g -fdebug-info-for-profiling -Wl,--emit-relocs -Wl,--build-id)
bolt=$(dirname "$(readlink -f "$(command -v llvm-bolt || command -v llvm-bolt-16)")")

# 1. Build the program, and record a run.
"${build[@]}" -o filter "$here/filter.c"
rm -rf out
"$waymark" record --unit etmv4 -o out -- ./filter "$packets" >expected

# 2. The profiles.
"$waymark" pgo out --for clang -o filter.prof
"$waymark" pgo out --for bolt -o filter.preagg

# 3. Build again.
"${build[@]}" -fprofile-sample-use=filter.prof -o filter-clang "$here/filter.c"
"$bolt/perf2bolt" --pa -p filter.preagg -o filter.fdata ./filter >bolt.log 2>&1
"$bolt/llvm-bolt" filter -data filter.fdata -o filter-bolt -reorder-blocks=ext-tsp -reorder-functions=hfsort \
    -split-functions -dyno-stats >>bolt.log 2>&1

# 4. All programs print the same; count the instructions of each.
count() {
    rm -rf "out-$1"
    "$waymark" record --unit etmv4 -o "out-$1" -- "./$1" "$packets" | cmp - expected
    "$waymark" answers "out-$1" -o "$1.answers" 2>/dev/null
    python3 - "$waymark" "$1" <<'COUNT'
import json, subprocess, sys
waymark, program = sys.argv[1:]
def shown(*command):
    return json.loads(subprocess.run([waymark, *command, "--format", "json"], capture_output=True, check=True).stdout)["rows"]
own = [row for row in shown("profile", program + ".answers", "--by", "image") if row["image"] == program]
ran = {int(row["address"], 16) for row in shown("profile", program + ".answers", "--by", "instruction")
       if row["image"] == program and row["times"]}
branches = [row for row in shown("branches", program + ".answers") if int(row["address"], 16) in ran]
pages = {address >> 12 for address in ran}
print(f"{program:14} {own[0]['instructions']:>10} instructions {sum(row['taken'] or 0 for row in branches):>10} taken branches"
      f" {len(pages):>4} pages of code")
COUNT
}
for program in filter filter-clang filter-bolt; do count "$program"; done

# 5. Counts of the instrumentation in the same run.
python3 "$here/overlap.py" filter.prof filter "$packets" | grep "sample overlap"
grep -E "taken branches|executed instructions" bolt.log || true
