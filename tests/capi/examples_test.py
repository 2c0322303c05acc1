#!/usr/bin/env python3
"""Runs the examples in C, examples/library/*.c, against what QEMU executed (examples/sort/capture/truth.txt).

    examples_test.py FOLDER ROOT [VALGRIND]   FOLDER: of capi_example_decode and capi_example_live. VALGRIND: runs them
        under it, and each error in memory and each leak is a failure
"""
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS  # noqa: E402

FOLDER, ROOT, VALGRIND = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
SORT = ROOT / "examples" / "sort"
DESCRIBED = ["protocol=ptm1.1", "buffer-format=coresight", "trace-id=0x10", "etmcr=0x30001000", "etmidr=0x411cf312",
             "etmccer=0x34c01000", f"image={SORT}/sort.elf"]


def truth(name):
    for line in (SORT / "capture" / "truth.txt").read_text().splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    raise KeyError(name)


def run(name, *arguments, frees=True, **more):
    """frees memory at its end; the examples do not when they report an error."""
    under = []
    if VALGRIND:
        under = [*VALGRIND, "-q", "--error-exitcode=9", "--errors-for-leak-kinds=all",
                 "--show-leak-kinds=all", f"--leak-check={'full' if frees else 'no'}"]
    return subprocess.run([*under, FOLDER / f"capi_example_{name}", *arguments], capture_output=True, timeout=HANGS, **more)


class Examples(unittest.TestCase):
    def test_sixty_lines(self):
        for name in ("decode", "live"):
            text = (ROOT / "examples" / "library" / f"{name}.c").read_text()
            self.assertLessEqual(len(text.splitlines()), 60, name)

    def test_decode(self):
        done = run("decode", SORT / "capture")
        self.assertEqual(done.returncode, 0, done.stderr)
        text = done.stdout.decode()
        self.assertIn("PTM_0: PTM1.1 of a Cortex-A15\n", text)
        self.assertEqual(text.count("SVC, return to"), 3, text)
        self.assertIn(f"{truth('range_instructions')} instructions in {truth('ranges')} ranges", text)

    def test_decode_bare_file(self):
        done = run("decode", SORT / "capture" / "trace.bin", *DESCRIBED)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{truth('range_instructions')} instructions in {truth('ranges')} ranges", done.stdout.decode())

    def test_live(self):
        done = run("live", *DESCRIBED, f"symbols={SORT}/sort.elf", input=(SORT / "capture" / "trace.bin").read_bytes())
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[-1], f"{truth('range_instructions')} instructions in {truth('ranges')} ranges")
        self.assertGreater(len(lines), 4)
        self.assertTrue(any("quicksort" in line for line in lines), lines)

    def test_wrong_input(self):
        for arguments, text in ((["no/such"], "no/such"), ([], "usage"), ([SORT / "capture", "image"], "NAME=VALUE"),
                                ([SORT / "capture", "colour=red"], "colour")):
            done = run("decode", *arguments, frees=False)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(text, done.stderr.decode())
        done = run("live", "protocol=z80", input=b"", frees=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("z80", done.stderr.decode())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
