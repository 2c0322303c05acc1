#!/usr/bin/env python3
"""Single damages of a trace of messages (ITM, STM) and of an MTB: what of them is reported, and what cannot be noticed.

usage: message_damage_test.py WAYMARK SOURCE_FOLDER [--damages N] [--seed N] [--write]

An ITM and an MTB record programs for Cortex-M under QEMU; the trace of an STM is syst/mipi-client32 in WAYMARK_CORPUS. The trace is
damaged in one place and read again. A damage is

    reported   the status is not 0: a gap, lost messages, a contradiction
    harmless   the messages, or the elements of flow, are the same
    unnoticed  they are others, and nothing in the bytes shows it: a payload may be any number
    wrong      behind the next synchronisation messages differ, with or without a warning

None may be wrong. docs/damage.md has the table of a long run, which --write renews. An MTB has no synchronisation, and each of its
entries is complete.
"""
import argparse
import collections
import csv
import io
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS, Folder  # noqa: E402

KINDS = ("bit flip", "byte", "byte dropped", "byte doubled", "cut")
RESULTS = ("reported", "harmless", "unnoticed", "wrong")
# The contents of a message itself: neither its place nor its time, which is a lower bound after a loss.
CONTENTS = ("kind", "value", "value_bytes", "pc", "address", "access", "comparator", "number", "change")


def damage(kind, trace, rnd):
    """The damaged bytes, the end of the damage in the undamaged trace, and the distance by which later bytes moved."""
    at = rnd.randrange(len(trace.rstrip(b"\0")))  # a memory that did not fill up ends with zeros
    b = bytearray(trace)
    if kind == "bit flip":
        b[at] ^= 1 << rnd.randrange(8)
        return b, at + 1, 0
    if kind == "byte":
        b[at] ^= rnd.randrange(1, 256)
        return b, at + 1, 0
    if kind == "byte dropped":
        return b[:at] + b[at + 1:], at + 1, -1
    if kind == "byte doubled":
        return b[:at + 1] + b[at:], at + 1, 1
    count = min(rnd.randrange(2, 300), len(trace) - at)
    return b[:at] + b[at + count:], at + count, -count


class Source:
    def __init__(self, waymark, name, capture, sync):
        self.waymark, self.name, self.capture = waymark, name, capture
        for path in capture.iterdir():
            path.chmod(0o644)
        ini = capture / "trace.ini"
        text = ini.read_text()
        ini.write_text(re.sub(r"^length=.*\n", "", text, flags=re.M))
        self.file = capture / re.search(r"^file=(\S+)", text, re.M)[1]
        self.trace = self.file.read_bytes()
        self.flows = sync is None
        status, self.rows, said = self.read()
        assert status == 0 and len(self.rows) > 100, (status, said)
        self.syncs = []
        if sync is not None:
            packets = subprocess.run([waymark, "packets", capture, "--type", sync, "--format", "tsv"], capture_output=True,
                                     text=True, check=True, timeout=HANGS).stdout
            self.syncs = [int(row["offset"], 16) for row in csv.DictReader(io.StringIO(packets), delimiter="\t")]
            assert len(self.syncs) > 4, packets

    def read(self):
        command = ["flow"] if self.flows else ["messages", "--kind", "all"]
        run = subprocess.run([self.waymark, command[0], self.capture, *command[1:], "--format", "tsv", "--strict"],
                             capture_output=True, text=True, timeout=HANGS)
        return run.returncode, list(csv.DictReader(io.StringIO(run.stdout), delimiter="\t", quoting=csv.QUOTE_NONE)), run.stderr

    def judge(self, kind, number, seed):
        rnd = random.Random(f"{seed} {self.name} {kind} {number}")
        trace, end, moved = damage(kind, self.trace, rnd)
        self.file.write_bytes(trace)
        try:
            status, rows, said = self.read()
        finally:
            self.file.write_bytes(self.trace)
        if status not in (0, 1, 3):
            return "wrong", f"status {status}: {said[-300:]}"
        sync = next((at for at in self.syncs if at >= end), None)
        if sync is not None:
            before, after = contents(self.rows, sync, 0), contents(rows, sync, moved)
            if before != after:
                return "wrong", f"differs behind the synchronisation at {sync:#x}: {len(before)}, {len(after)} messages"
        if status != 0:
            return "reported", said
        same = [shape(r) for r in rows] == [shape(r) for r in self.rows]
        return ("harmless" if same else "unnoticed"), ""


def contents(rows, first, moved):
    return [[row[name] for name in CONTENTS] for row in rows if int(row["offset"], 16) - moved >= first]


def shape(row):
    return [value for name, value in row.items() if name not in ("offset", "length", "symbol")]


def table(names, counts, damages):
    lines = ["| unit | damage | " + " | ".join(RESULTS) + " |", "|---" * (2 + len(RESULTS)) + "|"]
    for name in names:
        for kind in KINDS:
            shares = [f"{100 * counts[name, kind, result] / damages:.1f} %" if result != "wrong" else
                      str(counts[name, kind, result]) for result in RESULTS]
            lines.append(f"| {name} | {kind} | {' | '.join(shares)} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("waymark", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--damages", type=int, default=4, help="of each kind and unit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="renew the table in docs/damage.md")
    options = parser.parse_args()
    for tool in ("qemu-system-arm", "clang"):
        if shutil.which(tool) is None:
            print(f"SKIPPED: {tool} is missing (Debian package {tool})")
            return 77
    waymark = options.waymark.resolve()
    corpus = pathlib.Path(os.environ.get("WAYMARK_CORPUS", options.source / "../shared/corpus"))
    counts, wrong = collections.Counter(), []
    with Folder() as name:
        folder = pathlib.Path(name)
        subprocess.run([options.source / "examples/build", "-o", folder, "scheduler"], check=True, capture_output=True)

        def record(capture, *arguments):
            subprocess.run([waymark, "record", "-q", "-o", folder / capture, *arguments], check=True, capture_output=True)
            return folder / capture
        sources = [Source(waymark, "itm", record("itm", "--unit", "itm", "--watch", "level", "--pc-samples", "200", "--",
                                                 folder / "scheduler-m3.elf"), "sync")]
        if (corpus / "syst/mipi-client32").is_dir():
            shutil.copytree(corpus / "syst/mipi-client32", folder / "stm")
            sources.append(Source(waymark, "stm", folder / "stm", "async"))
        sources.append(Source(waymark, "mtb", record("mtb", "--unit", "mtb", "--mtb-size", str(1 << 17), "--", folder / "scheduler-m33.elf"), None))
        for source in sources:
            for kind in KINDS:
                for number in range(options.damages):
                    result, why = source.judge(kind, number, options.seed)
                    counts[source.name, kind, result] += 1
                    if result == "wrong":
                        wrong.append(f"{source.name}, {kind} {number} of seed {options.seed}: {why}")
    made = table([source.name for source in sources], counts, options.damages)
    print("\n".join(made))
    if options.write and not wrong:
        path = options.source / "docs/damage.md"
        text = path.read_text()
        rows = re.search(r"^\| unit \| damage \| reported \| harmless \| unnoticed .*\n(?:\|.*\n)+", text, re.M)
        path.write_text(text.replace(rows[0], "\n".join(made) + "\n"))
    for line in wrong:
        print(line)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
