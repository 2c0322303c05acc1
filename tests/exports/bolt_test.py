#!/usr/bin/env python3
"""BOLT itself on a profile of samples: perf2bolt must take every line, what it makes of them must be what was written, and
a program laid out by it must run as before.

    bolt_test.py WAYMARK SOURCE_DIR
"""
import collections
import pathlib
import re
import sys
import tempfile
import unittest

import recorded

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])


def newest(name):
    """A tool of LLVM without or with its version behind its name; of several the newest."""
    return (name, *(f"{name}-{version}" for version in range(30, 14, -1)))


def as_perf2bolt(path):
    """BOLT does what the name it is called by says, and knows no `perf2bolt-16`: that links to the one that it knows."""
    path = pathlib.Path(path)
    while path.name != "perf2bolt" and path.is_symlink():
        path = path.parent / path.readlink()
    return path


class Bolt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.recording = recorded.Recording(WAYMARK, SOURCE, temporary.name, "spe")
        cls.folder, cls.program = cls.recording.folder, cls.recording.program
        cls.profile = cls.recording.export("bolt")
        cls.lines = [line.split() for line in cls.profile.read_text().splitlines()]

    def aggregate(self, profile, status=0):
        out = self.folder / f"{profile.name}.fdata"
        done = recorded.run(PERF2BOLT, "--pa", "-p", profile, "-o", out, self.program, status=status)
        return out, done.stdout + done.stderr

    def symbols(self):
        """Address → function, for all addresses of functions of the program."""
        out = {}
        for line in recorded.run("aarch64-linux-gnu-nm", "--print-size", "--defined-only", self.program).stdout.splitlines():
            if symbol := re.fullmatch(r"(\w+) (\w+) [tT] (\S+)", line):
                start, size, name = int(symbol[1], 16), int(symbol[2], 16), symbol[3]
                out.update({address: (name, address - start) for address in range(start, start + size, 4)})
        return out

    def test_perf2bolt_takes_every_line(self):
        _, said = self.aggregate(self.profile)
        self.assertIn(f"read {len(self.lines)} aggregated LBR entries", said)
        self.assertIn("traces mismatching disassembled function contents: 0 ", said)
        self.assertIn("Out of range traces involving unknown regions: 0 ", said)
        self.assertGreaterEqual(len(self.lines), 10)
        self.assertEqual({line[0] for line in self.lines}, {"B", "F"})

    def test_branches_are_those_that_were_written(self):
        merged, _ = self.aggregate(self.profile)
        symbols, written = self.symbols(), collections.Counter()
        for kind, start, end, times, *mispredicted in self.lines:
            start, end = symbols[int(start, 16)], symbols[int(end, 16)]
            if kind == "B":
                written[start, end] += int(times)
                written[start, end, "mispredicted"] += int(mispredicted[0])
        read = collections.Counter()
        for line in merged.read_text().splitlines():
            _, start, at, _, end, to, mispredicted, times = line.split()
            branch = ((start.partition("/")[0], int(at, 16)), (end.partition("/")[0], int(to, 16)))
            # What ran on without a branch becomes edges of its own.
            if branch in written:
                read[branch] += int(times)
                read[(*branch, "mispredicted")] += int(mispredicted)
        self.assertEqual(+read, +written)

    def test_what_it_lays_out_runs_as_before(self):
        merged, _ = self.aggregate(self.profile)
        better = self.folder / "better"
        said = recorded.run(BOLT, self.program, "-data", merged, "-o", better, "-reorder-blocks=ext-tsp", "-dyno-stats")
        before, after = map(int, re.findall(r"^ +(\d+) : taken branches\b", said.stdout + said.stderr, re.M))
        self.assertLess(after, before)
        again = ["-L", "/usr/aarch64-linux-gnu"]
        first = recorded.run(QEMU, *again, self.program, *self.recording.arguments)
        second = recorded.run(QEMU, *again, better, *self.recording.arguments)
        self.assertEqual(second.stdout, first.stdout)

    def test_it_would_complain(self):
        wrong = self.folder / "wrong"
        wrong.write_text("B 0 1 two 0\n")
        _, said = self.aggregate(wrong, status=1)
        self.assertIn("expected decimal number", said)
        # From the middle of an instruction, backwards.
        start, end = next((line[1], line[2]) for line in self.lines if line[0] == "F")
        wrong.write_text(f"F {int(end, 16):x} {int(start, 16) - 40:x} 1000\n")
        _, said = self.aggregate(wrong)
        self.assertNotIn("traces mismatching disassembled function contents: 0 ", said)


if __name__ == "__main__":
    PERF2BOLT, BOLT = (recorded.need(newest(tool), "bolt-16") for tool in ("perf2bolt", "llvm-bolt"))
    PERF2BOLT = as_perf2bolt(PERF2BOLT)
    recorded.need("aarch64-linux-gnu-nm", "binutils-aarch64-linux-gnu")
    QEMU = recorded.need("qemu-aarch64", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
