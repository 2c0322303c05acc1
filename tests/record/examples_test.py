#!/usr/bin/env python3
"""Records the examples with the unit programmed in many ways, decodes them and compares with what executed.

    examples_test.py WAYMARK SOURCE_DIR [TEST…]

Three witnesses: `waymark verify` (what QEMU executed), OpenCSD's ranges and instructions of each source, and what the
programs themselves print: how often they called a function, how many signals and interrupts came.
"""
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
LISTER = shutil.which("trc_pkt_lister")
CORES = ("cortex-a9", "cortex-a15")
WAYS = (
    "",
    "--return-stack",
    "--cycle-accurate",
    "--branch-broadcast",
    "--timestamps",
    "--context-id 4",
    "--cycle-accurate --timestamps --return-stack --sync 100",
    "--cycle-accurate --timestamps --branch-broadcast --context-id 2",
    "--timestamps --return-stack --context-id 1 --sync 0",
)
PIE_WAYS = (WAYS[1], WAYS[6])
# AArch64 programs: aarch64_test.py varies the options that these tests do not. Where an exception comes right after a
# return, OpenCSD takes an entry from its return stack that the unit left there (docs/spec/etm4.md, 19).
A64_UNITS = ("armv9-a --unit ete", "cortex-a53 --unit etmv4 --cycle-accurate --timestamps --context-id 4")
A64_RETURN_STACK = ("armv9-a --unit ete --return-stack",)


# Each program with each way and each core: long.examples.
EVERYTHING = os.environ.get("WAYMARK_EXAMPLES") == "all"


def number(text):
    return int(text.replace(",", ""))


