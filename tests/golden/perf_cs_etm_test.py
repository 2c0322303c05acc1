#!/usr/bin/env python3
"""perf.data files of Android's simpleperf with CoreSight trace, against what OpenCSD and simpleperf themselves gave.

usage: perf_cs_etm_test.py WAYMARK SOURCE_FOLDER

1. `perf_etm.data`: every range agrees with OpenCSD's golden, with both decoders; packets are those of the same trace in a
   snapshot folder, which other tests hold against OpenCSD. How often each instruction ran agrees with
   the AutoFDO text that simpleperf wrote from this file.
2. `perf_with_missing_aux_data.data`, which has AUX records but no trace: it is read, and what is missing is said.

Exit status 77 where there are no captures.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS, rows  # noqa: E402

COLUMNS = ("start", "end", "instructions", "isa", "atom", "branch", "link", "conditional")
LOAD = 0x582B2B0000  # where the program was mapped; its file offsets are its addresses less that


def run(status, *arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, arguments))}: exit status {done.returncode}, expected {status}\n{done.stderr}")
    return done.stdout, done.stderr


def number(text):
    try:
        return int(text, 0)
    except (TypeError, ValueError):
        return text or ""


def ranges(text):
    return [tuple(number(r[c]) for c in COLUMNS) for r in rows(text) if r["element"] == "range"]


def autofdo(text):
    """Executions of ranges by (first, last), which are file offsets."""
    lines = text.splitlines()
    return {tuple(int(x, 16) for x in line.split(":")[0].split("-")): int(line.split(":")[1])
            for line in lines[1:1 + int(lines[0])]}


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    corpus = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or source / ".." / "shared" / "corpus")
    folder, golden = corpus / "etmv4" / "simpleperf-etm_test_loop", corpus / ".." / "conformance" / "golden"
    if not folder.is_dir() or not golden.is_dir():
        print(f"SKIPPED: no captures in {corpus}; set WAYMARK_CORPUS")
        return 77
    data, symfs = folder / "perf_etm.data", ("--symfs", folder)
    failed = []

    def expect(what, found, expected):
        if found != expected:
            failed.append(what)
            print(f"{what}:\n  found    {found}\n  expected {expected}")

    expected = ranges((golden / "etmv4-simpleperf-etm_test_loop.tsv").read_text())
    for decoder in ((), ("--reference-decoder",)):
        for jobs in ("1", "2"):
            found = run(0, program, "flow", data, *symfs, "--format", "tsv", "--jobs", jobs, *decoder)[0]
            expect(f"ranges {decoder} {jobs}", ranges(found), expected)
    print(f"{len(expected)} ranges compared")

    of_file = rows(run(0, program, "packets", data, *symfs, "--format", "tsv")[0])
    of_folder = rows(run(0, program, "packets", folder, "--format", "tsv")[0])
    expect("packets", of_file, of_folder)
    print(f"{len(of_file)} packets compared")

    spans = autofdo((golden / "autofdo-simpleperf-etm_test_loop.txt").read_text())
    profile = rows(run(0, program, "profile", data, *symfs, "--by", "instruction", "--format", "tsv")[0])
    executed = {}
    for (first, last), count in spans.items():
        for at in range(first, last + 1, 4):
            executed[at] = executed.get(at, 0) + count
    found = {number(r["address"]) - LOAD: number(r["times"]) for r in profile}
    expect("instructions", {a: n for a, n in found.items() if n}, executed)
    print(f"{len(executed)} instructions compared")

    text, _ = run(0, program, "info", data, *symfs)
    for part in ("cpu7", "0x1e", "aux_cpu7", "/data/local/tmp/etm_test_loop"):
        expect(f"info has {part}", part in text, True)

    text, errors = run(1, program, "info", corpus / "etmv4" / "simpleperf-missing_aux" / "perf_with_missing_aux_data.data")
    for part in ("6 AUX ranges with", "CPUs 4, 7", "no AUXTRACE record", "cpu0", "ETM4.2"):
        expect(f"missing trace: {part}", part in text + errors, True)

    # The reason, and the statement of doctor, are one sentence, which appears once.
    _, errors = run(1, program, "profile", data)
    expect("the file whose code is missing", errors.count("the code of /data/local/tmp/etm_test_loop"), 1)
    return 1 if failed else 0


sys.exit(main())
