#!/usr/bin/env python3
"""Sections that only simpleperf writes, made from one of its real files: first maps (feature 134), branch lists
(feature 133), the process that recorded; and the ways in which it takes files and names.

usage: simpleperf_test.py WAYMARK SOURCE_FOLDER

Exit status 77 where there are no captures.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "record"))
from perf_records import AUXTRACE, PerfRecords  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
CORPUS = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE / ".." / "shared" / "corpus")
CAPTURE = CORPUS / "etmv4" / "simpleperf-etm_test_loop"
FIRST_MAPS, BRANCH_LISTS, META = 134, 133, 129
MMAP, COMM, AUX = 1, 3, 11


def run(*arguments, status=0):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


class Simpleperf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.file = cls.folder / "perf.data"
        shutil.copy(CAPTURE / "perf_etm.data", cls.file)
        cls.want = cls.autofdo("want", cls.file)
        cls.assertTrue(cls(), "106c-1074:100" in cls.want or "106c->1074:100" in cls.want)
        cls.list = cls.folder / "all.list"
        run(WAYMARK, "pgo", cls.file, "--symdir", CAPTURE, "--for", "branch-list", "-o", cls.list)

    def runTest(self):
        pass

    @classmethod
    def autofdo(cls, name, *captures, options=(), status=0):
        out = cls.folder / f"{name}.txt"
        run(WAYMARK, "pgo", *captures, *options, "--symdir", CAPTURE, "--for", "autofdo", "-o", out, status=status)
        return out.read_text() if out.exists() else None

    def edited(self, name, change):
        file = PerfRecords(self.file)
        file.index_count = False
        change(file)
        return file.write(self.folder / name)

    def test_first_maps(self):
        def change(file):
            first = [r for r in file.records if r.kind in (MMAP, COMM, 10)]
            self.assertTrue(first)
            file.records = [r for r in file.records if r not in first]
            file.features[FIRST_MAPS] = b"".join(r.encode() for r in first)
        self.assertEqual(self.autofdo("maps", self.edited("maps.data", change)), self.want)

        def cut(file):
            change(file)
            file.features[FIRST_MAPS] = file.features[FIRST_MAPS][:-5]
        done = subprocess.run([WAYMARK, "info", self.edited("cut.data", cut)], capture_output=True, text=True,
                              timeout=HANGS)
        self.assertIn("feature 134", done.stdout + done.stderr)

    def test_recorded_branch_lists(self):
        def change(file):
            file.records = [r for r in file.records if r.kind not in (AUXTRACE, AUX)]
            file.features.pop(18, None)
            file.features[BRANCH_LISTS] = self.list.read_bytes()
        self.assertEqual(self.autofdo("lists", self.edited("lists.data", change)), self.autofdo("list", self.list))

    def test_compressed_lists(self):
        out = self.folder / "z.list"
        run(WAYMARK, "pgo", self.list, "--for", "branch-list", "--branch-list-version", "1z", "-o", out)
        self.assertEqual(out.read_bytes()[:29], b"simpleperf:EtmBranchList" + bytes([1, 0, 0, 0, 1]))
        self.assertEqual(out.read_bytes()[33:37], b"\x28\xb5\x2f\xfd")
        self.assertEqual(self.autofdo("z", out), self.autofdo("plain", self.list))

    def test_info_of_lists(self):
        text = run(WAYMARK, "info", self.list).stdout
        self.assertIn("etm_test_loop", text)
        info = json.loads(run(WAYMARK, "info", self.list, "--format", "json").stdout)
        self.assertEqual([image["type"] for image in info["images"]], ["file"])
        self.assertGreater(info["images"][0]["outcomes"], 100)

    def test_several_files(self):
        twice = self.autofdo("twice", self.file, self.file)
        self.assertIn("106c->1074:200", twice)
        self.assertEqual(self.autofdo("comma", f"{self.file},{self.file}"), twice)
        names = self.folder / "names"
        names.write_text(f"{self.file}\n\n{self.file}\n")
        self.assertEqual(self.autofdo("at", f"@{names}"), twice)
        run(WAYMARK, "profile", "@nonsense", status=3)

    def test_counts_that_reach_the_largest_number(self):
        """Seven times, a list with a thousand copies of the preceding list: the sums stop growing, and a warning says
        so."""
        last = self.list
        for level in range(7):
            names = self.folder / f"names{level}"
            names.write_text(f"{last}\n" * 1000)
            last = self.folder / f"level{level}.list"
            done = run(WAYMARK, "pgo", f"@{names}", "--for", "branch-list", "-o", last)
        self.assertIn("the largest number", done.stderr)
        out = self.folder / "largest"
        done = run(WAYMARK, "pgo", last, "--symdir", CAPTURE, "--for", "autofdo", "-o", out)
        self.assertIn("the largest number", done.stderr)
        self.assertIn(f"106c->1074:{2 ** 64 - 1}", out.read_text())

    def test_processes(self):
        self.assertIsNone(self.autofdo("none", self.file, options=("--exclude-process", "etm_test_loop"), status=1))
        self.assertIsNone(self.autofdo("none", self.file, options=("--exclude-process", "~^etm.*loop$"), status=1))
        self.assertEqual(self.autofdo("recorder", self.file, options=("--exclude-recorder",)), self.want)
        self.assertEqual(self.autofdo("image", self.file, options=("--only-image", "~test_l[o]+p$")), self.want)
        run(WAYMARK, "profile", self.file, "--only-image", "~(", status=2)

        def recorder(file):
            file.features[META] = b"recording_process\0/system/bin/etm_test_loop\0"
        self.assertIsNone(self.autofdo("self", self.edited("self.data", recorder), options=("--exclude-recorder",),
                                       status=1))


if __name__ == "__main__":
    if not CAPTURE.is_dir():
        print(f"SKIPPED: {CAPTURE} is not there")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
