#!/usr/bin/env python3
"""Compares call trees with programs that log their own calls (-finstrument-functions): longjmp, C++ exceptions through ten
frames, tail calls, coroutines with separate stacks and those of C++20, and a signal handler that leaves by longjmp.

    calls_test.py WAYMARK SOURCE_DIR
"""
import bisect
import collections
import json
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
LEVELS = {"-O0": ["-marm"], "-O2": ["-mthumb"]}

THROWS = """
#include <csetjmp>
#include <cstdio>
struct Cleanup { int& n; ~Cleanup() { n += 3; } };
std::jmp_buf back;
int sum = 0;
__attribute__((noipa)) void thrower(int n) { if (n % 2) throw n; sum += n; }
__attribute__((noipa)) void cleaner(int n) { Cleanup c{sum}; thrower(n); sum += 2; }
__attribute__((noipa)) void level(int depth, int n) { if (depth) level(depth - 1, n); else cleaner(n); sum += depth; }
__attribute__((noipa)) void catcher(int n) { try { level(3, n); } catch (int) { ++sum; } for (int i = 0; i < n; ++i) sum ^= i; }
__attribute__((noipa)) void jumper(int n) { if (n > 2) std::longjmp(back, n); sum -= n; }
int main() {
    for (int i = 0; i < 9; ++i) catcher(i);
    for (int i = 0; i < 6; ++i)
        if (setjmp(back) == 0) jumper(i);
    try { thrower(7); } catch (int n) { sum += n; }
    for (int i = 0; i < 40; ++i) sum += sum % 7;
    std::printf("%d\\n", sum);
}
"""


