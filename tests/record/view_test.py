#!/usr/bin/env python3
"""Recordings by units that are programmed to trace a part: what `verify` finds, and which ranges the truth of the
recording holds, against a rule of its own over a recording of everything.

    view_test.py WAYMARK SOURCE_DIR [TEST…]

The program has one thread and does the same in every run, at the same addresses (setarch -R for those of a PIE).
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import truth_file  # noqa: E402
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CROSS = {"arm": "arm-linux-gnueabihf-gcc", "aarch64": "aarch64-linux-gnu-gcc"}
PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
volatile unsigned total;
__attribute__((noinline)) unsigned leaf(unsigned n) { return n % 7 ? n * 3 : n + 1; }
__attribute__((noinline)) unsigned middle(unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += leaf(i);
    return sum;
}
__attribute__((noinline)) unsigned other(unsigned n) { return n ? other(n - 1) + leaf(n) : 0; }
int main(void) {
    char text[64];
    for (unsigned i = 0; i < 20; ++i) {
        total += middle(i) + other(i);
        memset(text, (int)i, sizeof text);
        total += (unsigned)rand() + (unsigned)text[i];
    }
    return 0;
}
"""


def run(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)


def last_instruction(end, start, count):
    """The address of a range's last instruction. T32 instructions may be four bytes long: the C library has T32 code,
    but no range here contains it."""
    return end - 4 if end - start == 4 * count else end - 2


