#!/usr/bin/env python3
"""All commands say the same of how much of the run a capture is (docs/account.md).

usage: account_test.py WAYMARK SOURCE_FOLDER

The captures are those in examples/ and tests/cli/fixtures, recordings of each unit that miss a part of the run on purpose,
branch stacks and, where the folder is there, captures of real hardware, bare files too. Of each capture one sentence is expected from
`info`, `flow --format summary`, the views in text, JSON and tsv, `diff`, `doctor`, answers files (whole, and of ranges
alone), `pgo`, the exports, the report's page, a fleet of this one capture, the C interface, and, if it is a recording, `verify`. A command
that gives results without the sentence fails.

Four commands are run for each capture, each other command for the first three captures that it takes and for one in four behind them.
WAYMARK_ACCOUNT=all runs all commands for all captures (long.account_of_captures).
"""
import base64
import collections
import csv
import ctypes
import gzip
import io
import itertools
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from cli_test import use  # noqa: E402
from scratch import HANGS, Folder  # noqa: E402

WAYMARK = SOURCE = LIBRARY = None
COMMANDS = {"answers file", "answers file, ranges", "branches", "callgrind", "cobertura", "coverage", "coverage, json", "coverage, tsv", "csv", "diff", "doctor",
            "dpu tasks", "dpu tasks, json", "dpu tasks, tsv", "dpu loops", "bolt", "exceptions", "firefox", "fleet status", "flow", "folded", "info", "info, json", "jsonl",
            "lcov", "library", "loops", "page", "perfetto", "pgo", "pprof", "profile", "profile, json", "profile, tsv", "spe quality", "spe report, tsv", "speedscope",
            "sqlite", "verify"}
ALWAYS = {"flow", "profile, json", "coverage, json", "doctor"}
EVERYTHING = os.environ.get("WAYMARK_ACCOUNT") == "all"
# What is made of an answers file.
OF_ANSWERS = {"answers file", "bolt", "callgrind", "cobertura", "csv", "diff", "firefox", "fleet status", "folded", "jsonl", "lcov", "page",
              "perfetto", "pgo", "pprof", "speedscope", "sqlite", "answers file, ranges"}
# Recordings without a part of the run: its beginning, its end, the part that a filter excludes, stretches, the oldest
# trace.
PARTS = {"ptm": ("--unit", "ptm"), "etmv3": ("--unit", "etmv3", "--from-start"), "etmv4-whole": ("--unit", "etmv4", "--from-start"),
         "ete-function": ("--view-range", "work"), "ete-limit": ("--limit", "2000"), "ete-strobed": ("--as", "perf", "--strobe", "500/20"),
         "perf": ("--as", "perf"), "ete-wrapped": ("--from-start", "--buffer", "1024"),
         "spe": ("--unit", "spe"), "dpu-tasks": ("--unit", "dpu", "--mode", "task"),
         "dpu-loops": ("--unit", "dpu", "--mode", "compressed"), "dpu-lost": ("--unit", "dpu", "--mode", "flow", "--bus-cycles", "400")}
PROGRAM = """
#include <stdio.h>
__attribute__((noinline)) int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += i ^ n; return s; }
int main(void) { int s = 0; for (int i = 0; i < 300; i++) s += work(i); printf("%d\\n", s); return 0; }
"""


