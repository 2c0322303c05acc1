#!/usr/bin/env python3
"""Mutants of perf.data and answers files in every command that reads them: each run ends by itself, in bounded time and memory,
says what is wrong, and leaves nothing behind.

usage: campaign_test.py WAYMARK SOURCE_FOLDER [--mutants N] [--seed N]

Mutant N of a file is the same everywhere and always. A failure names its number: --seed N --mutants 1 makes it again, and
--keep FILE writes it there.
"""
import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS, Folder  # noqa: E402

import mutants  # noqa: E402

# Processor time and memory of one run.
SECONDS, MEMORY = 10, 1 << 30
PERF = (["info"], ["flow", "--format", "summary"], ["profile"], ["doctor"], ["coverage"], ["packets", "--format", "tsv"],
        ["answers", "-o", "made"], ["pgo", "--for", "bolt", "-o", "made"], ["export", "--to", "folded", "-o", "made"],
        ["report", "-o", "made"], ["branches"], ["loops"], ["exceptions"])
ANSWERS = (["profile"], ["coverage"], ["branches"], ["loops"], ["exceptions"], ["report", "-o", "made"],
           ["export", "--to", "perfetto", "-o", "made"], ["export", "--to", "sqlite", "-o", "made"],
           ["export", "--to", "csv", "-o", "made"], ["pgo", "--for", "autofdo", "--all", "-o", "made"],
           ["pgo", "--for", "bolt", "-o", "made"], ["merge", "-o", "made"], ["diff"])
PROGRAM = """
#include <stdio.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { printf("%d\\n", fib(9)); return 0; }
"""


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


class Campaign:
    def __init__(self, waymark, folder):
        self.waymark, self.folder, self.failures, self.statuses = waymark, folder, [], {}

    def run(self, number, what, mutant, command, more):
        place = self.folder / "run"
        place.mkdir()
        (place / "mutant").write_bytes(mutant)
        words = [command[0], "mutant", *more, *command[1:]]
        process = subprocess.Popen([self.waymark, *words], cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, preexec_fn=limit, env={**os.environ, "TMPDIR": str(place)})
        try:
            out, err = process.communicate(timeout=HANGS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        used = self.used(process)
        status = process.returncode
        self.statuses[status] = self.statuses.get(status, 0) + 1
        wrong = []
        if status not in (0, 1, 2, 3):
            wrong.append(f"ended with {status}: {err[-300:]!r}")
        if status != 0 and not err and not out:
            wrong.append(f"status {status} without a word")
        if status == 0 and not out and not (place / "made").exists():
            wrong.append("status 0 without a result")
        if used is not None and used.ru_utime + used.ru_stime > SECONDS:
            wrong.append(f"took {used.ru_utime + used.ru_stime:.1f} s")
        if used is not None and used.ru_maxrss * 1024 > MEMORY:
            wrong.append(f"took {used.ru_maxrss >> 10} MB")
        left = sorted(entry.name for entry in place.iterdir() if entry.name not in ("mutant", "made"))
        if left or list(place.glob("made/*.part")):
            wrong.append(f"left {left}")
        if wrong:
            self.failures.append(f"mutant {number} ({what}), waymark {' '.join(map(str, words))}: {'; '.join(wrong)}")
        shutil.rmtree(place)

    def used(self, process):
        """What the children used is only known of all together, so the largest of them counts, and times are differences."""
        now, before = resource.getrusage(resource.RUSAGE_CHILDREN), getattr(self, "before", None)
        self.before = now
        if before is None:
            return None
        return resource.struct_rusage((now.ru_utime - before.ru_utime, now.ru_stime - before.ru_stime, now.ru_maxrss, *now[3:]))


def recorded(waymark, folder):
    """perf.data of flow, and its answers; None: it cannot be made here."""
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if compiler is None:
        return "no aarch64-linux-gnu-gcc: install the Debian package gcc-aarch64-linux-gnu"
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run([compiler, "-O1", "-g", "-static", "-o", "p", "p.c"], cwd=folder, check=True)
    made = subprocess.run([waymark, "record", "-q", "--as", "perf", "-o", "perf.data", "--", "./p"], cwd=folder,
                          capture_output=True, text=True)
    if made.returncode != 0:
        return f"nothing can be recorded: {made.stderr.strip()}"
    subprocess.run([waymark, "answers", "perf.data", "-o", "answers"], cwd=folder, check=True, capture_output=True)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waymark", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--mutants", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with Folder() as name:
        folder = pathlib.Path(name)
        waymark = options.waymark.resolve()
        if why := recorded(waymark, folder):
            print(f"SKIPPED: {why}")
            return 77
        campaign = Campaign(waymark, folder)
        for number in range(options.seed, options.seed + options.mutants):
            for file, make, commands in (("perf.data", mutants.perf_mutant, PERF), ("answers", mutants.answers_mutant, ANSWERS)):
                mutant, what = make(folder / file, number)
                command = commands[number % len(commands)]
                if options.keep:
                    options.keep.with_suffix(f".{file}").write_bytes(mutant)
                more = [folder / "answers"] if command[0] in ("diff", "merge") else []
                campaign.run(number, what, mutant, command, more)
    for failure in campaign.failures:
        print(failure)
    print(f"{2 * options.mutants} mutants; by status: {dict(sorted(campaign.statuses.items()))}; {len(campaign.failures)} failed")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
