#!/usr/bin/env python3
"""speedscope in Chromium shows recordings of each unit (speedscope.mjs): it must show what was exported, and also read pprof
files and folded stacks.

    speedscope_test.py WAYMARK SOURCE_DIR WEB

WEB is the folder in which the page of reports was built, with the packages of its tests.
"""
import collections
import json
import pathlib
import re
import sys
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE, WEB = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
HOTTEST = 10
NANOSECONDS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def amount(text):
    """The number in `57,430 (54%)` or `1.23ms`, and the error by rounding."""
    text = text.split(" (")[0]
    if timed := re.fullmatch(r"([\d.,]+) ?(ns|µs|ms|s)", text):
        shown, unit = timed.groups()
        digits = len(shown.partition(".")[2])
        return float(shown.replace(",", "")) * NANOSECONDS[unit], 10 ** -digits * NANOSECONDS[unit]
    return float(text.replace(",", "")), 0


def slices(document, profile):
    """Name → its own time in an evented profile, and the total time."""
    own, stack, since = collections.Counter(), [], profile["startValue"]
    for event in profile["events"]:
        if stack:
            own[document["shared"]["frames"][stack[-1]]["name"]] += event["at"] - since
        since = event["at"]
        stack.append(event["frame"]) if event["type"] == "O" else stack.pop()
    return own, sum(own.values())


class Speedscope(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.recordings = {unit: recorded.Recording(WAYMARK, SOURCE, temporary.name, unit) for unit in recorded.WAYS}
        files = [r.export("speedscope", "out.speedscope.json") for r in cls.recordings.values()]
        files += [cls.recordings["ptm"].export("pprof", "out.pprof"), cls.recordings["ptm"].export("folded", "out.folded")]
        files.append(pathlib.Path(temporary.name) / "not-a-profile.json")
        files[-1].write_text('{"profiles": 1}')
        done = recorded.run(NODE, SOURCE / "tests/exports/speedscope.mjs", WEB, CHROMIUM, *files)
        cls.seen = {(pathlib.Path(s["file"]).parent.name, pathlib.Path(s["file"]).name): s
                    for s in json.loads(done.stdout)}

    def shows(self, profile, own, total=None):
        """The hottest functions come first, with their weights."""
        shown = {row["name"]: row for row in profile["rows"]}
        hottest = [name for name, weight in own.most_common(HOTTEST) if weight != 0]
        self.assertTrue(hottest)
        for name in hottest:
            self.assertIn(name, shown)
            for column, value in (("self", own[name]), ("total", total and total[name])):
                if value is not None:
                    number, rounded = amount(shown[name][column])
                    self.assertLessEqual(abs(number - value), rounded, (name, column, shown[name], value))
        first, rounded = amount(profile["rows"][0]["self"])
        self.assertLessEqual(abs(first - own.most_common(1)[0][1]), rounded)

    def check(self, unit):
        seen = self.seen[unit, "out.speedscope.json"]
        self.assertEqual(seen["errors"], [])
        document = json.loads((self.recordings[unit].folder / "out.speedscope.json").read_text())
        written = document["profiles"]
        self.assertGreaterEqual(len(written), 2)
        self.assertEqual([p["title"] for p in seen["profiles"]], [p["name"] for p in written])
        for profile, shown in zip(written, seen["profiles"]):
            weight, rounded = amount(shown["weight"])
            if profile["type"] == "evented":
                own, whole = slices(document, profile)
                self.shows(shown, own)
            else:
                own, total, _ = self.recordings[unit].costs()
                whole = sum(own.values())
                self.shows(shown, own, total)
            self.assertLessEqual(abs(weight - whole), rounded, (profile["name"], shown["weight"], whole))
        return written

    def test_program_flow(self):
        kinds = [(p["type"], p["unit"]) for p in self.check("ptm")]
        self.assertEqual(kinds, [("evented", "none"), ("evented", "none")])

    def test_samples_in_time(self):
        kinds = {(p["type"], p["unit"]) for p in self.check("spe")}
        self.assertEqual(kinds, {("evented", "nanoseconds"), ("sampled", "none")})

    def test_counters_of_a_dpu(self):
        self.assertEqual(self.check("dpu")[-1]["type"], "evented")

    def test_it_reads_what_is_for_others(self):
        own, total, _ = self.recordings["ptm"].costs()
        for name in ("out.pprof", "out.folded"):
            seen = self.seen["ptm", name]
            self.assertEqual(seen["errors"], [], name)
            self.shows(seen["profiles"][0], own, total)

    def test_it_would_refuse(self):
        seen = next(s for (_, name), s in self.seen.items() if name == "not-a-profile.json")
        self.assertTrue(seen["errors"])


if __name__ == "__main__":
    NODE = recorded.need(("node", "nodejs"), "nodejs")
    CHROMIUM = recorded.need(recorded.CHROMIUM, "chromium-headless-shell")
    for package in ("playwright-core", "speedscope"):
        if not (WEB / "node_modules" / package).is_dir():
            recorded.skip(f"{package} is not installed in {WEB}: was the page built with WAYMARK_TESTS=ON?")
    unittest.main(argv=sys.argv[:1], verbosity=2)