class View(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "program.c").write_text(PROGRAM)
        cls.symbols = {}
        for arch, compiler in CROSS.items():
            for kind, options in {"static": ("-static", "-no-pie"), "pie": ("-pie", "-fPIE")}.items():
                name = f"{arch}_{kind}"
                arm = ("-marm",) if arch == "arm" else ()
                done = run(compiler, "-O1", "-fno-builtin", *arm, *options, "-o", cls.folder / name,
                           cls.folder / "program.c")
                assert done.returncode == 0, done.stderr
                lines = run("nm", "-S", cls.folder / name).stdout.splitlines()
                cls.symbols[name] = {w[3]: (int(w[0], 16), int(w[0], 16) + int(w[1], 16))
                                     for w in (line.split() for line in lines) if len(w) == 4}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, program, *options, status=0):
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        begin = () if "--start-at" in options else ("--from-start",)
        done = run(WAYMARK, "record", *begin, "--truth", "-o", out, *options, "--", self.folder / program)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return out, done

    def ranges(self, out):
        (_, found), = truth_file.sources(out)
        return [r[:3] for r in found]

    def everything(self, program, unit):
        out, _ = self.record(program, "--unit", unit, "--start-at", "main")
        return self.ranges(out)

    def expect(self, program, unit, include=(), exclude=(), options=()):
        """The rules of sections 2.12 of etm4-registers.md, 5.6 of pft.md and 13 of etmv3.md, for ranges [low, high)."""
        expected, everything = [], self.everything(program, unit)
        for start, end, count in everything:
            last = last_instruction(end, start, count)
            inside = [any(low <= at < high for at in range(start, last + 4, 4)) for low, high in include]
            whole = [low <= start and last < high for low, high in exclude]
            if (not include or any(inside)) and not any(whole):
                expected.append((start, end, count))
        out, _ = self.record(program, "--unit", unit, "--start-at", "main", *options)
        self.assertGreater(len(expected), 20)
        self.assertLess(len(expected), len(everything))
        self.assertEqual(self.ranges(out), expected)
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("programmed not to trace", done.stdout)
        return out

    def test_ranges_of_functions(self):
        for program, unit in (("arm_static", "ptm"), ("arm_static", "etmv3"), ("aarch64_static", "ete"), ("aarch64_static", "etmv4")):
            s = self.symbols[program]
            with self.subTest(unit=unit):
                self.expect(program, unit, include=[s["middle"]], options=("--view-range", "middle"))
                self.expect(program, unit, include=[s["middle"], s["leaf"]],
                            options=("--view-range", "middle", "--view-range", "leaf"))
                self.expect(program, unit, exclude=[s["leaf"]], options=("--exclude-range", "leaf"))
                first, end = s["leaf"][0], s["other"][1]
                self.assertLess(first, end)
                self.expect(program, unit, exclude=[(first, end)],
                            options=("--exclude-range", f"{first:#x}-{end:#x}"))

    def test_include_and_exclude(self):
        s = self.symbols["aarch64_static"]
        both = (s["leaf"][0], s["other"][1])
        self.expect("aarch64_static", "ete", include=[both], exclude=[s["middle"]],
                    options=("--view-range", "{:#x}-{:#x}".format(*both), "--exclude-range", "middle"))

    def test_other_options_beside_ranges(self):
        for program, unit, options in (("arm_static", "ptm", ("--cycle-accurate", "--return-stack", "--timestamps")),
                                       ("arm_static", "etmv3", ("--cycle-accurate", "--timestamps", "--context-id", "4")),
                                       ("aarch64_static", "ete", ("--speculation", "8")),
                                       ("aarch64_static", "etmv4", ("--cycle-accurate", "--cycle-threshold", "100")),
                                       ("aarch64_static", "ete", ("--return-stack", "--timestamps"))):
            with self.subTest(unit=unit, options=options):
                self.expect(program, unit, include=[self.symbols[program]["middle"]],
                            options=("--view-range", "middle", *options))

    def test_a_position_independent_program(self):
        """The address of the function is known when the program is mapped: then the unit is programmed."""
        for program, unit in (("arm_pie", "ptm"), ("arm_pie", "etmv3"), ("aarch64_pie", "ete")):
            with self.subTest(unit=unit):
                out, _ = self.record(program, "--unit", unit, "--view-range", "middle")
                done = run(WAYMARK, "verify", out)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                low, high = self.symbols[program]["middle"]
                # Pages are 4 KiB, and the program is mapped by pages.
                places = {start & 0xfff for start, _, _ in self.ranges(out)}
                self.assertGreater(len(self.ranges(out)), 100)
                lengths = {(start & 0xfff, end - start) for start, end, _ in self.ranges(out)}
                in_function = [p for p in places if (low & 0xfff) <= p < (low & 0xfff) + high - low]
                self.assertGreater(len(in_function), 1, lengths)
                # With an ETMv3 each instruction is a range.
                self.assertLess(len(places), 12 if unit != "etmv3" else (high - low) // 2)

    def test_a_function_of_a_library(self):
        out, _ = self.record("aarch64_pie", "--view-range", "rand")
        self.assertGreater(len(self.ranges(out)), 19)
        self.assertEqual(run(WAYMARK, "verify", out).returncode, 0)
        _, done = self.record("aarch64_pie", "--view-range", "no_such_function", status=1)
        self.assertIn("no file that ran has such a symbol", done.stderr)
        self.assertIn("nothing recorded", done.stderr)

    def test_trigger(self):
        for unit in ("ptm", "etmv3"):
            out, _ = self.record("arm_static", "--unit", unit, "--trigger-at", "middle")
            self.assertEqual(run(WAYMARK, "verify", out).returncode, 0)
            self.assertGreater(self.packets(out).get("TRIGGER", 0), 10)
        for unit in ("ete", "etmv4"):
            out, _ = self.record("aarch64_static", "--unit", unit, "--trigger-at", "middle", "--start-at", "main")
            self.assertEqual(run(WAYMARK, "verify", out).returncode, 0)
            self.assertEqual(self.packets(out).get("EVENT"), 20)

    def packets(self, out):
        counts = {}
        done = run(WAYMARK, "info", out, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)

        def look(node):
            if isinstance(node, dict):
                if isinstance(node.get("packets"), dict):
                    for name, count in node["packets"].items():
                        counts[name.upper()] = counts.get(name.upper(), 0) + count
                for value in node.values():
                    look(value)
            elif isinstance(node, list):
                for value in node:
                    look(value)
        look(json.loads(done.stdout))
        return counts

    def test_registers_by_name(self):
        for program, unit, text in (
                ("arm_static", "ptm", "ETMACVR1 {low:#x}  # where it begins\nETMACVR2 = {high:#x}\nETMTECR1 0x1\n"),
                ("arm_static", "etmv3", "ETMACVR1 {low:#x}\nETMACVR2 {high:#x}\nETMTECR1 1\n"),
                ("aarch64_static", "ete", "TRCACVR0 {low:#x}\nTRCACVR1 {last:#x}\nTRCVIIECTLR.INCLUDE 1\n"),
                ("aarch64_static", "etmv4", "[device]\nname=x\n[regs]\nTRCACVR0(size:64)={low:#x}\n"
                                            "TRCACVR1(size:64)={last:#x}\nTRCVIIECTLR=0x1\n; end\n")):
            low, high = self.symbols[program]["middle"]
            (self.folder / "unit.txt").write_text(text.format(low=low, high=high, last=high - 1))
            with self.subTest(unit=unit):
                out = self.expect(program, unit, include=[(low, high)],
                                  options=("--registers", self.folder / "unit.txt"))
                listing = run(WAYMARK, "info", out, "--details").stdout
                self.assertIn("ETMTECR1" if program == "arm_static" else "TRCVIIECTLR", listing)

    def test_programs_with_states(self):
        """Not only addresses decide here: the truth comes from the unit itself, and the trace agrees with it."""
        low, high = self.symbols["aarch64_static"]["other"]
        (self.folder / "unit.txt").write_text(
            f"TRCACVR0 {low:#x}\nTRCACVR1 {high - 4:#x}\nTRCVISSCTLR START=1 STOP=2\nTRCVICTLR.SSSTATUS 0\n")
        out, _ = self.record("aarch64_static", "--registers", self.folder / "unit.txt")
        self.assertEqual(run(WAYMARK, "verify", out).returncode, 0)
        self.assertGreater(len(self.ranges(out)), 20)
        low, _ = self.symbols["arm_static"]["other"]
        (self.folder / "unit.txt").write_text(f"ETMACVR1 {low:#x}\nETMTEEVR 0\n")  # blocks with that instruction
        out, _ = self.record("arm_static", "--registers", self.folder / "unit.txt")
        self.assertEqual(run(WAYMARK, "verify", out).returncode, 0)
        self.assertTrue(all(start <= low < end for start, end, _ in self.ranges(out)))
        self.assertGreater(len(self.ranges(out)), 20)

        # Single instructions, and all other instructions.
        for exclude in (0, 1 << 24):
            (self.folder / "unit.txt").write_text(f"ETMACVR3 {low:#x}\nETMTECR1 {exclude}\nETMTECR2 4\n")
            out, _ = self.record("arm_static", "--unit", "etmv3", "--registers", self.folder / "unit.txt")
            self.assertEqual(run(WAYMARK, "verify", out).returncode, 0)
            self.assertGreater(len(self.ranges(out)), 19)
            self.assertEqual({(start == low) != bool(exclude) for start, _, _ in self.ranges(out)}, {True})

    def test_what_cannot_be(self):
        def refused(expected, *options, program="aarch64_static", registers=None):
            if registers is not None:
                (self.folder / "unit.txt").write_text(registers)
                options = (*options, "--registers", self.folder / "unit.txt")
            out = self.folder / "refused"
            done = run(WAYMARK, "record", "--from-start", "-o", out, *options, "--", self.folder / program)
            self.assertIn(done.returncode, (2, 3), (options, done.stdout, done.stderr))
            self.assertIn(expected, done.stderr)
            self.assertFalse(out.exists())
        ranges = [x for n in range(5) for x in ("--view-range", f"{0x1000 + n * 16:#x}-{0x1008 + n * 16:#x}")]
        refused("need 5 pairs of address comparators; this unit has 4", *ranges)
        refused("need 5 pairs of address comparators; this unit has 4", *ranges, program="arm_static")
        refused("not both", "--view-range", "main", "--exclude-range", "leaf", program="arm_static")
        refused("has no such symbol", "--view-range", "nowhere")
        refused("is not a range", "--view-range", "0x1000")
        refused("ends at", "--view-range", "0x1000-0x1000")
        refused("needs --cycle-accurate", "--cycle-threshold", "9")
        refused("4 to 4095", "--cycle-accurate", "--cycle-threshold", "3")
        refused("an ETMv3 includes ranges or excludes them, not both", "--unit", "etmv3", "--view-range", "main", "--exclude-range", "leaf",
                program="arm_static")
        refused("a PTM counts cycles", "--cycle-threshold", "9", program="arm_static")
        refused("--fifo cannot be used with", "--fifo", "64", "--view-range", "main")
        refused("--registers with --unit spe is only for --system", "--unit", "spe", "--registers", "x")
        refused("cannot be read", "--registers", self.folder / "missing")
        refused("unit.txt:2: TRCVICTRL: this ETE has no such register; is TRCVICTLR meant?",
                registers="# a comment\nTRCVICTRL 1\n")
        refused("unit.txt:1: TRCIDR4: the register is read-only; it is 0x11170004", registers="TRCIDR4 0\n")
        refused("unit.txt:1: TRCCCCTLR: bits 0x1000 are reserved", registers="TRCCCCTLR 0x1000\n")
        refused("unit.txt:1: TRCCCCTLR.THRESHOLD: 0x1000 is too large; the field has 12 bits, up to 0xfff",
                registers="TRCCCCTLR.THRESHOLD 4096\n")
        refused("unit.txt:1: TRCCCCTLR.LIMIT: TRCCCCTLR has no such field; it has THRESHOLD",
                registers="TRCCCCTLR.LIMIT 1\n")
        refused("unit.txt:1: TRCCCCTLR: 0x100000000 is more than 32 bits", registers="TRCCCCTLR 0x100000000\n")
        refused("unit.txt:1: 'TRCCCCTLR' has no value", registers="TRCCCCTLR\n")
        refused("unit.txt:1: 'many' is not a number", registers="TRCCCCTLR many\n")
        refused("sets no register", registers="# nothing\n")
        refused("TRCSYNCPR.PERIOD is 3; 0 and 8 to 20 are allowed", registers="TRCSYNCPR 3\n")
        refused("ETMACVR9: this PTM has no such register", program="arm_static", registers="ETMACVR9 1\n")
        refused("ETMTECR2: this PTM has no such register", program="arm_static", registers="ETMTECR2 1\n")
        refused("ETMAUXCR: this ETMv3 has no such register", "--unit", "etmv3", program="arm_static", registers="ETMAUXCR 1\n")
        refused("ETMCR: bits 0x8 are reserved", "--unit", "etmv3", program="arm_static", registers="ETMCR 0x8\n")
        refused("ETMACTR1: the access type is 4, a transfer of data", "--unit", "etmv3", program="arm_static", registers="ETMACTR1 4\n")


if __name__ == "__main__":
    missing = [c for c in (*CROSS.values(), "qemu-arm", "qemu-aarch64") if shutil.which(c) is None]
    if missing:
        print("SKIPPED:", ", ".join(missing), "missing")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
