#!/usr/bin/env python3
"""pprof from the Go tools reads recordings of each unit: its table of functions must equal that of `waymark profile`.

    pprof_test.py WAYMARK SOURCE_DIR
"""
import collections
import pathlib
import re
import sys
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])


class Pprof(unittest.TestCase):
    def check(self, unit, metrics):
        with Folder() as temporary:
            recording = recorded.Recording(WAYMARK, SOURCE, temporary, unit)
            profile = recording.export("pprof")
            for metric in metrics:
                own, total, name = recording.costs(metric)
                if not any(total[function] > own[function] for function in own):
                    # Without a call tree, lines contain inlined functions: a cost counts for the inlined function, and
                    # for the function that contains it.
                    total, own = own, recording.costs(metric, "--inlines")[0]
                    self.assertNotEqual(own, total)
                said = recorded.run(GO, "tool", "pprof", "-top", "-nodecount=0", "-nodefraction=0", f"-sample_index={metric}",
                                    profile).stdout
                self.assertIn(f"Type: {name.replace(' ', '_')}", said.replace(name, name.replace(" ", "_")))
                flat, cumulative = collections.Counter(), collections.Counter()
                row = r"^ *(\d+)\w* +[\d.]+% +[\d.]+% +(\d+)\w* +[\d.]+%  (.+?)(?: \(inline\))?$"
                for self_cost, with_calls, function in re.findall(row, said, re.M):
                    flat[function] += int(self_cost)
                    cumulative[function] += int(with_calls)
                self.assertGreaterEqual(len(+flat), 10)
                self.assertEqual(+flat, +own, (unit, name))
                # pprof counts recursion of functions that share a name once per name, Waymark once per function.
                for function, cost in flat.most_common(10):
                    if function in total:
                        self.assertEqual(cumulative[function], total[function] or cost, (unit, name, function))
                    else:
                        self.assertGreaterEqual(cumulative[function], cost, (unit, name, function))

    def test_program_flow(self):
        self.check("ptm", (0, 1))

    def test_samples(self):
        self.check("spe", (0,))

    def test_counters_of_a_dpu(self):
        self.check("dpu", (0,))

    def test_lines_are_of_instructions_and_the_program_comes_first(self):
        recorded.need("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
        recorded.need("qemu-aarch64", "qemu-user")
        with Folder() as temporary:
            folder = pathlib.Path(temporary)
            source = folder / "hot.c"
            source.write_text("#include <stdio.h>\n"
                              "volatile int sink;\n"
                              "__attribute__((noinline)) void hot(int n)\n"
                              "{\n"
                              "  for (int i = 0; i < n; i++)\n"
                              "    sink += i;\n"
                              "}\n"
                              "int main(void)\n"
                              "{\n"
                              "  hot(5000);\n"
                              "  printf(\"%d\\n\", sink);\n"
                              "  return 0;\n"
                              "}\n")
            recorded.run("aarch64-linux-gnu-gcc", "-O1", "-g", "-o", folder / "hot", source)
            recorded.run(WAYMARK, "record", "--from-start", "-q", "-o", folder / "capture", "--", folder / "hot")
            capture = recorded.Capture(WAYMARK, folder / "capture", folder / "out")
            profile = capture.export("pprof", "hot.pb.gz")
            own, total, _ = capture.costs()
            said = recorded.run(GO, "tool", "pprof", "-list", "^hot$|^main$", profile).stdout
            cost = {int(line): (flat, cumulative) for flat, cumulative, line in
                    re.findall(r"^ *(\d+|\.)\w* +(\d+|\.)\w* +(\d+):", said, re.M)}
            self.assertEqual(cost[3], (".", "."), "no cost lies where the function begins")
            self.assertEqual(int(cost[10][1]), int(cost[10][0]) + total["hot"], "the call costs what was called")
            self.assertEqual(sum(int(flat) for line, (flat, _) in cost.items() if 3 <= line <= 7 and flat != "."), own["hot"])
            raw = recorded.run(GO, "tool", "pprof", "-raw", profile).stdout
            self.assertRegex(raw, r"(?m)^Mappings\n1: .*/hot ")


if __name__ == "__main__":
    GO = recorded.need("go", "golang-go")
    unittest.main(argv=sys.argv[:1], verbosity=2)
