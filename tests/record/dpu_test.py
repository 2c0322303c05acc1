#!/usr/bin/env python3
"""Records programs with a DPU and compares the costs in `waymark dpu` with what really happened.

    dpu_test.py WAYMARK SOURCE_DIR [TEST…]

Two references: the truth that the recorder counts without the unit, and the output of the programs.
"""
import bisect
import collections
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
SETS = ("2,7", "1,5", "3,9", "13,14", "4,18")
UNCOUNTED = ("–", "WAIT")
UNSEEN = ("INT", "EXC", "TASKSW")  # they happen between instructions


class Truth:
    """truth.txt: sums by event."""

    def __init__(self, folder):
        self.contexts, self.intervals, self.code, self.data = {}, [], {}, []
        self.places = collections.defaultdict(collections.Counter)  # as code, by address
        for line in (folder / "truth.txt").read_text().splitlines():
            kind, *rest = line.split()
            if kind == "wires":
                self.wires = rest
            elif kind == "complete":
                self.complete = rest == ["yes"]
            elif kind == "ended":
                self.ended = " ".join(rest)
            elif kind == "total":
                self.total = self.sums(rest)
            elif kind == "context":
                self.contexts[rest[0].replace(":", " ")] = (int(rest[1]), self.sums(rest[2:]))
            elif kind == "interval":
                self.intervals.append((rest[0].replace(":", " "), int(rest[1], 16), int(rest[2]), self.sums(rest[3:])))
            elif kind == "code":
                self.code[rest[1]] = self.sums(rest[2:])
                self.places[int(rest[0], 16)].update(self.sums(rest[2:]))
            elif kind == "user-data":
                self.data.append((int(rest[0]), int(rest[1], 16)))

    def sums(self, texts):
        return collections.Counter(dict(zip(self.wires, map(int, texts))))


class Functions:
    """The function symbols of a program; of nested ones, the innermost comes first."""

    def __init__(self, program):
        out = run("arm-linux-gnueabihf-nm", "-S", "--defined-only", program)
        found = collections.defaultdict(set)
        for line in out.stdout.splitlines():
            *numbers, kind, name = line.split()
            if kind in "tTwWiI" and not name.startswith("$"):
                found[int(numbers[0], 16) & ~1].add(int(numbers[1], 16) if len(numbers) == 2 else 0)
        self.sections = [(int(a, 16), int(a, 16) + int(n, 16)) for a, n in re.findall(
            r"PROGBITS +([0-9a-f]{8}) [0-9a-f]+ ([0-9a-f]+) ", run("arm-linux-gnueabihf-readelf", "-SW", program).stdout)]
        self.found = found
        self.starts = sorted(found)

    def start(self, address):
        at = after = bisect.bisect_right(self.starts, address) - 1
        while at >= 0:
            start = self.starts[at]
            # A symbol without a size extends to the next one, at most to the end of its section.
            same = any(first <= start and address < end for first, end in self.sections if first <= start < end)
            if any(address < start + size if size else at == after and same for size in self.found[start]):
                return start
            at -= 1
        return address


