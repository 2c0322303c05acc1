#!/usr/bin/env python3
"""Compares the recorder's truth with QEMU's own log of what executed, for every example.

    executed_test.py WAYMARK SOURCE_DIR

The log (`-d exec,nochain`, one file per thread) contains the address of each block QEMU enters; with `-singlestep` each
instruction is a block. It comes from QEMU's main loop, not from the plugin on which the recorder depends.

Entries of the log that are missing in the truth must follow one of these rules:
- "Stopped execution of TB chain before X": QEMU entered the block X and left it before its first instruction.
- An instruction that aborts, or BKPT, is entered and does not execute (docs/spec/pft.md, 4.7): one entry, at the place where
  the range before it ends or where its branch leads, followed by the handler. SVC and undefined instructions execute.
- An instruction that QEMU must execute alone (EXCP_ATOMIC) is entered twice in succession.
- The kernel's helpers at 0xffff0f60 are not recorded (src/record/README.md).
- Code after a thread's last waypoint is in no range; truth.txt gives its length, up to the block entered last.
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
SYSTEM = "qemu-system-arm"
HELPERS = range(0xffff0000, 1 << 32)
ICOUNT = ("-icount", "shift=7")


def entered(path):
    """The addresses of a log, in order."""
    found = []
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("Trace "):
            found.append(int(line.split("/", 2)[1], 16))
        elif line.startswith("Stopped execution") and found:
            found.pop()
    return [address for address in found if address not in HELPERS]


class Mismatch(Exception):
    pass


def follow(ranges, log):
    """Compares ranges with a log. Returns how many instructions began and did not execute, and the entries left at the
    end."""
    at = stopped = 0
    for number, (start, end, count, _) in enumerate(ranges):
        if count == 0:
            continue
        begun = at
        # Entered but not executed: at most one instruction, or the same instruction again.
        while at < len(log) and log[at] != start and at - begun < 2:
            at += 1
        if at >= len(log) or log[at] != start:
            raise Mismatch(f"range {number} {start:#x}-{end:#x}: the log goes on with "
                           f"{[hex(a) for a in log[begun:begun + 4]]}")
        stopped += at > begun
        here, ran = start, 1
        at += 1
        while ran < count and at < len(log) and log[at] - here in (0, 2, 4):
            ran += log[at] != here  # alone, once more
            here = log[at]
            at += 1
        if ran != count or end - here not in (2, 4):
            raise Mismatch(f"range {number} {start:#x}-{end:#x}, {count} instructions: by the log {ran}, the last "
                           f"at {here:#x}")
    return stopped, log[at:]


def is_straight(addresses):
    return all(after - before in (2, 4) for before, after in zip(addresses, addresses[1:]))


class Executed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        done = run(SOURCE / "examples/build", "-o", cls.folder)
        assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def setUp(self):
        self.out = self.folder / self.id()
        self.logs = self.folder / (self.id() + ".logs")

    def record(self, program, arguments, *options):
        shutil.rmtree(self.out, ignore_errors=True)
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir()
        done = run(WAYMARK, "record", "--from-start", "--truth", "-o", self.out, *options, "--", program, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def sources(self):
        text = (self.out / "truth.txt").read_text()
        left = {name: int(count) for name, count in
                re.findall(r"^source (\S+) .*unfinished_instructions (\d+) ", text, re.M)}
        return [(ranges, left[name]) for name, ranges in truth_file.sources(self.out)]

    def compare(self):
        """Compares every source with the log of one thread, and each log with one source. Returns the instructions that
        stopped."""
        logs = [entered(path) for path in sorted(self.logs.iterdir())]
        total = 0
        for ranges, unfinished in self.sources():
            self.assertTrue(ranges)
            why = []
            for log in logs:
                try:
                    stopped, left = follow(ranges, log)
                except Mismatch as mismatch:
                    why.append(str(mismatch))
                    continue
                # Only the log shows how far the block entered last was executed.
                if not is_straight(left[unfinished:]):
                    why.append(f"{len(left)} entries are left, {unfinished} unfinished")
                    continue
                break
            else:
                self.fail("\n".join(why))
            logs.remove(log)
            total += stopped
        self.assertFalse([log for log in logs if log], "a thread that was not recorded")
        return total

    def in_one_run(self, program, arguments, check=lambda printed, stopped: None):
        """Recording and log come from the same run, because runs of this program differ."""
        with self.subTest(program):
            log = ("-singlestep", "-d", "exec,nochain,tid", "-D", str(self.logs / "%d"))
            printed = self.record(self.folder / program, arguments, *(f"--qemu={option}" for option in log))
            check(printed, self.compare())

    def in_two_runs(self, program, arguments, record, qemu):
        self.record(program, arguments, *record)
        done = run(*qemu[:1], "-singlestep", "-d", "exec,nochain", "-D", self.logs / "log", *qemu[1:], program, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.compare()

    def test_one_thread(self):
        for program, arguments in ((SOURCE / "examples/sort/sort.elf", ()),
                                   (self.folder / "interpreter", ("sieve", "20")),
                                   (self.folder / "interpreter", ("fibonacci", "5", "labels")),
                                   (self.folder / "mixed", ("3",))):
            with self.subTest(program=program.name, arguments=arguments):
                self.assertEqual(self.in_two_runs(program, arguments, (), ("qemu-arm",)), 0)

    def test_exceptions(self):
        source = (SOURCE / "tests/record/exceptions/linux.S").read_text()
        program = self.folder / "exceptions"
        done = run("arm-linux-gnueabihf-gcc", "-nostdlib", "-static", "-no-pie", "-Wl,--section-start=.last=0x200ff8",
                   "-Wl,--section-start=.last_thumb=0x300ffc", "-o", program,
                   SOURCE / "tests/record/exceptions/linux.S")
        self.assertEqual(done.returncode, 0, done.stderr)
        # For BKPT and Data Aborts. After a failed fetch no block is entered.
        stopped = len(re.findall(r"bkpt .*@ = 11", source)) + len(re.findall(r"@ = 12", source))
        self.assertEqual(self.in_two_runs(program, (), (), ("qemu-arm",)), stopped)

    def test_signals(self):
        def check(printed, stopped):
            jumps, mended = map(int, re.search(r"left by a jump (\d+), mended (\d+),", printed).groups())
            self.assertEqual(stopped, jumps + mended)

        self.in_one_run("signals", ("1", "10"), check)

    def test_aarch64(self):
        """For an ETE, an undefined instruction is entered and does not execute; a fetch from a forged pointer fails
        before any instruction is entered."""
        def signals(printed, stopped):
            jumps, mended, stepped = map(int, re.search(r"by a jump (\d+), mended (\d+), stepped over (\d+),",
                                                        printed).groups())
            self.assertEqual(stopped, jumps + mended + stepped)

        self.in_one_run("signals-aarch64", ("1", "10"), signals)
        for program, argument in (("interpreter-aarch64", "sieve"), ("pauth-leaf-aarch64", "3"),
                                  ("threads-aarch64", "2")):
            self.in_one_run(program, (argument, "5"), lambda printed, stopped: self.assertEqual(stopped, 0))

    def test_threads(self):
        for program in ("threads-static", "tasks", "threads"):
            self.in_one_run(program, ("2",), lambda printed, stopped: self.assertEqual(stopped, 0))

    @unittest.skipUnless(shutil.which(SYSTEM), f"{SYSTEM} is not on PATH; it is in the Debian package of that name")
    def test_bare_metal(self):
        for core in ("cortex-a9", "cortex-a15"):
            with self.subTest(core):
                program = self.folder / f"bare-metal-{core.replace('cortex-', '')}.elf"
                self.in_two_runs(program, (), ("--system", "--core", core, *(f"--qemu={o}" for o in ICOUNT)),
                                 (SYSTEM, "-M", core.replace("cortex", "vexpress"), "-cpu", core, "-display", "none",
                                  "-monitor", "none", "-serial", "stdio", "-audiodev", "none,id=silent", "-nic", "none",
                                  "-semihosting-config", f"enable=on,target=native,arg={program}", *ICOUNT, "-kernel"))


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
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
