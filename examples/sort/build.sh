#!/bin/sh
# Builds sort.elf and sort-aarch64.elf, runs them under QEMU, and writes their captures and what was executed.
# Usage: build.sh [MAKE_CAPTURE WAYMARK]: the paths of these programs; without them only the examples are built.
set -e
cd "$(dirname "$0")"
options="-O1 -fno-inline -fno-builtin -ffreestanding -fno-pic -fno-asynchronous-unwind-tables -fno-unwind-tables
    -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noseparate-code"
# shellcheck disable=SC2086
arm-linux-gnueabihf-gcc -march=armv7-a -mthumb -mfloat-abi=soft $options -o sort.elf start.S sort.c
arm-linux-gnueabihf-strip --strip-debug sort.elf
# shellcheck disable=SC2086
aarch64-linux-gnu-gcc $options -o sort-aarch64.elf start-aarch64.S sort.c
aarch64-linux-gnu-strip --strip-debug sort-aarch64.elf
[ $# -eq 0 ] && exit 0
log=$(mktemp)
qemu-arm -singlestep -d exec,nochain -D "$log" ./sort.elf
"$1" sort.elf "$log" capture

rm -rf capture-aarch64
"$2" record --cycle-accurate --timestamps --return-stack --sync 256 -o capture-aarch64 -- ./sort-aarch64.elf
# maps.txt has the whole path of the program, which is another on each machine; the capture does without it.
rm capture-aarch64/maps.txt
sed -i "s/^description=.*/description=a program that sorts, executed by QEMU, traced by a model/" \
    capture-aarch64/snapshot.ini
qemu-aarch64 -singlestep -d exec,nochain -D "$log" ./sort-aarch64.elf
python3 - "$log" >capture-aarch64/executed.txt <<'PYTHON'
import re
import sys

executed, hashed = 0, 1469598103934665603
for line in open(sys.argv[1], encoding="ascii"):
    if match := re.match(r"Trace \d+: \S+ \[\w+/(\w+)/", line):
        executed += 1
        hashed = (hashed ^ int(match[1], 16)) * 1099511628211 & 0xffffffffffffffff
print("# What QEMU executed: h = 1469598103934665603, then for each address h = (h xor address) * 1099511628211 mod 2^64")
print(f"executed {executed}\naddress_hash {hashed}")
PYTHON
rm "$log"
