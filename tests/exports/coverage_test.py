#!/usr/bin/env python3
"""Coverage of one recording, read by its consumers: diff-cover reads a Cobertura report, lcov a tracefile. Both must agree
with the counts of `waymark coverage`.

    coverage_test.py WAYMARK SOURCE_DIR [--lcov FOLDER]

--lcov: also Debian 13's lcov, 2.3.1, which is downloaded to FOLDER through apt. Without a mirror: status 77.
"""
import json
import pathlib
import re
import shutil
import sys
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import apt  # noqa: E402
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])

# Lambdas within functions, functions that are inlined everywhere, several on one line, and code of headers.
SHAPES = """\
#include <cstdio>
#include <functional>
#include <vector>
#include <algorithm>
template <class T> T twice(T v)
{
  return v + v;
}
static int use(const std::function<int(int)>& f, int n)
{
  int s = 0;
  for (int i = 0; i < n; i++)
    s += f(i);
  return s;
}
struct Shape {
  virtual int area() const
  {
    return 1;
  }
  virtual ~Shape() {}
};
struct Square : Shape { int a = 2; int area() const override { return a * a; } };
int never(int x)
{
  auto unused = [](int y) {
    return y * 3;
  };
  return unused(x) + twice<char>('a');
}
int main(int argc, char**)
{
  std::vector<int> v{3, 1, 2};
  std::sort(v.begin(), v.end(), [](int a, int b) {
    return a < b;
  });
  int base = v[0];
  auto later = [base](int x) {
    return x + base;
  };
  if (argc > 9) {
    std::function<int(int)> g = [](int q) {
      return q;
    };
    return use(g, 3) + never(argc);
  }
  Square q;
  Shape* s = &q;
  printf("%d %d %d\\n", use(later, 5), twice(argc), s->area());
  return 0;
}
"""


def newer_lcov(folder):
    """Debian 13's lcov, with this system's modules of Perl."""
    try:
        if not (folder / "root/usr/bin/genhtml").exists():
            folder.mkdir(parents=True, exist_ok=True)
            apt.Apt(folder / "apt", "amd64", "deb MIRROR trixie main\n").do("download", "lcov", into=folder)
            apt.unpack(folder.glob("lcov*.deb"), folder / "root")
    except apt.Missing as why:
        recorded.skip(f"no newer lcov: {why}")
    return ["perl", f"-I{folder}/root/usr/lib/lcov", str(folder / "root/usr/bin/genhtml")]


class Shapes(unittest.TestCase):
    """A C++ program, whose report every genhtml takes."""

    @classmethod
    def setUpClass(cls):
        if not shutil.which("aarch64-linux-gnu-g++") or not shutil.which("qemu-aarch64"):
            raise unittest.SkipTest("SKIPPED: aarch64-linux-gnu-g++ or qemu-aarch64 is missing")
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.source = cls.folder / "shapes.cc"
        cls.source.write_text(SHAPES)
        cls.captures = {}
        for level in ("0", "2"):
            program = cls.folder / f"shapes{level}"
            recorded.run("aarch64-linux-gnu-g++", "-g", f"-O{level}", "-static", "-o", program, cls.source)
            recorded.run(WAYMARK, "record", "--from-start", "-q", "-o", cls.folder / f"capture{level}", "--", program)
            cls.captures[level] = recorded.Capture(WAYMARK, cls.folder / f"capture{level}", cls.folder / f"of{level}")

    def test_every_genhtml_takes_it_whole(self):
        for level, capture in self.captures.items():
            for more in [], ["--lcov-end-lines"]:
                info = capture.export("lcov", "shapes.info", *more)
                checked = recorded.run(sys.executable, SOURCE / "tests/exports/lcov_check.py", info).stdout
                files, lines, functions = map(int, re.findall(r"(\d+) \w+", checked))
                self.assertEqual(files, 1, "headers of libraries are left out")
                self.assertGreater(functions, 5)
                for which, genhtml in GENHTMLS.items():
                    version = recorded.run(*genhtml, "--version").stdout
                    if more and re.search(r"version 1\.", version):
                        continue  # the option is for newer ones
                    with self.subTest(level=level, more=more, genhtml=which):
                        said = recorded.run(*genhtml, "--branch-coverage", "-o", self.folder / "html", info)
                        text = said.stdout + said.stderr
                        self.assertRegex(text, rf"lines\.+: .*of {lines} lines")
                        self.assertRegex(text, rf"functions\.+: .*of {functions} functions")

    def test_functions_have_their_last_lines(self):
        capture = self.captures["0"]
        text = capture.export("lcov", "ends.info", "--lcov-end-lines").read_text()
        first = SHAPES.splitlines().index("int main(int argc, char**)") + 2
        self.assertIn(f"FN:{first},{len(SHAPES.splitlines())},main\n", text)

    def test_paths_and_choice(self):
        capture = self.captures["2"]
        report = capture.export("cobertura", "root.xml", "--source-root", self.folder).read_text()
        self.assertIn(f"<source>{self.folder}</source>", report)
        self.assertIn('filename="shapes.cc"', report)
        recorded.run(sys.executable, SOURCE / "tests/exports/cobertura_check.py", self.folder / "of2" / "root.xml")
        moved = capture.export("lcov", "moved.info", "--path-prefix", f"{self.folder}=/ci/src").read_text()
        self.assertEqual(re.findall("^SF:.*", moved, re.M), ["SF:/ci/src/shapes.cc"])
        headers = capture.export("lcov", "headers.info", "--only", "std_function.h").read_text()
        self.assertRegex(headers, "(?m)^SF:.*/std_function.h$")
        self.assertNotIn("shapes.cc", headers)
        nowhere = recorded.attempt(WAYMARK, "export", capture.capture, "--to", "lcov", "--source-root", "/no/such/folder")
        self.assertEqual(nowhere.returncode, 1)
        self.assertIn("--path-prefix", nowhere.stderr)
        wrong = recorded.attempt(WAYMARK, "export", capture.capture, "--to", "pprof", "--only", "x.c", "-o", "x.pb.gz")
        self.assertEqual(wrong.returncode, 2)


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
        """Lines and functions are the same as in `waymark coverage`, which counts functions that were never entered."""
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
    GENHTMLS = {"system": ["genhtml"]}
    if sys.argv[3:4] == ["--lcov"]:
        GENHTMLS["newer"] = newer_lcov(pathlib.Path(sys.argv[4]).resolve())
    unittest.main(argv=sys.argv[:1], verbosity=2)
