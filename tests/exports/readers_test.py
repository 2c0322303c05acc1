#!/usr/bin/env python3
"""Exported files are read back and compared with the answers they were made from, for recordings of each unit and real
captures: a Perfetto trace by the rules of trace_processor, a profile by those of the Firefox Profiler, tables by Python's csv
and json. The size of each format is checked too.

    readers_test.py WAYMARK SOURCE_DIR

docs/exports.md has the bounds of sizes.
"""
import collections
import csv
import json
import pathlib
import shutil
import sys
import unittest

import firefox_check
import perfetto_check
import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
TRACE_TIMES = 3
UNLIMITED = 1 << 40
# format: maximum bytes for each row of a table of answers, and for the rest.
BOUNDS = {
    "firefox": ({"slices": 80, "calls": 120, "functions": 200, "marks": 120, "images": 400}, 4000),
    "speedscope": ({"slices": 100, "calls": 120, "functions": 160}, 2000),
    "pprof": ({"paths": 40, "instructions": 40, "functions": 40}, 1000),
    "callgrind": ({"instructions": 30, "calls": 80, "functions": 120}, 1000),
    "lcov": ({"lines": 20, "branches": 30, "functions": 160}, 1000),
    "cobertura": ({"lines": 120, "branches": 120, "functions": 320}, 2000),
    "autofdo": ({"instructions": 40, "inlined_calls": 80, "functions": 160}, 0),
    "bolt": ({"edges": 40, "blocks": 40, "branches": 40}, 0),
    "csv": ({"rows": 80}, 1000),
}
# For each byte of all tables as CSV, and for the rest.
AS_CSV = {"jsonl": (4, 1000), "sqlite": (2, 150_000)}


def value(text):
    """A cell of CSV as a JSON value."""
    if text == "":
        return None
    try:
        return int(text, 0) if not any(c in text for c in ".e") or text.startswith("0x") else float(text)
    except ValueError:
        return text


def size(path):
    return sum(f.stat().st_size for f in path.rglob("*")) if path.is_dir() else path.stat().st_size


def of_each(test):
    """The test of one capture, for all of them."""

    def tests(self):
        for name, capture in self.captures.items():
            with self.subTest(capture=name):
                test(self, capture, self.tables[name])

    return tests


def weight_of(profile):
    """For a speedscope profile: the weights of its samples, or the times during which frames are open."""
    if profile["type"] == "sampled":
        return sum(profile["weights"])
    total = depth = last = 0
    for event in profile["events"]:
        total += event["at"] - last if depth else 0
        depth += 1 if event["type"] == "O" else -1
        last = event["at"]
    assert depth == 0, profile["name"]
    return total