class Calls(unittest.TestCase):
    maxDiff = None

    def check(self, level, folder):
        program = folder / "program"
        run(CXX, "-std=c++20", level, *LEVELS[level], "-static", "-finstrument-functions",
            "-finstrument-functions-exclude-file-list=/usr", "-o", program, HERE / "calls.cc")
        names = {}
        for start, name in re.findall(r"^(\w+) [tTwW] (\S+)$", run(NM, program).stdout, re.M):
            names[int(start, 16) & ~1] = name
        starts = sorted(names)

        def function(address):
            return names[starts[bisect.bisect_right(starts, address) - 1]]

        logged = [(int(a, 16), int(b, 16) & ~1) for a, b in
                  re.findall(r"^0x(\w+) 0x(\w+)$", run("qemu-arm", program).stdout, re.M)]
        self.assertGreater(len(logged), 250)
        ours = {names[to] for _, to in logged}
        ours_and_bare = ours | {"main", "tail_first", "tail_second"}
        expected, times = collections.Counter(), collections.Counter()
        # The tree has direct recursion in one node, and libc calls the first function of a coroutine or handler.
        folded, recursive, below, test = set(), set(), collections.Counter(), None
        for came_from, to in logged:
            times[names[to]] += 1
            caller = function((came_from & ~1) - 1)
            if caller not in ours_and_bare or caller == names[to]:
                folded.add(names[to])
                if caller == names[to]:
                    recursive.add(caller)
            else:
                expected[caller, names[to]] += 1
                if caller == "tests":
                    test = names[to]
            below[test, names[to]] += 1
        expected = {pair: n for pair, n in expected.items() if pair[1] not in folded}

        run(WAYMARK, "record", "-o", folder / "capture", "--start-at", "main", "--", program)
        run(WAYMARK, "export", folder / "capture", "--symbols", program, "--to", "jsonl", "-o", folder / "tables")

        def table(name):
            return [json.loads(line) for line in (folder / "tables" / f"{name}.jsonl").read_text().splitlines()]

        functions = {}
        for row in table("functions"):
            address = row["address"]
            address = int(address, 0) if isinstance(address, str) else address
            functions[row["id"]] = row["linkage_name"] or row["name"] if address in names else row["name"]
        nodes = {row["id"]: row for row in table("calls")}
        found, seen = collections.Counter(), collections.Counter()
        for row in nodes.values():
            if row["function"] is None or functions[row["function"]] not in ours:
                continue
            callee = functions[row["function"]]
            calls = row["calls"]
            seen[callee] += calls
            # The log names the function to which a callee returns; the tree has the function that jumped between
            # them.
            while row["kind"] == "tail call":
                row = nodes[row["parent"]]
            parent = nodes.get(row["parent"])
            caller = functions.get(parent["function"]) if parent else None
            if callee not in folded and calls and caller in ours_and_bare:
                found[caller, callee] += calls
        self.assertEqual(dict(found), dict(expected), level)
        self.assertEqual(dict(seen), dict(times), level)

        # The calls of each test are below it in the tree, however it left its callees.
        below_found = collections.Counter()
        for row in nodes.values():
            path, at = [], row
            while at is not None:
                path.append(functions.get(at["function"]))
                at = nodes.get(at["parent"])
            # None of these functions is recursive, even indirectly: functions that were left do not remain on the
            # stack.
            on_stack = collections.Counter(f for f in path if f in ours_and_bare and f not in recursive)
            self.assertFalse([f for f, n in on_stack.items() if n > 1], (level, path))
            if path[0] in ours and row["calls"]:
                test = path[path.index("tests") - 1] if "tests" in path[1:] else None
                below_found[test, path[0]] += row["calls"]
        self.assertEqual(dict(below_found), dict(below), level)
        self.assertEqual(sum(functions.get(row["function"]) == "tests" for row in nodes.values()), 1, level)

    def test_without_symbols_the_calls_are_the_same(self):
        """Exceptions and longjmp in a stripped program with the compiler's default flags."""
        with Folder() as name:
            folder = pathlib.Path(name)
            program = folder / "program"
            (folder / "program.cc").write_text(THROWS)
            run(CXX, "-O1", "-fno-optimize-sibling-calls", "-o", program, folder / "program.cc")
            run(WAYMARK, "record", "--from-start", "-o", folder / "capture", "--", program)

            def costs():
                rows = run(WAYMARK, "profile", folder / "capture", "--format", "tsv", "--limit", "0").stdout.splitlines()
                columns = rows[0].split("\t")
                rows = [dict(zip(columns, row.split("\t"))) for row in rows[1:]]
                return {row["address"]: (row["instructions"], row["instructions inclusive"], row["calls"])
                        for row in rows if row["image"] == "program"}, {row["address"]: row["function"] for row in rows}

            named, names = costs()
            run(NM.replace("-nm", "-strip"), program)
            nameless, _ = costs()
            ours = [address for address in named
                    if names[address].split("(")[0] in ("main", "thrower", "catcher", "cleaner", "jumper", "level")]
            self.assertEqual(len(ours), 6, names)
            self.assertEqual({a: nameless.get(a) for a in ours}, {a: named[a] for a in ours})

    def test_a_recording_begins_at_a_lambda(self):
        """Its name has a character that begins a comment in the capture's description."""
        with Folder() as name:
            program, out = pathlib.Path(name) / "program", pathlib.Path(name) / "capture"
            (pathlib.Path(name) / "program.cc").write_text(
                "int main(int argc, char**) {\n"
                "    const auto twice = [](int x) __attribute__((noinline)) { return x == 7 ? 1 : x * 2; };\n"
                "    return twice(argc) + twice(argc + 1) == 0;\n"
                "}\n")
            run(CXX, "-O1", "-o", program, pathlib.Path(name) / "program.cc")
            run(WAYMARK, "record", "--start-at", "main::{lambda(int)#1}::operator()(int) const", "-o", out, "--", program)
            self.assertIn("begins=where execution first reached main::{lambda(int)_1}", (out / "trace.ini").read_text())
            self.assertIn("equal: ", run(WAYMARK, "verify", out).stdout)

    def test_all_levels(self):
        for level in LEVELS:
            with self.subTest(level=level), Folder() as folder:
                self.check(level, pathlib.Path(folder))


if __name__ == "__main__":
    CXX = need("arm-linux-gnueabihf-g++", "g++-arm-linux-gnueabihf")
    NM = need("arm-linux-gnueabihf-nm", "binutils-arm-linux-gnueabihf")
    need("qemu-arm", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
