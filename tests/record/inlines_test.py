#!/usr/bin/env python3
"""Compares the inlined calls of every executed instruction, and the cost of each function wherever it was inlined, with
addr2line: program flow of a 32-bit Arm program and samples of an AArch64 one, with several kinds of debug information.

    inlines_test.py WAYMARK SOURCE_DIR [TEST…]
"""
import collections
import csv
import gzip
import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from numbers_of_bytes import Numbers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
ARM, A64 = "arm-linux-gnueabihf-", "aarch64-linux-gnu-"
PROGRAM = SOURCE / "tests/data/inlines/inlines.c"


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def chains(tool, program, addresses):
    """The output of addr2line for each address: function and line of each frame, the innermost first."""
    out, frames, function = {}, None, None
    asked = "\n".join(f"{a:#x}" for a in addresses)
    done = subprocess.run([tool, "-a", "-f", "-i", "-e", program], input=asked, capture_output=True, text=True,
                          timeout=HANGS)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            frames, function = out.setdefault(int(line, 16), []), None
        elif function is None:
            function = line
        else:
            file, number = re.fullmatch(r"(.*?):(\d+|\?)(?: \(discriminator \d+\))?", line).groups()
            frames.append((function, f"{pathlib.Path(file).name}:{number}"))
            function = None
    return out


def fields(data):
    """The fields of a protocol buffer: number and value."""
    left = Numbers(data)
    while left:
        key = left.number()
        if key & 7 == 2:
            yield key >> 3, left.take(left.number())
        else:
            assert key & 7 == 0, key
            yield key >> 3, left.number()


def pprof_chains(data):
    """From a profile for pprof: function and line number of each frame, by address."""
    strings, functions, locations = [], {}, []
    for field, value in fields(data):
        if field == 6:
            strings.append(value.decode())
        elif field == 5:
            function = dict(fields(value))
            functions[function[1]] = function[2]
        elif field == 4:
            locations.append(value)
    out = {}
    for location in locations:
        of, lines = list(fields(location)), []
        for field, value in of:
            if field == 4:
                line = dict(fields(value))
                lines.append((strings[functions[line[1]]], line.get(2, 0)))
        out[dict(of)[3]] = lines
    return out


