#!/usr/bin/env python3
"""What `waymark flow --format tsv` prints for real captures of ETMv4 and ETE, against what OpenCSD 1.8.0 gave for them.

usage: conformance_test.py WAYMARK SOURCE_FOLDER [--update]

1. The approved table tests/golden/conformance.tsv has a row for each golden: how many elements of flow it has, how many of
them are not in our output and how many of ours are not in it, and by which behaviour of OpenCSD's each difference is
explained (docs/spec/etm4.md, 16; tests/differential/etm4_flow_test.cc undoes the same ones element by element). The
figures must be exactly these, and a golden without a row fails. --update (or WM_UPDATE_APPROVED=1) rewrites figures, and
leaves the explanations to be written.

2. Without the program everything that needs none stays the same: exceptions with their return addresses, contexts,
timestamps, cycle counts, events, gaps. What is missing is said.

Exit status 77 where there are no captures.
"""
import csv
import io
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

ELEMENTS = {
    "range": ("start", "end", "instructions", "isa", "atom", "branch", "link"),
    "exception": ("start", "detail"),
    "exception_return": (),
    "no_memory": ("start",),
    "range_no_path": ("start", "end", "instructions"),
    "transaction": ("detail",),
    "instrumentation": ("el", "detail"),
    "event": ("detail",),
    "marker": ("detail",),
}
# An exception or unreadable memory ends the range before it early: the range has no outcome.
CUTTING = ("exception", "no_memory")
CUT_SHORT = ("start", "end", "instructions", "isa")
# Figures that packets alone show.
WITHOUT_PROGRAM = ("exception", "context", "timestamp", "cycles", "event", "marker", "transaction", "instrumentation",
                   "trace_on", "no_sync", "uncommitted")
COLUMNS = ("capture", "elements", "only in the golden", "only in ours", "why")


def text_of(path):
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout.decode()
    return path.read_text()


def number(text):
    try:
        return int(text, 0)
    except (TypeError, ValueError):
        return text or ""


def lines_of(text, buffers=None):
    """The elements as comparable lines, by buffer and source; without buffers, the elements of all buffers together."""
    rows = {}
    for row in csv.DictReader(io.StringIO(text), delimiter="\t"):
        if row["element"] in ELEMENTS:
            rows.setdefault((row["buffer"], number(row["source"])), []).append(row)
    out = []
    for key in sorted(rows, key=str):
        if buffers is not None and key[0] not in buffers:
            continue
        found = rows[key]
        for row, following in zip(found, found[1:] + [{"element": ""}]):
            element = row["element"]
            cut = element == "range" and following["element"] in CUTTING
            columns = CUT_SHORT if cut else ELEMENTS[element]
            out.append(" ".join(map(str, (*key, element, *(number(row[c]) for c in columns)))))
    return out, {key[0] for key in rows}


def differences(golden, ours):
    """Lines that only one side has, if as many lines as possible are matched in order."""
    with Folder() as folder:
        paths = [os.path.join(folder, name) for name in ("golden", "ours")]
        for path, lines in zip(paths, (golden, ours)):
            pathlib.Path(path).write_text("".join(line + "\n" for line in lines))
        done = subprocess.run(["diff", "--minimal", *paths], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(f"diff: {done.stderr}")
    found = done.stdout.splitlines()
    return [l for l in found if l.startswith("< ")], [l for l in found if l.startswith("> ")]


def of_packets(text):
    return [tuple(v for c, v in row.items() if c != "symbol") for row in csv.DictReader(io.StringIO(text), delimiter="\t")
            if row["element"] in WITHOUT_PROGRAM]


def flow(program, folder):
    done = subprocess.run([program, "flow", folder, "--format", "tsv"], capture_output=True, text=True)
    # 1: there is nothing to show, or only elements without a range.
    if done.returncode not in (0, 1):
        sys.exit(f"waymark flow {folder}: exit status {done.returncode}\n{done.stderr}")
    return done


def without_program(program, folder):
    """The same capture without its memory dumps."""
    with Folder() as copy:
        for path in folder.iterdir():
            target = pathlib.Path(copy) / path.name
            if path.suffix == ".ini":
                target.write_text(re.sub(r"(?ms)^\[dump[^\]]*\].*?(?=^\[|\Z)", "", path.read_text(errors="replace")))
            else:
                target.symlink_to(path.resolve())
        return flow(program, copy)


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    update = "--update" in sys.argv or os.environ.get("WM_UPDATE_APPROVED") == "1"
    corpus = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or source / ".." / "shared" / "corpus")
    goldens = corpus / ".." / "conformance" / "golden"
    if not goldens.is_dir() or not (corpus / "ete").is_dir():
        print(f"SKIPPED: no captures and goldens beside {corpus}; set WAYMARK_CORPUS to the folder of the real captures")
        return 77
    approved_path = source / "tests" / "golden" / "conformance.tsv"
    approved = {row["capture"]: row for row in csv.DictReader(approved_path.open(), delimiter="\t")}
    table, failed, printed = [], False, {}
    for golden in sorted([*goldens.glob("etmv4-*.tsv*"), *goldens.glob("ete-*.tsv*")]):
        name = golden.name.removesuffix(".zst").removesuffix(".tsv")
        if name.endswith(".packets"):
            continue
        folder = corpus / name.removesuffix(".src-addr-n").replace("-", "/", 1)
        if folder not in printed:
            printed[folder] = flow(program, folder).stdout
            bare = without_program(program, folder)
            if of_packets(bare.stdout) != of_packets(printed[folder]):
                print(f"{name}: without the program, what packets alone say is not the same")
                failed = True
            ran = "\trange\t" in printed[folder]
            if ran and ("without an image" not in bare.stderr or "\trange\t" in bare.stdout):
                print(f"{name}: it is not said that the program is missing: {bare.stderr}")
                failed = True
        expected, buffers = lines_of(text_of(golden))
        theirs, ours = differences(expected, lines_of(printed[folder], buffers)[0])
        row = {"capture": name, "elements": str(len(expected)), "only in the golden": str(len(theirs)),
               "only in ours": str(len(ours)), "why": approved.get(name, {}).get("why") or ""}
        table.append(row)
        print(*row.values(), sep=" | ")
        if (theirs or ours) and not row["why"]:
            print(f"{name}: differences without an explanation in {approved_path}")
            failed = True
        if row != approved.get(name) and not update:
            print(f"{name}: {approved_path} has {approved.get(name)}", *theirs[:5], *ours[:5], sep="\n  ")
            failed = True
    if update:
        with approved_path.open("w") as out:
            writer = csv.DictWriter(out, COLUMNS, delimiter="\t", lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    if len(table) < len(approved):
        print(f"{len(approved)} rows are approved, and {len(table)} goldens were found")
        failed = True
    return 1 if failed else 0


sys.exit(main())
