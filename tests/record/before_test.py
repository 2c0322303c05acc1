#!/usr/bin/env python3
"""What a recording that begins at main states about the run before it: against QEMU's own log of what it executed, and
against a recording of the whole run.

    before_test.py WAYMARK SOURCE_DIR

QEMU's log (`-singlestep -d exec,nochain`) has the address of each instruction that it executes. What a program does before
main is the same in each of its runs.
"""
import collections
import csv
import pathlib
import re
import shutil
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import endless  # noqa: E402
from scratch import Folder, HANGS, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
MACHINES = {"arm": ("arm-linux-gnueabihf-", "qemu-arm", "/usr/arm-linux-gnueabihf", ()),
            "aarch64": ("aarch64-linux-gnu-", "qemu-aarch64", "/usr/aarch64-linux-gnu", ("--unit", "ete"))}
CLASSES = ("executed", "not executed", "not observed")
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
volatile unsigned sum;
/* Both ways of its branch before main; main goes one of them. */
__attribute__((noinline)) static unsigned odd(unsigned x) { if (x & 1) sum += x; else sum -= x; return sum; }
/* One way before main, and the other never. */
__attribute__((noinline)) static unsigned least(unsigned x) { if (x > 1000) sum = 1000; return x; }
__attribute__((noinline)) static unsigned never(unsigned x) { for (unsigned i = 0; i < x; ++i) sum ^= i; return sum; }
__attribute__((constructor)) static void early(void) {
    for (unsigned i = 0; i < 9; ++i) odd(i);
    sum = least(sum + 7);
}
int main(int n, char** arguments) {
    odd(3);
    if (n > 5) never(9);
    printf("%u %s\n", sum, arguments[0] ? "named" : "");
    return 0;
}
"""

THREAD = r"""
#include <pthread.h>
static volatile int go;
static volatile unsigned sum;
static pthread_t worker;
__attribute__((noinline)) static void work(void) { for (unsigned i = 0; i < 20000; ++i) sum += i; }
static void* body(void* nothing) { while (!go) ; work(); return nothing; }
__attribute__((constructor)) static void early(void) { pthread_create(&worker, 0, body, 0); }
int main(void) { go = 1; pthread_join(worker, 0); return 0; }
"""

SIGNALS = r"""
#include <signal.h>
#include <stdio.h>
static volatile int sum;
static void handler(int number) { sum += number; }
__attribute__((noinline)) static int never(int n) { return n * 5; }
int main(int n, char** arguments) {
    signal(SIGUSR1, handler);
    for (int i = 0; i < 3; ++i) raise(SIGUSR1);
    if (n > 5) sum += never(n);
    printf("%d %s\n", sum, arguments[0]);
    return 0;
}
"""

ENDLESS = r"""
static volatile unsigned sum;
int main(void) { for (unsigned i = 0;; ++i) sum = (sum ^ i) & 0x10010 ? sum * 5 + i : sum + 3; }
"""


def number(text):
    return int(str(text or 0).replace(",", ""))


class Before:
    """before.txt, read as docs/captures.md describes it."""

    def __init__(self, path):
        lines = [line.split() for line in path.read_text().splitlines()]
        assert lines[0] == ["waymark-before", "2"] and lines[-1] == ["end"], lines[:1] + lines[-1:]
        of = lambda kind: [line[1:] for line in lines if line[0] == kind]
        (self.instructions,), = [[int(word) for word in line] for line in of("instructions")]
        self.code = [(int(first, 16), int(first, 16) + int(size)) for first, size in of("code")]
        self.branches = {int(address, 16): way for address, way in of("branch")}


class RanBeforeMain(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        (cls.folder / "program.c").write_text(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def build(self, machine, name, *options):
        program = self.folder / f"{machine}-{name}"
        done = run(MACHINES[machine][0] + "gcc", "-O1", "-g", "-Wl,--build-id", "-o", program, self.folder / "program.c", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def waymark(self, *arguments, status=0):
        done = run(WAYMARK, *arguments)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}{done.stderr}")
        return done

    def record(self, machine, program, name, *options):
        out = self.folder / f"{program.name}-{name}"
        self.waymark("record", "-q", *MACHINES[machine][3], *options, "-o", out, "--", program)
        return out

    def coverage(self, out):
        text = self.waymark("coverage", out, "--by", "function", "--format", "tsv").stdout
        rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
        # Code without a symbol is known as far as control flow leads to it, which is further in a longer recording.
        out = collections.defaultdict(collections.Counter)
        for r in rows:
            if r["function"] != "all" and "(no symbol)" not in r["function"] and not r["function"].endswith("?"):
                out[r["function"], r["path"]].update({f"{what} {c}": number(r[f"{what} {c}"])
                                                      for what in ("instructions", "directions") for c in CLASSES})
        return out

    def ran_before_main(self, machine, program, out):
        """The addresses that QEMU executed until it reached main."""
        prefix, qemu, root, _ = MACHINES[machine]
        log = self.folder / "log"
        done = run(qemu, "-L", root, "-singlestep", "-d", "exec,nochain", "-D", log, program)
        self.assertEqual(done.returncode, 0, done.stderr)
        at = int(re.search(r"(?m)^([0-9a-f]+) T main$", run(prefix + "nm", program).stdout)[1], 16) & ~1
        ran = []
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("Trace "):
                ran.append(int(line.split("/", 2)[1], 16))
            elif line.startswith("Stopped execution") and ran:
                ran.pop()
        place, offset = re.search(rf"(?m)^map \S+ \S+ \S+ (\S+) \S+ (\S+) \S+ {re.escape(str(program))}$",
                                  (out / "maps.txt").read_text()).groups()
        # Code lies in these files at its memory address minus the bias.
        bias = 0 if at >= int(place, 16) else int(place, 16) - int(offset, 16)
        return ran[:ran.index(bias + at)]

    def test_it_is_what_qemu_executed(self):
        for machine in MACHINES:
            for name, options in (("pie", ()), ("static", ("-static", "-no-pie"))):
                with self.subTest(machine=machine, name=name):
                    program = self.build(machine, name, *options)
                    out = self.record(machine, program, "main")
                    before, ran = Before(out / "before.txt"), self.ran_before_main(machine, program, out)
                    self.assertEqual(before.instructions, len(ran))
                    self.assertGreater(len(set(ran)), 1000)
                    executed = set(ran)
                    inside = {a for a in executed for first, end in before.code if first <= a < end}
                    self.assertEqual(inside, executed)
                    for first, end in before.code:
                        self.assertIn(first, executed)
                        self.assertTrue({end - 2, end - 4} & executed, hex(end))
                    if machine == "aarch64":
                        self.assertEqual({a for first, end in before.code for a in range(first, end, 4)}, executed)
                        self.check_ways(machine, program, before, ran, is_static=name == "static")

    def check_ways(self, machine, program, before, ran, is_static):
        after = collections.defaultdict(set)
        for address, following in zip(ran, ran[1:]):
            after[address].add(following == address + 4)
        listing = run(MACHINES[machine][0] + "objdump", "-d", "--no-show-raw-insn", program).stdout if is_static else ""
        # A branch to the next instruction does not show whether it was taken.
        to_next = {int(a, 16) for a, to in re.findall(r"(?m)^ *([0-9a-f]+):\tb\t([0-9a-f]+) ", listing) if int(a, 16) + 4 == int(to, 16)}
        for address, way in before.branches.items():
            if address in to_next:
                self.assertEqual(way, "both", hex(address))
                continue
            self.assertEqual(after[address], {"passed": {True}, "both": {True, False}}[way], hex(address))
        for address, ways in after.items():
            if ways == {True, False}:
                self.assertEqual(before.branches.get(address), "both", hex(address))
        if not is_static:
            return
        branches = {int(a, 16) for a in re.findall(r"(?m)^ *([0-9a-f]+):\t(?:b\.\w+|cbn?z|tbn?z)\t", listing)}
        passed = {a for a in branches & set(after) if after[a] == {True}}
        self.assertGreater(len(passed), 100)
        self.assertEqual(passed, {a for a, way in before.branches.items() if way == "passed"})

    def test_coverage_knows_what_did_not_run(self):
        """Compared with a recording of the whole run: the same code did not run, and the rest ran before main or after
        it."""
        for machine in MACHINES:
            for name, options in (("pie", ()), ("static", ("-static", "-no-pie"))):
                with self.subTest(machine=machine, name=name):
                    program = self.build(machine, name, *options)
                    out, whole = self.record(machine, program, "main"), self.record(machine, program, "whole", "--from-start")
                    self.assertFalse((whole / "before.txt").exists())
                    part, all_of_it = self.coverage(out), self.coverage(whole)
                    self.assertLessEqual(part.keys(), all_of_it.keys())
                    sums, otherwise = collections.Counter(), 0
                    for function, row in part.items():
                        expected = all_of_it[function]
                        # The size of a function in a stripped library follows from the code that is known to lead to
                        # it.
                        if sum(row[f"instructions {c}"] for c in CLASSES) != sum(expected[f"instructions {c}"] for c in CLASSES):
                            self.assertEqual(function[1], "", "a function of the program")
                            self.assertEqual(name, "pie")
                            otherwise += 1
                            continue
                        sums.update(row)
                        for what in ("instructions", "directions"):
                            self.assertEqual(row[f"{what} not executed"], expected[f"{what} not executed"], function)
                            self.assertEqual(row[f"{what} executed"] + row[f"{what} not observed"],
                                             expected[f"{what} executed"] + expected[f"{what} not observed"], function)
                    self.assertLess(otherwise, len(part) // 20)
                    for what in ("instructions", "directions"):
                        for c in CLASSES:
                            self.assertGreater(sums[f"{what} {c}"], 10, f"{what} {c}")
                    own = {function[0]: row for function, row in part.items()}
                    self.assertEqual(own["early"]["instructions executed"], 0)
                    self.assertEqual(own["early"]["instructions not executed"], 0)
                    self.assertEqual(own["never"]["instructions not observed"], 0)
                    self.assertEqual(own["odd"]["directions not observed"], 1)
                    self.assertEqual(own["least"]["directions not executed"], 1)

    def test_the_part_before_is_left_out_on_purpose_with_its_size(self):
        for machine in MACHINES:
            with self.subTest(machine=machine):
                program = self.build(machine, "pie")
                out = self.record(machine, program, "main")
                size = Before(out / "before.txt").instructions
                done = self.waymark("coverage", out, "--strict")
                self.assertIn(f"not traced: what ran before main, where the recording began ({size:,} instructions)", done.stdout)
                self.assertNotRegex(done.stdout + done.stderr, "(?m)^(waymark: )?warning")
                self.waymark("coverage", out, "--only", "program.c", "--strict", "--fail-under", "99", status=1)
                # Another place to begin is not a deliberate beginning, but the code that ran before it is known as
                # well.
                other = self.record(machine, program, "odd", "--start-at", "odd")
                self.waymark("coverage", other, status=0)
                self.waymark("coverage", other, "--strict", status=1)
                rows = self.coverage(other)
                self.assertGreater(sum(row["instructions not executed"] for row in rows.values()), 10)

    def test_a_thread_that_began_before_main_is_recorded(self):
        """The thread's work ends after main was reached, and QEMU's plugin delivers it before."""
        source = self.folder / "thread.c"
        source.write_text(THREAD)
        program = self.folder / "thread"
        done = run("aarch64-linux-gnu-gcc", "-O1", "-static", "-pthread", "-o", program, source)
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.record("aarch64", program, "main")
        calls = {row["function"]: row for row in csv.DictReader(
            self.waymark("profile", out, "--format", "tsv").stdout.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)}
        # Each iteration has at least three instructions.
        self.assertGreater(number(calls["work"]["instructions"]), 3 * 20000)
        self.assertGreater(number(calls["main"]["instructions"]), 3)
        self.assertNotIn("work", {row["function"] for row in self.not_executed(out)})
        self.waymark("coverage", out, "--strict")
        self.waymark("verify", out)

    def not_executed(self, out):
        rows = csv.DictReader(self.waymark("coverage", out, "--by", "function", "--format", "tsv").stdout.splitlines(),
                              delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in rows if number(row["instructions executed"]) == 0]

    def test_handlers_that_the_unit_leaves_out_are_no_code_of_the_program(self):
        """The same if a signal's handler is involved: the kernel's code runs unseen, outside the program's files."""
        (self.folder / "signals.c").write_text(SIGNALS)
        for machine, (prefix, _, _, options) in MACHINES.items():
            with self.subTest(machine=machine):
                program, out = self.folder / f"{machine}-signals", self.folder / f"{machine}-signals-out"
                done = run(prefix + "gcc", "-O1", "-g", "-static", "-o", program, self.folder / "signals.c")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.waymark("record", "-q", *options, "-o", out, "--", program)
                text = self.waymark("coverage", out, "--only", "signals.c", "--by", "function", "--format", "tsv").stdout
                rows = {r["function"]: r for r in csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)}
                self.assertGreater(number(rows["handler"]["instructions executed"]), 2)
                self.assertGreater(number(rows["never"]["instructions not executed"]), 1)
                for row in rows.values():
                    self.assertEqual(number(row["instructions not observed"]), 0, row)

    def test_a_damaged_file_is_not_believed(self):
        program = self.build("arm", "pie")
        out = self.record("arm", program, "damaged")
        text = (out / "before.txt").read_text()
        other = (self.record("arm", self.build("arm", "other", "-static"), "other") / "before.txt").read_text()
        for name, changed in (("cut", text[:len(text) // 2]), ("empty", ""), ("line", text.replace("code ", "cod ", 1)),
                              ("from another recording", other), ("missing", None)):
            with self.subTest(name):
                copy = self.folder / f"copy-{name}"
                shutil.copytree(out, copy)
                if changed is None:
                    (copy / "before.txt").unlink()
                else:
                    (copy / "before.txt").write_text(changed)
                done = self.waymark("coverage", copy, "--by", "function", "--format", "tsv")
                if changed is not None:
                    self.assertIn("before.txt", done.stderr)
                rows = csv.DictReader(done.stdout.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
                self.assertEqual(sum(number(row["instructions not executed"]) for row in rows), 0)
                self.waymark("coverage", copy, "--strict", status=1)

    def test_a_recording_that_was_killed_keeps_it(self):
        (self.folder / "endless.c").write_text(ENDLESS)
        for name, options in (("file", ()), ("memory", ("--buffer", "65536"))):
            with self.subTest(name):
                program, out = self.folder / f"endless-{name}", self.folder / f"endless-{name}-out"
                done = run("arm-linux-gnueabihf-gcc", "-O1", "-static", "-o", program, self.folder / "endless.c")
                self.assertEqual(done.returncode, 0, done.stderr)
                child = endless.start(self, (WAYMARK, "record", "-q", *options, "-o", out, "--", program))
                began, seen = time.monotonic(), set()
                # After it was written, the trace continues, or begins in another way.
                while len(seen) < 3 and time.monotonic() - began < HANGS:
                    if (out / "before.txt").exists():
                        seen.add(((out / "trace.bin").stat().st_size, (out / "trace.bin").read_bytes()[:1 << 16]))
                    time.sleep(0.2)
                child.kill()
                child.communicate(timeout=HANGS)
                size = Before(out / "before.txt").instructions
                self.assertGreater(size, 1000)
                done = self.waymark("coverage", out)
                self.assertNotIn("before.txt", done.stderr)
                self.assertIn(f"what ran before main, where the recording began ({size:,} instructions)", done.stdout)

    def test_a_recording_of_the_whole_run_takes_the_place_of_one_from_main(self):
        program = self.build("arm", "pie")
        self.record("arm", program, "again")
        out = self.record("arm", program, "again", "--from-start")
        self.assertFalse((out / "before.txt").exists())
        self.assertNotIn("where the recording began", self.waymark("coverage", out, "--strict").stdout)


if __name__ == "__main__":
    for prefix, qemu, root, _ in MACHINES.values():
        for tool, package in ((prefix + "gcc", "gcc-" + prefix[:-1]), (qemu, "qemu-user")):
            if shutil.which(tool) is None:
                print(f"SKIPPED: {tool} is missing; it is in the Debian package {package}")
                sys.exit(77)
        if not pathlib.Path(root, "include/stdio.h").exists():
            print(f"SKIPPED: the C library in {root} is missing; it is in a Debian package libc6-dev-…-cross")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
