#!/usr/bin/env python3
"""Compares the source line of every executed instruction of a C++ program with addr2line, and the line of every function with
its declaration in debug information (DW_AT_decl_line, as `readelf --debug-dump=info` prints it).

    lines_test.py WAYMARK SOURCE_DIR

In the program a function whose last row has no code ends where a function of another section begins, whose rows are earlier in
.debug_line; and templates begin with the code of a function that was inlined there.
"""
import collections
import csv
import pathlib
import re
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "exports"))
from recorded import need, run  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
PROGRAM = r"""struct Range {
    const int* first;
    const int* last;
    const int* begin() const {
        return first;
    }
    const int* end() const {
        return last;
    }
};
struct Shape {
    virtual int area() const = 0;
};
struct Square : Shape {
    int a;
    Square(int x) : a(x) {}
    __attribute__((noinline)) int area() const override { return a * a; }
};
template <class T>
__attribute__((noinline)) T
sum_of(const Range& all) {
    T sum{};
    for (const int& x : all) sum += x;
    return sum;
}
extern "C" int last_row();
int main() {
    static const int numbers[] = {1, 2, 3};
    static Square one(1), two(2);
    const Shape* volatile shapes[] = {&one, &two};
    const Range all{numbers, numbers + 3};
    return shapes[0]->area() + shapes[1]->area() + int(sum_of<int>(all) + sum_of<double>(all)) + last_row() == 20 ? 0 : 1;
}
__attribute__((naked)) int last_row() {
    asm("movs r0, #3\n\tbx lr");
}
"""


class Lines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        (folder / "lines.cpp").write_text(PROGRAM)
        cls.program = folder / "lines"
        run("arm-linux-gnueabihf-g++", "-O1", "-g", "-mthumb", "-fno-toplevel-reorder", "-falign-functions=2", "-static",
            "lines.cpp", "-o", "lines", cwd=folder)
        run(WAYMARK, "record", "--start-at", "main", "-o", folder / "capture", "--", cls.program)
        cls.capture = folder / "capture"

    def rows(self, *options):
        text = run(WAYMARK, "profile", self.capture, "--only", "lines.cpp", "--format", "tsv", *options).stdout
        return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))

    def test_every_instruction(self):
        ours = {int(row["address"], 16): row["line"] for row in self.rows("--by", "instruction")}
        said = run("arm-linux-gnueabihf-addr2line", "-e", self.program, *map(hex, ours)).stdout.splitlines()
        theirs = dict(zip(ours, (re.sub(r" \(discriminator \d+\)$", "", pathlib.Path(line).name) for line in said)))
        self.assertGreater(len(ours), 30)
        self.assertEqual({hex(a): (ours[a], theirs[a]) for a in ours if ours[a] != theirs[a]}, {})

    def test_a_sequence_ends_where_another_begins(self):
        """Without this row test_every_instruction would compare nothing that is difficult."""
        table = run("arm-linux-gnueabihf-readelf", "--debug-dump=decodedline", self.program).stdout
        at = collections.defaultdict(list)
        for line, address in re.findall(r"^lines\.cpp +(\d+|-) +(0x[0-9a-f]+)", table, re.M):
            at[int(address, 16)].append(line)
        area = next(int(row["address"], 16) for row in self.rows() if row["function"] == "Square::area() const")
        self.assertIn("-", at[area], at[area])
        self.assertEqual(at[area], ["17", "17", "17", "36", "-"], "the row without code is not the last")

    def test_every_function(self):
        info = run("arm-linux-gnueabihf-readelf", "--debug-dump=info", self.program).stdout
        declared = {}
        for entry in re.split(r"^ <\d+><", info, flags=re.M):
            name, line = re.search(r"DW_AT_name +: (?:\(.*\): )?(\S+)", entry), re.search(r"DW_AT_decl_line +: (\d+)", entry)
            if "DW_TAG_subprogram" in entry and name and line:
                declared.setdefault(name[1], line[1])
        self.assertEqual(declared["main"], "27")
        seen = {}
        for row in self.rows():
            seen[re.sub(r"^.*?([\w]+)(<\w+>)?\(.*$", r"\1\2", row["function"])] = row["line"]
        self.assertEqual(seen, {"main": "lines.cpp:27", "last_row": "lines.cpp:34", "area": "lines.cpp:17",
                                "sum_of<int>": "lines.cpp:21", "sum_of<double>": "lines.cpp:21"})
        self.assertEqual({f"lines.cpp:{declared[name]}" for name in ("sum_of<int>", "sum_of<double>")}, {"lines.cpp:21"})


if __name__ == "__main__":
    need("arm-linux-gnueabihf-g++", "g++-arm-linux-gnueabihf")
    need("qemu-arm", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