class Inlines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def build(self, name, tools, *options):
        program = self.folder / name
        subprocess.run([tools + "gcc", "-O2", "-g", "-static", *options, "-o", program, PROGRAM], check=True,
                       cwd=self.folder)
        return program

    def flow(self, name, *options):
        program = self.build(name, ARM, "-mthumb", *options)
        out = self.folder / f"{name}.out"
        run(WAYMARK, "record", "--from-start", "-o", out, "--", program, "80")
        return program, [out, "--image", program]

    def rows(self, asked, *options):
        text = run(WAYMARK, "profile", *asked, "--inlines", "--format", "tsv", *options)
        return list(csv.DictReader(io.StringIO(text), delimiter="\t"))

    def check(self, tools, program, asked, metric, least):
        rows = self.rows(asked, "--by", "instruction")
        expected = chains(tools + "addr2line", program, [int(r["address"], 16) for r in rows])
        sums, compared = collections.Counter(), 0
        for row in rows:
            frames = expected[int(row["address"], 16)]
            if frames[0][1].startswith("??"):
                self.assertFalse(row.get("inlined through"), row)
                continue
            sums[frames[0][0]] += int(row[metric] or 0)
            if len(frames) == 1:
                self.assertFalse(row.get("inlined through"), (row, frames))
                continue
            delivered = [tuple(f.split(" at ")) for f in row["inlined through"].split(", called by ")]
            self.assertEqual(frames, delivered, row)
            compared += 1
        self.assertGreater(compared, least)
        own = self.rows(asked)
        plain = list(csv.DictReader(io.StringIO(run(WAYMARK, "profile", *asked, "--format", "tsv")), delimiter="\t"))
        self.assertEqual(sum(int(r[metric]) for r in own), sum(int(r[metric]) for r in plain))
        found = collections.Counter()
        for row in own:
            found[row["function"]] += int(row[metric] or 0)
        for name in ("square", "cube", "look_up", "rare", "mix", "both", "outer", "chain", "main"):
            self.assertEqual(sums[name], found[name], name)
        return own

    def test_flow(self):
        program, asked = self.flow("inlines")
        rows = self.check(ARM, program, asked, "instructions", 50)
        row = {r["function"]: r for r in rows}["mix"]
        self.assertEqual(row["instructions"], row["instructions inlined"])
        self.assertGreater(int(row["places"]), 5)
        row = {r["function"]: r for r in rows}["both"]
        self.assertGreater(int(row["calls"]), 0)
        self.assertGreater(int(row["instructions"]), int(row["instructions inlined"]))

    def test_other_debug_information(self):
        kinds = (("dwarf4", ["-gdwarf-4"]), ("sections", ["-ffunction-sections"]))
        for name, options in kinds:
            program, asked = self.flow(name, *options)
            self.check(ARM, program, asked, "instructions", 50)

    def test_split_debug_information(self):
        # addr2line does not read this form; the code is the same.
        def delivered(asked):
            rows = self.rows(asked, "--by", "instruction")
            return {r["instruction"]: r["inlined through"] for r in rows if r["inlined through"]}
        _, whole = self.flow("whole")
        _, split = self.flow("split", "-gsplit-dwarf")
        self.assertEqual(delivered(whole), delivered(split))
        self.assertGreater(len(delivered(whole)), 50)

    def test_what_is_missing(self):
        program, asked = self.flow("lost", "-gsplit-dwarf")
        for file in self.folder.glob("*lost*.dwo"):
            file.unlink()
        self.assertFalse(any(r["function"] == "mix" for r in self.rows(asked)))
        stripped, asked = self.flow("stripped", "-g0")
        self.assertFalse(any(r["function"] == "mix" for r in self.rows(asked)))

    def test_merged_captures(self):
        program, asked = self.flow("several")
        once = {r["function"]: r for r in self.rows(asked)}
        second = self.folder / "second.out"
        run(WAYMARK, "record", "--from-start", "-o", second, "--", program, "80")
        twice = {r["function"]: r for r in self.rows([asked[0], second, *asked[1:]])}
        for name in ("mix", "square", "both", "outer"):
            for column in ("instructions", "instructions inlined"):
                self.assertEqual(2 * int(once[name][column]), int(twice[name][column]), name)
            self.assertEqual(once[name]["places"], twice[name]["places"], name)

    def test_samples(self):
        program = self.build("samples", A64)
        data = self.folder / "perf.data"
        run(WAYMARK, "record", "--unit", "spe", "-c", "256", "-o", data, "--", program, "4000")
        self.check(A64, program, [data], "samples", 50)
        # The lines of a location for pprof, the innermost first.
        run(WAYMARK, "export", data, "--to", "pprof", "-o", self.folder / "pprof")
        found = pprof_chains(gzip.decompress((self.folder / "pprof").read_bytes()))
        several = 0
        for address, frames in chains(A64 + "addr2line", program, list(found)).items():
            if frames[0][1].startswith("inlines."):
                expected = [(function, int(at.rsplit(":", 1)[1])) for function, at in frames]
                self.assertEqual(expected, found[address], f"{address:#x}")
                several += len(frames) > 1
        self.assertGreater(several, 50)

    def test_exports(self):
        program, asked = self.flow("exported")
        for table, expected in (("inlined_calls", "look_up"), ("instructions", "outer")):
            text = run(WAYMARK, "export", *asked, "--to", "jsonl", "--table", table)
            self.assertIn(expected if table == "inlined_calls" else '"inlined":', text)
        calls = [json.loads(line) for line in
                 run(WAYMARK, "export", *asked, "--to", "jsonl", "--table", "inlined_calls").splitlines()]
        for number, call in enumerate(calls):
            self.assertEqual(call["id"], number)
            self.assertTrue(call["parent"] is None or call["parent"] < number)


if __name__ == "__main__":
    tools = ("qemu-arm", "qemu-aarch64", ARM + "gcc", A64 + "gcc", ARM + "addr2line", A64 + "addr2line")
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not on PATH; Debian packages qemu-user, gcc-arm-linux-gnueabihf, "
              "gcc-aarch64-linux-gnu")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
