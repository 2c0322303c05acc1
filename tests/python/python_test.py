#!/usr/bin/python3
"""The Python module, on the recordings of examples/sort: expectations from what QEMU executed (truth.txt) and from the
command line.

    python_test.py PACKAGE_FOLDER WAYMARK ROOT [test…]
"""
import csv
import gc
import hashlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

FOLDER, WAYMARK, ROOT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
sys.path.insert(0, FOLDER)
os.environ["WAYMARK"] = WAYMARK
import numpy as np  # noqa: E402

import waymark  # noqa: E402
from cli_test import use  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402

SORT = ROOT / "examples" / "sort"
DESCRIBED = {"protocol": "ptm1.1", "buffer_format": "coresight", "trace_id": "0x10", "etmcr": 0x30001000,
             "etmidr": "0x411cf312", "register": ["ETMCCER=0x34c01000"]}


def truth(folder="capture"):
    """Of both kinds of files: `range_hash 15473…`, and `source ETE_1 ranges 1447 … hash 0x9c9f…`."""
    text = " ".join(line for line in (SORT / folder / "truth.txt").read_text().splitlines() if not line.startswith("#"))
    words = text.split()
    return {name: int(next(words[i + 1] for i, word in enumerate(words) if word in (name, name.removeprefix("range_"))), 0)
            for name in ("ranges", "range_instructions", "range_hash")}


def range_hash(batches):
    h = 1469598103934665603
    for batch in batches:
        for start, end in zip(batch.start.tolist(), batch.end.tolist()):
            for number in (start, end):
                h = (h ^ number) * 1099511628211 & (1 << 64) - 1
    return h


def story(batches):
    """A hash of all elements in order, for any division into batches."""
    rows = []
    for batch in batches:
        rows += [(i, *row) for i, row in enumerate(zip(batch.start.tolist(), batch.taken.tolist(), batch.cycles.tolist(),
                                                       batch.offset.tolist()))]
    events = [e._replace(before=0) for batch in batches for e in batch.event_list]
    ranges = [row[1:] for row in rows]
    return hashlib.sha256(repr((ranges, events)).encode()).hexdigest()


