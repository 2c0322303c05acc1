#!/usr/bin/env python3
"""Compares answers from program flow with what executed: examples recorded with every range, and real captures.

    flow_answers_test.py WAYMARK SOURCE_DIR

The expectations are computed without Waymark's decoders: the executed ranges are read from the recorder's file, the
instructions, branches and functions from objdump and nm. Answers from real captures (WAYMARK_CORPUS) are compared with sums
over `waymark flow --format tsv`.
"""
import bisect
import collections
import csv
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from numbers_of_bytes import Numbers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
OBJDUMP, NM = shutil.which("arm-linux-gnueabihf-objdump"), shutil.which("arm-linux-gnueabihf-nm")
CORPUS = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE.parent / "shared/corpus")
JOBS = (1, 2, 3, 7)

# Functions that continue in the next function without a branch, with instructions of both lengths.
FALLING = r"""
#include <stdio.h>
int first(int), second(int), third(int);
__asm__(".text\n.syntax unified\n.thumb\n"
        ".type first,%function\n.thumb_func\n.global first\nfirst: adds r0, #1\nadd.w r0, r0, #300\n.size first, .-first\n"
        ".type second,%function\n.thumb_func\n.global second\nsecond: add.w r0, r0, #3\n.size second, .-second\n"
        ".type third,%function\n.thumb_func\n.global third\nthird: adds r0, #3\ncmp r0, #7\nit eq\naddeq r0, #1\nbx lr\n"
        ".size third, .-third\n");
int main(void) {
    int sum = 0;
    for (int i = 0; i < 10; ++i) sum += first(i) + (i & 1 ? second(i) : third(sum));
    printf("%d\n", sum);
    return 0;
}
"""


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def table(*arguments):
    return list(csv.DictReader(io.StringIO(run(WAYMARK, *arguments, "--format", "tsv")), delimiter="\t"))


def truth_ranges(path):
    """The contents of a file written by record --truth: variable-length numbers, 0 before a new range, 1 before a lost
    one."""
    left = Numbers(path.read_bytes())
    known = []
    while left:
        first = left.number()
        assert first != 1, "a range was lost"
        if first == 0:
            start = left.number()
            known.append((start, start + left.number()))
            left.number()
            yield known[-1]
        else:
            yield known[first - 2]


class Program:
    """Instructions and functions of an ELF file, as binutils shows them."""

    def __init__(self, path):
        self.instructions = {}  # address: (bytes, mnemonic, operands)
        for line in run(OBJDUMP, "-d", "--no-show-raw-insn", path).splitlines():
            if match := re.match(r"\s*([0-9a-f]+):\s+(\S+)\s*(.*)$", line):
                if not match[2].startswith("."):
                    self.instructions[int(match[1], 16)] = [0, match[2], match[3]]
        raw = run(OBJDUMP, "-d", path)
        for line in raw.splitlines():
            if match := re.match(r"\s*([0-9a-f]+):\t([0-9a-f ]+?)\s*\t", line):
                address = int(match[1], 16)
                if address in self.instructions:
                    self.instructions[address][0] = len(match[2].replace(" ", "")) // 2
        functions, inside = {}, []
        for line in run(NM, "-S", path).splitlines():
            if match := re.match(r"([0-9a-f]+) ([0-9a-f]+) ([tTwW]) (\S+)$", line):
                start = int(match[1], 16) & ~1
                functions.setdefault(start, int(match[2], 16))
            elif match := re.match(r"([0-9a-f]+) (?:[0-9a-f]+ )?(\w) ([^$]\S*)$", line):
                inside.append(int(match[1], 16) & ~1)
        starts = sorted(set(functions) | set(inside))
        # If symbols are nested, an address may be attributed to either.
        self.functions = {start: size for start, size in functions.items()
                          if size and bisect.bisect_left(starts, start + size) == bisect.bisect_right(starts, start)}
        self.starts = sorted(self.functions)

    def function(self, address):
        at = bisect.bisect_right(self.starts, address)
        if at and address < self.starts[at - 1] + self.functions[self.starts[at - 1]]:
            return self.starts[at - 1]
        return None

    def inside(self, start, end):
        out, at = [], start
        while at < end:
            out.append(at)
            at += self.instructions[at][0]
        return out


