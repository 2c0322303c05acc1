#!/usr/bin/env python3
"""All commands say the same of how much of the run a capture is (docs/account.md).

usage: account_test.py WAYMARK SOURCE_FOLDER

The captures are those in examples/ and tests/cli/fixtures and, where the folder is there, captures of real hardware. Of
each capture one sentence is expected from `info`, `flow --format summary`, the views in text and JSON, `doctor`, answers
files (whole, and of ranges alone), `pgo`, an export, the report's page, a fleet of this one capture, and, if it is a
recording, `verify`. A command that gives results without the sentence fails.
"""
import base64
import collections
import csv
import io
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

WAYMARK = SOURCE = None
COMMANDS = {"answers file", "answers file, ranges", "callgrind", "coverage, json", "csv", "doctor", "dpu tasks", "dpu tasks, json", "firefox", "fleet status", "flow",
            "info", "info, json", "page", "pgo", "profile", "profile, json", "spe quality", "sqlite"}


def run(*arguments):
    return subprocess.run([WAYMARK, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=HANGS,
                          stdin=subprocess.DEVNULL)


def of_text(text):
    """The sentence of a head or a summary: a clause a line."""
    clauses = re.search(r"^ *run +(\S.*(?:\n +(?:observed|not traced|lost|not decoded|uncertain)\b.*)*)", text, re.M)
    return "; ".join(line.strip() for line in clauses[1].splitlines()) if clauses else ""


def of_note(errors, sentence):
    """Commands whose results have no place for the sentence say it only of captures that are a part of a run."""
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


def captures(fixtures):
    """Folders and files that commands take, with what they need besides."""
    corpus = pathlib.Path(os.environ.get("WAYMARK_CORPUS", SOURCE / ".." / "shared" / "corpus"))
    for root in (SOURCE / "examples", fixtures, corpus):
        for ini in sorted(root.glob("**/snapshot.ini")):
            if "build" not in ini.relative_to(root).parts:
                yield ini.parent
        yield from sorted(root.glob("**/dpu.ini"))
        yield from sorted(root.glob("**/*.data"))


def images(capture):
    """The example's program: its captures contain the pages that ran."""
    return [word for elf in sorted(capture.parent.glob("*.elf"))[:1] for word in ("--image", elf)]


class Account(unittest.TestCase):
    def sentences(self, capture, folder):
        """By command that gave a result."""
        out = {}
        dpu = capture.name == "dpu.ini"
        capture = capture.parent if dpu else capture
        given = [] if dpu else images(capture)

        def take(name, read, *command):
            done = run(*command)
            if done.returncode == 0:
                out[name] = read(done.stdout)

        if dpu:
            take("dpu tasks", of_text, "dpu", "tasks", capture)
            take("dpu tasks, json", of_json, "dpu", "tasks", capture, "--format", "json")
        else:
            take("coverage, json", of_json, "coverage", capture, *given, "--format", "json")
        take("spe quality", of_text, "spe", "quality", capture)
        take("flow", of_text, "flow", capture, *given, "--format", "summary")
        take("info", of_text, "info", capture, *given, "--sample", "0")
        take("info, json", of_json, "info", capture, *given, "--sample", "0", "--format", "json")
        take("profile, json", of_json, "profile", capture, *given, "--format", "json")
        take("profile", of_text, "profile", capture, *given)
        answers = folder / "all.answers"
        answers.unlink(missing_ok=True)
        run("answers", capture, *given, "-o", answers)
        if answers.exists():
            take("answers file", of_text, "profile", answers)
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
                done = run(*command)
                if done.returncode == 0:
                    out[name] = of_note(done.stderr, next(iter(out.values()), ""))
            take("page", lambda _: of_page(page.read_text()), "report", answers, "-o", page)
            job = folder / "job"
            shutil.rmtree(job, ignore_errors=True)
            if run("fleet", "plan", capture, *given, "-o", job).returncode == 0:
                run("fleet", "local", job)
                take("fleet status", of_text, "fleet", "status", job)
        # A doctor who looked at a part of the trace says so and gives no sentence.
        if doctor := of_json(run("doctor", capture, *given, "--format", "json").stdout):
            out["doctor"] = doctor
        if (capture / "truth.txt").exists():
            take("verify", of_text, "verify", capture)
        return out

    def test_all_commands_say_the_same(self):
        compared = collections.Counter()
        with Folder() as folder:
            fixtures = pathlib.Path(folder) / "fixtures"
            for fixture in sorted((SOURCE / "tests/cli/fixtures").iterdir()):
                use(fixture.parent, fixtures, fixture.name, fixture.name)
            for capture in captures(fixtures):
                with self.subTest(capture=str(capture)):
                    said = self.sentences(capture, pathlib.Path(folder))
                    by_sentence = {}
                    for command, sentence in said.items():
                        by_sentence.setdefault(sentence, []).append(command)
                    self.assertLessEqual(len(by_sentence), 1, json.dumps(by_sentence, indent=1))
                    compared.update(list(said) if len(said) > 1 else [])
        print(", ".join(f"{command} of {n}" for command, n in sorted(compared.items())), "captures")
        self.assertGreater(compared["profile"], 4)
        self.assertLessEqual(COMMANDS, compared.keys())


if __name__ == "__main__":
    WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
