#!/usr/bin/env python3
"""Commands on perf.data of program flow of several processes and threads: selections by process, thread, image, CPU,
level and time, exports, queries, tracks of reports, and `waymark verify`.

    perf_views_test.py WAYMARK SOURCE_DIR

The truth of each thread (`--truth`) says what is to be found.
"""
import collections
import csv
import json
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from perf_case import WAYMARK, PerfCase, run  # noqa: E402
from perf_records import AUX, AUXTRACE, PerfRecords  # noqa: E402
from perf_test import PROGRAM, THREADS, truth  # noqa: E402


class Views(PerfCase):
    @classmethod
    def make(cls):
        cls.build("threads", THREADS, "-static", "-lpthread")
        cls.build_bare("program", PROGRAM, 90)
        # Timestamps of the kernel's clock are in version 2.
        cls.data = cls.record("perf.data", "--unit", "ete", "--cpus", "2", "--aux-buffer", "16", "--info-version", "2",
                              "--timestamps")
        cls.truth = truth(cls.data)
        text = pathlib.Path(f"{cls.data}.truth.txt").read_text()
        cls.process_of = {int(tid): int(pid) for pid, tid in re.findall(r"^source (\d+)/(\d+) ", text, re.M)}

    @classmethod
    def record(cls, name, *options):
        data = cls.folder / name
        done = run(WAYMARK, "record", "--as", "perf", "--truth", "-o", data, *options, "--also", cls.folder / "program",
                   "--", cls.folder / "threads")
        assert done.returncode == 0, done.stdout + done.stderr
        return data

    def ranges(self, *options):
        """(thread, start, end) of the ranges that flow shows, in order."""
        text = self.waymark("flow", self.data, "--format", "tsv", *options).stdout
        rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(int(re.search(r"CID=(0x[0-9a-f]+)", row["context"])[1], 16), row["start"], row["end"])
                for row in rows if row["element"] == "range"]

    def instructions(self, *options):
        rows = json.loads(self.waymark("profile", self.data, "--format", "json", *options).stdout)
        return sum(row["instructions"] for row in rows["rows"])

    def executed(self, threads):
        return sum(count for tid in threads for _, _, count, lost in self.truth[tid] if not lost)

    def test_threads_and_processes(self):
        everything = self.ranges()
        by_thread = collections.defaultdict(list)
        for row in everything:
            by_thread[row[0]].append(row)
        self.assertEqual(set(by_thread), set(self.truth))
        for tid, rows in by_thread.items():
            self.assertEqual(self.ranges("--thread", str(tid)), rows)
        workers = {tid for tid in by_thread if self.process_of[tid] != tid}
        self.assertEqual(len(workers), 3)
        self.assertEqual(self.ranges("--thread", "worker?"), [row for row in everything if row[0] in workers])
        for pid in set(self.process_of.values()):
            of_process = [row for row in everything if self.process_of[row[0]] == pid]
            self.assertEqual(self.ranges("--process", str(pid)), of_process)
        of_threads = [row for row in everything if self.process_of[row[0]] in set(map(self.process_of.get, workers))]
        self.assertEqual(self.ranges("--process", "threads"), of_threads)
        both = self.ranges("--process", "threads", "--process", "program")
        self.assertEqual(both, everything)

    def test_jobs_and_decoders(self):
        for options in (("--jobs", "1"), ("--jobs", "3"), ("--reference-decoder",)):
            self.assertEqual(self.ranges("--thread", "worker2", *options), self.ranges("--thread", "worker2"))

    def test_views_count_what_is_selected(self):
        whole = self.instructions()
        self.assertEqual(whole, self.executed(self.truth))
        for pid in set(self.process_of.values()):
            threads = [tid for tid, process in self.process_of.items() if process == pid]
            self.assertEqual(self.instructions("--process", str(pid)), self.executed(threads))
        self.assertEqual(self.instructions("--cpu", "0") + self.instructions("--cpu", "1"), whole)
        self.assertEqual(self.instructions("--cpu", "0-1"), whole)
        self.assertEqual(self.instructions("--user"), whole)
        images = [self.instructions("--only-image", name) for name in ("threads", "program")]
        self.assertEqual(sum(images), whole)
        self.assertEqual(images[1], self.instructions("--process", "program"))
        done = self.waymark("profile", self.data, "--process", "program")
        self.assertRegex(done.stdout + done.stderr, r"only code that ran of process program is shown: [\d,]+ of [\d,]+ ranges")

    def test_time(self):
        text = self.waymark("info", self.data, "--format", "json").stdout
        self.assertIn("timestamps are the kernel's", json.loads(text)["description"])
        everything = self.ranges()
        error = self.waymark("flow", self.data, "--time", "99999..", status=2).stderr
        first, last = map(float, re.search(r"It goes from (\S+) to (\S+?)\.?\s", error + " ").groups())
        middle = f"{(first + last) / 2:.9f}"
        before, after = self.ranges("--time", f"..{middle}"), self.ranges("--time", f"{middle}..")
        self.assertEqual(len(before) + len(after), len(everything))
        self.assertEqual(collections.Counter(before + after), collections.Counter(everything))
        self.assertGreater(len(before), 0)
        self.assertGreater(len(after), 0)
        self.assertEqual(self.ranges("--time", f"0..{last + 1:.6f}"), everything)

    def test_time_of_ranges(self):
        """Without timestamps, complete AUX ranges count."""
        data = self.record("ranges.data", "--unit", "ete", "--cpus", "1", "--aux-buffer", "8")
        error = self.waymark("flow", data, "--time", "99999..", status=2).stderr
        first, last = map(float, re.search(r"It goes from (\S+) to (\S+?)\.?\s", error + " ").groups())

        def count(*options):
            text = self.waymark("flow", data, "--format", "summary", *options).stdout
            return int(re.findall(r"^  ranges +([\d,]+)$", text, re.M)[-1].replace(",", ""))

        whole, half = count(), count("--time", f"..{(first + last) / 2:.9f}")
        self.assertTrue(0 < half < whole, (half, whole))

    def test_offsets_are_places_in_the_trace(self):
        """Offsets are not offsets in the perf.data file (docs/perf-data.md)."""
        data = self.record("offsets.data", "--unit", "ete", "--cpus", "1", "--aux-buffer", "8")
        first = next(line for line in self.waymark("packets", data).stdout.splitlines() if line[:1] == " ")
        self.assertEqual(first.split()[:1], ["0x0"], first)

    def test_every_command_takes_them(self):
        output = self.folder / "out"
        for command in (("flow", "--format", "summary"), ("flow", "--format", "calls"), ("profile",), ("coverage",),
                        ("branches",), ("loops",), ("exceptions",), ("report", "-o", output),
                        ("export", "--to", "folded", "-o", output), ("answers", "-o", output)):
            with self.subTest(command=command):
                self.waymark(command[0], self.data, *command[1:], "--process", "program", "--user", "--cpu", "0,1")
                done = self.waymark(command[0], self.data, *command[1:], "--process", "nobody", status=2)
                self.assertRegex(done.stderr, r"--process 'nobody': the capture has no such process\. It has: .*"
                                              r"program\[\d+\].*threads\[\d+\]")

    def test_errors_name_what_there_is(self):
        for options, found in ((("--thread", "9999999"), r"no such thread\. It has: .*worker1\[\d+\]"),
                               (("--only-image", "libc.so.6"), r"no such image\. It has: .*/program, .*/threads"),
                               (("--cpu", "7"), r"no such CPU\. It has: cpu0, cpu1"),
                               (("--cpu", "x"), r"--cpu takes numbers of CPUs"),
                               (("--time", "5"), r"--time takes FIRST\.\.LAST"),
                               (("--time", "2..1"), r"the first time is later than the last"),
                               (("--time", "99999.."), r"there is no trace of that time\. It goes from")):
            with self.subTest(options=options):
                self.assertRegex(self.waymark("profile", self.data, *options, status=2).stderr, found)
        # Names that exist, without executed code.
        for command in ("flow", "profile"):
            error = self.waymark(command, self.data, "--kernel", status=1).stderr
            self.assertRegex(error, r"nothing decoded: none of the [\d,]+ ranges that ran is of kernel code\. They are: "
                                    r"[\d,]+ of \S+\[\d+\], \S+, user code")
        # Recordings of threads have no context IDs, but a ring for each thread; without both, in a recording of CPUs,
        # the thread is unknown.
        per_thread = self.record("thread.data", "--unit", "ete", "--per-thread")
        self.waymark("profile", per_thread, "--thread", "worker1")
        records = PerfRecords(per_thread)
        for record, at in ([(r, 32) for r in records.of(AUXTRACE)] + [(r, len(r.body) - 16) for r in records.of(AUX)]):
            record.put(at, 0, 4)
        inherit = 2
        records.put_attr(0, 40, lambda flags: flags & ~inherit)
        nobody = records.write(self.folder / "nobody.data")
        self.assertIn("neither context IDs nor", self.waymark("flow", nobody, "--process", "threads", status=2).stderr)

    def test_other_captures_refuse_them(self):
        out = self.folder / "snapshot"
        self.waymark("record", "--from-start", "-o", out, "--unit", "ete", "--", self.folder / "program")
        for command in ("flow", "profile"):
            error = self.waymark(command, out, "--process", "1", status=2).stderr
            self.assertIn("are for perf.data files with CoreSight trace", error)

    def test_exports(self):
        listed = re.findall(r"^  (\S+)\s+\S", self.waymark("export", "--list").stdout, re.M)
        formats = [name for name in listed if name != "opens"]
        self.assertIn("sqlite", formats)
        for name in formats:
            with self.subTest(format=name):
                out = self.folder / f"export-{name}"
                image = ("--of-image", "threads") if name in ("bolt", "autofdo-text", "profgen", "profgen-script") else ()
                self.waymark("export", self.data, "--to", name, "-o", out, *image)
                size = sum(f.stat().st_size for f in (out.rglob("*") if out.is_dir() else (out,)) if f.is_file())
                self.assertGreater(size, 0)
        self.assertIn("perf.data file (CoreSight or SPE)", " ".join(self.waymark("export", "--help").stdout.split()))

    def test_query(self):
        database = self.folder / "answers.sqlite"
        self.waymark("export", self.data, "--to", "sqlite", "-o", database)
        rows = json.loads(self.waymark("query", database, "SELECT name FROM tracks", "--format", "json").stdout)
        names = {row["name"] for row in rows}
        for pattern in (r"process threads\[\d+\]$", r"process program\[\d+\]$", r"thread worker1\[\d+\] on "):
            self.assertTrue(any(re.match(pattern, name) for name in names), (pattern, names))
        rows = json.loads(self.waymark("query", database, "SELECT name FROM functions", "--format", "json").stdout)
        self.assertIn("work", {row["name"] for row in rows})

    def test_tracks_and_clock(self):
        """A thread's track lies below the track of its process; the statements about time are true."""
        for options, unit, note in ((("--timestamps", "--info-version", "2"), "ns", "They count the kernel's clock"),
                                    (("--timestamps",), "ticks", "may not count the kernel's clock"),
                                    ((), "instructions", "no timestamps in common")):
            with self.subTest(options=options):
                data = self.record("tracks.data", "--unit", "ete", *options)
                out = self.folder / "tables"
                self.waymark("export", data, "--to", "jsonl", "-o", out)
                capture = json.loads((out / "capture.jsonl").read_text().splitlines()[0])
                self.assertIn(unit, capture.values())
                self.assertIn(note, str(capture))
                tracks = [json.loads(line) for line in (out / "tracks.jsonl").read_text().splitlines()]
                names = {track["id"]: track["name"] for track in tracks}
                workers = [track for track in tracks if track["name"].startswith("thread worker")]
                self.assertGreaterEqual(len(workers), 3)
                for track in workers:
                    self.assertRegex(names[track["parent"]], r"^process threads\[\d+\]$")
                self.waymark("report", data, "-o", self.folder / "report.html")

    def test_snapshot_has_the_trace_alone(self):
        """The snapshot contains the trace, not the whole file, whose rings would be parts."""
        snapshot, data = self.folder / "alone", self.folder / "alone.data"
        # One process: several processes have different code at the same addresses, which a snapshot cannot contain.
        self.waymark("record", "--as", "perf", "-o", data, "--cpus", "2", "--", self.folder / "threads")
        self.waymark("doctor", data, "--write-snapshot", snapshot)

        def packets(capture):
            text = run(WAYMARK, "flow", capture, "--format", "summary").stdout
            return re.findall(r"^ +decoded +([\d,]+)\n(?:    .*\n)*  packets +([\d,]+)$", text, re.M)
        self.assertEqual(packets(snapshot), packets(data))
        self.assertNotEqual(packets(snapshot), [])

    def test_verify(self):
        for name, options in (("cpus", ("--unit", "ete", "--cpus", "2")), ("threads", ("--unit", "etmv4", "--per-thread")),
                              ("etr", ("--unit", "etmv4", "--sink", "etr", "--cpus", "2", "--aux-buffer", "8"))):
            with self.subTest(options=options):
                data = self.record(f"{name}.data", *options)
                out = self.waymark("verify", data).stdout
                self.assertRegex(out, r"(?m)^equal: [\d,]+ instructions of 5 threads$")
                self.assertEqual(len(re.findall(r"^thread \d+/\d+: equal$", out, re.M)), 5)
        lost = self.record("lost.data", "--unit", "ete", "--loss", "late", "--aux-buffer", "8", "--branch-broadcast")
        self.assertIn("equal, as far as the buffer kept it", self.waymark("verify", lost).stdout)
        # The truth of one thread under the name of another.
        data = self.record("wrong.data", "--unit", "ete")
        text = pathlib.Path(f"{data}.truth.txt").read_text()
        files = re.findall(r" file (\S+)$", text, re.M)
        shutil.copy(data.parent / files[-1], data.parent / files[0])
        out = self.waymark("verify", data, status=1).stdout
        self.assertIn("DIFFERENT", out)
        self.assertRegex(out, r"first difference: 0x[0-9a-f]+ was decoded \d+ times? (more|less) often")
        # Only the sums; then no truth at all.
        for file in files:
            (data.parent / file).unlink()
        self.assertRegex(self.waymark("verify", data).stdout, r"equal: [\d,]+ instructions")
        pathlib.Path(f"{data}.truth.txt").unlink()
        self.assertIn("truth", self.waymark("verify", data, status=4).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
