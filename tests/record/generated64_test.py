#!/usr/bin/env python3
"""Code that AArch64 programs generate, replace, unmap and map again, recorded by ETE and ETMv4.

    generated64_test.py WAYMARK SOURCE_DIR

Witnesses: the program, which knows what its functions return and how often it called them; OpenCSD; and `verify`.
"""
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import opencsd  # noqa: E402
from executed_test import run  # noqa: E402
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CROSS = "aarch64-linux-gnu-gcc"


class Generated64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        for name, value in (("one", 1), ("two", 10)):
            (cls.folder / f"{name}.c").write_text(f"long step(long x) {{ return x + {value}; }}\n")
        # The dynamic linker requests the address to which a library is linked.
        library = ("-shared", "-fPIC", "-Wl,-Ttext-segment=0x20000000")
        for output, source, options in (
                ("generated", SOURCE / "tests/record/generated64.c", ("-lpthread", "-ldl")),
                ("one.so", cls.folder / "one.c", library), ("two.so", cls.folder / "two.c", library)):
            done = run(CROSS, "-O1", "-g", "-o", cls.folder / output, source, *options)
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def check(self, printed, changes, *arguments):
        """Records the program with both units: returns its output, and how often code changed (None: that varies)."""
        for unit in ("ete", "etmv4"):
            with self.subTest(unit=unit):
                out = self.folder / "out"
                shutil.rmtree(out, ignore_errors=True)
                done = run(WAYMARK, "record", "--from-start", "--truth", "--unit", unit, "-o", out, "--", self.folder / "generated",
                           *arguments)
                self.assertEqual((done.returncode, done.stdout), (0, printed + "\n"), done.stderr)
                found = re.search(r"since code changed (\d+) time", done.stderr)
                if changes is not None:
                    self.assertEqual(int(found[1]) if found else 0, changes, done.stderr)
                done = run(WAYMARK, "verify", out)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("equal: ", done.stdout)
                if opencsd.LISTER is None:
                    print(opencsd.MISSING)
                else:
                    self.assertEqual(opencsd.differences(out), [])
        return out

    def calls(self, out, name):
        rows = run(WAYMARK, "profile", out, "--format", "tsv", "--limit", "0").stdout.splitlines()
        columns = rows[0].split("\t")
        at, function = columns.index("calls"), columns.index("function")
        return sum(int(row.split("\t")[at]) for row in rows[1:] if row.split("\t")[function] == name)

    def test_code_that_is_overwritten(self):
        out = self.check(str(5 * sum(range(12))), 11, "overwrite", "12")
        self.assertEqual(self.calls(out, "use"), 12)

    def test_code_that_is_overwritten_by_threads(self):
        self.check(str(3 * 5 * sum(range(6))), None, "threads", "6")

    def test_code_that_is_unmapped_and_mapped_anew(self):
        out = self.check(str(5 * sum(range(8))), 7, "remap", "8")
        self.assertEqual(self.calls(out, "use"), 8)

    def test_libraries_at_one_address(self):
        one, two = self.folder / "one.so", self.folder / "two.so"
        out = self.check("165 at one address 6 times", 5, "libraries", one, two)
        self.assertEqual(self.calls(out, "step"), 30)
        maps = (out / "maps.txt").read_text()
        self.assertEqual((maps.count("/one.so\n"), maps.count("/two.so\n")), (3, 3), maps)

    def test_files_that_are_unmapped_while_they_are_read(self):
        """Another thread unmaps all the time, and each file is removed as soon as its code ran."""
        files = self.folder / "files"
        files.mkdir()
        out = self.check(str(5 * sum(range(1, 21))), 19, "files", files)
        found = re.findall(r"/mapped-(\d+)$", (out / "maps.txt").read_text(), re.M)
        self.assertEqual(sorted(map(int, set(found))), list(range(20)))


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
