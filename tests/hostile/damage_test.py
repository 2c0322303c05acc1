#!/usr/bin/env python3
"""Single damages of a recording's trace: what of them is reported, what cannot be noticed, and what is wrong and silent.

usage: damage_test.py WAYMARK SOURCE_FOLDER [--damages N] [--seed N] [--unit UNIT] [--write]

A program is recorded with each unit of program flow, its trace is damaged in one place, and `waymark flow --strict` decodes it.
A damage is

    reported   the status is not 0: a gap, a contradiction, code that no image has
    harmless   no command warns, and the elements are the same, but for their offsets
    possible   no command warns, and the elements are others, but objdump finds nothing in them that cannot be: each range
               begins where the one before it leads, branches without a condition are taken, returns from exceptions are
               such instructions, and time does not go back. An indirect branch may lead amid an instruction of objdump's
               list, as it may on a core. A decoder that sees this trace alone has to accept it
    wrong      no command warns, and the elements cannot be; or, from the next synchronisation on, they differ from the
               undamaged ones, with or without a warning

None may be wrong. docs/damage.md has the table of a long run, which --write renews; every run checks that the table is of this
form, and a run with as many damages that its shares are the same within 6 points.
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

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static int compare(const void *a, const void *b) { int x = *(const int *)a, y = *(const int *)b; return (x > y) - (x < y); }
typedef int (*operation)(int, int);
static int add(int a, int b) { return a + b; }
static int mul(int a, int b) { return a * b; }
static int both(int a, int b) { return a ^ b; }
static operation operations[] = {add, mul, both};
int main(void) {
    int v[60];
    unsigned s = 1;
    for (int i = 0; i < 60; i++) { s = s * 1664525u + 1013904223u; v[i] = s >> 16; }
    qsort(v, 60, sizeof *v, compare);
    int r = 0;
    for (int i = 0; i < 60; i++) r = operations[v[i] % 3](r, v[i]);
    printf("%d %d\\n", r, fib(9));
    return 0;
}
"""
PATH_BYTES = 200  # of the folder of the program
UNITS = {
    "ptm": ("arm-linux-gnueabihf", ["--sync", "250"]),
    "etmv3": ("arm-linux-gnueabihf", ["--sync", "250"]),
    "etmv4": ("aarch64-linux-gnu", ["--sync", "256", "--timestamps"]),
    "ete": ("aarch64-linux-gnu", ["--sync", "256", "--return-stack"]),
}
KINDS = ("bit flip", "byte", "frame dropped", "frame doubled", "frames swapped", "cut", "trace ID")
RESULTS = ("reported", "harmless", "possible", "wrong")
FRAME = 16
ALLOWED = 6  # points


# ---- damages: the bytes, the end of the damage, and the shift of the bytes behind it

