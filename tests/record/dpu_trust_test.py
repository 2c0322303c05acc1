#!/usr/bin/env python3
"""The words of trust of DPU views, proven: random register programs and stimuli, whose truth the generator knows. Each
figure under "every figure" equals the truth, and each row that is a lower bound is not above it.

    dpu_trust_test.py WAYMARK SOURCE_DIR

WAYMARK_PROGRAMS: how many programs of each class, 3 without it. WAYMARK_SEED (1).
"""
import collections
import json
import os
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
PROGRAMS = int(os.environ.get("WAYMARK_PROGRAMS") or 3)
SEED = int(os.environ.get("WAYMARK_SEED") or 1)
EVENTS = ("CYCLES", "STALL_ALL", "WAIT", "DC_HIT", "DC_MISS", "DC_THRASH")
BOUND = "each row but those in < > is a lower bound"


class Case:
    """A program, a stimulus, and the true counts by context."""

    def __init__(self, seed, kind):
        draw = random.Random(f"{seed} {kind}")
        self.kind, self.lines, self.cycle = kind, ["context user 5", "cycle"], 1
        self.truth = collections.defaultdict(lambda: collections.Counter())
        self.stays = collections.Counter({"user 5": 1})
        here, place = "user 5", 0x1000
        tasks = [f"user {number}" for number in draw.sample(range(2, 60), draw.randint(1, 3))] + ["user 5"]
        supervisor = None
        for _ in range(draw.randint(2, 40)):
            cycles = draw.randint(1, 3000)
            events = {"STALL_ALL": draw.randint(0, cycles), "WAIT": draw.randint(0, cycles), "DC_HIT": draw.randint(0, 900),
                      "DC_MISS": draw.randint(0, 90), "DC_THRASH": draw.randint(0, 5)}
            self.lines.append(f"cycles {cycles} " + " ".join(f"{name}={n}" for name, n in events.items()))
            self.truth[here].update(CYCLES=cycles + 1, **events)
            self.cycle += cycles + 1
            if here.startswith("user"):
                supervisor = here.replace("user", "supervisor")
                self.lines += [f"item interrupt {place:#x} 0x200 {supervisor}", "cycle"]
                here = supervisor
            else:
                there = draw.choice(tasks)
                self.lines += [f"item rte 0x2f0 {place:#x} {there}", "cycle"]
                here = there
            self.stays[here] += 1
            place += 4
        self.lines.append("cycles 10")
        self.truth[here].update(CYCLES=10)
        self.cycle += 10
        lines = draw.choice((2, 4)) if kind == "overwritten" else 4096
        qualifier = draw.choice((0, 1, 2)) if kind == "qualified" else 0
        self.counted = {0: lambda c: True, 1: lambda c: c.startswith("user"), 2: lambda c: not c.startswith("user")}[qualifier]
        mode = draw.choice(("TASK", "FLOW"))
        control = f"TMODE={mode} IDFLT={int(kind == 'filtered')}"
        program = [f"DP_TSA 0x20000000", f"DP_TEA {0x20000000 + 32 * (lines - 1):#x}", "DP_TW 0x20000000"]
        if kind == "filtered":
            program += ["DP_CR TIDCM=1", "DP_RPID 5"]
        for triad, sets in (("A", 2), ("B", 7)):
            program.append(f"DP_T{triad}C TENM=immediate CEG={sets} CEGP={qualifier} CMODE=trace TCEN=1")
        program += [f"DP_C{c}V 0x7fffffff" for c in ("A0", "A1", "A2", "B0", "B1", "B2")]
        times = sorted(draw.sample(range(1, max(4, self.cycle)), 3))
        if kind == "late":
            program.append(f"@{times[0]} DP_TC {control} EN=1")
        elif kind == "held":
            program += [f"DP_TC {control} EN=1", f"@{times[0]} DP_TC {control} TMPDIS=1 EN=1", f"@{times[2]} DP_TC {control} EN=1"]
        elif kind == "off":
            program += [f"DP_TC {control} EN=1", f"@{times[0]} DP_TC {control} EN=0", f"@{times[2] + 100} DP_TC {control} EN=1"]
        else:
            program.append(f"DP_TC {control} EN=1")
        self.program = "\n".join(program) + "\n"
        self.stimulus = "\n".join(self.lines) + "\n"


class Trust(unittest.TestCase):
    def setUp(self):
        self.temporary = Folder()
        self.folder = pathlib.Path(self.temporary.name)
        self.exact = self.bounds = 0

    def tearDown(self):
        self.temporary.cleanup()

    def check(self, seed, kind):
        case = Case(seed, kind)
        place = self.folder / f"{kind}{seed}"
        place.mkdir()
        (place / "program").write_text(case.program)
        (place / "stimulus").write_text(case.stimulus)
        done = run(WAYMARK, "dpu", "run", place / "program", place / "stimulus", "-o", place / "out")
        if done.returncode == 1 and kind == "late":  # tracing was turned on after the end
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(WAYMARK, "dpu", "tasks", place / "out", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        view = json.loads(done.stdout)
        exact = view["trust"]["exact"]
        columns = {name: column for column in view["counters"].values() for name in EVENTS if column.split(" (")[0] == name}
        rows = {" ".join(row["task"].split()[:2]): row for row in view["rows"]}
        every, bound = exact.startswith("every figure"), BOUND in exact
        self.assertTrue(every or bound, f"words of trust that this test does not know: {exact}")
        for name, row in rows.items():
            if name.startswith("<"):
                continue
            self.assertIn(name, case.truth)
            for event, column in columns.items():
                value, truth = row.get(column), case.truth[name][event] if case.counted(name) else 0
                if value is None:
                    continue
                if every:
                    self.assertEqual(value, truth, f"{name} {column}")
                    self.exact += 1
                else:
                    self.assertLessEqual(value, truth, f"{name} {column}")
                    self.bounds += 1
            if every:
                self.assertEqual(row["stays"], case.stays[name], name)
        if every and kind != "filtered":
            self.assertEqual({name for name in rows if not name.startswith("<")}, {n for n, c in case.truth.items() if c})

    def sweep(self, kind):
        for seed in range(SEED, SEED + PROGRAMS):
            with self.subTest(seed=seed):
                self.check(seed, kind)
        print(f"{kind}: {self.exact} figures under exact, {self.bounds} lower bounds")
        self.assertGreater(self.exact + self.bounds, 0, f"no figure of {kind} was compared")

    def test_whole(self):
        self.sweep("whole")
        self.assertNotEqual(self.exact, 0)

    def test_overwritten(self):
        self.sweep("overwritten")

    def test_late(self):
        self.sweep("late")

    def test_held(self):
        self.sweep("held")

    def test_off(self):
        self.sweep("off")

    def test_filtered(self):
        self.sweep("filtered")

    def test_qualified(self):
        self.sweep("qualified")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
