#!/usr/bin/env python3
"""Compares `waymark calls` with lengths of calls that are computed from `waymark flow --format tsv`.

    call_lengths_test.py WAYMARK SOURCE_DIR

The test walks the ranges of flow with a stack of return addresses: a branch with link opens a call, and the branch to
its return address closes it. The instructions in between are the call's length; instructions of inner calls are its callees'.
"""
import csv
import io
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

PROGRAM = """
static volatile int sum;
__attribute__((noipa)) void inner(int n) { for (int i = 0; i < n; ++i) sum += i; }
__attribute__((noipa)) int again(int n) { int r = n > 1 ? again(n - 1) + again(n - 2) : n; return r + sum % 2; }
__attribute__((noipa)) void outer(int n) { inner(n % 7); if (n % 50 == 9) inner(200); else again(n % 5); ++sum; }
int main(void) { for (int i = 0; i < 120; ++i) outer(i); return 0; }
"""


def calls_in(rows, names):
    """(function, length, length without callees) of every call of flow."""
    now, open_calls, called, back = 0, [], None, False
    for row in rows:
        if row["element"] != "range":
            continue
        start = int(row["start"], 16)
        if called is not None:
            open_calls.append([names.get(start), called, now, 0])
        elif open_calls and back and open_calls[-1][1] == start:
            name, _, began, callees = open_calls.pop()
            if open_calls:
                open_calls[-1][3] += now - began
            yield name, now - began, now - began - callees
        now += int(row["instructions"])
        taken = row["atom"] == "E"
        called = int(row["end"], 16) if taken and row["link"] == "1" else None
        back = taken and row["branch"] == "indirect"


class CallLengths(unittest.TestCase):
    def test_lengths_are_what_flow_shows(self):
        with Folder() as name:
            folder = pathlib.Path(name)
            (folder / "program.c").write_text(PROGRAM)
            run(CC, "-O1", "-marm", "-fno-optimize-sibling-calls", "-static", "-o", folder / "program", folder / "program.c")
            run(WAYMARK, "record", "--start-at", "main", "-o", folder / "out", "--", folder / "program")
            names = {int(start, 16): function for start, function in
                     re.findall(r"^(\w+) [tT] (\w+)$", run(NM, folder / "program").stdout, re.M)}
            flow = run(WAYMARK, "flow", folder / "out", "--format", "tsv").stdout
            expected = list(calls_in(csv.DictReader(io.StringIO(flow), delimiter="\t", quoting=csv.QUOTE_NONE), names))
            for function in ("outer", "inner", "again"):
                for options, column in ([], 1), (["--without-callees"], 2):
                    with self.subTest(function=function, options=options):
                        self.check(folder, function, options, sorted(call[column] for call in expected if call[0] == function))
            slow = json.loads(self.calls(folder, "outer", "--slowest", "3"))["rows"]
            self.assertEqual(["inner"] * 3, [row["longer_in"].split()[0] for row in slow])

    def calls(self, folder, function, *options):
        return run(WAYMARK, "calls", folder / "out", "--function", function, "--by", "instructions", "--format", "json",
                   *options).stdout

    def check(self, folder, function, options, lengths):
        self.assertGreaterEqual(len(lengths), 120)
        shown = json.loads(self.calls(folder, function, *options))
        self.assertEqual(lengths[::-1], [row["length"] for row in shown["rows"]])
        self.assertEqual({"exact"}, {row["bound"] for row in shown["rows"]})

        def rank(per_cent):
            return lengths[-(-len(lengths) * per_cent // 100) - 1]

        self.assertEqual({"calls": len(lengths), "timed": len(lengths), "whole": len(lengths), "merged": 0,
                          "least": lengths[0], "median": rank(50), "p95": rank(95), "p99": rank(99), "most": lengths[-1]},
                         shown["durations"])
        bars = sorted((int(first), calls) for first, calls in shown["histogram"].items())
        ends = [first for first, _ in bars[1:]] + [lengths[-1] + 1]
        for (first, calls), end in zip(bars, ends):
            self.assertEqual(calls, sum(first <= length < end for length in lengths))


if __name__ == "__main__":
    CC = need("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf")
    NM = need("arm-linux-gnueabihf-nm", "binutils-arm-linux-gnueabihf")
    need("qemu-arm", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
