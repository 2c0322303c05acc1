#!/bin/sh
# Builds sort.elf, runs it under QEMU, and writes the capture from the addresses that were executed.
# Usage: build.sh [path of make_capture]; without it only the program is built.
set -e
cd "$(dirname "$0")"
arm-linux-gnueabihf-gcc -march=armv7-a -mthumb -mfloat-abi=soft -O1 -fno-inline -fno-builtin -ffreestanding -fno-pic \
    -fno-asynchronous-unwind-tables -fno-unwind-tables -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noseparate-code \
    -o sort.elf start.S sort.c
arm-linux-gnueabihf-strip --strip-debug sort.elf
[ $# -eq 0 ] && exit 0
log=$(mktemp)
qemu-arm -singlestep -d exec,nochain -D "$log" ./sort.elf
"$1" sort.elf "$log" capture
rm "$log"
