#!/usr/bin/env python3
"""perf.data of program flow that is cut, lacks what others have, or is given with the wrong files; and profiles of a part of
one, decoded on one thread or several.

    perf_damage_test.py WAYMARK SOURCE_DIR
"""
import json
import pathlib
import re
import shutil
import struct
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from perf_case import WAYMARK, PerfCase, run  # noqa: E402
from perf_records import AUX, AUXTRACE, PerfRecords, Record  # noqa: E402
from perf_test import PROGRAM, THREADS, truth  # noqa: E402

SWITCH = 14


class Damage(PerfCase):
    @classmethod
    def make(cls):
        cls.build("threads", THREADS, "-static", "-lpthread")
        cls.build_bare("program", PROGRAM, 90)
        cls.data = cls.record("perf.data", "--unit", "etmv4", "--sink", "etr", "--cpus", "2", "--aux-buffer", "16")

    @classmethod
    def record(cls, name, *options, programs=("threads", "program")):
        also = [word for program in programs[1:] for word in ("--also", cls.folder / program)]
        done = run(WAYMARK, "record", "--as", "perf", "--truth", "-o", cls.folder / name, *options, *also, "--",
                   cls.folder / programs[0])
        assert done.returncode == 0, done.stdout + done.stderr
        return cls.folder / name

    def cut(self, size):
        """A copy without its end, with the truth beside it."""
        path = self.folder / "cut.data"
        path.write_bytes(self.data.read_bytes()[:size])
        shutil.copy(f"{self.data}.truth.txt", f"{path}.truth.txt")
        return path

    def test_a_cut_file_is_unreadable_for_every_command(self):
        whole = self.data.read_bytes()
        first = whole.find(struct.pack("<IHH", AUXTRACE, 0, 48))
        self.assertGreater(first, 0)
        for size in (first - 200, first + 100, (first + len(whole)) // 2, len(whole) - 40):
            path, out = self.cut(size), self.folder / "out"
            for command in (("info",), ("doctor",), ("packets",), ("flow",), ("profile",), ("coverage",), ("branches",),
                            ("loops",), ("exceptions",), ("verify",), ("report", "-o", out), ("answers", "-o", out),
                            ("answers", "--only-ranges", "-o", out), ("export", "--to", "folded", "-o", out),
                            ("pgo", "--for", "bolt", "-o", out), ("diff", self.data)):
                with self.subTest(size=size, command=command):
                    done = self.waymark(command[0], path, *command[1:], status=3)
                    # The message names the place, and states that trace is missing; doctor breaks its lines.
                    said = " ".join((done.stdout + done.stderr).split())
                    self.assertRegex(said, rf"{path}: offset 0x[0-9a-f]+: (the file is cut|feature \d+: said to be)")

    def test_what_a_cut_file_has_is_written(self):
        whole = PerfRecords(self.data)
        last = whole.of(AUXTRACE)[-1]
        path = self.cut(self.data.read_bytes().find(last.encode()) + 48 + len(last.trace) // 2)
        profile = self.folder / "cut.preagg"
        done = self.waymark("pgo", path, "--for", "bolt", "-o", profile, status=3)
        self.assertIn("error: " + str(path), done.stderr)
        self.assertGreater(profile.stat().st_size, 0)
        # An answers file made from the capture states it, too.
        answers = self.folder / "cut.answers"
        self.waymark("answers", path, "-o", answers, status=3)
        self.assertIn("the file is cut", self.waymark("profile", answers, status=3).stdout)
        self.assertIn("the file is cut", self.waymark("profile", answers, "--format", "tsv", status=3).stderr)

    def test_a_wrong_image_is_said(self):
        other = self.build_bare("other", PROGRAM, 90, "-O2")
        for command in (("profile",), ("flow", "--format", "summary"), ("pgo", "--for", "bolt", "-o", self.folder / "out")):
            done = self.waymark(command[0], self.data, *command[1:], "--image", other)
            self.assertRegex(done.stderr, rf"warning: {other}: no file of this name or build was mapped")
        self.assertNotIn(str(other), self.waymark("profile", self.data, "--image", self.folder / "program").stderr)

    def test_kallsyms_are_looked_at(self):
        garbage = self.folder / "garbage"
        for text in ("no symbols\n", "0000000000000000 T _text\n"):
            garbage.write_text(text)
            done = self.waymark("profile", self.data, "--kallsyms", garbage, status=2)
            self.assertIn("has no lines like those in /proc/kallsyms", done.stderr)
        garbage.write_text("ffff800080000000 T _text\n")
        self.waymark("profile", self.data, "--kallsyms", garbage)

    def test_files_without_build_id_are_said_once(self):
        names = [f"copy{i}" for i in range(6)]
        for name in names:
            self.build_bare(name, PROGRAM, 9, "-Wl,--build-id=none")
        data = self.record("copies.data", "--unit", "ete", programs=names)
        said = [line for line in self.waymark("profile", data).stderr.splitlines() if "without a build ID" in line]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], r"\(the same 5 times more, as in '[^']+/copy\d', '[^']+/copy\d'\)$")

    def test_folder_of_symbols(self):
        """Files are found by name and build ID, wherever in the folder they are."""
        data = self.folder / "hidden.data"
        shutil.copy(self.data, data)
        folder = self.folder / "symbols/of/some"
        folder.mkdir(parents=True)
        hidden = self.folder / "elsewhere"
        (self.folder / "program").rename(hidden)
        try:
            # Of another build.
            self.build_bare("program", PROGRAM, 17).rename(folder / "program")
            options = ("--of-image", "program", "--symdir", self.folder / "symbols")
            out = self.folder / "out"
            self.waymark("pgo", data, "--for", "clang", "-o", out, *options, status=1)
            (self.folder / "symbols/program").write_bytes(hidden.read_bytes())
            self.waymark("pgo", data, "--for", "clang", "-o", out, *options)
            self.assertIn("work", out.read_text())
        finally:
            hidden.rename(self.folder / "program")
        done = self.waymark("profile", data, "--symdir", self.folder / "none", status=2)
        self.assertIn("--symdir", done.stderr)

    def large(self, megabytes):
        """A file with one ring and this amount of trace: the trace of a program, repeated."""
        path = self.record("one.data", "--unit", "ete", programs=("program",))
        records = PerfRecords(path)
        chunk, aux = records.of(AUXTRACE)[0], records.of(AUX)[0]
        records.records = [r for r in records.records if r is chunk or r is aux or r.kind not in (AUX, AUXTRACE)]
        chunk.trace = chunk.trace[:len(chunk.trace) // 8 * 8]
        chunk.trace *= (megabytes << 20) // len(chunk.trace) + 1
        chunk.put(0, len(chunk.trace))
        chunk.put(8, 0)
        aux.put(0, 0)
        aux.put(8, len(chunk.trace))
        return records.write(self.folder / "large.data"), len(chunk.trace)

    def test_info_of_much_trace(self):
        path, size = self.large(3)
        one, whole = (json.loads(self.waymark("info", path, "--format", "json", "--sample", sample).stdout)
                      for sample in (1, 0))
        self.assertEqual(one["buffers"][0]["bytes"], 1 << 20)
        self.assertEqual(one["buffers"][0]["of_bytes"], size)
        self.assertIn(f"counted in {1 << 20:,} of {size:,} bytes", " ".join(one["problems"]))
        self.assertEqual(whole["buffers"][0]["bytes"], size)
        self.assertNotIn("of_bytes", whole["buffers"][0])
        self.assertNotIn("were counted in", " ".join(whole["problems"]))
        for info in (one, whole):
            stream = info["sources"][0]["streams"][0]
            self.assertEqual(stream["bytes"], stream["bytes_in_packets"] + sum(gap["bytes"] for gap in stream["gaps"]))

    # ---- threads that the trace does not name

    def test_threads_are_those_of_aux_records(self):
        data = self.record("no-ids.data", "--unit", "ete", "--cpus", "2", "--aux-buffer", "16", "--context-id", "0")
        out = self.waymark("verify", data).stdout
        self.assertEqual(len(re.findall(r"^thread \d+/\d+: equal$", out, re.M)), 5, out)
        executed = truth(data)
        text = pathlib.Path(f"{data}.truth.txt").read_text()
        processes = {int(tid): int(pid) for pid, tid in re.findall(r"^source (\d+)/(\d+) ", text, re.M)}
        for pid in set(processes.values()):
            rows = json.loads(self.waymark("profile", data, "--format", "json", "--process", pid).stdout)["rows"]
            self.assertEqual(sum(row["instructions"] for row in rows),
                             sum(count for tid, ranges in executed.items() if processes[tid] == pid
                                 for _, _, count, lost in ranges if not lost))
        info = json.loads(self.waymark("info", data, "--format", "json").stdout)
        said = {p["kind"]: p for p in info["peculiarities"]}["no-context-ids"]
        self.assertIn("the thread of each AUX range is the thread that its record or SWITCH records name", said["means"])

    def test_threads_in_vmids(self):
        data = self.record("vmid.data", "--unit", "ete", "--cpus", "2", "--context-in-vmid", "--sink-ids")
        info = json.loads(self.waymark("info", data, "--format", "json").stdout)
        self.assertIn("threads are identified by VMID", info["description"])
        said = {p["kind"]: p for p in info["peculiarities"]}
        self.assertIn("context-in-vmid", said)
        self.assertIn("each for its sink", said["hardware-ids"]["found"])
        self.assertEqual(len(re.findall(r"^thread \d+/\d+: equal$", self.waymark("verify", data).stdout, re.M)), 5)
        if shutil.which("perf"):
            done = run("perf", "script", "-F", "tid", "--itrace=b", "-i", data)
            self.assertEqual(set(map(int, done.stdout.split())), set(truth(data)), done.stderr)
        done = run(WAYMARK, "record", "--as", "perf", "--unit", "etmv4", "--context-in-vmid", "-o", self.folder / "out",
                   "--", self.folder / "program")
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_threads_are_those_of_switch_records(self):
        """With an event that traces CPUs, AUX records name the thread that ran when they were written."""
        records = PerfRecords(self.record("one.data", "--unit", "ete", "--context-id", "0", programs=("program",)))
        inherit = 2
        records.put_attr(0, 40, lambda flags: flags & ~inherit)
        shutil.copy(self.folder / "one.data.truth.txt", self.folder / "edited.data.truth.txt")
        path = records.write(self.folder / "edited.data")
        self.waymark("profile", path, status=1)
        pid, tid = struct.unpack_from("<2I", records.of(AUX)[0].body, 24)
        # The thread, the time, the CPU and the event, as at the end of all records.
        records.records.insert(0, Record(SWITCH, 0, struct.pack("<2I3Q", pid, tid, 0, 0, 1)))
        records.write(path)
        self.assertRegex(self.waymark("verify", path).stdout, rf"thread {pid}/{tid}: equal\n")
        # At a time when another thread ran too, the thread is unknown.
        records.records.insert(0, Record(SWITCH, 0, struct.pack("<2I3Q", pid, tid + 1, 1, 0, 1)))
        self.waymark("profile", records.write(path), status=1)

    # ---- profiles

    def test_profiles_of_a_part(self):
        whole, part = self.folder / "whole", self.folder / "part"
        self.waymark("pgo", self.data, "--for", "profgen", "--of-image", "program", "-o", whole)
        for options in (("--process", "program"), ("--only-image", "program"), ("--user", "--process", "program")):
            self.waymark("pgo", self.data, "--for", "profgen", "--of-image", "program", *options, "-o", part)
            self.assertEqual(part.read_bytes(), whole.read_bytes(), options)
        done = self.waymark("pgo", self.data, "--for", "profgen", "--of-image", "threads", "--process", "program", "-o",
                            part, status=1)
        self.assertIn("threads", done.stderr)
        self.assertIn("--process", self.waymark("pgo", self.data, "--for", "bolt", "--process", "none", "-o", part,
                                                status=2).stderr)
        answers = self.folder / "some.answers"
        self.waymark("answers", self.data, "--only-ranges", "-o", answers)
        done = self.waymark("pgo", answers, "--for", "bolt", "--cpu", "0", "-o", part, status=2)
        self.assertIn("which is already decoded: leave out --cpu", done.stderr)

    def test_a_part_against_another(self):
        parts = [json.loads(self.waymark("diff", self.data, self.data, "--format", "json", *options).stdout)
                 for options in ((), ("--process", "program"), ("--process", "threads"))]
        self.assertEqual(parts[0]["sum_before"], parts[1]["sum_before"] + parts[2]["sum_before"])
        self.assertGreater(parts[1]["sum_before"], 0)

    def test_threads_give_the_same_profile(self):
        """Rings with short AUX ranges are decoded side by side."""
        data = self.record("rings.data", "--unit", "ete", "--cpus", "2", "--aux-buffer", "16")
        self.assertGreater(len({struct.unpack_from("<I", r.body, 32)[0] for r in PerfRecords(data).of(AUXTRACE)}), 1)
        for command in (("pgo", "--for", "bolt"), ("pgo", "--for", "branch-list"), ("answers",),
                        ("answers", "--only-ranges"), ("answers", "--process", "threads")):
            files = []
            for jobs in ("1", "2", "3"):
                files.append(self.folder / f"jobs{jobs}")
                self.waymark(command[0], data, *command[1:], "--jobs", jobs, "-o", files[-1])
            self.assertEqual(files[0].read_bytes(), files[1].read_bytes(), command)
            self.assertEqual(files[0].read_bytes(), files[2].read_bytes(), command)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