def damage(kind, trace, rnd):
    frames = len(trace) // FRAME
    at = rnd.randrange(len(trace))
    frame = rnd.randrange(1, frames - 1) * FRAME
    b = bytearray(trace)

    # A trace ID applies until the next one.
    def next_id():
        later = (i for i in range(at // FRAME * FRAME + FRAME, len(trace), 2) if i % FRAME != 15 and trace[i] & 1)
        return next(later, len(trace)) + 2
    if kind == "bit flip":
        b[at] ^= 1 << rnd.randrange(8)
        return b, next_id(), 0
    if kind == "byte":
        b[at] ^= rnd.randrange(1, 256)
        return b, next_id(), 0
    if kind == "frame dropped":
        return b[:frame] + b[frame + FRAME:], frame, -FRAME
    if kind == "frame doubled":
        return b[:frame + FRAME] + b[frame:], frame + 2 * FRAME, FRAME
    if kind == "frames swapped":
        b[frame - FRAME:frame + FRAME] = b[frame:frame + FRAME] + b[frame - FRAME:frame]
        return b, frame + FRAME, 0
    if kind == "cut":
        count = rnd.randrange(2, 20) * FRAME
        return b[:frame] + b[frame + count:], min(frame, len(b)), -min(count, len(b) - frame)
    # An even byte of a frame with bit 0 set is a trace ID.
    ids = [i for i in range(0, len(trace), 2) if i % FRAME != 15 and trace[i] & 1]
    at = rnd.choice(ids)
    b[at] = b[at] & 1 | rnd.randrange(1, 0x70) << 1
    return b, next_id(), 0


# ---- the program by objdump

Instruction = collections.namedtuple("Instruction", "size mnemonic target")


class Program:
    ALWAYS = {"b", "bl", "blx", "bx", "br", "blr", "ret", "eret", "tbb", "tbh"}
    TO_PC = {"pop", "ldr", "ldm", "ldmia", "ldmfd", "mov", "add", "sub", "subs", "movs"}

    def __init__(self, triple, path):
        text = subprocess.run([f"{triple}-objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True,
                              check=True).stdout
        rows = [m for m in map(re.compile(r" *([0-9a-f]+):\t(\S+)\t?(.*)").fullmatch, text.splitlines()) if m]
        self.at = {}
        for row, after in zip(rows, rows[1:] + [None]):
            address = int(row[1], 16)
            size = int(after[1], 16) - address if after else 4
            target = re.match(r"(?:\w+, )?(?:#\d+, )?([0-9a-f]+) <", row[3])
            mnemonic = row[2].split(".")[0] if not row[2].startswith("b.") or row[2] in ("b.n", "b.w") else row[2]
            self.at[address] = Instruction(size if size in (2, 4) else 4, (mnemonic, row[3]),
                                           int(target[1], 16) if target else None)

    def unconditional(self, instruction):
        name, operands = instruction.mnemonic
        return name in self.ALWAYS or name in self.TO_PC and re.search(r"^pc\b|[{,] ?pc}", operands) is not None

    def impossible(self, rows):
        """The reason why the elements are impossible; None: they are possible."""
        expected = last = time = None
        for row in rows:
            element = row["element"]
            if element == "range":
                start, end = int(row["start"], 16), int(row["end"], 16)
                if expected is not None and start != expected:
                    return f"a range at {start:#x}, and execution was at {expected:#x}"
                at = start
                while at < end:
                    last = self.at.get(at)
                    if last is None and (start in self.at or expected is not None):
                        return f"no instruction at {at:#x}"
                    before, at = at, at + (last.size if last else 2)
                if at != end:
                    return f"a range ends at {end:#x}, inside an instruction"
                expected = end
                if last is None:  # nobody knows which instruction it was
                    expected = None
                elif row["atom"] == "E" and row["branch"] == "direct":
                    expected = last.target
                elif row["atom"] == "E" and row["branch"] == "indirect":
                    expected = None
                elif row["atom"] == "N" and row["branch"] in ("direct", "indirect") and last.target != end and \
                        self.unconditional(last):
                    return f"{last.mnemonic[0]} at {before:#x} was not taken"
            elif element in ("trace_on", "exception"):
                expected = last = None
            elif element == "exception_return":
                if last is not None and not re.match("eret|rfe|subs|movs|ldm", last.mnemonic[0]):
                    return f"an exception return after {last.mnemonic[0]}"
            elif element == "timestamp" and row["detail"].isdigit():
                if time is not None and int(row["detail"]) < time:
                    return f"time {row['detail']} after {time}"
                time = int(row["detail"])
        return None


# ---- runs

class Unit:
    def __init__(self, waymark, name, folder):
        # libc copies the program's path, so the path has the same length wherever the folder is.
        folder = folder / "x".ljust(PATH_BYTES - len(str(folder.resolve())), "x")
        folder.mkdir(exist_ok=True)
        self.waymark, self.name, self.folder = waymark, name, folder
        triple, options = UNITS[name]
        (folder / f"{name}.c").write_text(PROGRAM)
        subprocess.run([f"{triple}-gcc", "-O2", "-static", "-o", folder / name, folder / f"{name}.c"], check=True)
        self.capture = folder / f"{name}.capture"
        # The program's name and its environment are on its stack: libc's handling of them is in the trace, which is
        # the same in each run only if they are.
        subprocess.run([waymark, "record", "--from-start", "-q", "--unit", name, *options, "-o", self.capture.name, "--", f"./{name}"],
                       check=True, capture_output=True, cwd=folder, env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        # The test must see losses and additions in the trace itself.
        ini = self.capture / "trace.ini"
        ini.write_text("".join(line for line in ini.read_text().splitlines(True) if not line.startswith("length=")))
        self.trace = (self.capture / "trace.bin").read_bytes()
        self.program = Program(triple, folder / name)
        status, self.rows, said = self.flow(self.capture)
        assert status == 0 and len(self.rows) > 1000, said
        assert (why := self.program.impossible(self.rows)) is None, f"undamaged: {why}"
        packets = subprocess.run([waymark, "packets", self.capture, "--format", "tsv"], capture_output=True, text=True,
                                 check=True, timeout=HANGS).stdout
        rows = list(csv.DictReader(io.StringIO(packets), delimiter="\t"))
        # Offsets of each A-sync and of the packet after it.
        self.syncs = [(int(sync["offset"], 16), int(after["offset"], 16)) for sync, after in zip(rows, rows[1:])
                      if sync["packet"] == "A-SYNC" and after["packet"] in ("I-SYNC", "TRACE-INFO")]
        assert len(self.syncs) > 8, packets[:1000]

    def flow(self, capture):
        run = subprocess.run([self.waymark, "flow", capture, "--format", "tsv", "--strict"], capture_output=True, text=True,
                             timeout=HANGS)
        return run.returncode, list(csv.DictReader(io.StringIO(run.stdout), delimiter="\t", quoting=csv.QUOTE_NONE)), run.stderr

    def judge(self, kind, number, seed):
        rnd = random.Random(f"{seed} {self.name} {kind} {number}")
        trace, end, moved = damage(kind, self.trace, rnd)
        copy = self.folder / "damaged"
        shutil.copytree(self.capture, copy, dirs_exist_ok=True)
        (copy / "trace.bin").write_bytes(trace)
        status, rows, said = self.flow(copy)
        if status not in (0, 1, 3):
            return "wrong", f"status {status}: {said[-300:]}"
        # The first synchronisation that begins behind the damage.
        sync = next((after for a_sync, after in self.syncs if a_sync >= end - moved + FRAME), None)
        if sync is not None:
            # The sync and the address after it are compared too: they are correct.
            before = ranges(self.rows, sync + FRAME, 0)
            after = ranges(rows, sync + FRAME, moved)
            if before != after:
                return "wrong", f"differs behind the synchronisation at {sync:#x}: {len(before)}, {len(after)} ranges"
        if status != 0:
            return "reported", said
        if [shape(r) for r in rows] == [shape(r) for r in self.rows]:
            return "harmless", ""
        why = self.program.impossible(rows)
        return ("possible", "") if why is None else ("wrong", why)


def shape(row):
    return [value for name, value in row.items() if name not in ("offset", "symbol")]


def ranges(rows, first, moved):
    return [[row[name] for name in ("start", "end", "isa", "atom")] for row in rows
            if row["element"] == "range" and int(row["offset"], 16) - moved >= first]


# ---- the table

def table(counts, damages):
    lines = ["| unit | damage | " + " | ".join(RESULTS) + " |", "|---" * (2 + len(RESULTS)) + "|"]
    for unit in UNITS:
        for kind in KINDS:
            shares = [f"{100 * counts[unit, kind, result] / damages:.1f} %" if result != "wrong" else
                      str(counts[unit, kind, result]) for result in RESULTS]
            lines.append(f"| {unit} | {kind} | {' | '.join(shares)} |")
    return lines


def check_document(path, counts, damages, write):
    text = path.read_text()
    stated = int(re.search(r"(\d+) damages of each kind", text)[1])
    made = table(counts, damages)
    rows = re.search(r"^\| unit .*\n(?:\|.*\n)+", text, re.M)
    found = rows[0].splitlines() if rows else []
    if write:
        text = text.replace(rows[0], "\n".join(made) + "\n")
        path.write_text(re.sub(r"\d+ damages of each kind", f"{damages} damages of each kind", text))
        return []
    if len(found) != len(made) or found[:2] != made[:2]:
        return [f"{path} has another table: --write renews it"]
    wrong = []
    for line, now in zip(found[2:], made[2:]):
        a, b = ([cell.strip() for cell in text.split("|")[1:-1]] for text in (line, now))
        if a[:2] != b[:2]:
            wrong.append(f"{path}: {a[:2]} instead of {b[:2]}")
            continue
        shares = [float(cell.rstrip(" %")) for cell in a[2:]]
        if shares[-1] != 0 or abs(sum(shares) - 100) > 0.3:
            wrong.append(f"{path}: {line} is not 100 % without a wrong one")
        if damages == stated and any(abs(x - float(y.rstrip(" %"))) > ALLOWED for x, y in zip(shares, b[2:])):
            wrong.append(f"{path}: {line}, now {now}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("waymark", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--damages", type=int, default=8, help="of each kind and unit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unit", choices=list(UNITS))
    parser.add_argument("--write", action="store_true", help="renew the table in docs/damage.md")
    options = parser.parse_args()
    for tool in sorted({f"{triple}-{tool}" for triple, _ in UNITS.values() for tool in ("gcc", "objdump")}):
        if shutil.which(tool) is None:
            print(f"SKIPPED: no {tool}")
            return 77
    counts, wrong = collections.Counter(), []
    with Folder() as name:
        folder = pathlib.Path(name)
        for unit_name in [options.unit] if options.unit else UNITS:
            unit = Unit(options.waymark.resolve(), unit_name, folder)
            for kind in KINDS:
                for number in range(options.damages):
                    result, why = unit.judge(kind, number, options.seed)
                    counts[unit_name, kind, result] += 1
                    if result == "wrong":
                        wrong.append(f"{unit_name}, {kind} {number} of seed {options.seed}: {why}")
    print("\n".join(table(counts, options.damages)))
    if not options.unit:
        wrong += check_document(options.source / "docs/damage.md", counts, options.damages, options.write)
    for line in wrong:
        print(line)
    print(f"{len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
