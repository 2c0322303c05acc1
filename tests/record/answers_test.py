#!/usr/bin/env python3
"""Compares `waymark profile`, `coverage` and `diff` of recorded program flow with what executed.

    answers_test.py WAYMARK SOURCE_DIR [TEST…]
"""
import collections
import json
import pathlib
import random
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        done = run(SOURCE / "examples/build", "-o", cls.folder, "interpreter")
        assert done.returncode == 0, done.stdout + done.stderr
        cls.program = cls.folder / "interpreter"
        cls.captures = {}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, *arguments, options=()):
        if (arguments, options) not in self.captures:
            out = self.folder / f"out{len(self.captures)}"
            done = run(WAYMARK, "record", "--from-start", "--truth", "-o", out, *options, "--", self.program, *arguments)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.captures[arguments, options] = out
        return self.captures[arguments, options]

    def rows(self, command, capture, *options, status=0):
        done = run(WAYMARK, command, capture, "--image", self.program, "--format", "tsv", *options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        names, *rows = [line.split("\t") for line in done.stdout.splitlines()]
        return [dict(zip(names, row)) for row in rows]

    def executed(self, capture):
        return {int(row["address"], 16) for row in self.rows("profile", capture, "--by", "instruction")}

    def test_rows_add_up_to_what_executed(self):
        capture = self.record("sieve", "100")
        text = (capture / "truth.txt").read_text()
        truth = sum(int(n) for n in re.findall(r"^(?:\S+ )*instructions[ =](\d+)", text, re.M))
        self.assertGreater(truth, 100000, text[:400])
        for by in ("function", "line", "block", "instruction", "image"):
            self.assertEqual(sum(int(row["instructions"]) for row in self.rows("profile", capture, "--by", by)), truth, by)
        for command in ("branches", "loops"):
            one = run(WAYMARK, command, capture, "--image", self.program, "--jobs", "1", "--limit", "0").stdout
            self.assertEqual(run(WAYMARK, command, capture, "--image", self.program, "--jobs", "3", "--limit", "0").stdout, one)

    def test_what_ran_is_never_said_not_to_have_run(self):
        """In damaged trace, lost code counts as not observed."""
        whole = self.record("sieve", "100")
        ran = self.executed(whole)
        chance = random.Random(5)
        for round in range(8):
            damaged = self.folder / "damaged"
            shutil.rmtree(damaged, ignore_errors=True)
            shutil.copytree(whole, damaged)
            trace = bytearray((damaged / "trace.bin").read_bytes())
            # One byte can become another packet that fits, which nothing shows: tests/hostile/damage_test.py counts
            # such cases.
            count = chance.choice((16, 64, 300))
            at = chance.randrange(len(trace) - count)
            for i in range(at, at + count):
                trace[i] = chance.randrange(256)
            (damaged / "trace.bin").write_bytes(trace)
            rows = [row for row in self.rows("coverage", damaged, "--uncovered") if row["what"] == "code"]
            self.assertGreater(len(rows), 100)
            for row in rows:
                if row["class"] == "not executed":
                    wrong = [a for a in ran if int(row["begin"], 16) <= a < int(row["end"], 16)]
                    self.assertEqual(wrong, [], f"{count} bytes at {at:#x}: {row}")

    def test_time(self):
        # A timestamp counts cycles, one per instruction: at 100 MHz each takes 10 ns.
        capture = self.record("sieve", "100", options=("--timestamps", "--sync", "500"))
        instructions = sum(int(row["instructions"]) for row in self.rows("profile", capture))
        clocks = (("100MHz", "ns", 10), (None, "ticks", 1), ("1GHz", "ns", 1))
        for clock, unit, each in clocks:
            done = run(WAYMARK, "export", capture, "--image", self.program, "--to", "jsonl", "--table", "capture",
                       *(("--timestamp-hz", clock) if clock else ()))
            self.assertEqual(done.returncode, 0, done.stderr)
            axis = json.loads(done.stdout)
            self.assertEqual((axis["time_unit"], axis["time_end"] - axis["time_begin"]), (unit, each * instructions))
            self.assertGreater(axis["time_uncertainty"], 0)
            self.assertLess(axis["time_uncertainty"], each * instructions // 10)

    def test_diff(self):
        few, more = self.record("sieve", "100"), self.record("sieve", "200")
        image = ("--image", self.program)
        same = run(WAYMARK, "diff", few, few, *image, "--threshold", "0")
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertIn("no function changed", same.stdout)
        rows = self.rows("diff", few, more)  # no threshold: no gate
        both = []
        for capture in (few, more):
            own = collections.Counter()
            for row in self.rows("profile", capture):
                # Parts and copies made by the compiler count for the function.
                own[re.sub(r"\.(constprop|isra|part|cold|lto_priv|llvm)\b.*", "", row["function"])] += int(row["instructions"])
            both.append(own)
        self.assertEqual({row["function"]: int(row["change"]) for row in rows},
                         {name: both[1].get(name, 0) - both[0].get(name, 0) for name in {**both[0], **both[1]}})
        self.assertEqual(rows[0]["function"], "run_by_table")
        self.assertEqual(run(WAYMARK, "diff", few, more, *image, "--threshold", "5").returncode, 1)
        self.assertEqual(run(WAYMARK, "diff", more, few, *image, "--threshold", "5").returncode, 0, "it shrank")
        self.assertEqual(run(WAYMARK, "diff", few, more, *image, "--threshold", "5000").returncode, 0)


if __name__ == "__main__":
    for tool in ("qemu-arm", "arm-linux-gnueabihf-gcc"):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not installed; nothing was recorded")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
