#!/usr/bin/env python3
"""BOLT reads a profile of samples: perf2bolt must accept every line, its result must agree with the exported profile, and
a program optimised with it must run as before.

    bolt_test.py WAYMARK SOURCE_DIR
"""
import collections
import pathlib
import re
import sys
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])


def as_perf2bolt(path):
    """BOLT chooses its function by the name it is called by, and does not know `perf2bolt-16`: resolve the link."""
    path = pathlib.Path(path)
    while path.name != "perf2bolt" and path.is_symlink():
        path = path.parent / path.readlink()
    return path


class Bolt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.recording = recorded.Recording(WAYMARK, SOURCE, temporary.name, "spe")
        cls.folder, cls.program = cls.recording.folder, cls.recording.program
        cls.profile = cls.recording.export("bolt")
        cls.lines = [line.split() for line in cls.profile.read_text().splitlines()]

    def aggregate(self, profile, status=0):
        out = self.folder / f"{profile.name}.fdata"
        done = recorded.run(PERF2BOLT, "--pa", "-p", profile, "-o", out, self.program, status=status)
        return out, done.stdout + done.stderr

    def places(self):
        """Name as perf2bolt writes it → start address. It uses names of sections for code without a symbol."""
        out = {"[unknown]": 0}
        sections = recorded.run(TOOLS + "objdump", "-h", self.program).stdout
        for name, start in re.findall(r"^ +\d+ (\S+) +\w+ +(\w+) ", sections, re.M):
            out[f"__BOLT_PSEUDO_{name}"] = int(start, 16)
        for start, name in re.findall(r"^(\w+) [tT] (\S+)$", recorded.run(TOOLS + "nm", self.program).stdout, re.M):
            self.assertNotIn(name, out)
            out[name] = int(start, 16)
        stubs = recorded.run(TOOLS + "objdump", "-d", "-j", ".plt", self.program).stdout
        for start, name in re.findall(r"^(\w+) <(\S+)@plt>:$", stubs, re.M):
            out[f"{name}@PLT"] = int(start, 16)
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
        places, written = self.places(), collections.Counter()
        for kind, start, end, times, *mispredicted in self.lines:
            if kind == "B":
                branch = (int(start, 16), int(end, 16))
                written[branch] += int(times)
                written[(*branch, "mispredicted")] += int(mispredicted[0])
        read = collections.Counter()
        for line in merged.read_text().splitlines():
            _, start, at, _, end, to, mispredicted, times = line.split()
            # Local names have a number after a slash.
            branch = (places[start.partition("/")[0]] + int(at, 16), places[end.partition("/")[0]] + int(to, 16))
            # Fall-through becomes separate edges.
            if branch in written:
                read[branch] += int(times)
                read[(*branch, "mispredicted")] += int(mispredicted)
        self.assertEqual(+read, +written)
        self.assertGreaterEqual(sum(len(branch) == 2 and 0 not in branch for branch in read), 10)

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
    PERF2BOLT, BOLT = (recorded.need(recorded.newest(tool), "bolt-16") for tool in ("perf2bolt", "llvm-bolt"))
    PERF2BOLT = as_perf2bolt(PERF2BOLT)
    TOOLS = "aarch64-linux-gnu-"
    for tool in ("nm", "objdump"):
        recorded.need(TOOLS + tool, "binutils-aarch64-linux-gnu")
    QEMU = recorded.need("qemu-aarch64", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