class Flow(unittest.TestCase):
    def test_truth(self):
        for folder in ("capture", "capture-aarch64"):
            expected = truth(folder)
            with waymark.open(SORT / folder) as capture:
                self.assertEqual(capture.kind, "flow")
                flow = capture.flow()
                batches = list(flow)
                self.assertEqual(sum(map(len, batches)), expected["ranges"])
                self.assertEqual(sum(int(b.instructions.sum()) for b in batches), expected["range_instructions"])
                self.assertEqual(range_hash(batches), expected["range_hash"])
                self.assertEqual(flow.totals["instructions"], expected["range_instructions"])
                self.assertEqual(flow.damage, [])
                self.assertEqual(sum(e.kind == "exception" for b in batches for e in b.event_list), 3)

    def test_jobs_and_batches(self):
        with waymark.open(SORT / "capture") as capture:
            expected = story(list(capture.flow()))
            for jobs, batch in ((1, 1), (2, 4096), (0, 1 << 20)):
                self.assertEqual(story(list(capture.flow("0x10", jobs=jobs, batch=batch))), expected)
            self.assertEqual(sum(len(r) for r in capture.flow(["PTM_0"]).ranges()), truth()["ranges"])

    def test_arrays_are_not_copied_and_outlive_everything(self):
        capture = waymark.open(SORT / "capture")
        flow = capture.flow()
        batch = next(flow)
        ranges, blocks, events = batch.ranges, batch.blocks, batch.events
        self.assertFalse(ranges.flags.owndata or ranges.flags.writeable or blocks.flags.writeable)
        self.assertEqual(ranges.ctypes.data, batch._part.ranges.ctypes.data)
        before = ranges.tobytes(), blocks.tobytes(), events.tobytes()
        capture.close()
        list(flow)
        del capture, flow, batch
        gc.collect()
        for _ in range(3):
            with waymark.open(SORT / "capture-aarch64") as other:
                list(other.flow())
        self.assertEqual((ranges.tobytes(), blocks.tobytes(), events.tobytes()), before)

    def test_memory_comes_back(self):
        """A gigabyte of ranges, in the memory of one batch."""
        with waymark.open(SORT / "capture") as capture:
            places = set()
            for _ in range(200):
                for ranges in capture.flow().ranges():
                    places.add(ranges.ctypes.data)
            self.assertLess(len(places), 60)

    def test_counts(self):
        with waymark.open(SORT / "capture") as capture:
            counts, = capture.counts()
            self.assertEqual(counts.source.name, "PTM_0")
            self.assertEqual(int(counts.times.sum()), truth()["ranges"])
            self.assertEqual(int((counts.times.sum(axis=1) * counts.blocks["instructions"]).sum()),
                             truth()["range_instructions"])

    def test_packets(self):
        with waymark.open(SORT / "capture") as capture:
            packets = list(capture.packets())
        printed = waymark.run("packets", SORT / "capture", format="tsv").splitlines()
        self.assertEqual([p.name for p in packets if not p.is_gap],
                         [name for line in printed[1:] for name in [line.split("\t")[printed[0].split("\t").index("packet")]]
                          if name])
        at = 0
        for p in packets:
            self.assertEqual(p.offset, at)
            at += p.bytes

    def test_symbols(self):
        with waymark.open(SORT / "capture", symbols=SORT / "sort.elf") as capture:
            address = capture.address("quicksort")
            self.assertEqual(capture.symbol(address + 2)[:1], ("quicksort",))
            self.assertIsNone(capture.symbol(1, "PTM_0"))
            with self.assertRaises(waymark.NotFoundError):
                capture.address("nobody")
            with self.assertRaises(waymark.NotFoundError):
                capture.symbol(1, "nobody")

    def test_memory_and_code(self):
        trace, code = (SORT / "capture" / "trace.bin").read_bytes(), (SORT / "capture" / "memory0.bin").read_bytes()
        asked = []

        def ask(address, count, space):
            asked.append((address, count, space))
            at = address - 0x10000
            return code[at:at + count] if 0 <= at < len(code) else None
        for more in ({"image": SORT / "sort.elf"}, {"code": {0x10000: code}}, {"ask": ask}):
            with waymark.open_memory(trace, "the trace", **DESCRIBED, **more) as capture:
                self.assertEqual(range_hash(list(capture.flow())), truth()["range_hash"], more)
        self.assertTrue(0 < len(asked) < 100)

    def test_live(self):
        trace = (SORT / "capture" / "trace.bin").read_bytes()
        code = {0x10000: (SORT / "capture" / "memory0.bin").read_bytes()}
        with waymark.open_memory(trace, **DESCRIBED, code=code) as capture:
            expected = story(list(capture.flow()))
        with waymark.open_live(**DESCRIBED, code=code) as capture:
            for chunk in (1, 7, 100, 5000):
                live, got = capture.live(), []
                for at in range(0, len(trace), chunk):
                    got += live.feed(memoryview(trace)[at:at + chunk])
                got += live.finish()
                self.assertEqual(story(got), expected, chunk)
                self.assertEqual(live.totals["ranges"], truth()["ranges"])
            with self.assertRaises(waymark.UsageError):
                next(iter(capture.flow()))

    def test_threads(self):
        """Python continues while another thread decodes, and several threads decode one capture."""
        results = []
        with waymark.open(SORT / "capture") as capture:
            def work():
                for _ in range(10):
                    results.append(range_hash(list(capture.flow())))
            threads = [threading.Thread(target=work) for _ in range(3)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(set(results), {truth()["range_hash"]})
        self.assertEqual(len(results), 30)

    def test_keyboard_interrupt(self):
        """A signal ends a loop that decodes."""
        code = ("import sys; sys.path.insert(0, sys.argv[1])\nimport waymark\ncapture = waymark.open(sys.argv[2])\n"
                "try:\n    capture.counts()\n    print('ready', flush=True)\n    while True: capture.counts()\n"
                "except KeyboardInterrupt: sys.exit(42)\n")
        with subprocess.Popen([sys.executable, "-c", code, FOLDER, str(SORT / "capture")],
                              stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(timeout=HANGS), 42)


class Answers(unittest.TestCase):
    def test_functions(self):
        with waymark.open(SORT / "capture", symbols=SORT / "sort.elf") as capture:
            answers = capture.answers()
        functions = answers.functions
        self.assertIs(functions, answers.functions)
        self.assertEqual(int(functions["self"].sum()), truth()["range_instructions"])
        self.assertFalse(functions["self"].flags.owndata)
        printed = waymark.run("profile", SORT / "capture", symbols=SORT / "sort.elf", format="tsv").splitlines()
        head = printed[0].split("\t")
        shown = {f[head.index("function")]: int(f[head.index("instructions")]) for f in (x.split("\t") for x in printed[1:])}
        self.assertGreater(len(shown), 2)
        self.assertEqual({n: int(s) for n, s in zip(functions["name"], functions["self"]) if s},
                         {n: s for n, s in shown.items() if s})
        row = next(r for r in functions.rows() if r["name"] == "quicksort")
        self.assertEqual(row["self"], shown["quicksort"])
        self.assertIn("calls", functions)
        with self.assertRaises(KeyError):
            functions["no such column"]
        with self.assertRaises(AttributeError):
            answers.no_table

    def test_all_tables(self):
        with waymark.open(SORT / "capture-aarch64") as capture:
            answers = capture.answers(timeline=True, all_functions=True, ranges=True, inlined=True)
        filled = 0
        for name in waymark.TABLES:
            table = answers.table(name)
            filled += len(table) > 0
            for column in table.columns:
                self.assertEqual(len(table[column.name]), len(table))
                self.assertEqual(len(table.known(column.name)), len(table))
                self.assertTrue(column.meaning)
        self.assertGreater(filled, 10)

    def test_words_of_figures(self):
        """How far figures can be trusted, and how much of the run they are of: as the command line says it."""
        words = set()
        with Folder() as folder:
            fixtures = pathlib.Path(folder)
            for name in ("loop", "q", "spe", "dpu"):
                use(ROOT / "tests/cli/fixtures", fixtures, name, name)
            for path in (SORT / "capture", fixtures / "loop", fixtures / "q", fixtures / "spe/perf.data", fixtures / "dpu"):
                with waymark.open(path) as capture:
                    answers = capture.answers()
                for table, columns in (("metrics", ("name", "figures")), ("capture", ("run",)),
                                       ("trust", ("view", "exact", "estimated", "not_known"))):
                    printed = waymark.run("export", path, to="csv", table=table)
                    expected = [tuple(row[column] for column in columns) for row in csv.DictReader(io.StringIO(printed))]
                    rows = [tuple(row[column] or "" for column in columns) for row in answers.table(table).rows()]
                    if table == "trust":  # the command line also has what answers were not asked for
                        expected = [row for row in expected if row[0] in {r[0] for r in rows}]
                    self.assertEqual(rows, expected, f"{table} of {path.name}")
                words |= set(answers.table("metrics")["figures"])
        self.assertEqual(words, {"exact", "lower bound", "estimate"})

    def test_pandas(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas: install python3-pandas")
        with waymark.open(SORT / "capture", symbols=SORT / "sort.elf") as capture:
            frame = capture.answers().functions.to_pandas()
            self.assertIsInstance(frame, pandas.DataFrame)
            self.assertEqual(int(frame["self"].sum()), truth()["range_instructions"])
            ranges = pandas.concat(b.to_pandas() for b in capture.flow())
            self.assertEqual(int(ranges["instructions"].sum()), truth()["range_instructions"])

    def test_file(self):
        with Folder() as folder:
            path = pathlib.Path(folder) / "sort.answers"
            with waymark.open(SORT / "capture", symbols=SORT / "sort.elf") as capture:
                answers = capture.answers()
            answers.save(path)
            answers.export("folded", path.with_suffix(".folded"))
            self.assertIn("quicksort", path.with_suffix(".folded").read_text())
            with waymark.open(path) as again:
                self.assertEqual(again.kind, "answers")
                self.assertEqual(list(again.answers().functions["self"]), list(answers.functions["self"]))
                with self.assertRaises(waymark.UsageError):
                    list(again.flow())


class Models(unittest.TestCase):
    def test_round(self):
        """A loop of A64 code goes through a model and a decoder."""
        # 0x1000: add x0, x0, #1; subs x1, x1, #1; b.ne 0x1000; ret
        code = [0x91000400, 0xf1000421, 0x54ffffc1, 0xd65f03c0]
        address, opcode = [], []
        for _ in range(50):
            address += [0x1000, 0x1004, 0x1008]
            opcode += code[:3]
        address.append(0x100c)
        opcode.append(code[3])
        address.append(0x1000)
        opcode.append(code[0])
        model = waymark.Model("ete", sync_bytes=256)
        model.state(level=0)
        model.execute(np.array(address), np.array(opcode))
        trace = model.finish()
        with model.open(code={0x1000: np.array(code, dtype="<u4").tobytes()}) as capture:
            live = capture.live()
            batches = live.feed(trace) + live.finish()
        ends = [a for b in batches for a in b.end.tolist()]
        taken = [t for b in batches for t in b.taken.tolist()]
        self.assertEqual(ends[:51], [0x100c] * 50 + [0x1010])
        self.assertEqual(taken[:51], [True] * 49 + [False, True])

    def test_signals(self):
        """Nothing that runs while NIDEN is 0 is traced."""
        # 0x1000: nop; b 0x1000
        model = waymark.Model("etmv4")
        model.state(level=0)
        model.execute([0x1000, 0x1004] * 300, [0xd503201f, 0x17ffffff] * 300)
        self.assertGreater(len(model.take()), 20)
        model.signal(NIDEN=False)
        model.execute([0x1000, 0x1004], [0xd503201f, 0x17ffffff])
        model.take()
        model.execute([0x1000, 0x1004] * 300, [0xd503201f, 0x17ffffff] * 300)
        self.assertEqual(model.take(), b"")
        model.signal(NIDEN=True, SPNIDEN=False)
        # All or none.
        with self.assertRaisesRegex(waymark.UsageError, "known are NIDEN"):
            model.signal(NIDEN=False, KEY=True)
        model.execute([0x1000, 0x1004] * 300, [0xd503201f, 0x17ffffff] * 300)
        self.assertGreater(len(model.finish()), 300 // 24)  # an atom packet has at most 24 outcomes
        with self.assertRaisesRegex(waymark.UsageError, "finished"):
            model.signal(NIDEN=False)
        with self.assertRaisesRegex(waymark.UsageError, "known are NIDEN"):
            waymark.Model("etmv4").signal(KEY=True)

    def test_numbers_out_of_range(self):
        """The error contains the name, the number and the range."""
        model = waymark.Model("etmv4")
        unit, dpu = waymark.Unit("etb"), waymark.Unit("dpu")
        for wrong, message in ((lambda: model.signal(NIDEN=2), "NIDEN 2: there is room for 0 to 1"),
                               (lambda: model.state(level=4), "level 4: there is room for 0 to 3"),
                               (lambda: model.state(level=-1), "level -1: "),
                               (lambda: model.state(context_id=1 << 32), "context_id 4294967296: there is room for 0 to 0xffffffff"),
                               (lambda: model.exception("irq", -4), "preferred_return -4: "),
                               (lambda: model.exception("irq", 4, handler=1 << 64), "handler 18446744073709551616: "),
                               (lambda: model.exception("irq", 4, isa=99), "isa 99: there is room for 0 to "),
                               (lambda: model.execute(-4, 0), "address -0x4: "),
                               (lambda: model.execute(4, 1 << 32), "opcode 0x100000000: there is room for 0 to 0xffffffff"),
                               (lambda: model.execute(4, 0, cycle=-1), "cycle -0x1: "),
                               (lambda: model.execute(4, 0, isa=99), "isa 99: "),
                               (lambda: unit.__setitem__("TRG", -1), "TRG -1: there is room for 0 to 0xffffffffffffffff"),
                               (lambda: unit.signal("trigger", -1), "trigger -1: "),
                               (lambda: unit.send(256, b"x"), "trace_id 256: there is room for 0 to 0xff"),
                               (lambda: dpu.run(-1), "cycles -1: "), (lambda: dpu.run(pid=256), "pid 256: "),
                               (lambda: dpu.run(source=1 << 32), "source 4294967296: "),
                               (lambda: dpu.run(events={"cycle": -1}), "cycle -1: ")):
            with self.assertRaises(ValueError) as raised:
                wrong()
            self.assertIn(message, str(raised.exception))
        for wrong, name in ((lambda: model.signal(NIDEN="no"), "NIDEN"), (lambda: unit.__setitem__("TRG", 1.5), "TRG"),
                            (lambda: model.state(level=0.5), "level")):
            with self.assertRaisesRegex(TypeError, f"{name}: a whole number is expected"):
                wrong()
        # A refused number changes nothing.
        model.state(level=0)
        model.execute([0x1000, 0x1004] * 300, [0xd503201f, 0x17ffffff] * 300)
        self.assertGreater(len(model.finish()), 20)

    def test_wrong(self):
        with self.assertRaisesRegex(waymark.UsageError, "ptm"):
            waymark.Model("z80")
        with self.assertRaisesRegex(waymark.UsageError, "not a branch"):
            waymark.Model("ptm").execute([0x8000, 0x9000], [0xe1a00000, 0xe1a00000], "A32")


class Units(unittest.TestCase):
    """Units that are programmed by registers."""

    def test_buffer(self):
        """The trigger counter stops the capture; a reader finds the newest frames."""
        for kind in "etb", "tmc-etb", "tmc-etf", "tmc-etr":
            unit = waymark.Unit(kind, memory_bytes=256)
            unit["FFCR"] = 0x2003  # EnFt, EnTI, StopOnTrigEvt
            unit["TRG"] = 7
            unit["CTL"] = 1
            for _ in range(20):
                unit.send(0x10, bytes(range(1, 21)))
            self.assertTrue(unit.line("wrapped"))
            self.assertFalse(unit.line("stopped"))
            unit.signal("trigger")
            for _ in range(4):  # 8 words in frames are 30 bytes, and the frame of the trigger
                if not unit.line("stopped"):
                    unit.send(0x10, bytes(range(1, 21)))
            self.assertTrue(unit.line("stopped"))
            self.assertEqual(unit["STS"] & 7, 7)
            self.assertEqual(len(unit.memory()), 256)
        with self.assertRaisesRegex(waymark.UsageError, "tmc-etr, tpiu, funnel, replicator, cti"):
            waymark.Unit("etf")
        with self.assertRaisesRegex(waymark.UsageError, "FFSR"):
            unit["FOO"] = 1

    def test_links(self):
        """From a funnel through a replicator into a trace port, and a trigger through an interface."""
        funnel, replicator, port = waymark.Unit("funnel"), waymark.Unit("replicator"), waymark.Unit("tpiu", widths=8)
        funnel["FUNCTL"] = 0x302
        funnel.send(0x10, b"lost")
        funnel.signal("input", 1)
        funnel.send(0x11, b"kept")
        funnel.signal("flush")
        passed = funnel.take()
        self.assertEqual(passed, bytes(b for byte in b"kept" for b in (0x11, byte)))
        replicator["IDFILTER0"] = 2
        replicator.send(0x11, passed[1::2])
        self.assertEqual(replicator.take(), b"")
        replicator.signal("output", 1)
        self.assertEqual(replicator.take(), passed)
        port["CSPSR"], port["FFCR"] = 8, 3
        port.send(0x11, passed[1::2] * 5)
        self.assertGreaterEqual(len(port.take()), 16)
        cti = waymark.Unit("cti")
        cti["CTICONTROL"], cti["CTIINEN4"], cti["CTIGATE"] = 1, 1, 1
        cti.signal("input4")
        self.assertTrue(cti.line("channel0"))

    def test_spe(self):
        """Functions of the architecture, barriers, samples, and the interrupt of a full buffer."""
        unit = waymark.Unit("spe", version="v1.1", interval=256, memory_bytes=4096)
        self.assertEqual(unit.decide("ProfilingBufferOwner")[0], "Non-secure EL2")
        answer, why = unit.decide("StatisticalProfilingEnabled")
        self.assertEqual(answer, "TRUE")
        self.assertRegex(why, r"\(3\.4")
        self.assertEqual(unit.decide("CollectRecord", pc=4, kind="load", total_latency=12)[0], "TRUE")
        unit["PMSCR_EL2.E0HSPE"] = 0
        self.assertEqual(unit.decide("StatisticalProfilingEnabled")[0], "FALSE")
        unit["PMSCR_EL2.E0HSPE"] = 1
        self.assertEqual(unit.decide("StatisticalProfilingEnabled")[0], "TRUE")
        pc = np.arange(0x400000, 0x400000 + 4 * 2560, 4)
        unit.retire(pc, "load", address=pc * 16, total_latency=12)
        unit.signal("PSB")
        unit.signal("DSB")
        self.assertGreater(len(unit.memory()), 8 * 32)
        self.assertEqual(unit["PMBPTR_EL1"] - 0x80000000, len(unit.memory()))
        self.assertFalse(unit.line("PMBIRQ"))
        unit.retire(np.tile(pc, 20), "branch", address=0x500000, conditional=True, not_taken=True)
        self.assertTrue(unit.line("PMBIRQ"))
        self.assertEqual(unit["PMBSR_EL1.S"], 1)
        with self.assertRaises(TypeError):
            unit.retire(4, no_such_column=True)
        with self.assertRaisesRegex(waymark.UsageError, "CollectTimeStamp"):
            unit.decide("NoSuchFunction")

    def test_operations(self):
        """Every number arrives unchanged, or is refused."""
        high = 0xFFFF000008000001
        made = waymark._operations([4, high], ["load", "branch"], events=[1 << 63, 3], data_source=0xFFFF, not_taken=[False, True])
        self.assertEqual(made["pc"].tolist(), [4, high])
        self.assertEqual(made["events"].tolist(), [1 << 63, 3])
        self.assertEqual(made["kind"].tolist(), [1, 3])
        self.assertEqual(made["flags"].tolist(), [128, 128 | 16])
        self.assertEqual(made["data_source"].tolist(), [0xFFFF] * 2)
        self.assertEqual(waymark._operations(np.array([high], dtype=np.uint64), physical=high)["physical"].tolist(), [high])
        self.assertEqual(len(waymark._operations([])), 0)
        unit = waymark.Unit("spe", version="v1.1", interval=256)
        for wrong, message in (({"pc": 1 << 64}, "pc 0x1"), ({"pc": -1}, "pc -0x1"), ({"pc": np.array([4, -4])}, "pc -0x4"),
                               ({"pc": 4, "total_latency": 1 << 32}, "total_latency"), ({"pc": 4, "data_source": 65536}, "data_source"),
                               ({"pc": 4, "kind": "jump"}, "'jump'.*branch"), ({"pc": 4, "kind": 4}, "no kind 4"),
                               ({"pc": [[4]]}, "one dimension")):
            with self.assertRaisesRegex(ValueError, message):
                unit.retire(**wrong)
        with self.assertRaisesRegex(TypeError, "whole numbers"):
            unit.retire([4.5])
        with self.assertRaisesRegex(TypeError, "needs pc"):
            unit.decide("CollectRecord", kind="load")
        for pc in [], [4, 8]:
            with self.assertRaisesRegex(ValueError, "one operation"):
                unit.decide("CollectRecord", pc=pc)

    def test_dpu(self):
        """A sample after exactly as many misses as the counter was set to (docs/spec/dpu.md, 4.1)."""
        unit = waymark.Unit("dpu")
        unit["DP_CA0V"] = 3
        unit["DP_CA0C"] = 0x000f0010  # one-shot, interrupt line 0
        unit["DP_CR"] = 1
        seen = []
        for _ in range(6):
            unit.run()
            seen.append((unit["DP_CA0V"], unit.line("interrupt0")))
        self.assertEqual(seen, [(3, False), (2, False), (1, False), (0, True), (0, True), (0, True)])
        with self.assertRaisesRegex(waymark.UsageError, "DP_TC"):
            unit["DP_FOO"] = 1
        with self.assertRaisesRegex(waymark.UsageError, "no event"):
            unit.run(events={"NO_EVENT": 1})


class Errors(unittest.TestCase):
    def test_fields(self):
        with self.assertRaises(waymark.NotFoundError) as caught:
            waymark.open("no/such/capture")
        self.assertIn("no/such/capture", caught.exception.message)
        with self.assertRaises(waymark.NotFoundError) as caught:
            waymark.open(os.fsdecode(b"no\xe9such"))
        self.assertIn(os.fsdecode(b"no\xe9such"), caught.exception.message)
        self.assertEqual(caught.exception.status, 2)
        self.assertIsNone(caught.exception.offset)
        self.assertIsInstance(caught.exception, waymark.Error)
        self.assertIsInstance(caught.exception, LookupError)
        with self.assertRaisesRegex(waymark.UsageError, "symfs"):
            waymark.open(SORT / "capture", no_such_option=1)
        with self.assertRaisesRegex(waymark.UsageError, "closed"):
            capture = waymark.open(SORT / "capture")
            capture.close()
            capture.close()
            capture.flow()
        with self.assertRaisesRegex(waymark.NotFoundError, "PTM_0"):
            waymark.open(SORT / "capture").flow("0x55")


class Examples(unittest.TestCase):
    def test_picture(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("no matplotlib: install python3-matplotlib")
        with Folder() as folder:
            picture = pathlib.Path(folder) / "sort.png"
            done = subprocess.run([sys.executable, ROOT / "examples" / "library" / "picture.py", SORT / "capture",
                                   SORT / "sort.elf", picture], env={**os.environ, "PYTHONPATH": FOLDER},
                                  capture_output=True, text=True, timeout=HANGS)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{truth()['range_instructions']} instructions in {truth()['ranges']} ranges", done.stdout)
            self.assertIn("quicksort 3637", done.stdout)
            self.assertEqual(picture.read_bytes()[:8], b"\x89PNG\r\n\x1a\n")


class Program(unittest.TestCase):
    def test_report(self):
        with Folder() as folder:
            try:
                page = waymark.report(SORT / "capture", pathlib.Path(folder) / "r.html", symbols=SORT / "sort.elf")
            except waymark.UsageError as error:
                if "Node.js" not in error.message and "without" not in error.message:
                    raise
                self.skipTest(f"no page of the report: {error.message}")
            self.assertGreater(page.stat().st_size, 10000)

    def test_record(self):
        with Folder() as folder:
            try:
                out = waymark.record(SORT / "sort-aarch64.elf", pathlib.Path(folder) / "out", unit="ete", limit=4000)
            except waymark.Error as error:
                if "qemu" not in error.message.lower():
                    raise
                self.skipTest(f"cannot record: {error.message}")
            with waymark.open(out) as capture:
                self.assertGreater(sum(map(len, capture.flow())), 500)

    def test_errors(self):
        with self.assertRaisesRegex(waymark.UnreadableError, "no/such"):
            waymark.run("info", "no/such")
        with self.assertRaisesRegex(waymark.UsageError, "no-such-option"):
            waymark.run("info", SORT / "capture", no_such_option=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]], verbosity=2)