def run(*arguments):
    return subprocess.run([WAYMARK, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=HANGS,
                          stdin=subprocess.DEVNULL)


def of_text(text):
    """The sentence in a head or a summary, with one clause in each line."""
    clauses = re.search(r"^ *run +(\S.*(?:\n +(?:observed|not traced|lost|not decoded|uncertain)\b.*)*)", text, re.M)
    return "; ".join(line.strip() for line in clauses[1].splitlines()) if clauses else ""


def of_note(errors, sentence):
    """Commands whose results have no place for the sentence print it only for captures that show a part of the run."""
    note = re.search(r"note: of the run: (.*)", errors)
    return note[1] if note else sentence if re.fullmatch("observed [^;]*", sentence) else ""


def of_json(text):
    try:
        return json.loads(text).get("run", "")
    except json.JSONDecodeError:
        return ""


def of_page(page):
    packed = re.search(r'id="waymark-head">([^<]*)<', page)
    return json.loads(zlib.decompress(base64.b64decode(packed[1]), -15))["run"] if packed else ""


def of_database(path):
    database = sqlite3.connect(path)
    try:
        return database.execute("select run from capture").fetchone()[0] or ""
    finally:
        database.close()


def of_packed(path):
    """pprof."""
    found = re.search(rb"run: (observed [^\0-\x1f]*|[a-z][^\0-\x1f]*)", gzip.decompress(path.read_bytes()))
    return found[1].decode() if found else ""


class Library:
    """The C interface, where the shared library is beside the program."""
    def __init__(self):
        self.c = None
        if (path := WAYMARK.parent.parent / "lib/libwaymark.so").exists():
            self.c = ctypes.CDLL(path)
            self.c.wm_table_texts.restype = ctypes.POINTER(ctypes.c_char_p)
            self.c.wm_table_texts.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
            self.c.wm_options_new.restype = ctypes.c_void_p

    def sentence(self, capture, given):
        """None where the library gives no result."""
        handles = [ctypes.c_void_p() for _ in range(4)]
        opened, answers, table, error = handles
        options = ctypes.c_void_p(self.c.wm_options_new())
        for name, value in zip(given[::2], given[1::2]):
            self.c.wm_options_set(options, name.removeprefix("--").encode(), str(value).encode(), ctypes.byref(error))
        try:
            if self.c.wm_open(str(capture).encode(), options, ctypes.byref(opened), ctypes.byref(error)) != 0:
                return None
            if self.c.wm_answers_of(opened, 5, 1, None, None, ctypes.byref(answers), ctypes.byref(error)) != 0:
                return None
            self.c.wm_answers_table(answers, b"capture", ctypes.byref(table), ctypes.byref(error))
            return self.c.wm_table_texts(table, self.c.wm_table_find_column(table, b"run"))[0].decode()
        finally:
            for free, handle in (("wm_table_free", table), ("wm_answers_free", answers), ("wm_close", opened),
                                 ("wm_options_free", options), ("wm_error_free", error)):
                if handle:
                    getattr(self.c, free)(handle)


def recordings(folder):
    """Made here, except for captures whose compiler is missing."""
    (folder / "p.c").write_text(PROGRAM)
    for name, options in PARTS.items():
        arm = name.startswith(("ptm", "etmv3", "dpu"))
        compiler = shutil.which(("arm-linux-gnueabihf" if arm else "aarch64-linux-gnu") + "-gcc")
        program = folder / ("arm" if arm else "aarch64")
        if compiler is None:
            continue
        if not program.exists():
            subprocess.run([compiler, "-O1", "-g", "-static", "-Wl,--build-id", "-o", program, folder / "p.c"], check=True)
        out = folder / (name + (".data" if "perf" in options or name == "spe" else ""))
        done = run("record", "-q", *options, "-o", out, "--", program)
        assert done.returncode == 0, f"{name}: {done.stderr}"
        yield out / "dpu.ini" if name.startswith("dpu") else out
        if name == "etmv4-whole":
            yield without_half_of_its_code(out)


def without_half_of_its_code(recording):
    """A copy: the program's file has what its memory dumps lack."""
    out = recording.with_name(recording.name + "-lacking")
    shutil.copytree(recording, out)
    description = out / "core_0.ini"
    head, *dumps = re.split(r"(?=\[dump\d+\])", description.read_text())
    assert len(dumps) > 1
    description.write_text(head + "".join(dumps[:len(dumps) // 2]))
    return out


def branch_stacks(folder):
    """Text of `perf script`: five samples in a loop. Nothing where there is no compiler for x86-64."""
    program, text = folder / "x86", folder / "stacks.txt"
    if shutil.which("gcc") is None or os.uname().machine != "x86_64":
        return
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-g", "-no-pie", "-Wl,--build-id", "-o", program, folder / "p.c"], check=True)
    listed = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=work", program], check=True, capture_output=True,
                            text=True).stdout
    back = next((int(at, 16), int(to, 16)) for at, to in re.findall(r"^ *(\w+):\s+j[a-z]+ +(\w+) <work\+", listed, re.M)
                if int(to, 16) < int(at, 16))
    segments = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True, text=True).stdout
    offset, address, size = (int(word, 16) for word in re.search(
        r"LOAD +(0x\w+) (0x\w+) 0x\w+ (0x\w+) 0x\w+ R E", segments).groups())
    entry = f"{back[0]:#x}/{back[1]:#x}/P/-/-/0"
    text.write_text(f"x86 100/100 [000] 1.000000: PERF_RECORD_MMAP2 100/100: [{address:#x}({size:#x}) @ {offset:#x} fe:00 1 0]: "
                    f"r-xp {program}\n" + "".join(f"x86 100/100 [000] 1.00000{n}: {back[1]:x} {' '.join([entry] * 4)}\n"
                                                  for n in range(1, 6)))
    yield text


def captures(fixtures):
    """Folders and files that commands take."""
    corpus = pathlib.Path(os.environ.get("WAYMARK_CORPUS", SOURCE / ".." / "shared" / "corpus"))
    for root in (SOURCE / "examples", fixtures, corpus):
        for ini in sorted(root.glob("**/snapshot.ini")):
            if "build" not in ini.relative_to(root).parts:
                yield ini.parent
        yield from sorted(root.glob("**/dpu.ini"))
        yield from sorted(root.glob("**/*.data"))
    yield from sorted(corpus.glob("spe/*.bin"))
    yield from sorted(corpus.glob("mtb/**/*.bin"))


def images(capture):
    """The options that a capture needs besides its name. The captures of the examples contain only the pages that ran,
    so they get the program."""
    if (registers := capture.with_suffix(".regs")).exists():
        described = ["--protocol", "mtb", "--buffer-format", "source_data", "--core", "Cortex-M0+", "--image", capture.parent / "program.elf"]
        return described + [word for line in registers.read_text().split() for word in ("--register", line)]
    return [word for elf in sorted(capture.parent.glob("*.elf"))[:1] for word in ("--image", elf)]


class Account(unittest.TestCase):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.captures, self.trials, self.compared = 0, 0, collections.Counter()

    def wanted(self, name):
        return (EVERYTHING or name in ALWAYS or self.compared[name] < 3 or
                (self.captures + zlib.crc32(name.encode())) % 4 == 0)

    def take_note(self, out, name, *command):
        """A note is compared with what another command says."""
        done = run(*command) if self.wanted(name) else None
        if done and done.returncode == 0 and done.stdout:
            out[name] = of_note(done.stderr, next(iter(out.values()), ""))

    def sentences(self, capture, folder):
        """Results, by command that gave one."""
        out = {}
        dpu = capture.name == "dpu.ini"
        capture = capture.parent if dpu else capture
        given = [] if dpu else images(capture)

        def take(name, read, *command):
            if not self.wanted(name):
                return
            done = run(*command)
            # For a bare file, `info` decodes nothing: it names what its bytes seem to be, and states nothing about a
            # run.
            if done.returncode == 0 and "inferred from its bytes" not in done.stdout and '"kind": "bare bytes"' not in done.stdout:
                out[name] = read(done.stdout)

        if dpu:
            take("dpu tasks", of_text, "dpu", "tasks", capture)
            take("dpu tasks, json", of_json, "dpu", "tasks", capture, "--format", "json")
            for view in ("functions", "paths", "interrupts", "ranges", "loops", "data", "ratios", "timeline"):
                take(f"dpu {view}", of_text, "dpu", view, capture)
        else:
            take("coverage, json", of_json, "coverage", capture, *given, "--format", "json")
            take("coverage", of_text, "coverage", capture, *given)
            for view in ("branches", "loops", "exceptions"):
                take(view, of_text, view, capture, *given)
        take("spe quality", of_text, "spe", "quality", capture)
        take("flow", of_text, "flow", capture, *given, "--format", "summary")
        take("info", of_text, "info", capture, *given, "--sample", "0")
        take("info, json", of_json, "info", capture, *given, "--sample", "0", "--format", "json")
        take("profile, json", of_json, "profile", capture, *given, "--format", "json")
        take("profile", of_text, "profile", capture, *given)
        for view in ("dpu tasks", "spe report"):
            self.take_note(out, f"{view}, tsv", *view.split(), capture, "--format", "tsv")
        for view in ("profile", "coverage"):
            self.take_note(out, f"{view}, tsv", view, capture, *given, "--format", "tsv")
        answers = folder / "all.answers"
        answers.unlink(missing_ok=True)
        if any(map(self.wanted, OF_ANSWERS)):
            run("answers", capture, *given, "-o", answers)
        if answers.exists():
            take("answers file", of_text, "profile", answers)
            # Of both sides.
            take("diff", lambda text: of_text(text) if text.count("run ") >= 2 else "", "diff", answers, answers)
            take("lcov", lambda text: re.search(r"^# run: (.*)", text, re.M)[1], "export", answers, "--to", "lcov")
            take("cobertura", lambda text: re.search(r"<!-- run: (.*) -->", text)[1], "export", answers, "--to", "cobertura")
            take("jsonl", lambda text: json.loads(text)["run"], "export", answers, "--to", "jsonl", "--table", "capture")
            packed = folder / "all.pb.gz"
            take("pprof", lambda _: of_packed(packed), "export", answers, "--to", "pprof", "-o", packed)
            for name in ("bolt", "folded", "perfetto", "speedscope"):  # without a place for the sentence
                exported = folder / name
                done = run("export", answers, "--to", name, "-o", exported) if self.wanted(name) else None
                if done and done.returncode == 0 and exported.stat().st_size != 0:
                    out[name] = of_note(done.stderr, next(iter(out.values()), ""))
            take("callgrind", lambda text: re.search(r"^desc: Run: (.*)", text, re.M)[1],
                 "export", answers, "--to", "callgrind")
            take("csv", lambda text: next(csv.DictReader(io.StringIO(text)))["run"],
                 "export", answers, "--to", "csv", "--table", "capture")
            take("firefox", lambda text: json.loads(text)["meta"]["extra"][0]["entries"][0]["value"],
                 "export", answers, "--to", "firefox")
            database = folder / "all.sqlite"
            take("sqlite", lambda _: of_database(database), "export", answers, "--to", "sqlite", "-o", database)
            page = folder / "page.html"
            for name, command in (("answers file, ranges", ("answers", capture, *given, "--only-ranges", "-o",
                                                            folder / "ranges.answers")),
                                  ("pgo", ("pgo", capture, *given, "--for", "branch-list", "-o", folder / "list.bl"))):
                done = run(*command) if self.wanted(name) else None
                if done and done.returncode == 0:
                    out[name] = of_note(done.stderr, next(iter(out.values()), ""))
            take("page", lambda _: of_page(page.read_text()), "report", answers, "-o", page)
            job = folder / "job"
            shutil.rmtree(job, ignore_errors=True)
            if self.wanted("fleet status") and run("fleet", "plan", capture, *given, "-o", job).returncode == 0:
                run("fleet", "local", job)
                take("fleet status", of_text, "fleet", "status", job)
        if LIBRARY.c and self.wanted("library") and (sentence := LIBRARY.sentence(capture, given)) is not None:
            out["library"] = sentence
        # If doctor looked at a part of the trace only, it says so and gives no sentence.
        diagnosis = run("doctor", capture, *given, "--format", "json").stdout
        if doctor := of_json(diagnosis):
            out["doctor"] = doctor
            self.check_diagnosis(json.loads(diagnosis), capture, given)
        if (capture / "truth.txt").exists() or capture.with_name(capture.name + ".truth.txt").exists():
            take("verify", of_text, "verify", capture)
        return out

    def check_diagnosis(self, diagnosis, capture, given):
        """`doctor` finds nothing wrong only where `flow --strict` has nothing to say, and tries images with the
        configuration that `flow` decodes with, or else the difference is a finding."""
        flow = run("flow", capture, *given, "--format", "summary", "--strict")
        if not flow.stdout or "nothing decoded" in flow.stderr:  # nor with an image of another machine
            return
        if diagnosis["verdict"].startswith("Nothing is wrong"):
            self.assertEqual(flow.returncode, 0, flow.stderr)
            self.assertNotRegex(flow.stderr, "waymark: (warning|error)")
        if any(finding["severity"] == "error" for finding in diagnosis["findings"]):
            return
        decoded = collections.Counter()
        for name, ranges in re.findall(r"^source (?:0x\w+ )?(\S+) (?:.+\n)+?  ranges +([0-9,]+)$", flow.stdout, re.M):
            decoded[name] += int(ranges.replace(",", ""))
        for image in diagnosis["images"]:
            if image["image"] == "the capture's memory" and not image["trial"]["ended_early"]:
                self.assertEqual(image["trial"]["ranges"], decoded[image["source"]], image["source"])
                self.trials += 1

    def test_all_commands_say_the_same(self):
        with Folder() as folder:
            fixtures = pathlib.Path(folder) / "fixtures"
            for fixture in sorted((SOURCE / "tests/cli/fixtures").iterdir()):
                use(fixture.parent, fixtures, fixture.name, fixture.name)
            recorded = pathlib.Path(folder) / "recorded"
            recorded.mkdir()
            for capture in itertools.chain(captures(fixtures), recordings(recorded), branch_stacks(recorded)):
                with self.subTest(capture=str(capture)):
                    said = self.sentences(capture, pathlib.Path(folder))
                    by_sentence = {}
                    for command, sentence in said.items():
                        by_sentence.setdefault(sentence, []).append(command)
                    self.assertLessEqual(len(by_sentence), 1, json.dumps(by_sentence, indent=1))
                    self.captures += 1
                    self.compared.update(list(said) if len(said) > 1 else [])
        print(", ".join(f"{command} of {n}" for command, n in sorted(self.compared.items())), f"of {self.captures} captures")
        self.assertGreater(self.compared["profile, json"], 4)
        self.assertGreater(self.trials, 4)
        self.assertEqual(COMMANDS - self.compared.keys() - (set() if LIBRARY.c else {"library"}), set())


if __name__ == "__main__":
    WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    LIBRARY = Library()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
