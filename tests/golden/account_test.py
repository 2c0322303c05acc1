#!/usr/bin/env python3
"""All commands say the same of how much of the run a capture is (docs/account.md).

usage: account_test.py WAYMARK SOURCE_FOLDER

The captures are those in examples/ and, where the folder is there, captures of real hardware. Of each capture one sentence
is expected from `flow --format summary` or `dpu tasks`, the views in text and JSON, `doctor`, an answers file, a callgrind
export, and, if it is a recording, `verify`.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS, Folder  # noqa: E402

WAYMARK = SOURCE = None


def run(*arguments):
    return subprocess.run([WAYMARK, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=HANGS,
                          stdin=subprocess.DEVNULL)


def of_text(text):
    """The sentence of a head or a summary: a clause a line."""
    clauses = re.search(r"^run +(\S.*(?:\n +(?:observed|not traced|lost|not decoded|uncertain)\b.*)*)", text, re.M)
    return "; ".join(line.strip() for line in clauses[1].splitlines()) if clauses else ""


def of_json(text):
    try:
        return json.loads(text).get("run", "")
    except json.JSONDecodeError:
        return ""


def captures():
    """Folders and files that commands take, with what they need besides."""
    corpus = pathlib.Path(os.environ.get("WAYMARK_CORPUS", SOURCE / ".." / "shared" / "corpus"))
    for root in (SOURCE / "examples", corpus):
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
        """By command, where it gives one."""
        out = {}
        dpu = capture.name == "dpu.ini"
        capture = capture.parent if dpu else capture
        given = [] if dpu else images(capture)
        if dpu:
            out["dpu tasks"] = of_text(run("dpu", "tasks", capture).stdout)
            out["dpu tasks, json"] = of_json(run("dpu", "tasks", capture, "--format", "json").stdout)
        else:
            out["flow"] = of_text(run("flow", capture, *given, "--format", "summary").stdout)
        out["profile, json"] = of_json(run("profile", capture, *given, "--format", "json").stdout)
        out["profile"] = of_text(run("profile", capture, *given).stdout)
        if not dpu:
            out["coverage, json"] = of_json(run("coverage", capture, *given, "--format", "json").stdout)
        answers = folder / "all.answers"
        answers.unlink(missing_ok=True)
        run("answers", capture, *given, "-o", answers)
        if answers.exists():
            out["answers file"] = of_text(run("profile", answers).stdout)
            exported = run("export", answers, "--to", "callgrind").stdout
            desc = re.search(r"^desc: Run: (.*)", exported, re.M)
            out["callgrind"] = desc[1] if desc else ""
        out["doctor"] = of_json(run("doctor", capture, *given, "--format", "json").stdout)
        if (capture / "truth.txt").exists():
            out["verify"] = of_text(run("verify", capture).stdout)
        return {name: sentence for name, sentence in out.items() if sentence}

    def test_all_commands_say_the_same(self):
        compared = 0
        with Folder() as folder:
            for capture in captures():
                with self.subTest(capture=str(capture)):
                    said = self.sentences(capture, pathlib.Path(folder))
                    by_sentence = {}
                    for command, sentence in said.items():
                        by_sentence.setdefault(sentence, []).append(command)
                    self.assertLessEqual(len(by_sentence), 1, json.dumps(by_sentence, indent=1))
                    compared += len(said) > 1
        self.assertGreater(compared, 10)
        print(f"{compared} captures compared")


if __name__ == "__main__":
    WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
