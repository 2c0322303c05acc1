#!/usr/bin/env python3
"""Recordings with --unit etmv3: verified, compared with OpenCSD, damaged, and as perf.data.

    etm3_test.py WAYMARK SOURCE_DIR

The witnesses are what QEMU executed (--truth) and OpenCSD.
"""
import csv
import io
import pathlib
import shutil
import subprocess
import sys
import unittest

import opencsd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
COMPILER = "arm-linux-gnueabihf-gcc"
# Freestanding, to keep the run short: calls, a table of functions, IT blocks, A32 beside T32, a signal for a data
# abort.
PROGRAM = r"""
typedef int (*op)(int, int);
__attribute__((noinline)) static int add(int a, int b) { return a + b; }
__attribute__((noinline)) static int sub(int a, int b) { return a > b ? a - b : b - a; }
__attribute__((noinline, target("arm"))) static int mul(int a, int b) { return a * b + (a & 1 ? 3 : b); }
static op ops[] = {add, sub, mul};
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static long call(long n, long a, long b, long c) {
    register long r0 __asm__("r0") = a, r1 __asm__("r1") = b, r2 __asm__("r2") = c, r7 __asm__("r7") = n;
    __asm__ volatile("svc 0" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r7) : "memory");
    return r0;
}
void _start(void) {
    int s = 1;
    char text[2];
    for (int i = 0; i < 30; ++i) s = ops[i % 3](s, i) & 0xffff;
    s += fib(8);
    text[0] = 'a' + s % 26;
    text[1] = '\n';
    call(4, 1, (long)text, 2);
    call(248, 0, 0, 0);
}
"""


class Etm3(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        source = cls.folder / "program.c"
        source.write_text(PROGRAM)
        cls.programs = {}
        for isa in ("arm", "thumb"):
            program = cls.folder / isa
            subprocess.run([COMPILER, "-O1", f"-m{isa}", "-nostdlib", "-static", "-g", "-o", program, source], check=True)
            cls.programs[isa] = program

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, name, isa, *options):
        out = self.folder / name
        done = run(WAYMARK, "record", "--from-start", "-q", "--unit", "etmv3", "--truth", *options, "-o", out, "--", self.programs[isa])
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def packets(self, out):
        done = run(WAYMARK, "packets", out, "--format", "tsv")
        return [row["packet"] for row in csv.DictReader(io.StringIO(done.stdout), delimiter="\t")]

    def test_every_way_to_program_the_unit(self):
        ways = ((), ("--cycle-accurate", "--timestamps"), ("--branch-broadcast", "--context-id", "4", "--sync", "100"),
                ("--fifo", "40", "--drain", "9"))
        for isa in ("arm", "thumb"):
            for number, options in enumerate(ways):
                with self.subTest(isa=isa, options=options):
                    out = self.record(f"{isa}-{number}", isa, *options)
                    done = run(WAYMARK, "verify", out)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    flows = [run(WAYMARK, "flow", out, "--format", "tsv", *d).stdout
                             for d in ((), ("--reference-decoder",), ("--jobs", "3"))]
                    self.assertGreater(len(flows[0].splitlines()), 500)
                    self.assertEqual(flows[0], flows[1])
                    self.assertEqual(flows[0], flows[2])
                    packets = set(self.packets(out))
                    self.assertLessEqual({"P-HEADER", "BRANCH-ADDRESS", "A-SYNC"}, packets)
                    self.assertEqual("TIMESTAMP" in packets, "--timestamps" in options)
                    self.assertEqual("I-SYNC-CYCLES" in packets, "--cycle-accurate" in options)
                    if opencsd.LISTER and "--fifo" not in options:
                        self.assertEqual(opencsd.differences(out), [])
        if not opencsd.LISTER:
            print(opencsd.MISSING)

    def test_what_the_unit_does_not_have_is_refused(self):
        for options, words in ((("--return-stack",), "no return stack"), (("--core", "cortex-a15"), "cortex-a7"),
                               (("--view-range", "_start", "--exclude-range", "_start"), "not both")):
            done = run(WAYMARK, "record", "--from-start", "--unit", "etmv3", *options, "-o", self.folder / "no", "--", self.programs["arm"])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)

    def test_perf_data(self):
        """In the form that Linux writes for coresight-etm3x: the words of the block in AUXTRACE_INFO are ETMCR to
        ETMIDR."""
        data = self.folder / "perf.data"
        done = run(WAYMARK, "record", "-q", "--unit", "etmv3", "--as", "perf", "--per-thread", "-o", data, "--",
                   self.programs["thumb"])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(WAYMARK, "info", data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ETMv3.5", done.stdout)
        flow = run(WAYMARK, "flow", data, "--format", "tsv")
        self.assertEqual(flow.returncode, 0, flow.stderr)
        ranges = [(r["start"], r["end"]) for r in csv.DictReader(io.StringIO(flow.stdout), delimiter="\t")
                  if r["element"] == "range"]
        out = self.record("beside-perf", "thumb")
        snapshot = run(WAYMARK, "flow", out, "--format", "tsv")
        expected = [(r["start"], r["end"]) for r in csv.DictReader(io.StringIO(snapshot.stdout), delimiter="\t")
                    if r["element"] == "range"]
        self.assertGreater(len(ranges), 500)
        self.assertEqual(ranges, expected)

    def test_doctor_needs_no_registers(self):
        """The bytes alone: what is traced is inferred from them, and open settings from the program."""
        out = self.record("bare", "arm", "--cycle-accurate", "--timestamps", "--sync", "200")
        done = run(WAYMARK, "doctor", out / "trace.bin", "--image", self.programs["arm"])
        self.assertIn("(ETMv3)", done.stdout)
        self.assertRegex(done.stdout, r"proven +cycle counts: yes|proven +cycle accurate: yes")
        self.assertRegex(done.stdout, r"image +agrees|image +fits|image +matches")


if __name__ == "__main__":
    if shutil.which(COMPILER) is None or shutil.which("qemu-arm") is None:
        print(f"SKIPPED: {COMPILER} or qemu-arm is missing")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
