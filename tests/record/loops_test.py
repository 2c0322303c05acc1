#!/usr/bin/env python3
"""Compares loops of compiled C and C++ with QEMU's own log of every instruction.

    loops_test.py WAYMARK SOURCE_DIR

The programs are compiled at each level of optimisation, recorded, and run once more with `qemu-arm -singlestep -d
exec,nochain`. The test builds the control flow of each function from that log and finds its loops by their definition; heads,
entries, iterations, depths and kinds must equal those of `waymark loops`.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "exports"))
from recorded import need, run  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
LEVELS = {"-O0": [], "-O1": [], "-O2": ["-mthumb"], "-O3": ["-funroll-loops", "-marm"]}


def activations(pcs, parts):
    """The executed code of a function that does not call itself, for each call. GCC moves rarely executed code
    elsewhere: `parts` are the function's address ranges; it begins where the first part does."""
    out, was_inside, start = [], False, parts[0][0]
    for pc in pcs:
        inside = any(first <= pc < end for first, end in parts)
        if inside:
            if pc == start and not was_inside:
                out.append([])
            out[-1].append(pc)
        was_inside = inside
    return out


def reach(starts, ways, without=()):
    seen = {s for s in starts if s not in without}
    waiting = list(seen)
    while waiting:
        for to in ways[waiting.pop()]:
            if to not in seen and to not in without:
                seen.add(to)
                waiting.append(to)
    return seen


def loops_of(runs):
    """Loops by their definition in `waymark loops --help`: head → entries, iterations, depth, kind."""
    after, before = collections.defaultdict(set), collections.defaultdict(set)
    for r in runs:
        for a, b in zip(r, r[1:]):
            after[a].add(b)
            before[b].add(a)
    root = runs[0][0]
    nodes = reach([root], after)
    dominated = {}  # target of a branch back: code reached only through it

    def dominates(head, node):
        if head not in dominated:
            dominated[head] = nodes - reach([root], after, {head}) | {head}
        return node in dominated[head]

    bodies, forward = [], collections.defaultdict(set)
    for head in sorted(nodes):
        latches = {n for n in before[head] if dominates(head, n)}
        if latches:
            bodies.append((reach(latches, before, {head}) | {head}, {head}, "natural"))
        for n in before[head] - latches:
            forward[n].add(head)
    natural, done = list(bodies), set()
    for n in sorted(nodes):
        if n in done:
            continue
        region = {m for m in reach(forward[n], forward) if n in reach(forward[m], forward)}
        if n not in region:
            continue
        done |= region
        body = set(region).union(*(b for b, (head,), _ in natural if head in region))
        entered = {m for m in body if m == root or before[m] - body}
        bodies.append((body, entered, "irreducible"))
    out = []
    for body, entered, kind in bodies:
        begun, came = 0, collections.Counter()
        for r in runs:
            for i, n in enumerate(r):
                begun += n in entered and (i == 0 or r[i - 1] not in body)
                came[n] += n in entered
        depth = sum(body <= other for other, _, _ in bodies)
        out.append((entered, begun, came, depth, kind))
    return out


class Loops(unittest.TestCase):
    def check(self, level, folder):
        program, log = folder / "program", folder / "log"
        run(CXX, level, *LEVELS[level], "-static", "-g", "-o", program, HERE / "loops.cc")
        run(WAYMARK, "record", "-o", folder / "capture", "--start-at", "main", "--", program)
        run("qemu-arm", "-singlestep", "-d", "exec,nochain", "-D", log, program)
        delivered = json.loads(run(WAYMARK, "loops", folder / "capture", "--symbols", program, "--format", "json").stdout)["rows"]
        pcs = [int(pc, 16) for pc in re.findall(r"^Trace \d+: \S+ \[\w+/(\w+)/", log.read_text(), re.M)]
        kinds = collections.Counter()
        symbols = {}
        for start, size, name in re.findall(r"^(\w+) (\w+) [tT] (loop_\w+(?:\.cold)?)$", run(NM, "-S", program).stdout, re.M):
            symbols[name] = (int(start, 16) & ~1, int(size, 16))
        self.assertGreaterEqual(len(symbols), 11)
        for name in symbols:
            if name.endswith(".cold"):
                continue
            parts = [symbols[part] for part in (name, name + ".cold") if part in symbols]
            runs = activations(pcs, [(first, first + bytes) for first, bytes in parts])
            expected = loops_of(runs)
            rows = [row for row in delivered if row["function"] == name]
            where = f"{level} {name}: {rows}"
            self.assertEqual(len(rows), len(expected), (where, expected))
            for entered, begun, came, depth, kind in expected:
                row, = (r for r in rows if int(r["head"], 0) in entered and r["kind"] == kind)
                self.assertEqual(row["entries"], begun, (where, row))
                self.assertEqual(row["iterations"], came[int(row["head"], 0)], (where, row))
                self.assertEqual(row["depth"], depth, (where, row))
                kinds[kind] += 1
        return kinds

    def test_all_levels(self):
        kinds = collections.Counter()
        for level in LEVELS:
            with self.subTest(level=level), Folder() as folder:
                kinds += self.check(level, pathlib.Path(folder))
        self.assertGreater(kinds["natural"], 10 * len(LEVELS))
        self.assertGreater(kinds["irreducible"], 0)


if __name__ == "__main__":
    CXX = need("arm-linux-gnueabihf-g++", "g++-arm-linux-gnueabihf")
    NM = need("arm-linux-gnueabihf-nm", "binutils-arm-linux-gnueabihf")
    need("qemu-arm", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