class Readers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        cls.captures = {unit: recorded.Recording(WAYMARK, SOURCE, folder, unit) for unit in recorded.WAYS}
        sort = SOURCE / "examples/sort"
        cls.captures["sort"] = recorded.Capture(WAYMARK, sort / "capture", folder / "sort", ["--image", sort / "sort.elf"])
        for real in ("tc2", "snowball"):
            if (place := recorded.corpus(SOURCE)) and (place / "ptm" / real).is_dir():
                cls.captures[real] = recorded.Capture(WAYMARK, place / "ptm" / real, folder / real)
            else:
                print(f"SKIPPED: the real capture {real} is not read: set WAYMARK_CORPUS", flush=True)
        cls.tables = {}
        for name, capture in cls.captures.items():
            capture.export("jsonl", "jsonl")
            cls.tables[name] = collections.defaultdict(list)
            for file in (capture.folder / "jsonl").glob("*.jsonl"):
                cls.tables[name][file.stem] = [json.loads(line) for line in file.read_text().splitlines()]
            cls.tables[name]["rows"] = [row for rows in cls.tables[name].values() for row in rows]
            # A name takes the place of the call path if callers are unknown.
            cls.tables[name]["paths"] = cls.tables[name]["calls"] or cls.tables[name]["instructions"]

    @of_each
    def test_tables(self, capture, tables):
        folder = capture.export("csv", "csv")
        self.assertEqual({f.stem for f in folder.glob("*.csv")},
                         {f.stem for f in (capture.folder / "jsonl").glob("*.jsonl")})
        listed = json.loads((folder / "manifest-csv.json").read_text())["tables"]
        self.assertEqual({t["file"] for t in listed}, {f.name for f in folder.glob("*.csv")})
        self.assertEqual([t["bytes"] for t in listed], [(folder / t["file"]).stat().st_size for t in listed])
        self.assertEqual([t["rows"] for t in listed], [len(tables[t["table"]]) for t in listed])
        for file in folder.glob("*.csv"):
            with open(file, newline="", encoding="utf-8") as opened:
                rows = list(csv.DictReader(opened))
            self.assertEqual(len(rows), len(tables[file.stem]), file.stem)
            for of_csv, of_json in zip(rows, tables[file.stem]):
                for column, cell in of_json.items():
                    # The apostrophe that prevents execution as a formula is not part of the text.
                    of_csv[column] = of_csv[column].removeprefix("'")
                    same = of_csv[column] == ("" if cell is None else cell) or value(of_csv[column]) == cell
                    self.assertTrue(same or value(of_csv[column]) == value(str(cell)), (file.stem, column, of_csv, cell))
        # Costs of functions equal the costs in `waymark profile`, for each metric.
        for metric in tables["metrics"]:
            own, _, name = capture.costs(metric["id"])
            self.assertEqual(name, metric["name"])
            costs = collections.Counter()
            for row in tables["function_costs"]:
                if row["metric"] == metric["id"]:
                    costs[tables["functions"][row["function"]]["name"]] += row["self"] or 0
            self.assertEqual(+costs, +own, name)

    @of_each
    def test_perfetto(self, capture, tables):
        trace = perfetto_check.Trace(capture.export("perfetto", "whole.pftrace", "--max-size", UNLIMITED).read_bytes())
        tracks = {row["id"]: row["name"] for row in tables["tracks"]}
        names = {row["id"]: row["name"] for row in tables["functions"]}
        written = collections.Counter((tracks[s["track"]], names[s["function"]], s["depth"]) for s in tables["slices"])
        self.assertEqual(collections.Counter((s.track, s.name, s.depth) for s in trace.slices), written)
        self.assertEqual(len(trace.instants), len(tables["marks"]))
        self.assertEqual(len(trace.values), len(tables["points"]))
        # The same for times, if the capture counts in them.
        about = tables["capture"][0]
        if about["ticks_per_second"] in (None, 10 ** 9):
            lasted = collections.Counter()
            for s in tables["slices"]:
                lasted[tracks[s["track"]], names[s["function"]]] += s["end_time"] - s["begin_time"]
            read = collections.Counter()
            for s in trace.slices:
                read[s.track, s.name] += s.end - s.begin
            self.assertEqual(+read, +lasted)
        smaller = capture.export("perfetto", "out.pftrace")
        perfetto_check.Trace(smaller.read_bytes())

    @of_each
    def test_firefox(self, capture, tables):
        profile = json.loads(capture.export("firefox", "firefox").read_text())
        firefox_check.check(profile)
        own, _, metric = capture.costs()
        costs = profile["threads"][-1]
        self.assertTrue(costs["name"].startswith(metric), costs["name"])
        read = collections.Counter()
        for stack, weight in zip(costs["samples"]["stack"], costs["samples"]["weight"]):
            function = costs["frameTable"]["func"][costs["stackTable"]["frame"][stack]]
            read[costs["stringArray"][costs["funcTable"]["name"][function]]] += weight
        self.assertEqual(+read, +own)
        self.assertEqual(sum(t["markers"]["length"] for t in profile["threads"]), len(tables["marks"]))

    @of_each
    def test_totals(self, capture, tables):
        """The costs in each export have the same sum as in `waymark profile`."""
        for metric in tables["metrics"]:
            own, _, name = capture.costs(metric["id"])
            whole, option = sum(own.values()), ("--metric", name)
            if whole == 0:
                continue
            with self.subTest(metric=name):
                self.assertEqual(sum(r["self"] or 0 for r in tables["function_costs"] if r["metric"] == metric["id"]), whole)
                lines = capture.export("callgrind", "totals.callgrind", *option).read_text().splitlines()
                said, = (line for line in lines if line.startswith("totals:"))
                self.assertEqual(int(said.split()[1]), whole, "callgrind")
                folded = capture.export("folded", "totals.folded", *option).read_text().splitlines()
                self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded), whole, "folded")
                scope = json.loads(capture.export("speedscope", "totals.speedscope", *option).read_text())
                self.assertEqual(weight_of(scope["profiles"][-1]), whole, "speedscope")
                fox = json.loads(capture.export("firefox", "totals.firefox", *option).read_text())
                self.assertEqual(sum(fox["threads"][-1]["samples"]["weight"]), whole, "firefox")

    @of_each
    def test_sizes(self, capture, tables):
        shutil.rmtree(capture.folder / "csv", ignore_errors=True)
        trace, row = tables["capture"][0]["trace_bytes"], []
        perfetto = size(capture.export("perfetto", "out.pftrace"))
        self.assertLessEqual(perfetto, TRACE_TIMES * trace)
        row.append(f"perfetto {perfetto}")
        for to, (each, rest) in BOUNDS.items():
            done = recorded.attempt(WAYMARK, "export", capture.capture, *capture.options, "--to", to, "-o",
                                    capture.folder / to)
            # Not every capture contains the data for these formats.
            if done.returncode == 1 and to in ("lcov", "cobertura", "autofdo", "bolt"):
                continue
            self.assertEqual(done.returncode, 0, done.stderr)
            bound = rest + sum(len(tables[table]) * bytes_each for table, bytes_each in each.items())
            bytes_written = size(capture.folder / to)
            row.append(f"{to} {bytes_written} of {bound}")
            self.assertLessEqual(bytes_written, bound, to)
        # The length of a path is the length of its names.
        folded = capture.export("folded", "folded")
        depth = max(line.count(";") + 1 for line in folded.read_text().splitlines())
        longest = max(len(f["name"]) for f in tables["functions"])
        paths = len(tables["calls"] or tables["functions"])
        self.assertLessEqual(size(folded), paths * (depth * (longest + 1) + 21))
        row.append(f"folded {size(folded)}")
        text = size(capture.folder / "csv")
        for to, (times, rest) in AS_CSV.items():
            bytes_written = size(capture.export(to, to))
            row.append(f"{to} {bytes_written} of {times * text + rest}")
            self.assertLessEqual(bytes_written, times * text + rest, to)
        print(f"\n{capture.folder.name}, a trace of {trace} bytes: {', '.join(row)}")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
