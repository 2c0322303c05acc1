#!/usr/bin/env python3
"""Decodes captures of real hardware and compares the result with approved figures and with OpenCSD.

usage: golden_test.py WAYMARK SOURCE_FOLDER [--update]

1. `waymark flow --format summary` of each capture, with either decoder, is the approved text tests/golden/<name>.txt:
   counts, lost bytes and the hash over all ranges. --update (or WM_UPDATE_APPROVED=1) rewrites it.
2. Every range, exception, exception return, unreadable address and timestamp agrees with OpenCSD's, if the folder of the
   captures contains OpenCSD's output. There is one known difference: OpenCSD prints the Gray-coded timestamps of PFTv1.0
   as they were sent (docs/spec/pft.md, fact 7), so they are converted to binary before the comparison.

Exit status 77 where there are no captures.
"""
import csv
import io
import os
import pathlib
import subprocess
import sys

CAPTURES = {"ptm-tc2": ("ptm/tc2", ["0x13"]), "ptm-snowball": ("ptm/snowball", ["0x10", "0x11"])}
GRAY = {"0x10", "0x11"}
COMPARED = {
    "range": ("start", "end", "instructions", "isa", "atom", "branch", "link", "conditional", "cycles"),
    "exception": ("start", "detail", "cycles"),
    "exception_return": (),
    "no_memory": ("start",),
    "timestamp": ("detail", "cycles"),
}
# A range that ends early has no outcome; OpenCSD shows the outcome of a branch.
CUT_SHORT = ("start", "end", "instructions", "isa")


def waymark(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def from_gray(value):
    shift = 1
    while shift < 64:
        value ^= value >> shift
        shift *= 2
    return value


def rows(text, golden):
    out = {}
    for row in csv.DictReader(io.StringIO(text), delimiter="\t"):
        if row["element"] not in COMPARED:
            continue
        if golden and row["element"] == "timestamp" and row["source"] in GRAY:
            row["detail"] = hex(from_gray(int(row["detail"], 16)))
        out.setdefault(row["source"], []).append(row)
    return out


def value(text):
    try:
        return int(text, 0)
    except (TypeError, ValueError):
        return text or ""


def compare(name, golden_text, actual_text):
    golden, actual = rows(golden_text, True), rows(actual_text, False)
    wrong = compared = 0
    for source in sorted(set(golden) | set(actual)):
        a, b = golden.get(source, []), actual.get(source, [])
        if len(a) != len(b):
            print(f"{name} {source}: {len(a)} elements expected, {len(b)} found")
            wrong += 1
        for i, (expected, found) in enumerate(zip(a, b)):
            compared += 1
            element = expected["element"]
            columns = COMPARED[element]
            if element == "range" and i + 1 < len(a) and a[i + 1]["element"] in ("exception", "no_memory"):
                columns = CUT_SHORT
            if found["element"] != element or any(value(expected[c]) != value(found[c]) for c in columns):
                wrong += 1
                if wrong <= 5:
                    print(f"{name} {source}, element {i}: expected {expected}\n  found {found}")
    print(f"{name}: {compared} elements compared, {wrong} wrong")
    return wrong or not compared


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    update = "--update" in sys.argv or os.environ.get("WM_UPDATE_APPROVED") == "1"
    corpus = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or source / ".." / "shared" / "corpus")
    if not (corpus / "ptm").is_dir():
        print(f"SKIPPED: no captures in {corpus}; set WAYMARK_CORPUS to the folder that holds ptm/tc2 and ptm/snowball")
        return 77
    failed = False
    for name, (folder, sources) in CAPTURES.items():
        selection = [word for s in sources for word in ("--source", s)]
        approved = source / "tests" / "golden" / f"{name}.txt"
        for decoder in ([], ["--reference-decoder"]):
            summary = waymark(program, "flow", corpus / folder, *selection, "--format", "summary", *decoder)
            if update and not decoder:
                approved.write_text(summary)
            if summary != approved.read_text():
                print(f"{name}: the summary {' '.join(decoder)} is not {approved}:\n{summary}")
                failed = True
        golden = corpus / ".." / "conformance" / "golden" / f"{name}.tsv"
        if not golden.is_file():
            print(f"SKIPPED: the elements of {name} are not compared: there is no {golden}")
            continue
        actual = waymark(program, "flow", corpus / folder, *selection, "--format", "tsv")
        failed |= bool(compare(name, golden.read_text(), actual))
    return 1 if failed else 0


sys.exit(main())
