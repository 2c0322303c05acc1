#!/usr/bin/env bash
# Prints the slowdown of recording against plain QEMU: one table, all rows from one run.
set -euo pipefail

case "${1-}" in
    -h | --help)
        cat <<'HELP'
bench/record.sh [ROUNDS]: records a program in several ways and prints how long each took, against plain qemu-arm.

Wall time, the least of three. Needs build/bin/waymark (scripts/build), qemu-user and the Arm cross compiler, and two
cores with nothing else to do: QEMU has one, the recorder the other. On a busy machine, as root: chrt -r 50 bench/record.sh
HELP
        exit 0
        ;;
esac
rounds=${1:-60}
[[ "$rounds" =~ ^[1-9][0-9]*$ ]] || {
    printf 'record.sh: %s is no number of rounds; see bench/record.sh --help\n' "$rounds" >&2
    exit 2
}

cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
arm-linux-gnueabihf-gcc -O2 -static -o "$folder/thumb" bench/record_program.c
arm-linux-gnueabihf-gcc -O2 -static -marm -o "$folder/arm" bench/record_program.c

# least <command…>: milliseconds
least() {
    local best=0 i began took
    for i in 1 2 3; do
        rm -rf "$folder/out"
        began=$(date +%s%N)
        "$@" >/dev/null
        took=$((($(date +%s%N) - began) / 1000000))
        [ "$i" != 1 ] && [ "$best" -le "$took" ] || best=$took
    done
    echo "$best"
}

for program in thumb arm; do
    plain=$(least qemu-arm "$folder/$program" "$rounds")
    printf '%-6s %-36s %6d ms\n' "$program" 'plain qemu-arm' "$plain"
    for options in '' --blocks --return-stack --truth '--cycle-accurate --timestamps' --branch-broadcast; do
        # shellcheck disable=SC2086
        took=$(least build/bin/waymark record -q $options -o "$folder/out" -- "$folder/$program" "$rounds")
        awk -v p="$program" -v o="${options:-exact}" -v t="$took" -v b="$plain" \
            'BEGIN { printf "%-6s %-36s %6d ms %6.1f\n", p, o, t, t / b }'
    done
done
sed -n 's/.* ranges \([0-9]*\) instructions \([0-9]*\) .*/executed: \2 instructions in \1 ranges/p' "$folder/out/truth.txt"
