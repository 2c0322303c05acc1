#!/usr/bin/env python3
"""perf.data of program flow, as `waymark record --as perf` writes it: what perf decodes of it against what executed.

    perf_test.py WAYMARK SOURCE_DIR

perf decodes CoreSight with OpenCSD, so it is the witness for the records, the registers in AUXTRACE_INFO and the trace.
Every instruction that executed is compared, in the order of each thread where perf restores it, and what `waymark flow`
reads of the same file.
"""
import collections
import csv
import os
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import perf_records  # noqa: E402
import truth_file  # noqa: E402
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PERF = shutil.which("perf")
RAW, FRAME_BYTES = 0x100, 16  # a flag of an AUX record: its bytes are no frames of CoreSight
A64, A32 = "aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc"
PROGRAM = """
static int work(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += i & 3 ? i : -i;
    return sum;
}
static int (*volatile function)(int) = work;
void _start(void) {
    int sum = 0;
    for (int i = 1; i < ROUNDS; i++) sum += function(i);
#ifdef __aarch64__
    register long number __asm__("x8") = 94, status __asm__("x0") = sum & 7;
    __asm__ volatile("svc #0" : : "r"(number), "r"(status));
#else
    register long number __asm__("r7") = 248, status __asm__("r0") = sum & 7;
    __asm__ volatile("svc #0" : : "r"(number), "r"(status));
#endif
}
"""
THREADS = """
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
static __attribute__((noinline)) long same(long i) { return i; }
static __attribute__((noinline)) long one(long i) { return 1; }
static long (*volatile const way[])(long) = {one, same}; /* calls whose targets the trace names fill buffers */
static void* work(void* n) {
    volatile unsigned long sum = 0;
    char name[16];
    snprintf(name, sizeof name, "worker%ld", (long)n);
    prctl(PR_SET_NAME, name);
    for (long i = 0; i < 3000; i++) sum += way[(i & (long)n) != 0](i);
    return 0;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void*)(i + 1));
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
"""


def truth(path):
    """{tid: every range, in order} of a recording made with --truth."""
    text = pathlib.Path(f"{path}.truth.txt").read_text()
    return {int(name.split("/")[1]): list(truth_file.ranges(path.parent / file))
            for name, file in re.findall(r"^source (\S+) .* file (\S+)$", text, re.M)}


def executed(ranges):
    """Addresses of instructions, all of four bytes."""
    return [address for start, end, _, lost in ranges if not lost for address in range(start, end, 4)]


