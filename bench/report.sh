#!/usr/bin/env bash
# Measures a report of a hundred million instructions: its size, the time to write it, and how fast a browser shows it.
set -euo pipefail

case "${1-}" in
    -h | --help)
        cat <<'HELP'
bench/report.sh [BUILD]: records a hundred million instructions of a bytecode interpreter, writes the report, and opens it.

Ready: from the begin of the navigation to the first picture, by the page's own measure `waymark-ready`, the least of
five. A frame: drawing the timeline once while it is zoomed and moved, the mean and the longest of a hundred. BUILD is a
folder built with tests, for the packages of the browser (cmake --preset release-test; build/release-test). Needs
qemu-user, the Arm cross compiler and Chromium.
HELP
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
build=$(realpath "${1:-build/release-test}")
[ -x "$build/bin/waymark" ] && [ -d "$build/web/node_modules/playwright-core" ] || {
    printf 'report.sh: %s has no waymark, or not the packages of its tests; see bench/report.sh --help\n' "$build" >&2
    exit 2
}
chromium=$(command -v chromium || command -v chromium-headless-shell || command -v chromium-browser || command -v google-chrome)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
arm-linux-gnueabihf-gcc -O1 -g -static -I guest -o "$folder/interpreter" examples/interpreter/interpreter.c
"$build/bin/waymark" record --from-start --limit 100000000 -o "$folder/out" -- "$folder/interpreter" fibonacci 27 >/dev/null
began=$(date +%s%N)
"$build/bin/waymark" report "$folder/out" --symbols "$folder/interpreter" -o "$folder/report.html"
printf '%-24s %10.1f s\n' 'written in' "$(awk "BEGIN { print ($(date +%s%N) - $began) / 1e9 }")"
printf '%-24s %10.2f MB\n' 'size' "$(awk "BEGIN { print $(stat -c %s "$folder/report.html") / 1e6 }")"
node bench/report.mjs "$build/web" "$chromium" "$folder/report.html"
