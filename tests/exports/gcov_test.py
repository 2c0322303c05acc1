#!/usr/bin/env python3
"""Coverage of lines against gcov: the same source with the same flags, at each level of optimisation, for C and C++.

gcov counts in a program that is instrumented before it is optimised, so an optimised program may lack statements that gcov
has. Each difference must have one of the reasons that docs/profiles.md lists, which the line table of the program shows.

    gcov_test.py WAYMARK SOURCE_DIR
"""
import json
import pathlib
import re
import sys
import tempfile
import unittest

import recorded

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])

C = """\
#include <stdio.h>
static int
helper(int a,
       int b)
{
  return a > b ? a : b;
}
__attribute__((noinline)) int
work(int n)
{
  int s = 0;
  for (int i = 0; i < n; i++)
    s += helper(i, s & 7);
  if (s == 12345) {
    s = 1;
    puts("odd");
  }
  switch (n & 3) {
    case 0: s += 2; break;
    case 1: s -= 3; break;
    default: s ^= 5;
  }
  return s;
}
int never(void)
{
  return 3;
}
__attribute__((noinline)) int deep(int n)
{
  if (n <= 0)
    return 1;
  return deep(n - 1) + 1;
}
int main(int argc, char **argv)
{
  (void)argv;
  if (argc > 9)
    return never();
  printf("%d %d\\n", work(argc + 5), deep(argc + 3));
  return 0;
}
"""
CXX = """\
#include <cstdio>
#include <memory>
#include <vector>
struct Shape {
  virtual ~Shape() = default;
  virtual int area() const = 0;
};
struct Square : Shape {
  explicit Square(int a) : a_(a) {}
  int area() const override {
    return a_ * a_;
  }
  int a_;
};
struct Line : Shape {
  int area() const override {
    return 0;
  }
};
template <class T>
T sum(const std::vector<T>& all) {
  T out{};
  for (const T& one : all)
    out += one;
  return out;
}
static int guarded(int n) {
  try {
    if (n > 100)
      throw n;
    return n;
  } catch (int) {
    return -1;
  }
}
int main(int argc, char**) {
  std::vector<std::unique_ptr<Shape>> shapes;
  for (int i = 0; i < argc + 3; ++i)
    shapes.push_back(std::make_unique<Square>(i));
  if (argc > 7)
    shapes.push_back(std::make_unique<Line>());
  std::vector<int> areas;
  for (const auto& shape : shapes)
    areas.push_back(shape->area());
  std::printf("%d %d\\n", sum(areas), guarded(argc));
  return 0;
}
"""
LEVELS = ("-O0", "-Og", "-O1", "-O2", "-O3", "-Os")


class Gcov(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def build(self, compiler, source, *flags):
        program = self.folder / "program"
        recorded.run(compiler, "-g", *flags, "-static", "-o", program, source.name, cwd=self.folder)
        return program

    def by_gcov(self, compiler, source, level):
        """Line → times, and the lines of the functions' names."""
        for old in self.folder.glob("*.gc*"):
            old.unlink()
        program = self.build(compiler, source, level, "--coverage")
        recorded.run("qemu-aarch64", program, cwd=self.folder)
        notes = next(self.folder.glob("*.gcda"))
        delivered = json.loads(recorded.run("aarch64-linux-gnu-gcov", "--stdout", "--json-format", notes.name,
                                            cwd=self.folder).stdout)
        out, names = {}, set()
        for file in delivered["files"]:
            if pathlib.Path(file["file"]).name == source.name:
                names.update(function["start_line"] for function in file["functions"])
                for line in file["lines"]:
                    number = line["line_number"]
                    out[number] = max(out.get(number, 0), line["count"])
        return out, names

    def by_waymark(self, program, source):
        capture, info = self.folder / "capture", self.folder / "info"
        recorded.run(WAYMARK, "record", "--from-start", "-q", "--force", "-o", capture, "--", program)
        recorded.run(WAYMARK, "export", capture, "--to", "lcov", "-o", info)
        out, ours = {}, False
        for line in info.read_text().splitlines():
            if line.startswith("SF:"):
                ours = pathlib.Path(line[3:]).name == source.name
            if ours and (counted := re.fullmatch(r"DA:(\d+),(\d+)", line)):
                out[int(counted[1])] = int(counted[2])
        rows = json.loads(recorded.run(WAYMARK, "coverage", capture, "--only", source.name, "--format", "json").stdout)["rows"]
        ours, = (row for row in rows if row["path"].endswith("/" + source.name))
        self.assertEqual((ours["lines"], ours["lines executed"]), (len(out), sum(times != 0 for times in out.values())))
        return out

    @staticmethod
    def statements(program, source):
        """Line → addresses at which a statement of this line begins."""
        out = {}
        for row in recorded.run("aarch64-linux-gnu-objdump", "--dwarf=decodedline", program).stdout.splitlines():
            words = row.split()
            if len(words) >= 3 and words[0] == source.name and words[1].isdigit() and words[-1] == "x":
                out.setdefault(int(words[1]), set()).add(int(words[2], 16))
        return out

    def compare(self, compiler, source, level):
        gcov, names = self.by_gcov(compiler, source, level)
        program = self.build(compiler, source, level)
        ours, statements = self.by_waymark(program, source), self.statements(program, source)
        self.assertGreater(len(gcov), 15)
        for line in sorted(gcov.keys() - ours.keys()):
            self.assertNotIn(line, statements, f"{level}: line {line} has a statement")
        missing = sorted(statements.keys() - ours.keys())
        self.assertEqual(missing, [], f"{level}: statements of these lines are not counted")
        both = gcov.keys() & ours.keys()
        differences = {line: (gcov[line], ours[line]) for line in both if (gcov[line] == 0) != (ours[line] == 0)}
        if level == "-O0":
            self.assertLessEqual(gcov.keys() - ours.keys(), names)
            self.assertEqual(differences, {})
        else:
            self.assertLess(len(differences), len(both) / 4, f"{level}: {differences}")
        return gcov, ours

    def test_c(self):
        source = self.folder / "program.c"
        source.write_text(C)
        for level in LEVELS:
            with self.subTest(level=level):
                gcov, ours = self.compare("aarch64-linux-gnu-gcc", source, level)
                never = C.splitlines().index("  return 3;") + 1
                self.assertEqual((gcov[never], ours[never]), (0, 0), "a function that never ran")

    def test_cxx(self):
        source = self.folder / "program.cc"
        source.write_text(CXX)
        for level in LEVELS:
            with self.subTest(level=level):
                self.compare("aarch64-linux-gnu-g++", source, level)


if __name__ == "__main__":
    recorded.need("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    recorded.need("aarch64-linux-gnu-g++", "g++-aarch64-linux-gnu")
    recorded.need("aarch64-linux-gnu-gcov", "gcc-aarch64-linux-gnu")
    recorded.need("qemu-aarch64", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
