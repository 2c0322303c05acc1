#!/usr/bin/env python3
"""examples/fleet/run with few captures, on a cluster of this machine: the same bytes from Slurm and without it.

    example_test.py WAYMARK SOURCE_DIR
"""
import os
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cluster  # noqa: E402
from cluster import run  # noqa: E402
from scratch import HANGS  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


class Example(unittest.TestCase):
    def test_small(self):
        out = cluster.FOLDER / "out"
        with cluster.Cluster():
            done = run(SOURCE / "examples/fleet/run", "-n", "6", "-o", out, env={**os.environ, "WAYMARK": str(WAYMARK)},
                       timeout=HANGS)
        self.assertIn("both results are the same bytes", done.stdout, done.stdout + done.stderr)
        self.assertIn("captures       6, ", done.stdout)
        self.assertRegex(done.stdout, r"builds +4 of")
        self.assertTrue((out / "report.html").stat().st_size)


if __name__ == "__main__":
    reason = cluster.why_not()
    for program, package in (("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"), ("qemu-aarch64", "qemu-user")):
        if not reason and not shutil.which(program):
            reason = f"no {program}: install the Debian package {package}"
    if reason:
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    cluster.enter()
    unittest.main(argv=sys.argv[:1], verbosity=2)
