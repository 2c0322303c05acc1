#!/usr/bin/env bash
# Prints the slowdown of recording against plain QEMU: one table, all rows from one run.
set -euo pipefail

case "${1-}" in
    -h | --help)
        cat <<'HELP'
bench/record.sh [ROUNDS]: records a program in several ways and prints how long each took, against plain QEMU: Thumb and
Arm code with a PTM, AArch64 code with an ETE and an ETMv4.

Wall time, the least of three rounds through all ways. Needs build/bin/waymark (scripts/build), qemu-user and the cross
compilers for arm-linux-gnueabihf and aarch64-linux-gnu, and two cores with nothing else to do: QEMU has one, the
recorder the other. On a busy machine, as root: chrt -r 50 bench/record.sh
HELP
        exit 0
        ;;
esac
rounds=${1:-60}
[[ "$rounds" =~ ^[1-9][0-9]*$ ]] || {
    printf 'record.sh: %s is not a number of rounds; see bench/record.sh --help\n' "$rounds" >&2
    exit 2
}

cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
arm-linux-gnueabihf-gcc -O2 -static -o "$folder/thumb" bench/record_program.c
arm-linux-gnueabihf-gcc -O2 -static -marm -o "$folder/arm" bench/record_program.c

aarch64-linux-gnu-gcc -O2 -static -o "$folder/aarch64" bench/record_program.c

# milliseconds <command…>
milliseconds() {
    local began
    rm -rf "$folder/out"
    began=$(date +%s%N)
    "$@" >/dev/null
    echo $((($(date +%s%N) - began) / 1000000))
}

options_of_ptm=('' --blocks --return-stack --truth '--cycle-accurate --timestamps' --branch-broadcast)
options_of_ete=("${options_of_ptm[@]}" '--unit etmv4' '--unit etmv4 --return-stack'
    '--unit etmv4 --cycle-accurate --timestamps')
for program in thumb arm aarch64; do
    ways=("${options_of_ptm[@]}")
    qemu="qemu-arm"
    if [ "$program" = aarch64 ]; then
        ways=("${options_of_ete[@]}")
        qemu="qemu-aarch64"
    fi
    # The ways take turns, so that other work of the machine affects them alike.
    least=()
    for turn in 1 2 3; do
        took=$(milliseconds "$qemu" "$folder/$program" "$rounds")
        [ "$turn" != 1 ] && [ "$plain" -le "$took" ] || plain=$took
        for i in "${!ways[@]}"; do
            # shellcheck disable=SC2086
            took=$(milliseconds build/bin/waymark record -q --from-start ${ways[i]} -o "$folder/out" -- "$folder/$program" "$rounds")
            [ "$turn" != 1 ] && [ "${least[i]}" -le "$took" ] || least[i]=$took
        done
    done
    printf '%-8s %-44s %6d ms\n' "$program" "plain $qemu" "$plain"
    for i in "${!ways[@]}"; do
        awk -v p="$program" -v o="${ways[i]:-exact}" -v t="${least[i]}" -v b="$plain" \
            'BEGIN { printf "%-8s %-44s %6d ms %6.1f\n", p, o, t, t / b }'
    done
    sed -n 's/.* ranges \([0-9]*\) instructions \([0-9]*\) .*/executed: \2 instructions in \1 ranges/p' "$folder/out/truth.txt"
done
