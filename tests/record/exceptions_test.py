#!/usr/bin/env python3
"""Records every class of exception that QEMU can cause and compares the trace with the specification.

    exceptions_test.py WAYMARK SOURCE_DIR

The programs are tests/record/exceptions/*.S. Their comments contain the expectations, written by hand from
docs/spec/pft.md, 4.7: the number of each exception, its preferred return address, and the instruction its waypoint update
names. They are compared with the packets, with the decoded flow, and with the recorder's own truth.
"""
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import truth_file  # noqa: E402
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PROGRAMS = SOURCE / "tests/record/exceptions"
COMPILER = "arm-linux-gnueabihf-gcc"
SYSTEM = "qemu-system-arm"
SVC, RESET = 10, 8
BOARDS = {
    "cortex-a9": {"RAM": 0x60000000, "GIC_DISTRIBUTOR": 0x1e001000, "GIC_CPU": 0x1e000100,
                  "SYSTEM_REGISTERS": 0x10000000},
    "cortex-a15": {"RAM": 0x80000000, "GIC_DISTRIBUTOR": 0x2c001000, "GIC_CPU": 0x2c002000,
                   "SYSTEM_REGISTERS": 0x1c010000, "VIRTUALIZATION": 1},
}


class Exceptions(unittest.TestCase):
    def setUp(self):
        self.temporary = Folder()
        self.folder = pathlib.Path(self.temporary.name)
        self.out = self.folder / "out"
        self.program = self.folder / "program"

    def tearDown(self):
        self.temporary.cleanup()

    def build(self, source, definitions, *options):
        defined = [f"-D{name}={value:#x}" for name, value in definitions.items()]
        done = run(COMPILER, "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", *defined, *options, "-o",
                   self.program, PROGRAMS / source)
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = run("arm-linux-gnueabihf-nm", self.program).stdout
        symbols = {name: int(value, 16) for value, name in re.findall(r"^(\w+) \w (\w+)$", listed, re.M)}
        kept = run(COMPILER, "-E", "-C", *defined, PROGRAMS / source).stdout
        expected = []
        for line in kept.splitlines():
            found = re.search(r"@ = (\d+)(?: (\S+) (\S+))?", line)
            if found is None:
                continue
            number, back, update = int(found[1]), found[2], found[3]
            value = lambda text: None if text in (None, "none") else eval(text, {}, {**symbols, **definitions})
            expected.append((number, value(back), value(update)))
        self.assertTrue(expected)
        return expected

    def packets(self):
        """For each exception packet: its number, the vector, and the address of the waypoint update directly before
        it."""
        found, update = [], None
        for line in run(WAYMARK, "packets", self.out).stdout.splitlines():
            if match := re.search(r"WAYPOINT-UPDATE +executed up to (0x\w+)", line):
                update = int(match[1], 16)
            elif match := re.search(r"BRANCH-ADDRESS +exception (\d+) .*?, to (0x\w+)", line):
                found.append((int(match[1]), int(match[2], 16), update))
                update = None
            elif "TIMESTAMP" not in line:
                update = None
        return found

    def decoded(self):
        flow = run(WAYMARK, "flow", self.out)
        self.assertEqual(flow.returncode, 0, flow.stderr)
        return [(int(number), int(vector, 16), int(back, 16) if back else None) for number, vector, back in re.findall(
            r"exception (\d+): .*?, to (0x\w+)(?:, return address (0x\w+))?", flow.stdout, re.M)]

    def record(self, *options):
        done = run(WAYMARK, "record", "--from-start", "--truth", "-o", self.out, *options, "--", self.program)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        verified = run(WAYMARK, "verify", self.out)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def compare(self, expected, wanted=lambda number: True):
        packets = [(number, update) for number, _, update in self.packets() if wanted(number)]
        self.assertEqual([(n, u and hex(u)) for n, u in packets], [(n, u and hex(u)) for n, _, u in expected])
        flow = [(number, back) for number, _, back in self.decoded() if wanted(number)]
        # The place of a reset is unknown.
        self.assertEqual([(n, b and hex(b)) for n, b in flow if n != RESET],
                         [(n, b and hex(b)) for n, b, _ in expected if n != RESET])
        # The truth: a range ends after the instruction that the waypoint update contains; without an update, no range
        # does.
        ends = {end for _, ranges in truth_file.sources(self.out) for _, end, _, _ in ranges}
        for number, back, update in expected:
            if update is not None:
                self.assertTrue({update + 2, update + 4} & ends, hex(update))
            if number in (11, 12) and back is not None:
                self.assertNotIn(back + 2, ends, hex(back))
                self.assertNotIn(back + 4, ends, hex(back))

    def test_linux(self):
        expected = self.build("linux.S", {}, "-Wl,--section-start=.last=0x200ff8",
                                       "-Wl,--section-start=.last_thumb=0x300ffc")
        for options in ((), ("--blocks",), ("--core", "cortex-a9", "--cycle-accurate"), ("--branch-broadcast",)):
            with self.subTest(options):
                self.record(*options)
                self.compare(expected, lambda number: number != SVC)

    @unittest.skipUnless(shutil.which(SYSTEM), f"{SYSTEM} is not on PATH; it is in the Debian package of that name")
    def test_bare_metal(self):
        for core, board in BOARDS.items():
            expected = self.build("bare.S", board, f"-Wl,-Ttext={board['RAM'] + 0x10000:#x}",
                                           f"-Wl,--section-start=.last={board['RAM'] + 0xffff8:#x}")
            # Without watched instructions, the place where a trap to Hyp mode stopped a block is unknown.
            for options in ((), ("--blocks",)) if "VIRTUALIZATION" not in board else ((),):
                with self.subTest(core=core, options=options):
                    self.record("--system", "--core", core, *options)
                    self.compare(expected)


if __name__ == "__main__":
    for tool, package in (("qemu-arm", "qemu-user"), (COMPILER, "gcc-arm-linux-gnueabihf")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
