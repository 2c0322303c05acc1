#!/usr/bin/env python3
"""The DPU's model on the stimuli of examples/stimuli, whose figures can be added up by hand, decoded by every view.

    stimulus_test.py WAYMARK SOURCE_DIR
"""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
EXAMPLES = SOURCE / "examples" / "stimuli"
VIEWS = ("tasks", "functions", "paths", "interrupts", "timeline", "loops", "data", "ratios", "health")


class Stimuli(unittest.TestCase):
    def setUp(self):
        self.temporary = Folder()
        self.folder = pathlib.Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def made(self, name):
        out = self.folder / name
        done = run(WAYMARK, "dpu", "run", EXAMPLES / f"{name}.program", EXAMPLES / f"{name}.stimulus", "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("warning", done.stderr)
        return out

    def entries(self, out, kind):
        done = run(WAYMARK, "packets", out, "--type", kind, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def table(self, out, view):
        done = run(WAYMARK, "dpu", view, out, "--format", "tsv")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split("\t") for line in done.stdout.splitlines() if line]
        return [dict(zip(lines[0], line)) for line in lines[1:]], done.stdout

    def test_every_view(self):
        """Each view reads each example, and gives an answer or a reason."""
        for name in ("task", "flow", "sample", "edca5", "user"):
            out = self.made(name)
            for view in VIEWS:
                with self.subTest(f"{name} {view}"):
                    done = run(WAYMARK, "dpu", view, out)
                    self.assertIn(done.returncode, (0, 1), done.stderr)
                    self.assertTrue(done.returncode == 0 or "error" in done.stderr or "note" in done.stderr, done.stderr)
            self.assertEqual(run(WAYMARK, "report", out, "-o", self.folder / f"{name}.html").returncode, 0)
            done = run(WAYMARK, "explain", out)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("bytes for each entry", done.stdout)

    def test_figures(self):
        """Mode 1: ten turns of each task, of 1,001 and 501 cycles; mode 2: 20 calls of 200 cycles."""
        _, text = self.table(self.made("task"), "tasks")
        self.assertIn("radio", text)
        # Counters that TENM = immediate enables count from the next cycle on.
        self.assertRegex(text, r"\b10009\b")
        self.assertRegex(text, r"\b5010\b")
        _, text = self.table(self.made("flow"), "functions")
        self.assertRegex(text, r"filter.*\b4000\b")

    def test_entries(self):
        self.assertEqual(len(self.entries(self.made("sample"), "SAMPLE")), 8)
        self.assertEqual(len(self.entries(self.made("edca5"), "SAMPLE")), 12)
        self.assertEqual(len(self.entries(self.made("user"), "USER-DATA")), 3)

    def test_same_bytes(self):
        """Long stretches in one step, and cycle by cycle."""
        program = EXAMPLES / "flow.program"
        stretched, stepped = self.folder / "a.txt", self.folder / "b.txt"
        body = "item call 0x1010 0x2000\ncycle\n{}item return 0x2060 0x1014\ncycle\n"
        stretched.write_text(body.format("cycles 60 DC_HIT=60\n"))
        stepped.write_text(body.format("repeat 60\ncycle DC_HIT=1\nend\n"))
        for text, name in ((stretched, "a"), (stepped, "b")):
            self.assertEqual(run(WAYMARK, "dpu", "run", program, text, "-o", self.folder / name).returncode, 0)
        self.assertEqual((self.folder / "a/vtb.bin").read_bytes(), (self.folder / "b/vtb.bin").read_bytes())

    def test_dump(self):
        """A dump of registers and of the buffer becomes a folder with the same results."""
        out = self.made("flow")
        registers = (out / "dpu.ini").read_text().split("[registers]\n")[1].split("\n\n")[0]
        (self.folder / "registers.txt").write_text(registers.replace("=", " ") + "\n")
        made = self.folder / "made"
        for order in (("registers.txt", "flow/vtb.bin"), ("flow/vtb.bin", "registers.txt")):
            shutil.rmtree(made, ignore_errors=True)
            done = run(WAYMARK, "doctor", *(self.folder / name for name in order), "--write-snapshot", made)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("big-endian", done.stderr)
            here, there = (self.entries(folder, "FLOW") for folder in (out, made))
            self.assertEqual(here, there)
        short = self.folder / "short.bin"
        short.write_bytes((out / "vtb.bin").read_bytes()[:100])
        done = run(WAYMARK, "doctor", self.folder / "registers.txt", short, "--write-snapshot", self.folder / "other")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("it has 100 bytes", done.stderr)

    def test_repeats(self):
        """Repeats that are nested, beside each other, empty, and never run: equal to the same steps written out."""
        turn = "item call 0x1010 0x2000\ncycle DC_HIT=1\ncycles 20 DC_HIT=7\nitem return 0x2060 0x1014\ncycle\n"
        nested, plain = self.folder / "a.txt", self.folder / "b.txt"
        nested.write_text(f"repeat 2\nrepeat 3\n{turn}end\nrepeat 1\ncycles 5\nend\nrepeat 0\nrepeat 2\n{turn}end\nend\n"
                          f"repeat 2\nrepeat 2\ncycles 9 DC_HIT=2\nend\nend\nend\nrepeat 3\nend\ncycle\n")
        plain.write_text((turn * 3 + "cycles 5\n" + "cycles 9 DC_HIT=2\n" * 4) * 2 + "cycle\n")
        for text, name in ((nested, "a"), (plain, "b")):
            done = run(WAYMARK, "dpu", "run", EXAMPLES / "flow.program", text, "-o", self.folder / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{2 * (3 * 22 + 5 + 36) + 1} cycles", done.stderr)
        for file in ("vtb.bin", "dpu.ini"):
            self.assertEqual((self.folder / "a" / file).read_bytes(), (self.folder / "b" / file).read_bytes())

    def test_memory(self):
        """A short text with many repeated steps takes only the memory of the few steps that it contains."""
        text = self.folder / "many.txt"
        text.write_text("repeat 400000\ncycle DC_HIT=1\nend\n")
        limit = 300 << 20

        def limited():
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        done = subprocess.run([str(WAYMARK), "dpu", "run", str(EXAMPLES / "flow.program"), str(text), "-o",
                               str(self.folder / "many")], capture_output=True, text=True, timeout=HANGS,
                              preexec_fn=limited if "san" not in os.environ.get("ASAN_OPTIONS", "") else None)
        self.assertIn("400,000 cycles", done.stderr)
        self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_large_buffer(self):
        """A buffer that is too large is refused. No line in it is treated as a write outside the buffer."""
        program, text, out = self.folder / "large.program", self.folder / "large.txt", self.folder / "large"
        program.write_text("DP_TSA 0x20000000\nDP_TEA 0x40000000\nDP_TW 0x20000000\nDP_TC TMODE=USER EN=1\n")
        text.write_text("repeat 20\nwrite DP_TD 0x1234\ncycle\nend\ncycles 100\n")
        done = run(WAYMARK, "dpu", "run", program, text, "-o", out)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("DP_TSA 0x20000000 and DP_TEA 0x40000000 make a buffer of 512 MiB", done.stderr)
        self.assertNotIn("lost", done.stderr)
        self.assertFalse(out.exists())

    def test_next_run(self):
        """A run that fails leaves no file that prevents the next run in its folder, new or empty."""
        large = self.folder / "large.program"
        large.write_text("DP_TSA 0x20000000\nDP_TEA 0x40000000\nDP_TW 0x20000000\nDP_TC TMODE=TASK EN=1\n")
        bad = self.folder / "bad.txt"
        bad.write_text((EXAMPLES / "task.stimulus").read_text() + "\ntask 4 x;y\n")
        for out in (self.folder / "new", self.folder / "empty"):
            if out.name == "empty":
                out.mkdir()
            for program, text in ((EXAMPLES / "task.program", bad), (large, EXAMPLES / "task.stimulus")):
                done = run(WAYMARK, "dpu", "run", program, text, "-o", out)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(out.exists(), out.name == "empty")
            done = run(WAYMARK, "dpu", "run", EXAMPLES / "task.program", EXAMPLES / "task.stimulus", "-o", out)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_mistakes(self):
        """Each mistake is named with its line."""
        for text, said in (("cycles 5 NOTHING=1\n", "line 1: 'NOTHING' is not an event"),
                           ("item call 0x10\ncycle\n", "line 1: item call has 1 number"),
                           ("item mark 0x10\ncycles 5\n", "line 2: items and writes are in one cycle"),
                           ("repeat 3\ncycle\n", "'repeat' of line 1 has no 'end'"),
                           ("cycles 5 WAIT=6\n", "WAIT lasts 6 cycles of 5"),
                           ("cycle TASK_ACTIVE\n", "the unit itself makes"),
                           ("item mark 0x10\n", "are in no cycle"),
                           ("context root 5\n", "a context is"),
                           ("", "nothing happens"),
                           ("jump 5\n", "not a line of a stimulus"),
                           ("cycle\ntask 4 x;y\ncycle\n", "line 2: task name 'x;y' cannot be written to dpu.ini"),
                           ("cycle\nsymbol 0x10 x;y\n", "line 2: symbol 'x;y' cannot be written to dpu.ini"),
                           ("repeat 4000\nrepeat 1001\ncycle\nend\nend\n", "line 5: 4000 times 1001 steps; a stimulus"),
                           ("cycle\nrepeat 4000000\ncycle\nend\n", "line 4: 4000000 times 1 steps after 1; a"),
                           ("write DP_XX 1\ncycle\n", "line 1: ")):
            with self.subTest(said):
                path = self.folder / "bad.txt"
                path.write_text(text)
                done = run(WAYMARK, "dpu", "run", EXAMPLES / "task.program", path, "-o", self.folder / "bad")
                self.assertIn(said, done.stderr)
                self.assertNotEqual(done.returncode, 0)
                self.assertFalse((self.folder / "bad").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
