#!/usr/bin/env python3
"""Every export of a recorded capture, through the command line.

    capture_test.py WAYMARK SOURCE_DIR

Exported figures agree with the counts of `waymark flow`; a Perfetto trace is bounded by the size of the trace; outputs are
written completely or not at all, and never overwrite the capture; queries work.
"""
import gzip
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SORT = SOURCE / "examples/sort"


def run(*arguments, **more):
    return subprocess.run([str(a) for a in arguments], capture_output=True, timeout=HANGS, **more)


def hashes(folder):
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in folder.iterdir()}


class Exports(unittest.TestCase):
    def setUp(self):
        temporary = Folder()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.capture = self.folder / "capture"
        shutil.copytree(SORT / "capture", self.capture)
        self.before = hashes(self.capture)

    def export(self, to, *more, status=0, output="out"):
        done = run(WAYMARK, "export", self.capture, "--image", SORT / "sort.elf", "--to", to, "-o",
                   self.folder / output, *more)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        self.assertEqual(hashes(self.capture), self.before)
        self.assertFalse(list(self.folder.glob("*.part")))
        return self.folder / output, done.stderr.decode()

    def query(self, file, sql):
        done = run(WAYMARK, "query", file, sql, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def instructions(self):
        done = run(WAYMARK, "flow", self.capture, "--image", SORT / "sort.elf", "--format", "summary")
        return int(re.search(r"instructions +([\d,]+)", done.stdout.decode()).group(1).replace(",", ""))

    def test_costs_add_up(self):
        whole = self.instructions()
        folded, _ = self.export("folded")
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded.read_text().splitlines()), whole)
        callgrind, _ = self.export("callgrind")
        self.assertEqual(callgrind.read_text().splitlines()[-1].split()[1], str(whole))
        database, _ = self.export("sqlite")
        self.assertEqual(self.query(database, "select sum(self) as n from functions"), [{"n": whole}])
        self.assertEqual(self.query(database, "select sum(self) as n from calls"), [{"n": whole}])
        self.assertEqual(self.query(database, "select sum(times) as n from instructions"), [{"n": whole}])
        speedscope, _ = self.export("speedscope")
        costs = [p for p in json.loads(speedscope.read_text())["profiles"] if p["name"].endswith("by call path")]
        self.assertEqual([p["events"][-1]["at"] for p in costs], [whole])
        firefox, _ = self.export("firefox")
        thread = json.loads(firefox.read_text())["threads"][-1]
        self.assertEqual(sum(thread["samples"]["weight"]), whole)
        pprof, _ = self.export("pprof")
        self.assertGreater(len(gzip.decompress(pprof.read_bytes())), 100)

    def test_blocks_and_branches_agree(self):
        bolt, _ = self.export("bolt")
        lines = [line.split() for line in bolt.read_text().splitlines()]
        database, _ = self.export("sqlite", output="answers.sqlite")
        taken = self.query(database, "select sum(taken) as n from branches where kind = 'conditional'")[0]["n"]
        edges = self.query(database, "select sum(times) as n from edges where kind = 'conditional'")[0]["n"]
        self.assertEqual(taken, edges)
        self.assertEqual(sum(int(line[3]) for line in lines if line[0] == "B"),
                         self.query(database, "select sum(times) as n from edges")[0]["n"])

    def test_a_trace_for_perfetto_stays_in_proportion(self):
        done = run(WAYMARK, "export", self.capture, "--image", SORT / "sort.elf", "--to", "perfetto", "-o",
                   self.folder / "out.pftrace")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        trace = (self.capture / "trace.bin").stat().st_size
        self.assertLessEqual((self.folder / "out.pftrace").stat().st_size, 3 * trace)
        limit = 2 * trace
        self.export("perfetto", "--max-size", limit, output="smaller.pftrace")
        self.assertLessEqual((self.folder / "smaller.pftrace").stat().st_size, limit)

    def test_what_exports_say_of_lines_needs_lines(self):
        # The program of this capture has no debug information.
        for to in ("lcov", "cobertura", "autofdo"):
            file, why = self.export(to, status=1)
            self.assertFalse(file.exists())
            self.assertIn("debug information", why)

    def test_tables(self):
        folder, why = self.export("csv", output="tables")
        self.assertIn("have no file", why)
        self.assertTrue((folder / "edges.csv").read_text().startswith("from_address,"))
        rows, _ = self.export("jsonl", "--table", "functions", output="functions.jsonl")
        names = [json.loads(line)["name"] for line in rows.read_text().splitlines()]
        database, _ = self.export("sqlite")
        self.assertEqual([row["name"] for row in self.query(database, "select name from functions")], names)
        self.assertEqual(self.query(database, "select trace_bytes as n from capture")[0]["n"],
                         (self.capture / "trace.bin").stat().st_size)

    def test_outputs_spare_the_capture_and_what_was_there(self):
        for file in ("trace.bin", "snapshot.ini"):
            for to in ("folded", "sqlite"):
                done = run(WAYMARK, "export", self.capture, "--image", SORT / "sort.elf", "--to", to, "-o",
                           self.capture / file)
                self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(hashes(self.capture), self.before)
        (self.folder / "out").write_text("from yesterday")
        self.export("lcov", status=1)
        self.assertEqual((self.folder / "out").read_text(), "from yesterday")
        done = run(WAYMARK, "export", self.capture, "--to", "folded", "-o", self.folder / "no" / "where")
        self.assertEqual(done.returncode, 3)

    def limited(self, most_bytes, *arguments, killed=False):
        """Runs with a limit on the size of files, as on a full disk; or is killed where a file would exceed it."""
        def prepare():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        done = run(WAYMARK, *arguments, "--image", SORT / "sort.elf", preexec_fn=prepare, restore_signals=False)
        if killed:
            self.assertEqual(done.returncode, -signal.SIGXFSZ, done.stderr)
        else:
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn(b"File too large", done.stderr)
            self.assertNotIn(b".part", done.stderr)
        return done.stderr.decode()

    def test_a_folder_of_tables_is_there_whole_or_not_at_all(self):
        tables, to = self.folder / "tables", ("export", self.capture, "--to", "csv", "-o", self.folder / "tables")
        # Some tables are shorter than this, and some longer.
        self.assertIn(str(tables), self.limited(2000, *to))
        self.assertFalse(list(self.folder.glob("tables*")))
        self.limited(2000, *to, killed=True)
        self.assertFalse(tables.exists())
        # Remains of a killed export do not look like tables.
        for left in self.folder.glob("tables.*.part"):
            shutil.rmtree(left)

        folder, _ = self.export("csv", output="tables")
        manifest = json.loads((folder / "manifest-csv.json").read_text())
        self.assertEqual(manifest["format"], "csv")
        listed = {t["file"]: t for t in manifest["tables"]}
        self.assertEqual(set(listed), {f.name for f in folder.glob("*.csv")})
        for name, table in listed.items():
            self.assertEqual(table["bytes"], (folder / name).stat().st_size)
        before = hashes(folder)
        self.limited(2000, *to)
        self.assertEqual(hashes(folder), before)
        # Files of an earlier export are replaced, other files stay.
        (folder / "exceptions.csv").write_text("of yesterday\n")
        self.export("csv", output="tables")
        self.assertEqual(hashes(folder), before)
        (folder / "exceptions.csv").write_text("of yesterday\n")
        (folder / "notes.txt").write_text("mine\n")
        self.export("csv", output="tables")
        self.assertEqual((folder / "notes.txt").read_text(), "mine\n")
        (folder / "notes.txt").unlink()
        self.assertEqual(hashes(folder), before)

    def test_a_file_is_there_whole_or_not_at_all(self):
        out = self.folder / "out.txt"
        for command in (["flow", self.capture], ["profile", self.capture],
                        ["export", self.capture, "--to", "callgrind"]):
            self.assertIn(str(out), self.limited(100, *command, "-o", out))
            self.assertFalse(out.exists(), command)
            self.limited(100, *command, "-o", out, killed=True)
            self.assertFalse(out.exists(), command)
            out.write_text("from yesterday")
            self.limited(100, *command, "-o", out)
            self.assertEqual(out.read_text(), "from yesterday", command)
            out.unlink()
        for command in (["flow", self.capture], ["export", self.capture, "--to", "callgrind"]):
            done = run(WAYMARK, *command, "--image", SORT / "sort.elf", "-o", "/dev/full")
            self.assertEqual(done.returncode, 3)
            self.assertIn(b"cannot write /dev/full: No space left on device", done.stderr)

    def test_a_full_disk_is_called_one(self):
        snapshot = self.folder / "snapshot"
        why = self.limited(0, "doctor", self.capture / "trace.bin", "--write-snapshot", snapshot)
        self.assertIn(str(snapshot), why)
        self.assertNotIn("may be", why)
        self.assertFalse(list(self.folder.glob("snapshot*")))

    def test_the_same_capture_gives_the_same_bytes(self):
        for to in ("folded", "pprof", "callgrind", "bolt", "sqlite", "speedscope", "firefox"):
            first, _ = self.export(to, "--jobs", 1, output="first")
            content = first.read_bytes()
            first.unlink()
            second, _ = self.export(to, "--jobs", 3, output="first")
            self.assertEqual(second.read_bytes(), content, to)

    def test_queries_only_read(self):
        database, _ = self.export("sqlite")
        before = database.read_bytes()
        for sql, what in (("drop table edges", b"only reading"), ("attach 'x.db' as x", b"only reading"),
                          ("pragma journal_mode = wal", b"only reading"), ("select 1; select 2", b"one statement"),
                          ("select no_such from edges", b"from_address"), ("select * from nowhere", b"hot_functions"),
                          ("selekt", b"syntax error")):
            done = run(WAYMARK, "query", database, sql)
            self.assertEqual(done.returncode, 2, sql)
            self.assertIn(what, done.stderr, sql)
        self.assertEqual(database.read_bytes(), before)
        overview = run(WAYMARK, "query", database)
        self.assertIn(b"hot_functions", overview.stdout)
        for question in re.findall(rb"^    (SELECT .*)$", overview.stdout, re.M):
            done = run(WAYMARK, "query", database, question.decode())
            self.assertEqual(done.returncode, 0, done.stderr)
        for file, status in ((self.folder / "nowhere", 3), (self.capture / "trace.bin", 3)):
            self.assertEqual(run(WAYMARK, "query", file).returncode, status)

    def test_every_format_is_listed_and_explained(self):
        listed = run(WAYMARK, "export", "--list")
        self.assertEqual(listed.returncode, 0)
        names = re.findall(r"^  (\w+) ", listed.stdout.decode(), re.M)
        self.assertEqual(len(names), 13)
        text = run(WAYMARK, "export", "--help").stdout.decode()
        self.assertTrue(all(re.search(rf"^  {name} ", text, re.M) for name in names))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
