#!/usr/bin/env python3
"""Results of `waymark dpu` with special register programs: holds, filters, counters that do not count everything, readouts, Nexus.

    dpu_programs_test.py WAYMARK SOURCE_DIR [TEST…]

The reference is the truth that the recorder sums up without the unit, whatever the unit is programmed to trace.
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()

BUFFER = "DP_TSA 0x20000000\nDP_TEA 0x2000ffe0\nDP_TW 0x20000000\n"
COUNT = "TENM=immediate CMODE=trace TCEN=1"
COUNTERS = f"DP_TAC {COUNT} CEG=2\nDP_TBC {COUNT} CEG=7\n"
# No trace is overwritten: all lines go to one address.
TASK = "TMODE=TASK VTBWM=single-address EN=1"
FLOW = TASK.replace("TASK", "FLOW")


class Truth:
    """truth.txt: cycles in total and by context."""

    def __init__(self, folder):
        self.contexts = {}
        for line in (folder / "truth.txt").read_text().splitlines():
            kind, *rest = line.split()
            if kind == "wires":
                wires = rest
            elif kind == "total":
                self.total = dict(zip(wires, map(int, rest)))
            elif kind == "context":
                self.contexts[rest[0].replace(":", " ")] = dict(zip(wires, map(int, rest[2:])))

    def cycles(self, context):
        return self.contexts[context]["CYCLES"]


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        done = run(SOURCE / "examples/build", "-o", cls.folder, "threads")
        assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, *options, program=None, outcome=None):
        out = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "out"
        if program is not None:
            text = out.parent / "program.txt"
            text.write_text(program)
            options = ("--registers", text, *options)
        done = run(WAYMARK, "record", "--unit", "dpu", "-o", out, *options, "--", self.folder / "threads-static", "20")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if outcome is not None:
            outcome.append(done.stdout + done.stderr)
        return out, Truth(out)

    def answer(self, folder, view="tasks", *options, status=0):
        done = run(WAYMARK, "dpu", view, folder, "--format", "json", *options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def rows(self, answer, event="CYCLES"):
        return {re.sub(r" \(thread.*", "", row["task"]): row[event] for row in answer["rows"]}

    def verify(self, folder, verdict, status=0):
        done = run(WAYMARK, "verify", folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn(f"\n{verdict}", done.stdout)
        return done

    def length(self):
        """Cycles of a whole run, to place writes in it. Threads are scheduled differently in each run, so another may be a
        fifth shorter or longer: what is compared is always the length of the run itself, `within`."""
        if not hasattr(Programs, "cycles"):
            Programs.cycles = self.record("--mode", "task")[1].total["CYCLES"]
        return Programs.cycles

    @staticmethod
    def within(begin, end, truth):
        """Cycles from `begin` to `end`, or to the end of a run that is shorter. A write acts where the program executes
        again: after a stay in the operating system (os_cycles, 200) and the block that its time lies in."""
        longest = 500
        return min(end, truth.total["CYCLES"]) - begin - longest

    # ---- holds

    def test_hold(self):
        """While tracing is held, tasks change unseen: these cycles belong to no task, and all views say so."""
        begin, end = self.length() // 5, self.length() * 4 // 5
        folder, truth = self.record(program=f"{BUFFER}{COUNTERS}DP_TC {TASK}\n@{begin} DP_TC {TASK} TMPDIS=1\n"
                                            f"@{end} DP_TC {TASK}\n")
        answer = self.answer(folder)
        rows = self.rows(answer)
        self.assertGreaterEqual(rows["<unattributed>"], self.within(begin, end, truth))
        self.assertEqual(sum(rows.values()), truth.total["CYCLES"])
        for task, cycles in rows.items():
            if not task.startswith("<"):
                self.assertLessEqual(cycles, truth.cycles(task), task)
        self.assertTrue(any("held (TMPDIS) 1 time" in each for each in answer["lost"]), answer["lost"])
        self.assertNotIn("every figure", answer["trust"]["exact"])
        self.assertEqual(run(WAYMARK, "dpu", "tasks", folder, "--strict").returncode, 1)
        self.assertIn("warning: tracing was held", self.verify(folder, "equal as far as the trace goes:").stderr)
        self.assertIn("held", run(WAYMARK, "flow", folder).stdout)

    def test_hold_to_the_end(self):
        """A hold that is not lifted: the rest of the run belongs to no task."""
        begin = self.length() // 5
        folder, truth = self.record(program=f"{BUFFER}{COUNTERS}DP_TC {FLOW}\n@{begin} DP_TC {FLOW} TMPDIS=1\n")
        rows = self.rows(self.answer(folder))
        self.assertGreaterEqual(rows["<unattributed>"], self.within(begin, truth.total["CYCLES"], truth))
        self.assertEqual(sum(rows.values()), truth.total["CYCLES"])

    def test_off_and_on_again(self):
        """Tracing is off for a while: for the time that the recording states, and all commands state it in one
        sentence."""
        begin, end = self.length() // 5, self.length() * 4 // 5
        folder, truth = self.record(program=f"{BUFFER}{COUNTERS}DP_TC {TASK}\n@{begin} DP_TC 0\n@{end} DP_TC {TASK}\n")
        answer = self.answer(folder)
        rows = self.rows(answer)
        self.assertGreaterEqual(rows["<unattributed>"], self.within(begin, end, truth))
        self.assertEqual(sum(rows.values()), truth.total["CYCLES"])
        for task, cycles in rows.items():
            if not task.startswith("<"):
                self.assertLessEqual(cycles, truth.cycles(task), task)
        self.assertEqual(len(answer["lost"]), 1, answer["lost"])
        said = re.match(r"tracing was off \(EN = 0\) 1 time, for ([\d,]+) of the run's ([\d,]+) cycles: ", answer["lost"][0])
        self.assertIsNotNone(said, answer["lost"])
        off, run_cycles = (int(n.replace(",", "")) for n in said.groups())
        self.assertEqual(run_cycles, truth.total["CYCLES"])
        self.assertLess(abs(off - (end - begin)), 1000)
        self.assertIn("lower bound", answer["trust"]["exact"])
        self.assertEqual(run(WAYMARK, "dpu", "tasks", folder, "--strict").returncode, 1)
        self.assertEqual(run(WAYMARK, "flow", folder, "--strict").returncode, 1)
        self.assertIn(answer["lost"][0], run(WAYMARK, "flow", folder).stderr)
        self.assertIn(answer["lost"][0], run(WAYMARK, "info", folder).stdout)
        self.assertIn(answer["lost"][0], self.verify(folder, "equal as far as the trace goes:").stderr)
        # doctor breaks lines.
        doctor = run(WAYMARK, "doctor", folder).stdout
        self.assertIn(answer["lost"][0][1:], " ".join(doctor.split()))
        self.assertRegex(doctor, r"^This capture decodes in part\.")
        self.assertNotIn("othing was lost", run(WAYMARK, "profile", folder).stdout)

    def test_other_counters_are_verified(self):
        """The event of one counter is changed during the run: the others are compared, and this counter is named."""
        folder, _ = self.record(program=f"{BUFFER}{COUNTERS}DP_TC {TASK}\n@{self.length() // 2} DP_TBC {COUNT} CEG=5\n")
        out = self.verify(folder, "equal:").stdout
        self.assertRegex(out, r"equal: \d+ figures compared; 4 counters not compared")
        self.assertEqual(re.findall(r"(\w\d) \w+ is not compared: it did not count during the whole run", out), ["B0", "B1", "B2"])

    def test_filter_in_other_views(self):
        """No view contains events that a filter excludes: their rows are lower bounds, and the filter is named."""
        folder, _ = self.record(program=f"{BUFFER}{COUNTERS}DP_CR TIDCM=program\nDP_RPID 3\nDP_TC {FLOW} IDFLT=1\n")
        for view in ("functions", "interrupts", "paths"):
            answer = self.answer(folder, view)
            self.assertIn("lower bound", answer["trust"]["exact"], view)
            self.assertIn("others than PID 3", answer["left_out"], view)

    def test_traced_in_part(self):
        """Counts from before tracing is enabled or after it is disabled are in no row."""
        begin, end = self.length() // 5, self.length() * 4 // 5
        folder, truth = self.record(program=f"{BUFFER}{COUNTERS}@{begin} DP_TC {FLOW}\n@{end} DP_TC 0\n")
        rows = self.rows(self.answer(folder))
        slack = self.length() // 20
        self.assertLess(abs(sum(rows.values()) - self.within(begin, end, truth)), slack)
        for task, cycles in rows.items():
            if not task.startswith("<"):
                self.assertLessEqual(cycles, truth.cycles(task), task)
        self.verify(folder, "equal as far as the trace goes:")

    # ---- filters

    def check_filter(self, program, selected):
        folder, truth = self.record(program=program)
        rows = self.rows(self.answer(folder))
        mine = {task: sums["CYCLES"] for task, sums in truth.contexts.items() if task.endswith(f" {selected}")}
        self.assertGreater(len(mine), 1)
        self.assertEqual({task: n for task, n in rows.items() if not task.startswith("<") and n != 0}, mine)
        self.assertEqual(rows["<filtered>"], truth.total["CYCLES"] - sum(mine.values()))
        stays = {row["task"]: row["stays"] for row in self.answer(folder)["rows"]}
        self.assertTrue(all(re.search(rf" {selected}\b", task) for task, n in stays.items() if n), stays)
        self.assertIn("<filtered>", self.verify(folder, "equal:").stdout)

    def test_filter(self):
        """DP_CR.TIDCM says which reference is compared, whichever ID the trace shows."""
        for compare, registers in (("program", "DP_RPID 3\nDP_RDID 9\n"), ("data", "DP_RPID 9\nDP_RDID 3\n"),
                                   ("both", "DP_RPID 3\nDP_RDID 3\n")):
            for tids in (0, 1):
                with self.subTest(compare=compare, tids=tids):
                    self.check_filter(f"{BUFFER}{COUNTERS}DP_CR TIDCM={compare}\n{registers}"
                                      f"DP_TC {TASK} IDFLT=1 TIDS={tids}\n", 3)

    def test_filter_of_the_first_task(self):
        """The program begins in the task that the filter selects; with task 3, in another task."""
        self.check_filter(f"{BUFFER}{COUNTERS}DP_CR TIDCM=program\nDP_RPID 2\nDP_TC {TASK} IDFLT=1\n", 2)

    def test_filter_cleared_and_set(self):
        """A filter that is cleared or set while tracing is on applies to a part of the trace."""
        at = self.length() // 2
        first, then = f"DP_TC {TASK} IDFLT=1\n", f"DP_TC {TASK}\n"
        for before, after in ((first, then), (then, first)):
            with self.subTest(before=before):
                folder, truth = self.record(program=f"{BUFFER}{COUNTERS}DP_CR TIDCM=program\nDP_RPID 3\n{before}@{at} {after}")
                rows = self.rows(self.answer(folder))
                self.assertGreater(rows["<filtered>"], self.length() // 5)
                self.assertEqual(sum(rows.values()), truth.total["CYCLES"])
                for task, cycles in rows.items():
                    if task.endswith(" 3"):
                        self.assertEqual(cycles, truth.cycles(task), task)
                    elif not task.startswith("<"):
                        self.assertLessEqual(cycles, truth.cycles(task), task)
                self.verify(folder, "equal as far as the trace goes:")

    # ---- counters that count only some events

    def test_one_shot(self):
        """A counter that stops cannot serve as a clock, and every view states that it is one-shot."""
        folder, _ = self.record(program=f"{BUFFER}DP_CA0V 1000\nDP_TAC TENM=immediate CMODE=one-shot TCEN=1 CEG=2\n"
                                        f"DP_TBC {COUNT} CEG=7\nDP_TC {TASK}\n")
        answer = self.answer(folder)
        self.assertEqual(answer["counters"]["A0"], "CYCLES (one-shot)")
        self.assertEqual(sum(self.rows(answer, "CYCLES (one-shot)").values()), 1000)
        self.assertEqual(answer["time_in"], "readings")
        self.assertGreater(answer["time"], 10)
        self.assertIn("A0 counts CYCLES once down to zero", answer["trust"]["exact"])
        self.assertGreater(len(self.answer(folder, "timeline")["rows"]), 5)
        for view in ("tasks", "interrupts", "timeline", "report"):
            self.assertIn("(one-shot)", run(WAYMARK, "dpu", view, folder).stdout, view)
        self.assertIn("CYCLES (one-shot)", run(WAYMARK, "profile", folder, "--format", "tsv").stdout)

    def test_qualified(self):
        """A counter that counts in one privilege only: the views state it, and it cannot serve as a clock."""
        folder, truth = self.record(program=f"{BUFFER}DP_TAC {COUNT} CEG=2 CEGP=user\nDP_TBC {COUNT} CEG=7\nDP_TC {TASK}\n")
        answer = self.answer(folder)
        rows = self.rows(answer, "CYCLES (user)")
        for task, cycles in rows.items():
            self.assertEqual(cycles, truth.cycles(task) if task.startswith("user") else 0, task)
        self.assertEqual(answer["time_in"], "readings")
        self.assertIn("A0 counts CYCLES in user only", answer["trust"]["exact"])

    def test_gated(self):
        """A counter that an event starts counts for a part of the time."""
        folder, truth = self.record(
            "--edca", "0=collatz",
            program=f"{BUFFER}DP_TAC TENM=EDCA0 CMODE=trace TCEN=1 CEG=2\nDP_TBC {COUNT} CEG=1\nDP_TC {TASK}\n")
        answer = self.answer(folder)
        self.assertEqual(answer["counters"]["A0"], "A0 CYCLES (from EDCA0)")
        self.assertEqual(answer["time_in"], "cycles", "B0 counts all of them")
        self.assertEqual(answer["time"], truth.total["CYCLES"])
        part = sum(self.rows(answer, "A0 CYCLES (from EDCA0)").values())
        self.assertTrue(0 < part < truth.total["CYCLES"], part)

    def test_switched_on_the_way(self):
        """A counter that software stops during the run cannot serve as a clock; neither can a counter whose value
        software writes."""
        at = self.length() // 2
        stop = "DP_TAC TDM=immediate CMODE=trace TCEN=1 CEG=2\n"
        folder, truth = self.record(program=f"{BUFFER}{COUNTERS}DP_TC {TASK}\n@{at} {stop}")
        answer = self.answer(folder)
        self.assertEqual(answer["counters"]["A0"], "CYCLES (part of the time)")
        self.assertEqual(answer["time_in"], "readings")
        self.assertLess(sum(self.rows(answer, "CYCLES (part of the time)").values()), truth.total["CYCLES"])
        folder, _ = self.record(program=f"{BUFFER}{COUNTERS}DP_TC {TASK}\n@{at} {stop}@{at + 100} DP_CA0V 0x7fff0000\n@{at + 200} DP_TAC {COUNT} CEG=2\n")
        answer = self.answer(folder)
        self.assertEqual(answer["counters"]["A0"], "CYCLES (part of the time, value written on the way)")
        self.assertTrue(any("A0 was written" in each for each in answer["doubtful"]), answer["doubtful"])

    # ---- readout

    # ---- effects on the core

    MISSES = f"DP_CA1V 20\nDP_TAC TENM=immediate CMODE=one-shot TCEN=1 CEG=7\n"

    def routine(self, text):
        path = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "routine.txt"
        path.write_text(text)
        return path

    def test_interrupt_each_20_misses(self):
        """A one-shot counter interrupts the program; the service routine samples the counters and arms it again."""
        sample = TASK.replace("TASK", "SWSAMPLE")
        done = []
        folder, truth = self.record(
            "--on-line-0", self.routine(f"DP_TC {sample} SAMPLE=1\n{self.MISSES}"), outcome=done,
            program=f"{BUFFER}DP_CR DECA1=line-0\n{self.MISSES}DP_TBC {COUNT} CEG=2\nDP_TC {sample}\n")
        times = int(re.search(r"([\d,]+) interrupts of the unit on line 0", done[0]).group(1).replace(",", ""))
        # Misses during an interrupt are not counted.
        self.assertGreaterEqual(truth.total["DC_MISS"], 20 * times)
        self.assertGreater(20 * (times + 1) + 40 * times, truth.total["DC_MISS"])
        self.assertGreater(times, 3)
        samples = [line for line in run(WAYMARK, "packets", folder).stdout.splitlines() if "SAMPLE" in line.upper()]
        self.assertEqual(len(samples), times + 1, "the recorder takes one more at the end")
        # A counter whose value is written has no counts, and its differences are not damage.
        answer = self.answer(folder)
        self.assertEqual(answer["lost"], [])
        self.assertEqual([d for d in answer["doubtful"] if "damaged" in d], [])
        missed = "DC_MISS (one-shot, value written on the way)"
        self.assertEqual({row[missed] for row in answer["rows"]}, {None})
        reconciled = {row["counter"]: (row["sum"], row["counted"], row["residual"]) for row in answer["reconciled"]}
        self.assertEqual(reconciled["A1"], (None, None, None))
        self.assertEqual(reconciled["B0"], (truth.total["CYCLES"], truth.total["CYCLES"], 0))
        self.assertEqual(sum(row["CYCLES"] for row in answer["rows"]), truth.total["CYCLES"])
        self.verify(folder, "equal:")

    def test_interrupts_are_in_the_trace(self):
        """The trace shows the interrupts of the unit itself; without a routine they are acknowledged."""
        done = []
        folder, truth = self.record(
            "--edca", "2=collatz", outcome=done,
            program=f"{BUFFER}DP_CR ISEDCA2=2\n{COUNTERS}DP_TC {FLOW}\n")
        times = int(re.search(r"([\d,]+) interrupts of the unit on line 1", done[0]).group(1).replace(",", ""))
        self.assertEqual(times, truth.total["EDCA2"])
        services = {row["service"]: row["times"] for row in self.answer(folder, "interrupts")["rows"]}
        self.assertEqual(services["[DPU line 1]"], times)
        self.verify(folder, "equal:")

    def test_debug_state(self):
        """A debug request stops the core, and the recording states why it ended."""
        done = []
        folder, truth = self.record(outcome=done, program=f"{BUFFER}DP_CR DECA1=debug-request\n{self.MISSES}"
                                                          f"DP_TBC {COUNT} CEG=2\nDP_TC {TASK}\n")
        self.assertIn("debug state: counter A1 reached zero", done[0])
        self.assertGreaterEqual(truth.total["DC_MISS"], 20)
        self.assertGreater(60, truth.total["DC_MISS"])
        self.assertIn("debug state", run(WAYMARK, "dpu", "report", folder).stdout)

    def test_debug_exception(self):
        """With a handler, a debug request is an exception, and the program continues."""
        done = []
        folder, _ = self.record(
            "--on-debug", self.routine(self.MISSES), outcome=done,
            program=f"{BUFFER}DP_CR DECA1=debug-request\n{self.MISSES}DP_TBC {COUNT} CEG=2\nDP_TC {FLOW}\n")
        times = int(re.search(r"([\d,]+) debug exceptions of the unit", done[0]).group(1).replace(",", ""))
        services = {row["service"]: row["times"] for row in self.answer(folder, "interrupts")["rows"]}
        self.assertEqual(services["[DPU debug exception]"], times)
        self.verify(folder, "equal:")

    def test_effects_that_nothing_takes(self):
        """Routines that nothing starts, requests without a cause, and routines with times are named before the run."""
        out = self.folder / "never"
        done = run(WAYMARK, "record", "--unit", "dpu", "-o", out, "--on-line-1", self.routine("DP_CA1V 1\n"),
                   "--registers", self.routine(f"{BUFFER}DP_CR EIS=1\n{COUNTERS}DP_TC {TASK}\n"),
                   "--", self.folder / "threads-static", "20")
        self.assertIn("the routine of line 1 never runs", done.stderr)
        self.assertIn("DP_CR.EIS", done.stderr)
        done = run(WAYMARK, "record", "--unit", "dpu", "-o", out, "--on-line-0", self.routine("@7 DP_CA1V 1\n"),
                   "--", self.folder / "threads-static", "20")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("line 1: a routine runs when it is called", done.stderr)

    def test_edca_range(self):
        """A channel that watches a range hits at each instruction in it, executed or accessed."""
        folder, truth = self.record("--edca", "0=collatz", "--edca", "1=0x0-0xfffffffe", "--mode", "task")
        one, all_ = truth.total["EDCA0"], truth.total["EDCA1"]
        self.assertGreater(one, 0)
        # Every executed instruction, and every access to data.
        self.assertGreaterEqual(all_, truth.total["VLES"] // 2)
        self.assertGreater(all_, one)
        done = run(WAYMARK, "record", "--unit", "dpu", "-o", self.folder / "never", "--edca", "1=0x9000-0x8000", "--",
                   self.folder / "threads-static", "20")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("STOP is the address after", done.stderr)

    def test_request(self):
        """Request mode: an interrupt reads the buffer, half by half, and no trace is overwritten."""
        folder, truth = self.record("--buffer", "4096", "--buffer-mode", "request", "--mode", "task")
        answer = self.answer(folder)
        rows = self.rows(answer)
        self.assertEqual(rows, {task: sums["CYCLES"] for task, sums in truth.contexts.items()})
        self.assertEqual(answer["lost"], [])
        size = (folder / "vtb.bin").stat().st_size
        self.assertGreater(size, 4096)
        services = {row["service"]: row["times"] for row in self.answer(folder, "interrupts")["rows"]}
        self.assertIn(services["[DPU readout]"], range(size // 2048 - 2, size // 2048 + 1))
        self.assertNotIn("[DPU line 0]", services)
        self.verify(folder, "equal:")
        run(WAYMARK, "packets", folder, "--strict")

    def test_request_too_late(self):
        """If the request comes when the buffer is already full, the overwritten trace is a loss with its place."""
        folder, truth = self.record(program="DP_TSA 0x20000000\nDP_TEA 0x20000020\nDP_TW 0x20000000\nDP_TER 0x20000020\n"
                                            f"DP_CR DETB=line-0\n{COUNTERS}"
                                            "DP_TC TMODE=FLOW VTBWM=trace-event-request EN=1\n")
        answer = self.answer(folder)
        self.assertTrue(answer["lost"])
        rows = self.rows(answer)
        self.assertGreater(rows["<unattributed>"], 0)
        self.assertEqual(sum(rows.values()), truth.total["CYCLES"])

    def test_buffer_that_is_written_in_part(self):
        """A dump of the whole buffer that software cleared before: doctor recognises the trace."""
        folder, _ = self.record(program=f"{BUFFER}{COUNTERS}DP_TC TMODE=TASK EN=1\n")
        dump = (folder / "vtb.bin").read_bytes()
        self.assertEqual(dump[-32:], bytes(32))
        alone = folder.parent / "dump.bin"
        for name, content in {"behind": dump, "before": bytes(4096) + dump}.items():
            alone.write_bytes(content)
            said = run(WAYMARK, "doctor", alone).stdout
            self.assertIn("Debug and Profiling Unit", said, name)
            self.assertNotIn("No trace", said, name)
            self.assertIn("never written", said, name)

    # ---- Nexus

    def test_nexus_only(self):
        """If nothing goes to the buffer, the messages give the same answers, in every mode."""
        for mode in ("task", "flow", "sample", "raw", "compressed"):
            with self.subTest(mode=mode):
                options = ("--sample-every", "500") if mode == "sample" else ()
                folder, truth = self.record("--mode", mode, "--nexus", "only", *options)
                self.verify(folder, "equal:")
                answer = self.answer(folder)
                self.assertEqual(answer["lost"], [])
                self.assertEqual(sum(self.rows(answer).values() if mode in ("task", "flow", "sample") else []),
                                 truth.total["CYCLES"] if mode in ("task", "flow", "sample") else 0)
                for command in (("flow",), ("info",), ("doctor",), ("profile",)):
                    done = run(WAYMARK, *command, folder)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nexus_hold(self):
        """With NXMODE 11, a hold is in the messages."""
        tc = "TMODE=TASK NXMODE=only EN=1"
        begin, end = self.length() // 5, self.length() * 4 // 5
        folder, truth = self.record(program=f"{BUFFER}{COUNTERS}DP_TC {tc}\n@{begin} DP_TC {tc} TMPDIS=1\n"
                                            f"@{end} DP_TC {tc}\n")
        rows = self.rows(self.answer(folder))
        self.assertGreaterEqual(rows["<unattributed>"], self.within(begin, end, truth))
        self.assertEqual(sum(rows.values()), truth.total["CYCLES"])

    # ---- several runs

    def test_runs(self):
        """Runs that count different events: each figure is computed from all runs, and their spread is shown."""
        one, first = self.record("--mode", "flow", "--events", "2,7")
        two, second = self.record("--mode", "flow", "--events", "1,5")
        done = run(WAYMARK, "profile", one, two, "--format", "json", "--limit", "0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = json.loads(done.stdout)["rows"]
        total = lambda event: sum(row[event] for row in rows)
        cycles = first.total["CYCLES"] + second.total["CYCLES"]
        self.assertEqual(total("CYCLES"), cycles)
        for event, truth in (("DC_MISS", first), ("DC_HIT", first), ("STALL_ALL", first), ("IC_MISS", second), ("VLES", second)):
            expected = truth.total[event] * cycles / truth.total["CYCLES"]
            self.assertLess(abs(total(event) - expected), 0.25 * expected, event)
        self.assertTrue(all("CYCLES spread %" in row for row in rows))
        text = run(WAYMARK, "profile", one, two).stdout
        for words in ("counted in 1 of 2 captures, and scaled to all of them by CYCLES", "spread %", "DC miss rate 0."):
            self.assertIn(words, text)
        # Answers files of the runs, merged, give the same figures and the same sentences.
        files = [one.parent / "one.answers", one.parent / "two.answers"]
        for capture, file in zip((one, two), files):
            self.assertEqual(run(WAYMARK, "answers", capture, "-o", file).returncode, 0)
        merged = one.parent / "merged.answers"
        done = run(WAYMARK, "merge", *files, "-o", merged)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Not all captures count the same", done.stderr)
        done = run(WAYMARK, "profile", merged, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = lambda all: {row["function"]: [row[m] for m in ("CYCLES", "DC_MISS", "DC_HIT", "IC_MISS", "VLES")] for row in all}
        self.assertEqual(figures(json.loads(done.stdout)["rows"]), figures(rows))
        self.assertIn("counted in 1 of 2 captures, and scaled to all of them by CYCLES", run(WAYMARK, "profile", merged).stdout)
        # A sum with another run is the sum of three runs. Only runs have a spread, and the sum is none.
        given = [run(WAYMARK, "profile", *all, "--limit", "0", "--format", "json") for all in ((one, two, one), (merged, one), (files[0], merged))]
        three, *sums = (json.loads(done.stdout) for done in given)
        for sum_of_three in sums:
            self.assertEqual(figures(sum_of_three["rows"]), figures(three["rows"]))
            self.assertFalse(any("CYCLES spread %" in row for row in sum_of_three["rows"]))
        said = run(WAYMARK, "profile", merged, one).stdout
        for words in ("counted in 2 of 3 captures", "counted in 1 of 3 captures"):
            self.assertIn(words, said)

    def test_ratios(self):
        """Derived figures equal those computed from the truth."""
        folder, truth = self.record("--mode", "task", "--events", "1,7")
        rows = {re.sub(r" \(thread.*", "", row["task"]): row for row in self.answer(folder, "ratios")["rows"]}
        for task, sums in (("all", truth.total), ("user 2", truth.contexts["user 2"])):
            self.assertAlmostEqual(rows[task]["DC miss rate"], sums["DC_MISS"] / (sums["DC_HIT"] + sums["DC_MISS"]))
            self.assertAlmostEqual(rows[task]["cycles per set"], sums["CYCLES"] / sums["VLES"])
            self.assertNotIn("load", rows[task], "whether the core waited is not known: nothing drives WAIT")

    # ---- loops, and the output of verify

    def test_loops_alike(self):
        """`dpu loops` and `loops` print the same figures, with the same status."""
        for mode, status in (("task", 1), ("compressed", 0)):
            folder, _ = self.record("--mode", mode)
            here, there = run(WAYMARK, "dpu", "loops", folder), run(WAYMARK, "loops", folder)
            self.assertEqual((here.returncode, there.returncode), (status, status))
            self.assertEqual(here.stderr, there.stderr)
            if status == 0:
                title = "hardware loops: runs that jump back, and iterations of the body"
                self.assertIn(title, here.stdout)
                self.assertIn(title, there.stdout)
                for text in (here.stdout, there.stdout):
                    self.assertRegex(text, r"\n  entries  iterations +mean  (.*  )?head  +tail  +in")
                starts = [row["start"] for row in self.answer(folder, "loops")["rows"]]
                self.assertNotIn(None, starts, "the program says where loops begin")

    def test_verify_warns(self):
        """verify, too, reports what is missing or doubtful after decoding."""
        folder, _ = self.record("--mode", "task")
        words = bytearray((folder / "vtb.bin").read_bytes())
        words[36 * 100 + 4] ^= 0x40  # bit 30 of a counter
        (folder / "vtb.bin").write_bytes(words)
        self.assertIn("warning: 1 reading of counters cannot be true", self.verify(folder, "DIFFERENT:", 1).stderr)


if __name__ == "__main__":
    for tool in ("qemu-arm", "arm-linux-gnueabihf-gcc"):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not installed; nothing was recorded")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