class Dpu(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        done = run(SOURCE / "examples/build", "-o", cls.folder, "threads", "interpreter", "tasks")
        assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, program, arguments, *options, status=0, complete=True):
        out = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "out"
        done = run(WAYMARK, "record", "--unit", "dpu", "-o", out, *options, "--", self.folder / program, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        truth = Truth(out)
        self.assertEqual(truth.complete, complete)
        return out, done.stdout, truth

    def verify(self, folder, verdict="equal:", status=0):
        """The decoded trace equals the execution."""
        done = run(WAYMARK, "verify", folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn(f"\n{verdict}", done.stdout)
        return done.stdout

    def view(self, folder, name, *options):
        done = run(WAYMARK, "dpu", name, folder, "--format", "json", *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in done.stderr.splitlines():
            self.assertRegex(line, "^waymark: warning: ")
        answer = json.loads(done.stdout)
        self.assertIn("rows", answer)
        for counter in answer["reconciled"]:
            self.assertEqual(counter["residual"], 0, counter)
            self.assertEqual(counter["counted"], counter["sum"] % 2**31)
            if not counter["event"].startswith("–"):
                shown = sum(row[counter["event"]] or 0 for row in answer["rows"])
                self.assertEqual(counter["sum"] if any(row[counter["event"]] is not None for row in answer["rows"]) else 0,
                                 shown, "the sum is that of the rows")
        return answer

    def counted(self, row):
        """The part of a row that the truth counts too."""
        return {re.sub(r"^[AB]\d ", "", name): value for name, value in row.items()
                if re.sub(r"^[AB]\d ", "", name) in self.truth.wires and value is not None}

    def check_tasks(self, folder, truth):
        self.truth = truth
        answer = self.view(folder, "tasks")
        rows = {re.sub(r" \(.*", "", row["task"]): row for row in answer["rows"]}
        self.assertEqual(set(rows), set(truth.contexts))
        for task, (stays, sums) in truth.contexts.items():
            self.assertEqual(rows[task]["stays"], stays, task)
            counted = self.counted(rows[task])
            self.assertTrue(counted)
            for event, value in counted.items():
                self.assertEqual(value, sums[event], f"{event} of {task}")
        for counter in answer["reconciled"]:
            event = re.sub(r"^[AB]\d ", "", counter["event"])
            if event in truth.wires:
                self.assertEqual(counter["sum"], truth.total[event], event)

    def check_functions(self, folder, truth, program, own):
        self.truth = truth
        functions = Functions(self.folder / program)
        want = collections.defaultdict(collections.Counter)
        for context, start, _, sums in truth.intervals:
            want[functions.start(start)].update(sums)
        code = collections.defaultdict(collections.Counter)
        for address, sums in truth.places.items():
            code[functions.start(address)].update(sums)
        rows = {row["address"] and int(row["address"], 16): row
                for row in self.view(folder, "functions", "--limit", "0")["rows"]}
        unknown = [row for row in rows.values() if row["function"] == "<code not known>"]
        self.assertEqual(len(unknown), 1, "what ran before the first change of flow")
        checked = shown = begun = 0
        for address, row in rows.items():
            if address is None:
                continue
            counted = self.counted(row)
            # Exact if all calls and interrupts that begin in a function end in it, and no other cost is added.
            sure = all(want[address][event] == code[address][event] for event in counted if event not in UNSEEN)
            for event, value in counted.items():
                # Code before the first known function belongs to the entry point.
                known = value + (unknown[0][event] if value != want[address][event] and row["calls"] == 0 else 0)
                if sure:
                    self.assertEqual(known, want[address][event], f"{event} of {row['function']}")
                    checked += 1
                shown += abs(known - code[address][event])
                begun += abs(want[address][event] - code[address][event])
        self.assertGreater(checked, 100)
        self.assertLess(shown, begun, "jumps are followed: more costs are where they came about")
        # Functions entered and left only by calls and returns: the same result by instruction address.
        for name in own:
            row = next(r for r in rows.values() if r["function"] == name)
            for event, value in self.counted(row).items():
                if event not in UNSEEN:
                    self.assertEqual(value, truth.code[name][event], f"{event} of {name}")

    def test_threads(self):
        for events in SETS:
            with self.subTest(events=events):
                folder, printed, truth = self.record("threads-static", ["20"], "--events", events)
                self.assertIn("3 workers did 20 jobs", printed)
                self.check_tasks(folder, truth)
                self.check_functions(folder, truth, "threads-static", ("collatz", "getenv"))
                self.verify(folder)

    LIBRARY = """
        __attribute__((noinline)) int inner(int x) { for (int i = 0; i < 9; ++i) x = x * 3 ^ i; return x; }
        __attribute__((noinline)) int scale(int x) { return inner(x) * 2; }
        __attribute__((noinline)) int twice(int x) { return scale(x + 1); }
    """
    PROGRAM = """
        #include <pthread.h>
        #include <stdio.h>
        int scale(int), twice(int);
        static int results[3];
        static __attribute__((noinline)) void *finish(int *result, int sum) { *result = sum; return result; }
        static void *worker(void *argument) {
            int sum = 0;
            for (int i = 0; i < 10; ++i) sum += scale(i);
            return finish(argument, sum);
        }
        int main(void) {
            pthread_t threads[2];
            for (int i = 0; i < 2; ++i) pthread_create(&threads[i], 0, worker, &results[i]);
            for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
            for (int i = 0; i < 7; ++i) results[2] += twice(i);
            printf("%d\\n", results[0] + results[1] + results[2]);
        }
    """

    def record_jumps(self, binding):
        for name, source in (("jumps.c", self.PROGRAM), ("library.c", self.LIBRARY)):
            (self.folder / name).write_text(source)
        compiler = ("arm-linux-gnueabihf-gcc", "-O2", "-g", "-fno-ipa-icf", "-pthread", f"-Wl,-z,{binding}")
        library = self.folder / "libjumps.so"
        for arguments in (("-shared", "-fPIC", "-o", library, self.folder / "library.c"),
                          ("-o", self.folder / "jumps", self.folder / "jumps.c", library, f"-Wl,-rpath,{self.folder}")):
            done = run(*compiler, *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
        folder, _, truth = self.record("jumps", [])
        self.verify(folder)
        return folder, truth

    def calls_by_ptm(self, program, images):
        flow = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "ptm"
        done = run(WAYMARK, "record", "--from-start", "-o", flow, "--", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(WAYMARK, "profile", flow, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["function"]: row["calls"] for row in json.loads(done.stdout)["rows"] if row["image"] in images}

    def test_jumps(self):
        """A program as a compiler builds it unasked: every call of a library goes through the procedure linkage table,
        and `twice` and `worker` end with a jump. Witnesses: the source, PTM, and what each function's code cost."""
        calls = {"inner": 27, "scale": 27, "twice": 7, "worker": 2, "finish": 2, "main": 1}
        for binding in ("lazy", "now"):
            with self.subTest(binding=binding):
                folder, truth = self.record_jumps(binding)
                answer = self.view(folder, "functions")
                rows = collections.defaultdict(list)
                for row in answer["rows"]:
                    rows[row["function"]].append(row)
                self.assertEqual({name: [row["calls"] for row in rows[name]] for name in calls},
                                 {name: [n] for name, n in calls.items()})
                by_ptm = self.calls_by_ptm(self.folder / "jumps", ("jumps", "libjumps.so"))
                for name in (*calls, "inner@plt", "twice@plt"):
                    self.assertEqual(sum(row["calls"] for row in rows[name]), by_ptm[name], name)

                event = next(key for key in rows["inner"][0] if key.endswith(" CYCLES") or key == "CYCLES")
                lacks = sum(truth.code[name]["CYCLES"] for name in ("inner", "inner@plt")) - rows["inner"][0][event]
                crossed = sum(row[key] for row in answer["rows"] for key in row if key == f"{event} crossed")
                if binding == "now":
                    self.assertEqual(lacks, 0)
                else:
                    self.assertTrue(0 < lacks <= crossed, "the dynamic linker has the cost of each function's first call")
                self.assertEqual([row[event] for row in rows["inner@plt"]], [0])
                # Only the costs of code without a caller, at the beginnings of the program and its threads, belong to
                # no call.
                uncalled = [row for row in answer["rows"] if row["calls"] == 0 and row[event]]
                self.assertLess(len(uncalled), 8, uncalled)
                without_name = [row["function"] for row in answer["rows"] if row["function"].endswith("?")]
                self.assertEqual(len(without_name), len(set(without_name)))

    def test_jumps_in_all_views(self):
        """Estimates are marked as such in every view; addresses and files are written as in the other tables."""
        folder, _ = self.record_jumps("lazy")
        answer = self.view(folder, "functions")
        estimated = answer["trust"]["estimated"]
        self.assertIn("jump", estimated)
        for view in ("report", "ratios"):
            done = run(WAYMARK, "dpu", view, folder, "--format", "json")
            self.assertEqual(json.loads(done.stdout)["trust"]["estimated"], f"functions: {estimated}")
        self.assertIn(f"\nestimated {estimated}\n", run(WAYMARK, "profile", folder).stdout)

        done = run(WAYMARK, "dpu", "functions", folder, "--format", "tsv")
        head, *lines = done.stdout.splitlines()
        column = head.split("\t").index("address")
        for line in lines:
            self.assertRegex(line.split("\t")[column], r"^(0x[0-9a-f]+)?$")
        done = run(WAYMARK, "profile", folder, "--by", "image", "--format", "json")
        images = {row["image"] for row in json.loads(done.stdout)["rows"]}
        self.assertLessEqual({"jumps", "libjumps.so", "libc.so.6", "ld-linux-armhf.so.3"}, images)
        self.assertFalse([name for name in images if re.match(r"image\d", name)])

    def test_tasks_example(self):
        """The DPU example: its user data and its output."""
        for mode in ("flow", "task"):
            with self.subTest(mode=mode):
                folder, printed, truth = self.record("tasks", ["6"], "--mode", mode)
                self.check_tasks(folder, truth)
                self.verify(folder)
                if mode == "flow":
                    self.check_functions(folder, truth, "tasks", ("filter", "checksum"))
                    rows = self.view(folder, "functions", "--limit", "0")["rows"]
                    called = {r["function"]: r["calls"] for r in rows}
                    want = {name: int(n) for name, n in re.findall(r"(\w+) was called (\d+) times", printed)}
                    self.assertEqual({name: called[name] for name in want}, want)
                data = self.view(folder, "data")["rows"]
                self.assertEqual([row["value"] for row in data], [value for _, value in truth.data])
                self.assertEqual(sorted(row["value"] for row in data),
                                 sorted(int(v, 16) for v in re.findall(r"wrote (0x\w+)", printed)))

    def profile(self, folder, *options):
        done = run(WAYMARK, "profile", folder, "--format", "tsv", *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        names, *rows = [line.split("\t") for line in done.stdout.splitlines()]
        return [dict(zip(names, row)) for row in rows]

    def test_profile(self):
        """waymark profile: rows add up to the true counts, in every mode, and costs of functions are right."""
        for mode in ("flow", "task", "sample", "raw", "compressed"):
            with self.subTest(mode=mode):
                options = ["--sample-every", "500"] if mode == "sample" else []
                folder, _, truth = self.record("threads-static", ["20"], "--mode", mode, *options)
                rows = self.profile(folder)
                summed = 0
                for event in truth.wires:
                    if event in rows[0]:
                        self.assertEqual(sum(int(row[event]) for row in rows), truth.total[event], event)
                        summed += 1
                self.assertGreater(summed, 2)
                if mode != "flow":
                    continue
                own = {row["function"]: row for row in rows}
                for name in ("collatz", "getenv"):
                    for event in truth.wires:
                        if event in own[name] and event not in ("INT", "EXC", "TASKSW"):
                            self.assertEqual(int(own[name][event]), truth.code[name][event], f"{event} of {name}")
                whole = [row for row in rows if row["function"].startswith("task ")]
                self.assertEqual(sum(int(row["CYCLES inclusive"]) for row in whole), truth.total["CYCLES"])

    def test_diff(self):
        """Two runs of one program do not differ; with more work, the function that does the work grew."""
        few, _, _ = self.record("threads-static", ["20"])
        again, _, _ = self.record("tasks", ["3"])
        more, _, _ = self.record("tasks", ["6"])
        same = run(WAYMARK, "diff", few, few, "--threshold", "0")
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
        self.assertIn("no function changed", same.stdout)
        other = run(WAYMARK, "diff", again, more, "--threshold", "5", "--format", "json")
        self.assertEqual(other.returncode, 1, other.stdout + other.stderr)
        self.assertIn("allowed", other.stderr)
        rows = json.loads(other.stdout)["rows"]
        self.assertGreater(rows[0]["change"], 0)
        self.assertEqual(sum(row["change"] for row in rows),
                         json.loads(other.stdout)["sum_after"] - json.loads(other.stdout)["sum_before"])
        self.assertEqual(run(WAYMARK, "diff", more, again, "--threshold", "5").returncode, 0, "it shrank")

    def test_wrap(self):
        """Counters that begin near zero wrap, and nothing changes."""
        folder, _, truth = self.record("threads-static", ["20"], "--initial", "1000")
        self.check_tasks(folder, truth)

    def test_samples(self):
        """An interval between samples has a task only if both ends show the same task; the sum is right
        nevertheless."""
        folder, _, truth = self.record("threads-static", ["20"], "--mode", "sample", "--sample-every", "500")
        rows = self.view(folder, "tasks")["rows"]
        self.assertEqual(sum(row["CYCLES"] for row in rows), truth.total["CYCLES"])
        self.assertTrue(any(row["task"].startswith("<between") for row in rows))
        self.assertTrue(all(row["stays"] is None for row in rows), "samples do not record stays")
        self.verify(folder)

    def test_ring(self):
        """A buffer that wrapped: the rows add up to the remaining trace."""
        folder, _, _ = self.record("threads-static", ["200"], "--buffer", "4096")
        rows = {row["task"]: row for row in self.view(folder, "tasks")["rows"]}
        self.assertIsNone(rows["<before>"]["CYCLES"], "nobody knows how much there was")
        self.verify(folder, "equal as far as the trace goes:")

    def test_loss(self):
        """If the bus is slow entries are lost, and the intervals around the loss belong to no task."""
        folder, _, truth = self.record("threads-static", ["20"], "--bus-cycles", "300")
        rows = self.view(folder, "tasks")["rows"]
        self.assertIn("<unattributed>", [row["task"] for row in rows])
        self.assertEqual(sum(row["CYCLES"] for row in rows), truth.total["CYCLES"])
        self.verify(folder, "equal as far as the trace goes:")

    def test_flow_without_readings(self):
        """Modes raw and compressed show which task ran when, but not its cost."""
        modes = (("compressed",), ("raw", "--nexus", "mirror"), ("raw",), ("compressed", "--loops", "none"))
        for mode in modes:
            with self.subTest(mode=mode):
                folder, _, truth = self.record("threads-static", ["20"], "--mode", *mode)
                answer = self.view(folder, "tasks")
                rows = {re.sub(r" \(.*", "", row["task"]): row for row in answer["rows"]}
                for task, (stays, _) in truth.contexts.items():
                    self.assertEqual(rows[task]["stays"], stays)
                    self.assertIsNone(rows[task]["CYCLES"])
                self.assertEqual(rows["<tail>"]["CYCLES"], truth.total["CYCLES"])
                self.assertIn("costs of each task", answer["trust"]["not_known"])
                self.verify(folder)

    def test_a_part_of_the_run(self):
        """If the recording ended before the program, truth and trace end at the same place, and both say so."""
        folder, _, truth = self.record("interpreter", [], "--limit", "50000", complete=False)
        self.assertIn("--limit", truth.ended)
        self.assertIn("a part of the program's run", self.verify(folder))
        self.assertIn("--limit", self.view(folder, "tasks")["ended"])
        source = self.folder / "crash.c"
        source.write_text("int main(void) { *(volatile int *)8 = 1; return 0; }\n")
        built = run("arm-linux-gnueabihf-gcc", "-static", "-o", self.folder / "crash", source)
        self.assertEqual(built.returncode, 0, built.stderr)
        folder, _, truth = self.record("crash", [], status=4, complete=False)
        self.assertIn("SIGSEGV", truth.ended)
        self.assertIn("SIGSEGV", self.verify(folder))

    def test_damage(self):
        """A flipped bit of a counter is noticed in every view, by --strict and by verify."""
        folder, _, _ = self.record("threads-static", ["20"])
        buffer = folder / "vtb.bin"
        words = bytearray(buffer.read_bytes())
        words[36 * 100 + 4] ^= 0x10
        buffer.write_bytes(words)
        done = run(WAYMARK, "dpu", "report", folder)
        self.assertIn("\ndoubtful  1 reading of counters cannot be true: the trace is damaged at offset 0x", done.stdout)
        self.assertEqual(run(WAYMARK, "dpu", "tasks", folder, "--strict").returncode, 1)
        self.verify(folder, "DIFFERENT:", 1)
        buffer.write_bytes(b"")
        for view in ("report", "tasks", "functions", "timeline", "health"):
            done = run(WAYMARK, "dpu", view, folder)
            self.assertEqual(done.returncode, 3, view)
            self.assertIn("nothing was decoded: vtb.bin has 0 bytes", done.stdout)
            self.assertNotIn("lost      nothing", done.stdout)

    def test_nexus(self):
        """Messages are listed, and give the answers that the empty buffer cannot give."""
        folder, _, _ = self.record("tasks", ["3"], "--nexus", "only")
        done = run(WAYMARK, "packets", folder, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual({m["stream"] for m in messages}, {"nexus"})
        info = json.loads(run(WAYMARK, "info", folder, "--format", "json").stdout)
        self.assertEqual(sum(info["nexus"]["messages"].values()), len(messages))
        done = run(WAYMARK, "dpu", "report", folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("reconciled", done.stdout)

    def test_nothing_ran(self):
        """QEMU that does not start leaves no folder behind."""
        out = self.folder / "never"
        done = run(WAYMARK, "record", "--unit", "dpu", "--qemu=-no-such-option", "-o", out, "--",
                   self.folder / "tasks", "1")
        self.assertEqual(done.returncode, 3)
        self.assertIn("ended with status 1 before it loaded the plugin", done.stderr)
        self.assertFalse(out.exists())
        done = run(WAYMARK, "record", "--unit", "dpu", "--sysroot", "/nowhere", "-o", out, "--",
                   self.folder / "threads", "1")
        self.assertEqual(done.returncode, 3)
        self.assertIn("--sysroot /nowhere is not a folder", done.stderr)
        empty = self.folder / "no_libraries"
        empty.mkdir()
        done = run(WAYMARK, "record", "--unit", "dpu", "--sysroot", empty, "-o", out, "--",
                   self.folder / "threads", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing recorded", done.stderr)
        self.assertFalse(out.exists())

    def test_loops(self):
        folder, _, _ = self.record("interpreter", [], "--mode", "compressed")
        self.verify(folder)
        rows = self.view(folder, "loops")["rows"]
        self.assertGreater(len(rows), 3)
        for row in rows:
            self.assertGreaterEqual(row["iterations"], 2 * row["runs"])

    def test_commands(self):
        """The commands of every protocol read the folder."""
        folder, _, _ = self.record("tasks", ["3"])
        for command in ("info", "packets", "flow"):
            for form in ("text", "tsv", "json"):
                done = run(WAYMARK, command, folder, "--format", form)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("WL-1", done.stdout + done.stderr)
                if form == "json":
                    for line in done.stdout.splitlines() if command != "info" else [done.stdout]:
                        json.loads(line)


if __name__ == "__main__":
    for tool in ("qemu-arm", "arm-linux-gnueabihf-gcc"):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not installed; nothing was recorded")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
