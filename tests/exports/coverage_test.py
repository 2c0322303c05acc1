#!/usr/bin/env python3
"""Coverage of one recording, read by its consumers: diff-cover reads a Cobertura report, lcov a tracefile. Both must agree
with the counts of `waymark coverage`.

    coverage_test.py WAYMARK SOURCE_DIR
"""
import json
import pathlib
import re
import sys
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])


class Coverage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.recording = recorded.Recording(WAYMARK, SOURCE, temporary.name, "ptm")
        cls.folder = cls.recording.folder
        cls.xml, cls.info = cls.recording.export("cobertura", "coverage.xml"), cls.recording.export("lcov", "coverage.info")

    def lines(self):
        """Line → times, of the program's own source, as the tracefile has them."""
        out, ours = {}, False
        for line in self.info.read_text().splitlines():
            if line.startswith("SF:"):
                ours = line[3:] == str(self.recording.source)
            if ours and (counted := re.fullmatch(r"DA:(\d+),(\d+)", line)):
                out[int(counted[1])] = int(counted[2])
        return out

    def test_lcov_and_cobertura_count_alike(self):
        said = recorded.run("lcov", "--rc", "lcov_branch_coverage=1", "--summary", self.info)
        summary = dict((what, (int(hit), int(valid))) for what, hit, valid in
                       re.findall(r"(\w+)\.+: .*\((\d+) of (\d+) ", said.stdout + said.stderr))
        checked = recorded.run(sys.executable, SOURCE / "tests/exports/cobertura_check.py", self.xml).stdout
        lines, hit, branches, taken, methods = map(int, re.findall(r"(\d+) \w+", checked))
        self.assertEqual(summary, {"lines": (hit, lines), "branches": (taken, branches),
                                   "functions": (summary["functions"][0], methods)})
        self.assertGreater(taken, 0)
        self.assertLess(hit, lines)

    def test_what_never_ran_is_not_covered(self):
        """Lines and functions are those of `waymark coverage`, which counts functions that were never entered."""
        delivered = json.loads(self.recording.says("coverage", "--by", "file", "--format", "json"))
        ours, = (row for row in delivered["rows"] if row["path"] == str(self.recording.source))
        lines = self.lines()
        self.assertEqual(len(lines), ours["lines"])
        self.assertEqual(sum(times != 0 for times in lines.values()), ours["lines executed"])
        self.assertIn("FNDA:0,", self.info.read_text())

    def test_diff_cover_reads_every_line(self):
        git = ["git", "-C", self.folder, "-c", "user.name=Test", "-c", "user.email=test@localhost"]
        recorded.run(*git, "init", "-q")
        recorded.run(*git, "commit", "-q", "--allow-empty", "-m", "nothing yet")
        recorded.run(*git, "add", self.recording.source)
        recorded.run(DIFF_COVER, self.xml, "--compare-branch", "HEAD", "--json-report", self.folder / "seen.json",
                     cwd=self.folder)
        seen = json.loads((self.folder / "seen.json").read_text())
        lines = self.lines()
        self.assertGreater(len(lines), 20)
        self.assertEqual(list(seen["src_stats"]), [self.recording.source.name])
        ours = seen["src_stats"][self.recording.source.name]
        self.assertEqual(seen["total_num_lines"], len(lines))
        self.assertEqual(ours["violation_lines"], sorted(line for line, times in lines.items() if times == 0))
        self.assertTrue(ours["violation_lines"])


if __name__ == "__main__":
    DIFF_COVER = recorded.need("diff-cover", "diff-cover")
    recorded.need("lcov", "lcov")
    recorded.need("git", "git")
    unittest.main(argv=sys.argv[:1], verbosity=2)
