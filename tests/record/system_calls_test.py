#!/usr/bin/env python3
"""Compares the system calls that `waymark exceptions` names with those that QEMU itself lists (-strace).

    system_calls_test.py WAYMARK SOURCE_DIR

The trace contains supervisor calls alone; the names come from the code in front of them. The program makes four system
calls through `syscall`, whose number no code in front of the supervisor call states: these stay without a name.
"""
import collections
import csv
import io
import pathlib
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "exports"))
from recorded import need, run  # noqa: E402

sys.path.insert(0, str(HERE.parent / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
# Compiler, its options, QEMU, options of the recording, the name of a supervisor call without its system call, and the
# system calls that all have a name. Debian's C library for T32 makes most system calls in one function, with a number that
# its callers set: these have none.
WAYS = {
    "AArch64": ("aarch64-linux-gnu-gcc", ["-static"], "qemu-aarch64", ["--unit", "ete"], "Call", None),
    "AArch64, dynamic": ("aarch64-linux-gnu-gcc", [], "qemu-aarch64", ["--unit", "etmv4"], "Call", None),
    "T32": ("arm-linux-gnueabihf-gcc", ["-static"], "qemu-arm", ["--unit", "ptm"], "SVC",
            ("getpid", "getppid", "kill", "mprotect")),
}
PREFIX = "system call "


def listed_by_qemu(log, aarch64):
    """How often QEMU lists each system call; a call without a name in QEMU has the kernel's name for its number."""
    tables = (SOURCE / "src/image/linux_calls.inc").read_text().split("WM_LINUX_CALLS_ARM")
    names = dict(re.findall(r'\{(\d+), "(\w+)"\}', tables[0 if aarch64 else 1]))
    listed = collections.Counter(re.findall(r"^\d+ (\w+)\(", log, re.MULTILINE))
    listed.update(names[number] for number in re.findall(r"^\d+ Unknown syscall (\d+)", log, re.MULTILINE))
    return listed


class SystemCalls(unittest.TestCase):
    maxDiff = None

    def check(self, way):
        compiler, options, qemu, unit, nameless, expected = WAYS[way]
        with Folder() as folder:
            folder = pathlib.Path(folder)
            program = folder / "program"
            run(compiler, "-O1", *options, "-o", program, HERE / "system_calls.c")
            root = ["-L", f"/usr/{compiler.removesuffix('-gcc')}"]
            listed = listed_by_qemu(run(need(qemu, "qemu-user"), *root, "-strace", program).stderr,
                                    compiler.startswith("aarch64"))
            self.assertEqual((listed["read"] >= 21, listed["getppid"], listed["getuid"]), (True, 5, 4), listed)

            run(WAYMARK, "record", *unit, "--from-start", "-o", folder / "out", "--", program)
            text = run(WAYMARK, "exceptions", folder / "out", "--format", "tsv").stdout
            rows = {row["exception"]: int(row["times"]) for row in csv.DictReader(io.StringIO(text), delimiter="\t")}
            named = {name.removeprefix(PREFIX): times for name, times in rows.items() if name.startswith(PREFIX)}
            self.assertEqual(set(rows) - {PREFIX + name for name in named}, {nameless})
            if expected is None:
                # All calls but the four through `syscall`.
                self.assertEqual(rows[nameless], listed.pop("getuid"), rows)
                self.assertEqual(named, listed)
            else:
                self.assertEqual(named, {name: listed[name] for name in expected})

    def test_aarch64(self):
        self.check("AArch64")

    def test_dynamic(self):
        self.check("AArch64, dynamic")

    def test_t32(self):
        self.check("T32")


if __name__ == "__main__":
    for compiler, *_ in WAYS.values():
        need(compiler, "gcc-" + compiler.removesuffix("-gcc"))
    del sys.argv[1:3]
    unittest.main(verbosity=2)