class Perf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        for name, text in (("program", PROGRAM), ("threads", THREADS)):
            (cls.folder / f"{name}.c").write_text(text)
        shutil.copy(SOURCE / "tests/record/forks.c", cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def compile(self, compiler, name, out, *options):
        if shutil.which(compiler) is None:
            self.skipTest(f"NOT RUN: {compiler} is not on PATH; it is in the Debian package gcc-{compiler[:-4]}")
        program = self.folder / out
        if not program.exists():
            done = run(compiler, "-O1", "-g", "-static", *options, "-o", program, self.folder / f"{name}.c")
            self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def small(self, bits=64, rounds=60):
        options = ("-nostdlib", "-ffreestanding", "-fno-stack-protector", f"-DROUNDS={rounds}", "-Wl,--build-id")
        return self.compile(*((A64, "program", f"small64-{rounds}", *options) if bits == 64 else
                              (A32, "program", f"small32-{rounds}", "-marm", *options)))

    def record(self, program, *options):
        data = self.folder / "perf.data"
        for old in self.folder.glob("perf.data*"):
            old.unlink()
        done = run(WAYMARK, "record", "--as", "perf", "--truth", "-o", data, *options, "--", program)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.said = done.stderr
        return data

    def test_a_recording_that_ended_before_its_program(self):
        """The rest ran, and no command may state that it did not."""
        program = self.small()
        for unit in ((), ("--unit", "spe", "--event", "arm_spe/period=256/")):
            for limit, strict in ((), 0), (("--limit", "3000"), 1):
                with self.subTest(unit=unit, limit=limit):
                    data = self.folder / "perf.data"
                    for old in self.folder.glob("perf.data*"):
                        old.unlink()
                    done = run(WAYMARK, "record", *(unit or ("--as", "perf")), "-o", data, *limit, "--", program)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    info = run(WAYMARK, "info", data, "--sample", "0").stdout
                    self.assertEqual("1 part after the recording ended" in info, bool(limit), info)
                    self.assertEqual("Nothing is wrong" in run(WAYMARK, "doctor", data).stdout, not limit)
                    for view in ("profile",) if unit else ("profile", "coverage"):
                        self.assertEqual(run(WAYMARK, view, data, "--strict").returncode, strict, view)
        data = self.record(program, "--start-at", "work")
        info = run(WAYMARK, "info", data, "--sample", "0").stdout
        self.assertIn("what ran before the recording began", info)

    def perf(self, *arguments):
        if PERF is None:
            self.skipTest("NOT COMPARED with perf: it is not on PATH; it is in the Debian package linux-perf")
        environment = {**os.environ, "HOME": str(self.folder), "PERF_BUILDID_DIR": str(self.folder / "debug")}
        done = run(PERF, *arguments, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def instructions(self, data, timestamps=True):
        """{tid: addresses in the order in which perf decoded them}."""
        found = collections.defaultdict(list)
        done = self.perf("script", "-i", data, "--itrace=i1i" if timestamps else "--itrace=Zi1i", "-F", "tid,ip")
        if not self.anonymous(data):
            self.assertNotRegex(done.stderr, r"(?i)error|fail|missing|lost|couldn't")
        for tid, address in re.findall(r"^\s*(-?\d+)\s+([0-9a-f]+)\s*$", done.stdout, re.M):
            found[int(tid)].append(int(address, 16))
        return dict(found)

    def anonymous(self, data):
        """Code that belongs to no file, which perf cannot read: QEMU's trampoline after a signal."""
        text = self.perf("script", "-i", data, "--show-mmap-events").stdout
        return [range(int(start, 16), int(start, 16) + int(size, 16))
                for start, size in re.findall(r"MMAP2 \S+ \[(0x[0-9a-f]+)\((0x[0-9a-f]+)\) .* //anon$", text, re.M)]

    def flow(self, data):
        """The rows of `waymark flow`."""
        done = run(WAYMARK, "flow", data, "--format", "tsv")
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(done.stdout.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))

    def at_ends(self, data):
        """What perf 6.1 may lack: {address: how often}. It decodes each AUX range by itself, and resets OpenCSD after it,
        which drops the instructions that OpenCSD still holds. It holds some where perf made it wait: when 1,023 ranges of
        instructions wait in perf's own queue, and, if there are timestamps in the trace, after each range. By then it has
        taken whole frames of a formatted buffer, or whole packets. So what can be lost is in packets that reach into the
        last frame of an AUX range, or in its last packet: one byte can stand for 24 branches. How many AUX ranges there
        are and where they end depends on when the machine lets which thread run."""
        rows = collections.defaultdict(list)  # of a buffer and a source
        for row in self.flow(data):
            if row["offset"]:
                rows[row["buffer"], row["source"]].append((int(row["offset"], 16), row))
        lost = collections.Counter()
        for record in perf_records.PerfRecords(data).of(perf_records.AUX):
            begin, size, flags, tid, cpu = (record.word(at, width) for at, width in ((0, 8), (8, 8), (16, 8), (28, 4), (40, 4)))
            ring = f"aux_thread_{tid}" if cpu == 0xffffffff else f"aux_cpu{cpu}"
            last = begin + size - (1 if flags & RAW else FRAME_BYTES)
            for (buffer, _), all_rows in rows.items():
                here = [(at, row) for at, row in all_rows if buffer == ring and begin <= at < begin + size]
                places = sorted({at for at, _ in here})
                ends = dict(zip(places, [*places[1:], begin + size]))
                for at, row in here:
                    if ends[at] > last and row["element"] == "range":
                        lost.update(range(int(row["start"], 16), int(row["end"], 16), 4))
        return lost

    def compare(self, data, threads=True, ordered=True):
        """`threads`: each by itself, and `ordered`: in its order, and whole. Where a thread went from one CPU to another and
        there are no timestamps, perf does not restore the order; it then may lack what `at_ends` says."""
        count = collections.Counter
        anonymous = self.anonymous(data)
        expected = {tid: [a for a in executed(ranges) if not any(a in code for code in anonymous)]
                    for tid, ranges in truth(data).items()}
        found = self.instructions(data, timestamps=threads)
        may_lack = count() if ordered else self.at_ends(data)
        if not (threads and ordered):
            everything, decoded = (sum(map(count, each.values()), count()) for each in (expected, found))
            self.assertEqual(decoded - everything, count())
            self.assertEqual(everything - decoded - may_lack, count())
        if not threads:
            return
        self.assertEqual(found.keys(), expected.keys())
        for tid, addresses in expected.items():
            self.assertGreater(len(addresses), 1000)
            if not ordered:
                self.assertEqual(count(found[tid]) - count(addresses), count(), f"thread {tid}")
                self.assertEqual(count(addresses) - count(found[tid]) - may_lack, count(), f"thread {tid}")
                continue
            first = next((i for i, (a, b) in enumerate(zip(addresses, found[tid])) if a != b), None)
            self.assertIsNone(first, f"thread {tid}, instruction {first}")
            self.assertEqual(len(addresses), len(found[tid]), f"thread {tid}")

    def compare_waymark(self, data, threads=True):
        """The same with `waymark flow`, which gives the order within each CPU or ring: what each thread executed, or,
        without context IDs, what all did together."""
        count = collections.Counter
        found = collections.defaultdict(count)
        for row in self.flow(data):
            if row["element"] != "range":
                continue
            context = re.search(r"CID=(0x[0-9a-f]+)", row["context"])
            self.assertEqual(context is not None, threads, row)
            thread = int(context[1], 16) if threads else None
            found[thread].update(range(int(row["start"], 16), int(row["end"], 16), 4))
        anonymous = self.anonymous(data)
        expected = collections.defaultdict(count)
        for tid, ranges in truth(data).items():
            expected[tid if threads else None].update(
                address for address in executed(ranges) if not any(address in code for code in anonymous))
        self.assertEqual(found.keys(), expected.keys())
        for thread, addresses in expected.items():
            self.assertGreater(addresses.total(), 1000)
            self.assertEqual(found[thread], addresses, f"thread {thread}")

    def test_every_unit_and_sink(self):
        for options in (("--unit", "ete"), ("--unit", "ete", "--sink", "etr"), ("--unit", "etmv4"),
                        ("--unit", "etmv4", "--per-thread"), ("--unit", "etmv4", "--sink", "trbe", "--per-thread"),
                        ("--unit", "etmv4", "--info-version", "0"), ("--unit", "ete", "--timestamps"),
                        ("--unit", "etmv4", "--cycle-accurate", "--return-stack", "--branch-broadcast")):
            with self.subTest(options=options):
                data = self.record(self.small(), *options)
                self.compare(data)
                self.compare_waymark(data, threads="--per-thread" not in options)

    def test_ptm(self):
        # Without a return stack: perf 6.1 does not tell OpenCSD that the PTM has one (ETMCCER).
        for options in ((), ("--core", "cortex-a9", "--cycle-accurate"), ("--branch-broadcast",)):
            with self.subTest(options=options):
                self.compare(self.record(self.small(32), "--unit", "ptm", *options))
        # perf 6.1 prints a block of version 0 unchanged, but decodes it as a block of an ETMv3.
        data = self.record(self.small(32), "--unit", "ptm", "--info-version", "0")
        text = self.perf("report", "-D", "-i", data).stdout
        self.assertRegex(text, r"Header version\s+0\n.*num cpus\s+800000004\n\s+Snapshot\s+0\n"
                               r"\s+Magic number\s+3030303030303030\n\s+CPU\s+0\n\s+ETMCR\s+0\n"
                               r"\s+ETMTRACEIDR\s+10\n\s+ETMCCER\s+34c01ac2\n\s+ETMIDR\s+411cf312\n")

    def test_threads_share_cpus_and_sinks(self):
        """More threads than CPUs, and buffers that fill many times: ranges of the AUX ring end where threads are
        interrupted, and with an ETR most of them are empty."""
        program = self.compile(A64, "threads", "threads64", "-lpthread")
        for options in (("--unit", "ete"), ("--unit", "etmv4"), ("--unit", "ete", "--per-thread", "--sink", "etr"),
                        ("--unit", "etmv4", "--timestamps")):
            with self.subTest(options=options):
                data = self.record(program, *options, "--cpus", "2", "--aux-buffer", "8")
                self.assertEqual(len(truth(data)), 4)
                written = sum(record.word(8, 8) for record in perf_records.PerfRecords(data).of(perf_records.AUX))
                self.assertGreater(written, 4 * (8 << 10), "more trace than the buffers of four threads or two CPUs")
                # What waits in perf's queue when it comes to the next thread of a CPU, perf gives to that thread: which
                # thread ran what is known of a ring for each thread alone. `compare_waymark` compares each thread.
                self.compare(data, threads="--per-thread" in options, ordered=False)
                self.compare_waymark(data, threads="--per-thread" not in options)

    def test_several_programs(self):
        first, second = self.small(), self.small(rounds=80)
        # At the addresses of the other programs it has other code.
        third = self.compile(A64, "program", "larger64", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-O0", "-DROUNDS=60")
        data = self.record(first, "--unit", "ete", "--also", f"{second} its arguments", "--also", third, "--also", first)
        self.assertEqual(len(truth(data)), 4)
        self.compare(data)
        comms = re.findall(r"COMM exec: (\S+):", self.perf("script", "-i", data, "--show-task-events").stdout)
        self.assertEqual(comms, ["small64-60", "small64-80", "larger64", "small64-60"])
        # doctor decodes each process with the program that was mapped at the address.
        done = run(WAYMARK, "doctor", data, "--strict")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_programs_of_one_name_have_a_profile_each(self):
        """Without build IDs their paths tell them apart, even where the names of the files would be one."""
        programs = []
        beta_as_a_name = str(self.folder / "beta/program").replace("/", "_")
        for name, out in (("alpha", "alpha/program"), ("beta", "beta/program"), ("gamma", beta_as_a_name)):
            folder = self.folder / name
            folder.mkdir()
            (folder / "p.c").write_text(f"__attribute__((noinline)) int {name}(int n) {{ int s = 1; for (int i = 0; i < n; ++i) s += s >> 1 ^ i; return s; }}\n"
                                        f"int main(int n, char** v) {{ return {name}(n + 500) == 1; }}\n")
            programs.append(self.folder / out)
            done = run(A64, "-O1", "-g", "-static", "-Wl,--build-id=none", "-o", programs[-1], folder / "p.c")
            self.assertEqual(done.returncode, 0, done.stderr)
        data, out = self.record(programs[0], "--also", programs[1], "--also", programs[2]), self.folder / "profiles"
        done = run(WAYMARK, "pgo", data, "--all", "--for", "clang", "-o", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        has = [{name for name in ("alpha", "beta", "gamma") if re.search(f"^{name}:", path.read_text(), re.M)}
               for path in sorted(out.iterdir())]
        self.assertCountEqual(has, [{"alpha"}, {"beta"}, {"gamma"}])

    def test_losses(self):
        """The remaining trace shows code that executed, and the records state which part is missing."""
        program = self.compile(A64, "threads", "threads64", "-lpthread")
        size, count = 8192, collections.Counter
        for sink, loss, flags in (("etr", "late", "0x1"), ("trbe", "late", "0x108"), ("etr", "snapshot", "0x2"),
                                  ("trbe", "snapshot", "0x102")):
            with self.subTest(sink=sink, loss=loss):
                data = self.record(program, "--sink", sink, "--loss", loss, "--cpus", "2", "--aux-buffer", size >> 10,
                                   "--branch-broadcast")
                self.assertRegex(self.said, r"warning: [\d,]+ bytes of trace lost")
                self.assertIn(" wrapped 1 ", pathlib.Path(f"{data}.truth.txt").read_text())
                dump = self.perf("report", "-D", "-i", data).stdout
                found = re.findall(r"RECORD_AUX offset: \S+ size: (\S+) flags: (\S+)", dump)
                self.assertIn(flags, [f for _, f in found])
                if loss == "late":
                    self.assertTrue(all(int(bytes, 16) == size for bytes, f in found if f == flags))
                chunks = [int(bytes, 16) for bytes in re.findall(r"RECORD_AUXTRACE size: (\S+)", dump)]
                if loss == "snapshot":
                    self.assertTrue(all(bytes <= size for bytes in chunks), chunks)
                    self.assertRegex(dump, r"Snapshot\s+1\n")
                expected = sum((count(executed(ranges)) for ranges in truth(data).values()), count())
                script = self.perf("script", "-i", data, "--itrace=i1i", "-F", "ip").stdout
                decoded = count(int(address, 16) for address in re.findall(r"[0-9a-f]+", script))
                self.assertGreater(decoded.total(), 1000)
                self.assertLess(decoded.total(), expected.total())
                self.assertEqual(decoded - expected, count())
                if (sink, loss) == ("etr", "late"):
                    self.assertIn(b"\xff\xff\xff\x7f" * 4, data.read_bytes())

    def test_strobing(self):
        """The unit traces in bursts; the traced code executed, and the rest is not called lost."""
        count = collections.Counter
        for options in (("--unit", "ete"), ("--unit", "etmv4")):
            with self.subTest(options=options):
                program = self.small(rounds=300)
                whole = sum(map(count, map(executed, truth(self.record(program, *options)).values())), count())
                data = self.record(program, *options, "--strobe", "300/5")
                verified = run(WAYMARK, "verify", data)
                self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
                # The unit wrote all that it traced, and most of what executed it did not trace.
                self.assertNotIn("buffer", verified.stdout)
                self.assertRegex(verified.stdout, r"[0-9,]+ instructions more executed that the unit was programmed not to trace")
                self.assertNotIn("lost", self.said)
                decoded = sum(map(count, self.instructions(data).values()), count())
                self.assertEqual(decoded - whole, count())
                self.assertGreater(decoded.total(), whole.total() // 20)
                self.assertLess(decoded.total(), whole.total() // 2)
                self.compare_waymark(data)
                self.check_words_of_bursts(data)
        done = run(WAYMARK, "record", "--as", "perf", "--strobe", "300", "-o", self.folder / "x", "--", program)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected WINDOW/PERIOD", done.stderr)

    def check_words_of_bursts(self, data):
        """Every output states how much of the run is in the trace, and concludes nothing about the rest."""
        for command in (["info"], ["doctor"], ["flow", "--format", "summary"], ["verify"], ["profile"], ["coverage"]):
            done = run(WAYMARK, command[0], data, *command[1:])
            self.assertIn("strobing, autofdo): 300 cycles of about every 1,500, so about 20 % of the run",
                          " ".join((done.stdout + done.stderr).split()), command)
        for command in (["flow"], ["coverage"], ["profile"]):
            self.assertEqual(run(WAYMARK, *command, data, "--strict").returncode, 1, command)
        # Counts of bursts are estimates, and are never called otherwise.
        for command in (["profile"], ["profile", "--by", "block"], ["branches"], ["loops"], ["coverage"]):
            self.assertNotIn("lower bound", run(WAYMARK, *command, data).stdout, command)
        seen = collections.Counter()
        for row in csv.DictReader(run(WAYMARK, "coverage", data, "--by", "function", "--all-functions", "--format",
                                      "tsv").stdout.splitlines(), delimiter="\t"):
            for name in ("not executed", "not observed"):
                seen[name] += int(row[f"instructions {name}"] or 0)
        self.assertEqual(seen["not executed"], 0)
        pauses = re.search(r"([0-9,]+) pauses of strobing", run(WAYMARK, "info", data).stdout)[1]
        stretches = re.search(r"the trace has ([0-9,]+) stretches of the run", run(WAYMARK, "profile", data).stdout)[1]
        self.assertEqual(int(stretches.replace(",", "")), int(pauses.replace(",", "")) + 1)
        # Two recordings of one program differ by no more than their bursts can show.
        self.assertEqual(run(WAYMARK, "diff", data, data, "--threshold", "0").returncode, 0)
        rows = list(csv.DictReader(run(WAYMARK, "profile", data, "--format", "tsv").stdout.splitlines(), delimiter="\t"))
        self.assertTrue(all(float(row["share_low"]) <= float(row["share"]) <= float(row["share_high"]) for row in rows))

    def test_borders_of_ranges_are_no_gaps(self):
        """No trace is lost where AUX ranges meet, and none is reported as lost."""
        program = self.compile(A64, "threads", "threads64", "-pthread")
        for options in (("--unit", "etmv4"), ("--unit", "ete"), ("--unit", "etmv4", "--sink", "trbe"),
                        ("--unit", "ete", "--per-thread")):
            with self.subTest(options=options):
                data = self.record(program, *options)
                flow = run(WAYMARK, "flow", data, "--format", "summary", "--strict")
                self.assertEqual(flow.returncode, 0, flow.stderr)
                self.assertNotIn("gap", flow.stdout)
                coverage = run(WAYMARK, "coverage", data, "--by", "image", "--format", "tsv", "--strict")
                self.assertEqual(coverage.returncode, 0, coverage.stderr)
                rows = list(csv.DictReader(coverage.stdout.splitlines(), delimiter="\t"))
                self.assertEqual(sum(int(row["instructions not observed"] or 0) for row in rows), 0, coverage.stdout)

    def test_forked_children(self):
        program = self.compile(A64, "forks", "forks64")
        data = self.record(program, "--unit", "ete", "--cpus", "8")
        self.compare(data)
        self.assertIn("5 processes, 5 threads", self.said)
        # The head of child_work's loop, by its own count of rounds: 1, 2, 3, 5 and 7 thousand, each in one process.
        listing = run("aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", program).stdout
        body = listing[listing.index("<child_work>:"):].split("\n\n")[0]
        heads = [int(target, 16) for target in re.findall(r"\sb\.\w+\s+([0-9a-f]+) <child_work", body)]
        rounds = [max(collections.Counter(executed(ranges))[head] for head in heads) for ranges in truth(data).values()]
        self.assertEqual(sorted(rounds), [1000, 2000, 3000, 5000, 7000])
        events = self.perf("script", "-i", data, "--show-task-events").stdout
        forks = re.findall(r"PERF_RECORD_FORK\((\d+):\1\):\((\d+):", events)
        exits = re.findall(r"PERF_RECORD_EXIT\((\d+):", events)
        first = re.search(r"PERF_RECORD_COMM exec: forks64:(\d+)/", events)[1]
        self.assertEqual(len(forks), 4)
        self.assertEqual([parent for _, parent in forks].count(first), 3)
        self.assertEqual(sorted(exits), sorted([first, *(child for child, _ in forks)]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
