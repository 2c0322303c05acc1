#!/usr/bin/env python3
"""Who called whom, against a program that logs its own calls (-finstrument-functions): longjmp, exceptions of C++ through ten
frames, tail calls, coroutines with stacks of their own and those of C++20, and a signal's handler that leaves by longjmp.

    calls_test.py WAYMARK SOURCE_DIR
"""
import bisect
import collections
import json
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "exports"))
from recorded import need, run  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
LEVELS = {"-O0": ["-marm"], "-O2": ["-mthumb"]}


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
        # The tree has direct recursion in one node, and libc calls what a coroutine or a handler begins with.
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
            seen[callee] += row["calls"]
            parent = nodes.get(row["parent"])
            caller = functions.get(parent["function"]) if parent else None
            if callee not in folded and row["calls"] and caller in ours_and_bare:
                found[caller, callee] += row["calls"]
        self.assertEqual(dict(found), dict(expected), level)
        self.assertEqual(dict(seen), dict(times), level)

        # What one test did is below it, however it left what it called.
        below_found = collections.Counter()
        for row in nodes.values():
            path, at = [], row
            while at is not None:
                path.append(functions.get(at["function"]))
                at = nodes.get(at["parent"])
            # None of these calls itself, through others either: what is left does not stay on the stack.
            on_stack = collections.Counter(f for f in path if f in ours_and_bare and f not in recursive)
            self.assertFalse([f for f, n in on_stack.items() if n > 1], (level, path))
            if path[0] in ours and row["calls"]:
                test = path[path.index("tests") - 1] if "tests" in path[1:] else None
                below_found[test, path[0]] += row["calls"]
        self.assertEqual(dict(below_found), dict(below), level)
        self.assertEqual(sum(functions.get(row["function"]) == "tests" for row in nodes.values()), 1, level)

    def test_all_levels(self):
        for level in LEVELS:
            with self.subTest(level=level), tempfile.TemporaryDirectory() as folder:
                self.check(level, pathlib.Path(folder))


if __name__ == "__main__":
    CXX = need("arm-linux-gnueabihf-g++", "g++-arm-linux-gnueabihf")
    NM = need("arm-linux-gnueabihf-nm", "binutils-arm-linux-gnueabihf")
    need("qemu-arm", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
