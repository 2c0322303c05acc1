#!/usr/bin/env bash
# Prints a table of ETMv3, ITM and STM: megabytes of trace per second of CPU time, to a summary and to a list of packets,
# and the ratio to OpenCSD's list of packets.
set -euo pipefail

case ${1:-} in
    --help | -h)
        cat <<'HELP'
usage: bench/sources.sh [WAYMARK]

WAYMARK is build/bench/bin/waymark if not given. It records the example scheduler with an ETMv3 and with an ITM (qemu-system-arm), and the
example interpreter with a PTM; the trace of an STM is that of syst/mipi-client32 in WAYMARK_CORPUS. Each begins with a
synchronisation, so it is repeated up to WAYMARK_BENCH_MEGABYTES (200); lists are made of WAYMARK_BENCH_LISTED (4) megabytes.
The least CPU time of three runs counts. trc_pkt_lister (Debian package libopencsd-bin) is the peer; its version 1.3.3 reads no ITM.
Captures are made in TMPDIR.
HELP
        exit 0
        ;;
esac
cd "$(dirname "$0")/.."
waymark=$(realpath "${1:-build/bench/bin/waymark}")
megabytes=${WAYMARK_BENCH_MEGABYTES:-200} listed=${WAYMARK_BENCH_LISTED:-4}
corpus=${WAYMARK_CORPUS:-../shared/corpus}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

examples/build -o "$folder" scheduler interpreter >/dev/null 2>&1
"$waymark" record -q --unit etmv3 -o "$folder/etmv3" -- "$folder/scheduler-m3.elf"
"$waymark" record -q --unit itm --watch level --pc-samples 200 -o "$folder/itm" -- "$folder/scheduler-m3.elf"
"$waymark" record -q --unit ptm --limit 300000 -o "$folder/ptm" -- "$folder/interpreter" sieve 20 >/dev/null 2>&1
[ ! -d "$corpus/syst/mipi-client32" ] || cp -r "$corpus/syst/mipi-client32" "$folder/stm"

# repeated FOLDER MEGABYTES: the only trace of the capture, again and again.
repeated() {
    python3 - "$1" "$2" <<'PYTHON'
import pathlib, re, sys
folder, size = pathlib.Path(sys.argv[1]), int(float(sys.argv[2]) * 1e6)
ini = folder / "trace.ini"
name = re.search(r"^file=(\S+)", ini.read_text(), re.M)[1]
ini.write_text(re.sub(r"^length=.*\n", "", ini.read_text(), flags=re.M))
data = (folder / name).read_bytes()[:4 << 20]
(folder / name).chmod(0o644)
(folder / name).write_bytes(data * max(1, size // len(data)))
print(len(data) * max(1, size // len(data)))
PYTHON
}
# seconds COMMAND…: the least CPU time.
seconds() {
    local best=1e9 TIMEFORMAT='%U %S' took
    for _ in 1 2 3; do
        took=$({ time "$@" >/dev/null 2>&1 || true; } 2>&1 | awk '{ print $1 + $2 }')
        best=$(awk -v a="$best" -v b="$took" 'BEGIN { print a < b ? a : b }')
    done
    printf '%s' "$best"
}
rate() { awk -v bytes="$1" -v s="$2" 'BEGIN { printf "%.1f", bytes / 1e6 / (s > 0.001 ? s : 0.001) }'; }

printf '%-7s %10s %10s %10s %12s %8s\n' unit info flow packets OpenCSD ratio
for unit in ptm etmv3 itm stm; do
    capture=$folder/$unit
    [ -d "$capture" ] || { printf '%-7s NOT MEASURED: there is no capture of this unit in %s\n' "$unit" "$corpus"; continue; }
    chmod -R u+w "$capture"
    cp -r "$capture" "$capture-small"
    bytes=$(repeated "$capture" "$megabytes")
    few=$(repeated "$capture-small" "$listed")
    info=$(rate "$bytes" "$(seconds "$waymark" info "$capture")")
    flow=-
    [ "$unit" = itm ] || [ "$unit" = stm ] || flow=$(rate "$bytes" "$(seconds "$waymark" flow "$capture" --format summary --jobs 1)")
    packets=$(rate "$few" "$(seconds "$waymark" packets "$capture-small" --format tsv)")
    peer=- ratio=-
    if command -v trc_pkt_lister >/dev/null && [ "$unit" != itm ]; then
        peer=$(rate "$few" "$(seconds trc_pkt_lister -ss_dir "$capture-small" -logstdout)")
        ratio=$(awk -v a="$packets" -v b="$peer" 'BEGIN { printf "%.0f", a / b }')
    fi
    printf '%-7s %10s %10s %10s %12s %8s\n' "$unit" "$info" "$flow" "$packets" "$peer" "$ratio"
done