class Call(collections.namedtuple("Call", "calls name path")):
    """A line of `flow --format calls`; `path`: the names above it."""


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        done = run(SOURCE / "examples/build", "-o", cls.folder, "interpreter", "mixed", "threads", "signals", "objects", "pauth",
                   "bare-metal")
        assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def circle(self, program, arguments, options, check):
        """Records, verifies, has OpenCSD decode; `check(printed, calls)` compares with what the program printed."""
        with Folder(dir=self.folder) as name:
            out = pathlib.Path(name) / "out"
            begin = "" if "--start-at" in options else "--from-start "
            done = run(WAYMARK, "record", "-o", out, *(begin + options).split(), "--", self.folder / program, *arguments.split())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("exited with", done.stderr)

            self.verify(out)
            check(done.stdout + done.stderr, self.calls(out, program))
            if program.endswith("-pie"):
                self.named(out, program)

    def verify(self, out):
        verified = run(WAYMARK, "verify", out)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertIn("\nequal: ", verified.stdout)
        self.assertNotIn("lost", verified.stdout)
        executed = {int(source, 16): (number(ranges), number(instructions))
                    for source, ranges, instructions in re.findall(
                        r"^source (0x\w+) .*\n.*\n  ranges +([\d,]+) .*\n  instructions +([\d,]+) ",
                        verified.stdout, re.M)}
        self.assertTrue(executed, verified.stdout)
        if LISTER:
            self.assertEqual(self.opencsd(out), executed, "ranges and instructions of each source, by OpenCSD")

    def named(self, out, program):
        """All executed code has a name, and belongs to the file from which it was mapped."""
        done = run(WAYMARK, "profile", out, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = json.loads(done.stdout)["rows"]
        self.assertFalse([r["function"] for r in rows if re.fullmatch("0x[0-9a-f]{8,12}", r["function"])])
        self.assertIn(program, {r["image"] for r in rows})
        self.assertIn("libc.so.6", {r["image"] for r in rows})

    def opencsd(self, out):
        log = out / "lister.log"
        run(LISTER, "-ss_dir", out, "-decode_only", "-logfilename", log)
        ranges, instructions = collections.Counter(), collections.Counter()
        for source, count in re.findall(r"ID:(\w+); OCSD_GEN_TRC_ELEM_INSTR_RANGE\(exec range=\S+ num_i\((\d+)\)",
                                        log.read_text()):
            ranges[source] += 1
            instructions[source] += int(count)
        return {int(source, 16): (ranges[source], instructions[source]) for source in ranges}

    def calls(self, out, program):
        # The recording itself states where a position-independent program was mapped, and that it was this program.
        symbols = () if program.endswith("-pie") or program == "threads" else ("--symbols", self.folder / program)
        done = run(WAYMARK, "flow", out, *symbols, "--format", "calls")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found, path = [], []
        for line in done.stdout.splitlines():
            if match := re.match(r" +[\d,]+ +[\d,]+ +([\d,]+)  \S+ +[<>\d.]+%  ( *)(.*)$", line):
                depth = len(match[2]) // 2
                path = path[:depth] + [match[3]]
                found.append(Call(number(match[1]), match[3], tuple(path[:-1])))
        self.assertTrue(found, done.stdout)
        return found

    def every_way(self, program, arguments, check, always="", ways=WAYS, cores=CORES, half=None):
        """Each way with one of the cores in turn. Programs begin with different cores, by their names, so that all programs
        together have each way with each core. With `half`, every second way, from the first or the second one on. With
        WAYMARK_EXAMPLES=all, as long.examples is run, each program has each way with each core."""
        pairs = [(core, way) for core in cores for way in ways]
        if not EVERYTHING and len(ways) >= len(cores):
            first = sum(map(ord, program + arguments))
            pairs = [(cores[(first + i) % len(cores)], way) for i, way in enumerate(ways)]
            if half is not None:
                pairs = pairs[half::2]
        jobs = [f"--core {core} {always} {way}".strip() for core, way in pairs]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            done = {options: pool.submit(self.circle, program, arguments, options, check) for options in jobs}
            for options, result in done.items():
                with self.subTest(f"{program} {arguments}: {options}"):
                    result.result()

    def test_interpreter(self):
        def table(printed, calls):
            executed = int(re.search(r"(\d+) instructions interpreted", printed)[1])
            self.assertEqual(sum(c.calls for c in calls if c.name.startswith("do_") and "run_by_table" in c.path),
                             executed)

        def labels(printed, calls):
            self.assertRegex(printed, r"^21 ")
            self.assertEqual(sum(c.calls for c in calls if c.name == "run_by_labels"), 1)

        self.every_way("interpreter-aarch64", "sieve 50", table, ways=("",), cores=A64_UNITS)
        self.every_way("interpreter-aarch64", "fibonacci 8 labels", labels, ways=("",), cores=A64_RETURN_STACK)
        self.every_way("interpreter", "sieve 50", table, half=0)
        self.every_way("interpreter", "fibonacci 8 labels", labels, half=1)
        self.every_way("interpreter-pie", "sieve 50", table, ways=PIE_WAYS)

    def test_sort(self):
        """Its capture is in the repository (pipeline.ExampleCapture); another run executes the same instructions."""
        sort = SOURCE / "examples/sort"
        out = shutil.copytree(sort / "capture-aarch64", self.folder / "sort")
        self.verify(out)
        again = self.folder / "sort-again"
        done = run(WAYMARK, "record", "--from-start", "--cycle-accurate", "--timestamps", "--return-stack", "--sync", "256", "-o", again, "--",
                   sort / "sort-aarch64.elf")
        self.assertEqual(done.stdout, "ascending\ndescending\n")
        self.assertEqual((again / "truth.txt").read_text(), (out / "truth.txt").read_text())

    def test_mixed(self):
        def check(printed, calls):
            rounds = int(re.search(r"(\d+) rounds", printed)[1])
            times = collections.Counter()
            for c in calls:
                times[c.name] += c.calls
            for name, a_round in {"from_arm": 1, "from_thumb": 1, "conditional": 1, "by_bytes": 2, "by_halfwords": 2,
                                  "by_move": 2, "through_table": 2, "across_pages": 2, "conditional_arm": 2}.items():
                self.assertEqual(times[name], a_round * rounds, name)

        self.every_way("mixed", "16", check, half=0)
        self.every_way("mixed-pie", "16", check, ways=PIE_WAYS)

    def test_threads(self):
        def check(printed, calls):
            jobs = int(re.search(r"did (\d+) jobs", printed)[1])
            self.assertIn("8 threads", printed)
            self.assertEqual(sum(c.calls for c in calls if c.name == "worker"), 3)
            self.assertEqual(sum(c.calls for c in calls if c.name == "counter"), 4)
            self.assertEqual(sum(c.calls for c in calls if c.name == "collatz"), 2 * jobs + 4)

        self.every_way("threads-aarch64", "20", check, ways=("",), cores=A64_UNITS[:1])
        self.every_way("threads-aarch64-pie", "20", check, ways=("",), cores=A64_UNITS[1:])
        self.every_way("threads-static", "20", check, half=1)
        self.every_way("threads", "20", check, ways=WAYS[:2] + WAYS[6:8], half=0)

    def test_signals(self):
        def check(printed, calls):
            said = [int(n) for n in re.findall(r"\d+", re.search(r"left by a jump .*: good", printed)[0])]
            jumps, mended, stepped, ticks, inner = said
            times = collections.Counter()
            for c in calls:
                times[c.name] += c.calls
            self.assertEqual(times["on_segv"], jumps + mended)
            self.assertEqual(times["on_ill"], stepped)
            self.assertEqual(times["on_tick"], ticks)
            self.assertEqual(times["on_user"], inner)

        self.every_way("signals-aarch64", "2 50", check, ways=("",), cores=A64_UNITS[:1])
        self.every_way("signals-aarch64-pie", "2 50", check, ways=("",), cores=A64_UNITS[1:])
        self.every_way("signals", "2 50", check)
        self.every_way("signals-pie", "2 50", check, ways=PIE_WAYS)

    def test_objects(self):
        def check(printed, calls):
            areas, caught = re.search(r"(\d+) areas, .* (\d+) exceptions caught", printed).groups()
            times = collections.Counter()
            for c in calls:
                times[re.sub(r"\(anonymous namespace\)::", "", c.name)] += c.calls
            self.assertEqual(times["Square::area() const"] + times["Rectangle::area() const"], int(areas))
            self.assertEqual(times["survives(unsigned int)"], int(caught))
            # Because of inlining, one frame may represent several functions.
            self.assertGreaterEqual(times["descend(unsigned int, unsigned int)"], int(caught))

        # The dynamic linker for AArch64 is most of threads-aarch64-pie and signals-aarch64-pie.
        self.every_way("objects-aarch64-pie", "20", check, always="--start-at main", ways=("",), cores=A64_UNITS[1:])
        # The dynamic linker, which is most of the run, is decoded once.
        self.every_way("objects-pie", "20", check, ways=PIE_WAYS[1:], cores=CORES[:1])
        self.every_way("objects-pie", "20", check, always="--start-at main", ways=PIE_WAYS, cores=CORES[1:])
        self.every_way("objects-pie", "20", check, always="--start-at main", ways=PIE_WAYS[:1], cores=CORES[:1])

    def test_pauth(self):
        def check(printed, calls):
            executed = int(re.search(r"(\d+) calls of signed pointers' functions, 1 forged .*: good", printed)[1])
            times = collections.Counter()
            for c in calls:
                times[c.name] += c.calls
            self.assertEqual(times["twice"] + times["successor"] + times["factorial"], executed)
            self.assertEqual(times["on_fault"], 1)
            self.assertEqual(times["[exception: Inst fault]"], 1)

        # A Cortex-A53 has no pointer authentication.
        for program in ("pauth-aarch64", "pauth-leaf-aarch64", "pauth-aarch64-pie"):
            self.every_way(program, "6", check, ways=("",), cores=A64_UNITS[:1])

    def test_bare_metal(self):
        if not shutil.which("qemu-system-arm"):
            self.skipTest("qemu-system-arm is not on PATH; it is in the Debian package qemu-system-arm")

        def check(printed, calls, counted=True):
            self.assertIn("good", printed)
            said = {name: int(value) for name, value in re.findall(r"^(\w[\w ()]*?)  +(\d+)$", printed, re.M)}
            times = collections.Counter()
            for c in calls:
                times[c.name] += c.calls
                if c.name in ("work", "sum", "user_main"):
                    self.assertFalse([name for name in c.path if "exception" in name], c)
            self.assertEqual(times["work"], said["rounds of work"])
            # Some ticks may come between the counting and the end; in real time, more on a slower machine.
            self.assertGreaterEqual(times["irq_handler"], said["timer interrupts (IRQ)"])
            if counted:
                self.assertLessEqual(times["irq_handler"], said["timer interrupts (IRQ)"] + 5)
            self.assertEqual(times["fiq_entry"], times["irq_handler"] // 4)
            self.assertEqual(times["undefined_handler"], said["undefined instructions"])
            self.assertEqual(times["data_abort_handler"], said["data aborts"])
            self.assertEqual(times["prefetch_abort_handler"], said["prefetch aborts"])
            for exception, name in {"IRQ": "irq_handler", "FIQ": "fiq_entry",
                                    "Undefined Instruction": "undefined_handler"}.items():
                self.assertEqual(times[f"[exception: {exception}]"], times[name])

        # With time counted in instructions: the smallest number of rounds, which is the same each time.
        system = "--system --qemu=-icount --qemu=shift=7"
        ways = ("", "--return-stack --timestamps", "--cycle-accurate", "--branch-broadcast --timestamps",
                "--cycle-accurate --timestamps --return-stack --sync 100")
        for core in CORES:
            program = f"bare-metal-{core.replace('cortex-', '')}.elf"
            self.every_way(program, "", check, always=system, ways=ways, cores=(core,))
            # In real time on one core: the trace is longer on a slower machine.
            if EVERYTHING or core == CORES[-1]:
                self.every_way(program, "", functools.partial(check, counted=False), always="--system",
                               ways=("--return-stack",), cores=(core,))


if __name__ == "__main__":
    for tool, package in (("qemu-arm", "qemu-user"),
                          ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf, with libc6-dev-armhf-cross"),
                          ("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu, with libc6-dev-arm64-cross")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    if not pathlib.Path("/usr/arm-linux-gnueabihf/include/stdio.h").exists():
        print("SKIPPED: the C library for Arm is missing; it is in the Debian package libc6-dev-armhf-cross")
        sys.exit(77)
    if not LISTER:
        print("SKIPPED: OpenCSD's counts are not compared: trc_pkt_lister is not on PATH (Debian package libopencsd-bin)",
              flush=True)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