def is_branch(mnemonic, operands):
    if re.match(r"(bl?x?|bxj)(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|hs|lo|al)?(\.n|\.w)?$|cbn?z$|tb[bh]$", mnemonic):
        return True
    return bool(re.search(r"\{.*pc\}", operands)) and not mnemonic.startswith(("push", "stm")) or \
        operands.startswith("pc,")


def is_call(mnemonic):
    return bool(re.match(r"blx?(eq|ne|cs|cc|mi|pl|vs|vc|hi|ge|gt|hs|lo|al)?(\.n|\.w)?$", mnemonic)) or \
        mnemonic in ("blle", "bllt", "blls")


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        run(SOURCE / "examples/build", "-o", cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def check(self, name, arguments, options):
        program = Program(self.folder / name)
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        run(WAYMARK, "record", "--from-start", "-o", out, "--truth", *options.split(), "--", self.folder / name, *arguments.split())
        times, calls = collections.Counter(), collections.Counter()
        branches = collections.defaultdict(lambda: [0, 0])
        unknown = set()
        text = (out / "truth.txt").read_text()
        files = [out / f for f in re.findall(r" file (\S+)", text) if f != "-"]
        self.assertTrue(files, text)
        for file in files:
            before = None
            for start, end in truth_ranges(file):
                addresses = program.inside(start, end)
                times.update(addresses)
                if before is not None:
                    self.step(program, before, start, calls, branches)
                for last, at in zip(addresses, addresses[1:]):
                    if program.function(at) == at and program.function(last) != at:
                        calls[at] += 1
                before = (addresses[-1], end)
            if before is not None:
                unknown.add(before[0])

        asked = ("--image", self.folder / name)
        rows = table("profile", out, *asked, "--by", "instruction", "--limit", "0")
        found = {int(r["address"], 16): int(r["times"]) for r in rows if int(r["times"])}
        self.assertEqual({a: n for a, n in times.items() if n}, found, f"{name} {options}: times of instructions")

        whole = {f: size for f, size in program.functions.items() if times[f] or
                 any(times[a] for a in range(f, f + size, 2))}
        self.assertGreater(len(whole), 5)
        rows = {int(r["address"], 16): r for r in table("profile", out, *asked, "--limit", "0") if r["address"]}
        for function, size in whole.items():
            own = sum(times[a] for a in range(function, function + size, 2))
            self.assertEqual(own, int(rows[function]["instructions"]), f"{name} {options}: of {function:#x}")
            self.assertEqual(calls[function], int(rows[function]["calls"]), f"{name} {options}: calls of {function:#x}")

        names = collections.Counter(r["function"] for r in rows.values())
        listed = {r["function"]: r for r in table("coverage", out, *asked, "--by", "function", "--limit", "0")}
        compared = 0
        for function, size in whole.items():
            called = rows[function]["function"]
            if names[called] != 1:
                continue
            code = [a for a in range(function, function + size, 2) if a in program.instructions]
            row = listed[called]
            ran = sum(1 for a in code if times[a])
            self.assertEqual((len(code), ran, len(code) - ran, 0),
                             tuple(int(row[c]) for c in ("instructions", "instructions executed",
                                                         "instructions not executed", "instructions not observed")),
                             f"{name} {options}: coverage of {called}")
            compared += 1
        self.assertGreater(compared, 5)

        rows = {int(r["address"], 16): (int(r["taken"] or 0), int(r["not_taken"] or 0))
                for r in table("branches", out, *asked, "--limit", "0")}
        for address, outcomes in branches.items():
            if address not in unknown:
                self.assertEqual(tuple(outcomes), rows[address], f"{name} {options}: branch at {address:#x}")
        self.assertGreater(len(branches), 20)

        trees = {run(WAYMARK, "profile", out, *asked, "--jobs", jobs, "--limit", "0") for jobs in JOBS}
        self.assertEqual(len(trees), 1, "any number of workers gives the same")

    @staticmethod
    def step(program, before, start, calls, branches):
        last, end = before
        _, mnemonic, operands = program.instructions[last]
        if is_branch(mnemonic, operands):
            branches[last][0 if start != end else 1] += 1
        elif start != end:
            return  # an exception, and its return
        source, target = program.function(last), program.function(start)
        if start == target and ((is_call(mnemonic) and start != end) or source != target):
            calls[target] += 1

    def test_interpreter(self):
        self.check("interpreter", "sieve 30", "--core cortex-a15 --return-stack")
        self.check("interpreter", "fibonacci 8 labels", "--core cortex-a9 --cycle-accurate --timestamps")

    def test_workers(self):
        # Long enough for many parallel parts.
        for options in ("--core cortex-a15 --sync 1000", "--core cortex-a9 --return-stack --cycle-accurate --timestamps"):
            out = self.folder / "long"
            shutil.rmtree(out, ignore_errors=True)
            run(WAYMARK, "record", "--from-start", "-o", out, *options.split(), "--", self.folder / "interpreter", "sieve", "3000")
            self.assertGreater(sum(p.stat().st_size for p in out.iterdir() if "trace" in p.name), 1 << 18)
            delivered = {run(WAYMARK, *command, out, "--image", self.folder / "interpreter", "--jobs", jobs)
                    for jobs in JOBS for command in (["flow", "--format", "calls"],)}
            self.assertEqual(len(delivered), 1, "any number of workers gives the same")
            delivered = {run(WAYMARK, "profile", out, "--image", self.folder / "interpreter", "--by", "instruction",
                        "--format", "tsv", "--jobs", jobs) for jobs in JOBS}
            self.assertEqual(len(delivered), 1, "any number of workers gives the same")

    def test_mixed(self):
        self.check("mixed", "16", "--core cortex-a15 --branch-broadcast")

    def test_functions_without_an_end(self):
        (self.folder / "falling.c").write_text(FALLING)
        run("arm-linux-gnueabihf-gcc", "-O1", "-mthumb", "-static", "-o", self.folder / "falling", self.folder / "falling.c")
        for options in ("--core cortex-a15", "--core cortex-a9 --return-stack --cycle-accurate", "--unit etmv3"):
            self.check("falling", "", options)

    def test_threads(self):
        self.check("threads-static", "20", "--core cortex-a15 --sync 100 --context-id 4")


class Captures(unittest.TestCase):
    def check(self, name):
        capture = CORPUS / "ptm" / name
        if not capture.exists():
            self.skipTest(f"no {capture}: set WAYMARK_CORPUS to the folder of the real captures")
        instructions, ends, outcomes = 0, collections.Counter(), collections.defaultdict(lambda: [0, 0])
        exceptions = 0
        for row in table("flow", capture):
            exceptions += row["element"] == "exception"
            if row["element"] != "range":
                continue
            instructions += int(row["instructions"])
            # ETMv3 also has outcomes of ordinary instructions, which are no branches.
            if row["atom"] and row["branch"] not in ("none", "barrier"):
                outcomes[int(row["end"], 16)][0 if row["atom"] == "E" else 1] += 1
            ends[int(row["end"], 16)] += 1
        rows = table("profile", capture, "--by", "instruction", "--limit", "0")
        self.assertEqual(sum(int(r["times"]) for r in rows), instructions)
        self.assertEqual(sum(int(r["instructions"]) for r in table("profile", capture, "--limit", "0")), instructions)
        # Keyed by the end of the branch, because its size is not in the table.
        found = collections.defaultdict(lambda: [0, 0])
        for r in table("branches", capture, "--limit", "0"):
            address = int(r["address"], 16)
            if not int(r["taken"] or 0) + int(r["not_taken"] or 0):
                continue
            end = next(e for e in (address + 2, address + 4) if e in outcomes)
            found[end][0] += int(r["taken"] or 0)
            found[end][1] += int(r["not_taken"] or 0)
        self.assertEqual(dict(outcomes), dict(found))
        if exceptions:  # otherwise there is nothing to show, and the command says so
            self.assertEqual(sum(int(r["times"]) for r in table("exceptions", capture)), exceptions)
        trees = {run(WAYMARK, "flow", capture, "--format", "calls", "--jobs", jobs) for jobs in JOBS}
        self.assertEqual(len(trees), 1, "any number of workers gives the same")

    def test_tc2(self):
        self.check("tc2")

    def test_snowball(self):
        self.check("snowball")


if __name__ == "__main__":
    missing = [tool for tool, found in (("qemu-arm", shutil.which("qemu-arm")), ("objdump for Arm", OBJDUMP),
                                        ("nm for Arm", NM), ("arm-linux-gnueabihf-gcc",
                                                             shutil.which("arm-linux-gnueabihf-gcc"))) if not found]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not on PATH; Debian packages qemu-user, gcc-arm-linux-gnueabihf, "
              "binutils-arm-linux-gnueabihf")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
