#!/usr/bin/env python3
"""Cycles of functions and levels, in recordings in which every instruction takes one cycle.

    cycles_test.py WAYMARK SOURCE_DIR

So the cycles of whatever ran are its instructions, but for what nobody counted: what ran before the first count of an
ETMv4 or ETE, which has no number, and behind the last one. The listing of the flow, which shows counts as they came, says
which ranges these are.
"""
import collections
import csv
import io
import json
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
COMPILERS = {"ete": "aarch64-linux-gnu-gcc", "etmv4": "aarch64-linux-gnu-gcc", "ptm": "arm-linux-gnueabihf-gcc"}
PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static volatile int hits;
static void handler(int s) { hits += s != 0; }
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
typedef int (*op)(int, int);
static int add(int a, int b) { return a + b; }
static int sub(int a, int b) { return a - b; }
static int mul(int a, int b) { return a * b; }
static op ops[] = {add, sub, mul};
static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
int main(void) {
    int s = 0, a[32];
    signal(SIGUSR1, handler);
    for (int i = 0; i < 20; ++i) {
        s += ops[i % 3](i, s);
        if (i % 7 == 0) raise(SIGUSR1);
    }
    s += fib(8);
    for (int i = 0; i < 32; ++i) a[i] = i * 7919 % 101;
    qsort(a, 32, sizeof(int), compare);
    printf("%d %d\n", s + a[5], hits);
    return 0;
}
"""


def table(*arguments):
    done = run(WAYMARK, *arguments, "--format", "tsv")
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t", quoting=csv.QUOTE_NONE))


def function(name):
    """Code without a symbol is named after the symbol before it; the signal trampoline is in no file."""
    if "no file" in name:
        return "no file"
    return re.split(r"[+?]", name)[0]


class Flow:
    """The contents of the listing: instructions of each function, the instructions that counts cover, and the
    counts."""

    def __init__(self, capture):
        self.instructions, self.covered = collections.Counter(), collections.Counter()
        self.counts = self.total = self.off = 0
        waiting, counted = collections.Counter(), False
        done = run(WAYMARK, "flow", capture, "--format", "json")
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            e = json.loads(line)
            if e["element"] == "range":
                name = function(e["symbol"])
                self.instructions[name] += e["instructions"]
                self.total += e["instructions"]
                if "cycles" in e and e["cycles"] is not None:
                    self.counts += e["cycles"]
                    self.covered[name] += e["instructions"]
                else:
                    waiting[name] += e["instructions"]
            elif e["element"] == "cycles":
                if e.get("cycles") is not None:
                    self.counts += e["cycles"]
                    self.covered += waiting
                waiting.clear()


class Cycles(unittest.TestCase):
    def setUp(self):
        self.temporary = Folder()
        self.folder = pathlib.Path(self.temporary.name)
        self.out = self.folder / "out"

    def tearDown(self):
        self.temporary.cleanup()

    def compiled(self, unit):
        compiler = COMPILERS[unit]
        if shutil.which(compiler) is None:
            self.skipTest(f"{compiler} is not installed")
        source, program = self.folder / "program.c", self.folder / unit
        source.write_text(PROGRAM)
        done = run(compiler, "-O1", "-g", "-static", "-o", program, source)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def record(self, *options):
        shutil.rmtree(self.out, ignore_errors=True)
        begin = () if "--start-at" in options else ("--from-start",)
        done = run(WAYMARK, "record", *begin, "-q", "-o", self.out, "--cycle-accurate", *options)
        self.assertEqual(done.returncode, 0, done.stderr)

    def summary(self):
        rows = run(WAYMARK, "flow", self.out, "--format", "summary").stdout
        total = rows[rows.index("total of"):]
        return {line[2:30].strip(): int(line[30:].split()[0].replace(",", ""), 0)
                for line in total.splitlines()[1:] if line[30:].strip()[:1].isdigit() and "hash" not in line}

    def expect_functions(self):
        flow = Flow(self.out)
        summary = self.summary()
        self.assertEqual(summary["instructions"], flow.total)
        self.assertEqual(summary["cycles"], flow.counts)
        self.assertEqual(flow.counts, sum(flow.covered.values()))
        cycles, instructions, unknown = collections.Counter(), collections.Counter(), 0
        for row in table("profile", self.out, "--by", "function", "--limit", "0"):
            name, ran = function(row["function"]), int(row["instructions"])
            instructions[name] += ran
            cycles[name] += int(row["cycles"] or 0)
            # An unknown time is never 0, and a handler that is not traced took an unknown time.
            handler = row["function"].startswith("[exception")
            self.assertEqual(row["cycles"] == "0", ran == 0 and not handler, row)
            unknown += row["cycles"] == "" and not handler
        self.assertEqual({n: c for n, c in instructions.items() if c}, dict(flow.instructions))
        self.assertEqual({n: c for n, c in cycles.items() if c}, dict(+flow.covered))
        return unknown

    def test_functions(self):
        for unit in ("ete", "etmv4"):
            program = self.compiled(unit)
            for options in ([], ["--timestamps", "--sync", "256"], ["--cycle-threshold", "256"],
                            ["--cycle-threshold", "1000", "--timestamps"], ["--speculation", "16"],
                            ["--speculation", "16", "--cycle-threshold", "100"]):
                with self.subTest(unit=unit, options=options):
                    self.record("--unit", unit, "--start-at", "main", *options, "--", program)
                    unknown = self.expect_functions()
                    if "1000" in options:
                        self.assertGreater(unknown, 0)

    # The words state how a count over many blocks was divided among functions; counts of single blocks need no such
    # words.
    def test_words(self):
        program = self.compiled("ete")
        self.record("--start-at", "main", "--cycle-threshold", "256", "--", program)
        for view in (["profile", "--by", "function"], ["profile", "--by", "level", "--metric", "cycles"]):
            self.assertIn("by instructions, and is at least 256 cycles (TRCCCCTLR)",
                          run(WAYMARK, view[0], self.out, *view[1:]).stdout)
        with_note = [m for m in json.loads(run(WAYMARK, "profile", self.out, "--format", "json").stdout)["metrics"]
                     if m["note"]]
        self.assertEqual([m["name"] for m in with_note], ["cycles"])

    # The kernel is not traced: the length of an exception is unknown, and its handler gets no cycles.
    def test_exceptions_of_a_program(self):
        program = self.compiled("ete")
        self.record("--start-at", "main", "--", program)
        rows = table("exceptions", self.out)
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual((row["returned"], row["sum"] or "0"), ("0", "0"))
        for row in table("profile", self.out, "--by", "function", "--limit", "0"):
            if row["function"].startswith("[exception"):
                self.assertEqual(row["cycles"], "")  # the handler was not traced

    def test_ptm(self):
        program = self.compiled("ptm")
        self.record("--unit", "ptm", "--start-at", "main", "--", program)
        cycles, instructions = collections.Counter(), collections.Counter()
        for row in table("profile", self.out, "--by", "function", "--limit", "0"):
            instructions[function(row["function"])] += int(row["instructions"])
            cycles[function(row["function"])] += int(row["cycles"] or 0)
        self.assertTrue(sum(instructions.values()) > 1000)
        for name, count in instructions.items():
            self.assertEqual(cycles[name], count, name)

    def test_levels(self):
        if shutil.which("qemu-system-aarch64") is None or shutil.which(COMPILERS["ete"]) is None:
            self.skipTest("qemu-system-aarch64 or aarch64-linux-gnu-gcc is not installed")
        done = run(SOURCE / "examples/build", "-o", self.folder, "levels")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for unit in ("ete", "etmv4"):
            with self.subTest(unit=unit):
                self.record("--system", "--qemu=-icount", "--qemu=shift=7", "--unit", unit, "--cycle-threshold", "64",
                            "--", self.folder / "levels-aarch64.elf")
                rows = table("profile", self.out, "--by", "level")
                self.assertTrue(len(rows) >= 5)
                missing = 0
                for row in rows:
                    self.assertLessEqual(int(row["cycles"] or 0), int(row["instructions"]), row)
                    missing += int(row["instructions"]) - int(row["cycles"] or 0)
                flow = Flow(self.out)
                self.assertEqual(missing, flow.total - sum(flow.covered.values()))


if __name__ == "__main__":
    if shutil.which("qemu-aarch64") is None:
        print("SKIPPED: qemu-aarch64 is missing; it is in the Debian package qemu-user")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
