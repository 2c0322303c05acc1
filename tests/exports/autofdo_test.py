#!/usr/bin/env python3
"""clang reads a profile of samples of a C++ program: it must find the functions by their linkage names and weigh branches.

    autofdo_test.py WAYMARK SOURCE_DIR
"""
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import recorded

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent


class AutoFdo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.source = cls.folder / "hot.cc"
        shutil.copy(HERE / "hot.cc", cls.source)

    def weights(self, profile):
        """Branches whose weights are known once the profile is used."""
        text = recorded.run(CLANG, "-O2", "-gline-tables-only", f"-fprofile-sample-use={profile}", "-S", "-emit-llvm",
                            "-o", "-", self.source).stdout
        weighed = set(re.findall(r"^(!\d+) = !\{!\"branch_weights\"", text, re.M))
        return sum(of in weighed for of in re.findall(r"^ +(?:br|switch) .*?!prof (!\d+)", text, re.M) +
                   re.findall(r"^ +\], .*?!prof (!\d+)", text, re.M))

    def check(self, capture, *options):
        profile = self.folder / f"{capture.name}.txt"
        recorded.run(WAYMARK, "export", capture, *options, "--to", "autofdo", "-o", profile)
        text = profile.read_text()
        names = re.findall(r"^(\S.*):\d+:\d+$", text, re.M)
        self.assertIn("_ZN6shapes5TableclEi", names)
        self.assertTrue(all(re.fullmatch(r"\w+(\.\w+)*", name) for name in names), names)
        used = self.weights(profile)
        # The same, by demangled names.
        demangled = self.folder / "demangled.txt"
        demangled.write_text(recorded.run("c++filt", input=text).stdout)
        self.assertLess(self.weights(demangled), used)
        self.assertGreaterEqual(used, 6)
        return used

    def test_samples(self):
        program, capture = self.folder / "aarch64", self.folder / "samples"
        recorded.run(CLANG, "--target=aarch64-linux-gnu", "-O1", "-g", "-fno-exceptions", "-fno-inline", "-c", self.source,
                     "-o", self.folder / "hot.o")
        recorded.run(GCC, "-static", self.folder / "hot.o", "-o", program)
        recorded.run(WAYMARK, "record", "--unit", "spe", "-c", "256", "-o", capture, "--", program)
        self.check(capture)

    def test_program_flow(self):
        program, capture = self.folder / "arm", self.folder / "flow"
        recorded.run(CLANG, "--target=arm-linux-gnueabihf", "-O1", "-g", "-fno-exceptions", "-fno-inline", "-c", self.source,
                     "-o", self.folder / "hot32.o")
        recorded.run(GCC32, "-static", self.folder / "hot32.o", "-o", program)
        recorded.run(WAYMARK, "record", "-o", capture, "--start-at", "main", "--", program)
        self.check(capture, "--symbols", program)


if __name__ == "__main__":
    CLANG = recorded.need("clang", "clang")
    GCC = recorded.need("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    GCC32 = recorded.need("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf")
    recorded.need("c++filt", "binutils")
    for qemu in ("qemu-arm", "qemu-aarch64"):
        recorded.need(qemu, "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
