#!/usr/bin/env python3
"""perf.data files of each kind that readers stumble over (docs/spec/perf-cs-etm.md, section 8), made from recordings by
editing their records: `waymark doctor` and `waymark info` say the same of each.

    perf_traps_test.py WAYMARK SOURCE_DIR
"""
import ctypes.util
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import threading
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from perf_case import WAYMARK, PerfCase, run  # noqa: E402
from perf_records import (AUX, AUXTRACE, AUXTRACE_INFO, HARDWARE_ID, INDEX, SAMPLE, TIME_CONV, PerfRecords,  # noqa: E402
                          Record)
from perf_test import PROGRAM  # noqa: E402

CID, VMID, TS = 1 << 6, 1 << 7 | 1 << 15, 1 << 11
RAW, OVERWRITE, INHERIT = 0x100, 2, 2


def registers(records):
    """The record AUXTRACE_INFO, and the offset of the first register in each block of ETMv4 or ETE."""
    info = records.of(AUXTRACE_INFO)[0]
    version, count = info.word(8), info.word(16) & 0xffffffff
    assert version >= 1
    places, at = [], 32
    for _ in range(count):
        places.append(at + 24)
        at += 8 * (3 + info.word(at + 16))
    return info, places


class Traps(PerfCase):
    @classmethod
    def make(cls):
        cls.program = cls.build_bare("program", PROGRAM, 200)
        cls.recordings = {}

    def recording(self, *options):
        """The file's records; with small buffers, so that there are several ranges."""
        if options not in self.recordings:
            path = self.folder / f"recording{len(self.recordings)}.data"
            done = run(WAYMARK, "record", "--as", "perf", "-o", path, *options, "--", self.program)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.recordings[options] = path
        return PerfRecords(self.recordings[options])

    def formatted(self, *options):
        return self.recording("--unit", "etmv4", "--sink", "etr", *options)

    def findings(self, path, status=0):
        """{kind: finding} of doctor and {kind: peculiarity} of info."""
        doctor = run(WAYMARK, "doctor", path, "--format", "json")
        self.assertEqual(doctor.returncode, status, doctor.stderr)
        info = run(WAYMARK, "info", path, "--format", "json")
        self.assertIn(info.returncode, (0, 1), info.stderr)
        return ({f["kind"]: f for f in json.loads(doctor.stdout)["findings"]},
                {p["kind"]: p for p in json.loads(info.stdout).get("peculiarities", [])})

    def check(self, records, kind, found, status=0):
        """Both commands name the trap, with the same words and the same advice."""
        path = records.write(self.folder / "edited.data")
        doctor, info = self.findings(path, status)
        self.assertIn(kind, doctor)
        self.assertIn(kind, info)
        self.assertRegex(doctor[kind]["found"], found)
        for of_doctor, of_info in (("found", "found"), ("expected", "usual"), ("cause", "means"), ("do", "advice")):
            self.assertNotEqual(doctor[kind][of_doctor], "")
            self.assertEqual(doctor[kind][of_doctor], info[kind][of_info])
        text = run(WAYMARK, "info", path).stdout
        self.assertIn(f"  - {kind}: {info[kind]['text']}", text)
        return doctor[kind]

    def test_files_as_perf_writes_them(self):
        """Usual properties are not reported, and a file that is taken apart and put together again is unchanged."""
        for options in (("--unit", "etmv4", "--sink", "trbe"), ("--unit", "ete"), ("--unit", "etmv4", "--per-thread")):
            with self.subTest(options=options):
                records = self.recording(*options)
                path = records.write(self.folder / "edited.data")
                self.assertEqual(path.read_bytes(), self.recordings[options].read_bytes())
                doctor, info = self.findings(path)
                self.assertEqual(set(info), set())
                self.assertEqual([f for f in doctor.values() if f["severity"] != "note"], [])

    def test_1_shared_sink(self):
        records = self.formatted()
        aux = records.of(AUX)[0].copy()
        aux.put(8, 0)
        records.records.insert(records.records.index(records.of(AUX)[0]), aux)
        self.check(records, "shared-sink", r"^1 of \d+ AUX ranges are empty")

    def test_2_magic_of_ete(self):
        records = self.recording("--unit", "ete")
        info, places = registers(records)
        for at in places:
            self.assertEqual(info.word(at + 7 * 8) >> 12 & 15, 5)
            info.put(at + 7 * 8, info.word(at + 7 * 8) & ~0xf000 | 0x4000)
        self.check(records, "ete-magic", r"^(\d+) of \1 units are called ETE")

    def test_3_hardware_ids(self):
        for change, found in ((lambda i: i + 1, r"AUX_OUTPUT_HW_ID; for 1 CPU they differ from the IDs in the metadata"),
                              (lambda i: i | 1 << 56 | 0x77 << 8, r"AUX_OUTPUT_HW_ID, each for its sink")):
            with self.subTest(found=found):
                records = self.formatted()
                last = records.of(HARDWARE_ID)[-1]
                last.put(0, change(last.word(0)))
                # The record at the end: it applies wherever it stands.
                records.records.remove(last)
                records.records.append(last)
                self.check(records, "hardware-ids", found)

    def test_4_threads(self):
        records = self.formatted()
        info, places = registers(records)
        for at in places:
            info.put(at, info.word(at) | VMID)
        self.check(records, "context-in-vmid", "^threads are known by VMID$")
        records = self.formatted()
        info, places = registers(records)
        for at in places:
            info.put(at, info.word(at) & ~CID)
        finding = self.check(records, "no-context-ids", "context IDs were not traced")
        self.assertEqual(finding["severity"], "note")
        self.assertIn("the thread of each AUX range is the thread that its record or SWITCH records name", finding["cause"])
        # With an event that traces CPUs, AUX records do not show the thread.
        records.put_attr(0, 40, lambda flags: flags & ~INHERIT)
        finding = self.check(records, "no-context-ids", "context IDs were not traced")
        self.assertEqual(finding["severity"], "warning")
        self.assertIn("the processes that ran are not known", finding["cause"])

    def test_4_container(self):
        """The metadata promise IDs that the kernel did not trace."""
        # perf records no IDs for a single thread: its ring looks like a CPU's ring.
        records = self.formatted("--per-thread")
        info, places = registers(records)
        for at in places:
            self.assertEqual(info.word(at) & CID, 0)
            info.put(at, info.word(at) | CID)
        for record, at in [(r, 32) for r in records.of(AUXTRACE)] + [(r, len(r.body) - 16) for r in records.of(AUX)]:
            self.assertEqual(record.word(at, 4), 0xffffffff)
            record.put(at, 0, 4)
        finding = self.check(records, "no-context-ids", "its metadata announce their IDs")
        self.assertIn("container", finding["cause"])

    def test_5_index_without_count(self):
        records = self.formatted()
        self.assertIn(INDEX, records.features)
        records.index_count = False
        self.check(records, "index-without-count", "has no count")

    def test_5_split_records(self):
        records = self.formatted()
        # Two halves of a TIME_CONV record that the file already contains.
        whole = records.of(TIME_CONV)[0].encode()
        halves = [Record(32772, 0, half) for half in (whole[:16], whole[16:])]
        records.records += [*halves, Record(32773, 0, b"")]
        self.check(records, "split-records", "^1 record is in SPLIT records")

    def test_6_formats(self):
        records = self.formatted("--aux-buffer", "8", "--branch-broadcast")
        aux = [a for a in records.of(AUX) if a.word(8)]
        self.assertGreater(len(aux), 1, "the recording needs two ranges")
        aux[-1].put(16, aux[-1].word(16) | RAW)
        self.check(records, "mixed-formats", r"^1 of \d+ AUX ranges are raw trace of one unit.*within one ring")

    def test_7_snapshot(self):
        records = self.formatted()
        for aux in records.of(AUX):
            aux.put(0, aux.word(0) + aux.word(8))
            aux.put(16, aux.word(16) | OVERWRITE)
        self.check(records, "snapshot", r"^a snapshot: (\d+) of \1 AUX ranges are marked OVERWRITE")

    def test_8_clock(self):
        records = self.formatted("--timestamps")
        self.check(records, "other-clock", "may not count the kernel's clock")

    def test_9_bits_of_timestamps(self):
        records = self.formatted()
        records.put_attr(0, 8, lambda config: config | 0x30)
        self.check(records, "timestamp-bits", "in bits 7:4 of its config")
        records = self.formatted()
        records.put_attr(0, 8, lambda config: config | 1 << 28)
        self.check(records, "timestamp-bits", "the units were programmed without them")

    def test_10_samples(self):
        records = self.formatted()
        records.records.append(Record(SAMPLE, 2, bytes(56)))
        finding = self.check(records, "made-samples", "^1 sample among its records")
        self.assertIn("1000th instruction", finding["cause"])

    def test_11_ends_of_ranges(self):
        records = self.formatted()
        records.records.append(Record(SAMPLE, 2, bytes(56)))
        records.put_attr(1, 24, lambda fields: fields | 1 << 11)
        finding = self.check(records, "branch-stacks", "branch stacks")
        self.assertIn("last instruction", finding["cause"])

    def test_12_writers(self):
        records = self.formatted()
        records.of(AUXTRACE_INFO)[0].put(8, 2)
        self.check(records, "not-for-every-perf", "AUXTRACE_INFO has version 2")
        records = self.formatted("--per-thread")
        for aux in records.of(AUX):
            at = len(aux.body) - 16
            self.assertEqual(aux.word(at, 4), 0xffffffff)
            aux.put(at, 1, 4)
        self.check(records, "not-for-every-perf", "AUX records of threads name CPUs")
        records = self.formatted()
        del records.features[INDEX]
        self.check(records, "not-for-every-perf", "no AUXTRACE index")
        records = self.formatted()
        conversion = records.of(TIME_CONV)[0]
        records.records.remove(conversion)
        records.records.append(conversion)
        self.check(records, "not-for-every-perf", "TIME_CONV comes after")

    def test_13_nothing(self):
        records = self.formatted()
        records.records = [r for r in records.records if r.kind != AUXTRACE]
        finding = self.check(records, "no-trace", "no byte of trace: \\d+ AUX record", status=1)
        self.assertEqual(finding["severity"], "error")
        path = self.folder / "edited.data"
        for command in (("flow",), ("profile",), ("export", "--to", "folded")):
            done = run(WAYMARK, *command, path)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("nothing decoded: ", done.stderr)

    def test_13_trace_taken_out(self):
        """A file as perf inject leaves it: neither AUXTRACE_INFO nor trace."""
        records = self.formatted()
        records.records = [r for r in records.records if r.kind not in (AUX, AUXTRACE, AUXTRACE_INFO)]
        records.records.append(Record(SAMPLE, 2, bytes(56)))
        del records.features[INDEX]
        path = records.write(self.folder / "edited.data")
        doctor = run(WAYMARK, "doctor", path, "--format", "json")
        self.assertEqual(doctor.returncode, 1, doctor.stderr)
        findings = {f["kind"]: f for f in json.loads(doctor.stdout)["findings"]}
        self.assertEqual(set(findings), {"no-trace", "made-samples"})
        for command in ("info", "flow", "profile"):
            done = run(WAYMARK, command, path)
            self.assertIn(done.returncode, (1, 2, 3), done.stdout)
            self.assertIn(findings["no-trace"]["found"], done.stderr)

    def test_what_is_missing_is_said_with_the_remedy(self):
        """Lost records, and a file that perf did not finish: every command states cause and remedy in the same
        words."""
        def without(kind, all_but=0, options=()):
            records = self.recording("--unit", "ete", *options)
            kept = records.of(kind)[:all_but]
            self.assertGreater(len(records.of(kind)), all_but)
            records.records = [r for r in records.records if r.kind != kind or any(r is k for k in kept)]
            return records
        thread = self.recording("--unit", "ete").of(3)[0].word(4, 4)  # COMM
        for records, status, *parts in (
                (without(AUXTRACE_INFO), 3, "contains trace, but no AUXTRACE_INFO record", "copy the whole file again"),
                (without(AUX), 0, "the file has no AUX records", "as one range, as unformatted trace of one unit",
                 "Copy the whole file again, or record again"),
                (without(AUX, options=("--sink", "etr")), 0, "the file has no AUX records",
                 "as one range, as CoreSight frames", "Copy the whole file again, or record again"),
                (without(AUX, 1, ("--aux-buffer", "8", "--branch-broadcast")), 0, "outside the ranges of all AUX records",
                 "perf record -m SIZE"),
                (without(10), 1, f"no mapping is known at 0x[0-9a-f]+ and other addresses, of thread {thread}:",
                 "FORK or MMAP2 records were lost")):
            path = records.write(self.folder / "edited.data")
            for command in (("info",), ("doctor",), ("profile",), ("pgo", "--for", "autofdo", "-o", self.folder / "out")):
                done = run(WAYMARK, command[0], path, *command[1:])
                said = " ".join((done.stdout + done.stderr).split())
                for part in parts:
                    self.assertRegex(said, part, command)
                if command[0] in ("profile", "pgo"):
                    self.assertEqual(done.returncode, status, (command, said))
        unfinished = bytearray(self.recording("--unit", "ete").write(self.folder / "edited.data").read_bytes())
        records = PerfRecords(self.folder / "edited.data")
        end = records.data_at + struct.unpack_from("<Q", unfinished, 48)[0]
        struct.pack_into("<Q", unfinished, 48, 0)
        unfinished[72:104] = bytes(32)
        (self.folder / "edited.data").write_bytes(unfinished[:end])
        for command in ("info", "doctor", "profile"):
            done = self.waymark(command, self.folder / "edited.data")
            self.assertRegex(" ".join((done.stdout + done.stderr).split()),
                             "the file was not finished: perf was killed.* End perf with Ctrl-C")

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"),
                         "no libdebuginfod.so: install the Debian package libdebuginfod1")
    def test_missing_image_of_a_server(self):
        """A debuginfod server that has the build is asked, but only where DEBUGINFOD_URLS names it."""
        path = self.recording("--unit", "ete").write(self.folder / "edited.data")
        hidden = self.folder / "elsewhere"
        notes = subprocess.run(["readelf", "-n", self.program], capture_output=True, text=True, check=True).stdout
        wanted = f"/buildid/{re.search('Build ID: ([0-9a-f]+)', notes)[1]}/executable"
        asked = []

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                content = hidden.read_bytes() if self.path == wanted else b""
                self.send_response(200 if content else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.program.rename(hidden)
        try:
            with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
                threading.Thread(target=server.serve_forever, daemon=True).start()
                set_up = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}",
                          "DEBUGINFOD_CACHE_PATH": str(self.folder / "debuginfod")}
                with unittest.mock.patch.dict(os.environ):
                    os.environ.pop("DEBUGINFOD_URLS", None)
                    self.assertEqual(run(WAYMARK, "profile", path).returncode, 1)
                    self.assertEqual(asked, [])
                    os.environ.update(set_up)
                    done = run(WAYMARK, "profile", path)
                server.shutdown()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(wanted, asked)
            self.assertNotIn("is not known", done.stdout)
        finally:
            hidden.rename(self.program)

    @unittest.skipUnless(ctypes.util.find_library("debuginfod"),
                         "no libdebuginfod.so: install the Debian package libdebuginfod1")
    def test_server_that_is_silent(self):
        """A debuginfod server that accepts the request and does not answer is given up, with a message."""
        path = self.recording("--unit", "ete").write(self.folder / "edited.data")
        hidden = self.folder / "elsewhere"
        self.program.rename(hidden)
        try:
            with socket.create_server(("127.0.0.1", 0)) as server, unittest.mock.patch.dict(os.environ):
                os.environ.update({"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.getsockname()[1]}",
                                   "DEBUGINFOD_CACHE_PATH": str(self.folder / "debuginfod-silent"), "DEBUGINFOD_TIMEOUT": "1"})
                done = run(WAYMARK, "profile", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn("debuginfod servers sent nothing for 1 s", " ".join((done.stdout + done.stderr).split()))
        finally:
            hidden.rename(self.program)

    def test_missing_image(self):
        """All commands state its name, its build ID, the consequences and where to put it; a file put there is
        found."""
        path = self.recording("--unit", "ete").write(self.folder / "edited.data")
        hidden = self.folder / "elsewhere"
        self.program.rename(hidden)
        try:
            said = {}
            out = ("-o", self.folder / "out")
            answers = self.folder / "missing.answers"
            for command in (("info",), ("doctor",), ("flow",), ("profile",), ("coverage",), ("branches",), ("loops",),
                            ("exceptions",), ("export", "--to", "lcov", *out),
                            ("answers", "-o", answers), ("pgo", "--for", "bolt", *out)):
                done = run(WAYMARK, command[0], path, *command[1:])
                text = " ".join((done.stdout + done.stderr).split())
                for part in (f"the code of {self.program} (build ID ", "execution went there ", "which cost ",
                             "of branches have no address", f"DIR{self.program} (--symfs DIR,"):
                    self.assertIn(part, text, command)
                said[command] = text
            root = self.folder / "root"
            there = root / self.program.relative_to("/")
            there.parent.mkdir(parents=True)
            shutil.copy(hidden, there)
            done = run(WAYMARK, "info", path, "--symfs", root)
            self.assertNotIn("could not be placed", done.stdout)
        finally:
            hidden.rename(self.program)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
