#!/usr/bin/env python3
"""Recordings of AArch64 programs by ETE and ETMv4: the truth against QEMU's log of what executed, what Waymark decodes
against the truth, and what OpenCSD decodes against the truth.

    aarch64_test.py WAYMARK SOURCE_DIR

The rules for QEMU's log are those of executed_test.py. Here BRK, an undefined instruction and a faulting access are
entered and do not execute: they are where their exceptions return to (docs/spec/etm4-registers.md, 2.13).
"""
import collections
import json
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from executed_test import Mismatch, follow, is_straight, run  # noqa: E402
import opencsd  # noqa: E402
import truth_file  # noqa: E402
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CROSS = "aarch64-linux-gnu-gcc"
KINDS = {"static": ("-static",), "pie": (), "pac": ("-O2", "-mbranch-protection=standard")}


def entered(path):
    found = []
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("Trace "):
            found.append(int(line.split("/", 2)[1], 16))
        elif line.startswith("Stopped execution") and found:
            found.pop()
    return found


class Aarch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        for name, options in KINDS.items():
            done = run(CROSS, "-O1", *options, "-o", cls.folder / name, SOURCE / "tests/record/aarch64.c", "-lpthread")
            assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, program, *options):
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        begin = () if "--start-at" in options else ("--from-start",)
        done = run(WAYMARK, "record", *begin, "--truth", "-o", out, *options, "--", program)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return out, done

    def verify(self, out):
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("equal", done.stdout)
        return done.stdout

    def test_what_executed(self):
        """Recording and QEMU's log come from one run."""
        for name in KINDS:
            with self.subTest(name):
                logs = self.folder / "logs"
                shutil.rmtree(logs, ignore_errors=True)
                logs.mkdir()
                log = ("-singlestep", "-d", "exec,nochain,tid", "-D", str(logs / "%d"))
                out, _ = self.record(self.folder / name, *(f"--qemu={option}" for option in log))
                left = dict(re.findall(r"^source (\S+) .*unfinished_instructions (\d+) ",
                                       (out / "truth.txt").read_text(), re.M))
                entries = [entered(path) for path in sorted(logs.iterdir())]
                sources = truth_file.sources(out)
                self.assertEqual(len(sources), 4)
                stopped = 0
                for source, ranges in sources:
                    why = []
                    for log in entries:
                        try:
                            more, rest = follow(ranges, log)
                        except Mismatch as mismatch:
                            why.append(str(mismatch))
                            continue
                        if is_straight(rest[int(left[source]):]):
                            break
                        why.append(f"{len(rest)} entries are left, {left[source]} unfinished")
                    else:
                        self.fail(f"{source}: " + "\n".join(why))
                    entries.remove(log)
                    stopped += more
                self.assertFalse([log for log in entries if log], "a thread that was not recorded")
                self.assertEqual(stopped, 3)
                self.verify(out)

    def test_every_way_to_program_the_unit(self):
        for unit in ("ete", "etmv4"):
            for options in ((), ("--return-stack",), ("--branch-broadcast", "--sync", "256"),
                            ("--cycle-accurate", "--timestamps", "--context-id", "4"),
                            ("--return-stack", "--speculation", "2"),
                            ("--cycle-accurate", "--timestamps", "--speculation", "60"),
                            ("--sync", "0"), ("--blocks",)):
                with self.subTest(unit=unit, options=options):
                    out, _ = self.record(self.folder / "pie", "--unit", unit, *options)
                    self.verify(out)
                    if "--speculation" not in options:
                        self.compare_with_opencsd(out)

    def test_cycles_are_those_of_the_code_that_took_them(self):
        # The recorder counts one cycle for each instruction. Counts below TRCCCCTLR.THRESHOLD are added to later ones,
        # so only long calls have exact counts.
        out, _ = self.record(self.folder / "static", "--cycle-accurate")
        rows = json.loads(run(WAYMARK, "profile", out, "--limit", "0", "--format", "json").stdout)["rows"]
        large = [row for row in rows if row["instructions inclusive"] >= max(5000, 50 * row["calls"])]
        self.assertGreater(len(large), 3)
        for row in large:
            self.assertAlmostEqual(row["cycles inclusive"] / row["instructions inclusive"], 1, delta=0.05, msg=row)
        instructions, cycles = (sum(row[name] or 0 for row in rows) for name in ("instructions", "cycles"))
        self.assertAlmostEqual(cycles / instructions, 1, delta=0.02)

    def test_doctor_proves_the_program(self):
        for options in ((), ("--unit", "etmv4", "--speculation", "8")):
            out, _ = self.record(self.folder / "static", *options)
            text = " ".join(run(WAYMARK, "doctor", out).stdout.split())
            share = re.search(r"agrees, proven: .*? ranges, ([0-9.]+)% of the branches in the trace", text)
            self.assertIsNotNone(share, text)
            self.assertGreater(float(share[1]), 95)

    def test_full_fifo(self):
        for options in ((), ("--cycle-accurate", "--return-stack"), ("--speculation", "16")):
            with self.subTest(options=options):
                out, _ = self.record(self.folder / "pie", "--fifo", "64", "--drain", "60", *options)
                text = self.verify(out)
                self.assertRegex(text, r"were lost to a full FIFO; the trace declares [0-9,]+ overflows")

    def test_exceptions(self):
        out, done = self.record(self.folder / "static", "--unit", "etmv4")
        self.assertIn("hits 4 sum 6000", done.stdout)
        text = run(WAYMARK, "flow", out).stdout
        found = collections.Counter(re.findall(r"exception \d+: ([A-Za-z ]+),", text))
        calls = found.pop("Call")
        self.assertEqual(found, {"Data fault": 1, "Trap": 1, "Inst debug": 1})
        self.assertGreater(calls, 20)

    def test_arguments_that_look_like_options(self):
        """Words after -- belong to the program, whatever options precede them."""
        for options in (("--qemu=-s", "--qemu=8388608"), ("--qemu", "-singlestep"), ("--max-changes", "9")):
            with self.subTest(options=options):
                out = self.folder / "out"
                shutil.rmtree(out, ignore_errors=True)
                done = run(WAYMARK, "record", "--from-start", "--limit", "1000", "-o", out, *options, "--", self.folder / "static", "-c",
                           "--unit", "--", "-k2")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("static -c --unit -- -k2\n", (out / "snapshot.ini").read_text())

    def test_start_and_stop(self):
        for name in ("static", "pie"):
            with self.subTest(name):
                out, _ = self.record(self.folder / name, "--start-at", "main", "--stop-at", "qsort")
                self.verify(out)
                listing = run(WAYMARK, "flow", out).stdout
                self.assertIn("main", listing)

    def test_coverage_counts_what_never_ran(self):
        """Functions that never ran, and the unexecuted parts of others, have the instructions that objdump shows."""
        program = self.folder / "static"
        out, _ = self.record(program)
        done = run(WAYMARK, "coverage", out, "--symbols", program, "--by", "function", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = json.loads(done.stdout)["rows"]
        listing = run("aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", program).stdout
        shown, size = {}, {}
        for block in listing.split("\n\n"):
            if head := re.match(r"([0-9a-f]+) <([^>@]+)>:\n", block):
                lines = re.findall(r"^ +[0-9a-f]+:\t(\S+)", block, re.MULTILINE)
                if not any(word.startswith((".", "udf")) for word in lines):
                    shown[head[2]] = len(lines)
        for line in run("aarch64-linux-gnu-nm", "-S", program).stdout.splitlines():
            if field := re.match(r"[0-9a-f]+ ([0-9a-f]+) [tTwW] (\S+)$", line):
                size.setdefault(field[2], []).append(int(field[1], 16))
        compared = idle = 0
        for row in rows:
            name = row["function"]
            # objdump ends a block at the next label, and includes padding.
            if size.get(name) != [4 * shown.get(name, 0)]:
                continue
            self.assertEqual(row["instructions"], shown[name], row)
            compared += 1
            idle += row["instructions executed"] == 0
        self.assertGreater(compared, 300)
        self.assertGreater(idle, 200)

    def test_other_units_and_programs(self):
        a64, a32 = self.folder / "static", SOURCE / "examples/sort/sort.elf"
        out = self.folder / "refused"
        done = run(WAYMARK, "record", "--from-start", "--unit", "ptm", "-o", out, "--", a64)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("is an AArch64 program; --unit ptm traces only AArch32 cores", done.stderr)
        self.assertIn("--unit ete or etmv4 records this one", done.stderr)
        for options, text in ((("--unit", "ete", "--sync", "1000"), "power of two"),
                              (("--unit", "ete", "--core", "cortex-a53"), "armv9-a is"),
                              (("--fifo", "32"), "at least 64 bytes"),
                              (("--speculation", "1"), "from 2 to 256"),
                              (("--context-id", "2"), "4 bytes; 0 means none")):
            with self.subTest(options=options):
                done = run(WAYMARK, "record", "--from-start", *options, "-o", out, "--", a64)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(text, done.stderr)
        if not shutil.which("qemu-arm"):
            self.skipTest("qemu-arm is not on PATH; it is in the Debian package qemu-user")
        out, _ = self.record(a32, "--unit", "etmv4", "--return-stack")
        self.verify(out)
        self.compare_with_opencsd(out)

    def test_what_is_no_program(self):
        static, odd = self.folder / "static", self.folder / "odd"
        contents = static.read_bytes()
        for text, data, mode in (("is empty", b"", 0o755), ("is a script, which QEMU cannot run; ", b"#!/bin/sh\n", 0o755),
                                 ("is not an ELF file", b"text\n", 0o755), ("not executable; chmod", contents, 0o644),
                                 ("no loadable segment", contents[:100], 0o755)):
            with self.subTest(text):
                odd.write_bytes(data)
                odd.chmod(mode)
                done = run(WAYMARK, "record", "--from-start", "-o", self.folder / "refused", "--", odd)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn(text, done.stderr)
                self.assertFalse((self.folder / "refused").exists())
        for program, text in ((self.folder, "no regular file"), (self.folder / "nowhere", "no such file"),
                              (sys.executable, "but Arm (40) or AArch64 (183) was expected")):
            done = run(WAYMARK, "record", "--from-start", "-o", self.folder / "refused", "--", program)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(text, done.stderr)
        for sysroot, status, text in (("/nowhere", 3, "--sysroot /nowhere is not a folder"), (static, 3, "is not a folder"),
                                      (SOURCE, 1, "in the folder that --sysroot names")):
            done = run(WAYMARK, "record", "--from-start", "-o", self.folder / "nothing", "--sysroot", sysroot, "--", self.folder / "pie")
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(text, done.stderr)

    def compare_with_opencsd(self, out):
        """Every range OpenCSD gives, by source."""
        if opencsd.LISTER is None:
            print(opencsd.MISSING)
        else:
            self.assertEqual(opencsd.differences(out), [])


if __name__ == "__main__":
    for tool, package in (("qemu-aarch64", "qemu-user"),
                          (CROSS, "gcc-aarch64-linux-gnu, with libc6-dev-arm64-cross")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    if not pathlib.Path("/usr/aarch64-linux-gnu/include/stdio.h").exists():
        print("SKIPPED: the C library for AArch64 is missing; it is in the Debian package libc6-dev-arm64-cross")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
