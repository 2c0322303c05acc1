"""Shared by tests of perf.data with CoreSight trace: the program, and a folder with compiled programs."""
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
A64 = "aarch64-linux-gnu-gcc"


class PerfCase(unittest.TestCase):
    """A folder for all tests of a class; `make` fills it."""

    @classmethod
    def setUpClass(cls):
        if shutil.which(A64) is None:
            raise unittest.SkipTest(f"NOT RUN: {A64} is not on PATH")
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.make()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def make(cls):
        pass

    @classmethod
    def build(cls, name, text, *options):
        """Compiles a program from a text in C."""
        (cls.folder / f"{name}.c").write_text(text)
        done = run(A64, "-O1", "-g", "-o", cls.folder / name, cls.folder / f"{name}.c", *options)
        assert done.returncode == 0, done.stderr
        return cls.folder / name

    @classmethod
    def build_bare(cls, name, text, rounds, *options):
        """The same without a C library."""
        return cls.build(name, text, "-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector",
                         f"-DROUNDS={rounds}", "-Wl,--build-id", *options)

    def waymark(self, *arguments, status=0):
        done = run(WAYMARK, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done
