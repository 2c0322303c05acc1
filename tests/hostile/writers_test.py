#!/usr/bin/env python3
"""Runs every command that writes, and lets it fail: killed or out of room at a change of a file, in a read-only folder,
unable to read its input, or beside a second writer. The old output or the new one is there, whole; nothing else is left;
the status is not 0; and the message names the place.

usage: writers_test.py WAYMARK SOURCE_FOLDER [--all] [--only TEXT]

faults.c lets the N-th system call of a run fail. Without --all, N is the first, the last and a few between them.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
import cli_test  # noqa: E402
import scratch  # noqa: E402
from scratch import HANGS, Folder  # noqa: E402

PROGRAM = """
#include <stdio.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { printf("%d\\n", fib(9)); return 0; }
"""


class Row:
    """A command that writes `place`, below the folder of outputs, which is the working folder. `old`: a command that makes
    what was there before. `verify`: no two recordings have the same bytes; this command finds out whether one is whole.
    `files`: what belongs to the output besides `place`. `grows`: the folder can be read while it grows, and says so.
    `forks`: a process that it forks writes the output, and faults.c lets nothing of that fail. `serves`: it goes on without
    its output, status 0, and says so."""

    def __init__(self, name, words, place, *, old=None, verify=None, files=lambda _: False, grows=False, short=True, reads=True,
                 forks=False, serves=False):
        self.name, self.words, self.place, self.old, self.verify = name, words, place, old, verify
        self.files, self.grows, self.short, self.reads, self.forks, self.serves = files, grows, short, reads, forks, serves


def rows(inputs, recorded):
    loop, other, spe, dpu = inputs / "loop", inputs / "sort", inputs / "spe" / "perf.data", inputs / "dpu"
    out = []
    for command in ("info", "packets", "flow", "profile", "coverage", "branches", "loops", "exceptions"):
        out.append(Row(command, [command, loop, "-o", "out.txt"], "out.txt", old=[command, other, "-o", "out.txt"],
                       short=command == "flow"))
    function = ["--symbols", inputs / "sort.elf", "--function", "ascending"]
    out.append(Row("calls", ["calls", other, *function, "-o", "out.txt"], "out.txt", old=["info", other, "-o", "out.txt"], short=False))
    out.append(Row("messages", ["messages", loop, "-o", "out.txt"], "out.txt", old=["info", other, "-o", "out.txt"], short=False))
    out.append(Row("explain", ["explain", loop, "-o", "out.txt"], "out.txt", old=["info", other, "-o", "out.txt"], short=False))
    out.append(Row("report", ["report", loop, "-o", "page.html"], "page.html", old=["report", other, "-o", "page.html"],
                   short=False))
    out.append(Row("report --against", ["report", loop, "--against", other, "-o", "page.html"], "page.html",
                   old=["report", other, "-o", "page.html"], short=False))
    out.append(Row("answers", ["answers", loop, "-o", "a"], "a", old=["answers", other, "-o", "a"], short=False))
    out.append(Row("diff", ["diff", loop, other, "-o", "out.txt"], "out.txt", old=["info", other, "-o", "out.txt"], short=False))
    out.append(Row("merge", ["merge", inputs / "loop.answers", inputs / "sort.answers", "-o", "a"], "a",
                   old=["answers", other, "-o", "a"], short=False))
    for form, name in (("speedscope", "s.json"), ("sqlite", "s.sqlite"), ("csv", "tables"), ("jsonl", "tables"),
                       ("lcov", "s.info"), ("callgrind", "s.callgrind"), ("pprof", "s.pb.gz"),
                       ("folded", "s.folded"), ("firefox", "s.firefox.json"), ("perfetto", "s.perfetto")):
        out.append(Row(f"export {form}", ["export", loop, "--to", form, "-o", name], name,
                       old=["export", other, "--to", form, "-o", name], short=form in ("sqlite", "csv")))
    out.append(Row("query", ["query", inputs / "loop.sqlite", "SELECT 1", "-o", "out.txt"], "out.txt",
                   old=["info", other, "-o", "out.txt"], short=False))
    out.append(Row("pgo", ["pgo", other, "--image", inputs / "sort.elf", "--for", "bolt", "-o", "p"], "p",
                   old=["info", other, "-o", "p"], short=False))
    for profile in ("autofdo", "branch-list", "clang", "profgen"):
        out.append(Row(f"pgo --for {profile}", ["pgo", other, "--image", inputs / "sort.elf", "--for", profile, "-o", "p"], "p",
                       old=["info", other, "-o", "p"], short=False))
    out.append(Row("pgo --all", ["pgo", other, "--image", inputs / "sort.elf", "--for", "bolt", "--all", "-o", "p"], "p", grows=True))
    out.append(Row("doctor", ["doctor", loop, "-o", "out.txt"], "out.txt", old=["info", other, "-o", "out.txt"], short=False))
    out.append(Row("doctor --write-snapshot", ["doctor", loop / "etb.bin", "--image", loop / "image.bin@0x8000",
                                               "--write-snapshot", "made"], "made"))
    out.append(Row("doctor --write-snapshot of messages", ["doctor", inputs / "swo.bin", "--write-snapshot", "made"], "made", short=False))
    out.append(Row("serve", ["serve", loop, "--no-sources", "--index", "kept"], "kept",
                   old=["serve", other, "--no-sources", "--index", "kept"], short=False, serves=True))
    for command in ("report", "records", "sharing", "branches", "quality"):
        out.append(Row(f"spe {command}", ["spe", command, spe, "-o", "out.txt"], "out.txt", short=False))
    out.append(Row("spe explain", ["spe", "explain", "PMSCR_EL1=0x1", "PSTATE.EL=0", "-o", "out.txt"], "out.txt", short=False, reads=False))
    for command in ("report", "tasks", "functions", "paths", "interrupts", "ranges", "timeline", "loops", "data", "ratios", "health"):
        out.append(Row(f"dpu {command}", ["dpu", command, dpu, "-o", "out.txt"], "out.txt", short=False))
    out.append(Row("program", ["program", "--unit", "etmv4", "--for", "json", "-o", "out.txt"], "out.txt", old=["info", other, "-o", "out.txt"],
                   short=False, reads=False))
    program, stimulus = (inputs / "stimuli" / f"flow.{name}" for name in ("program", "stimulus"))
    out.append(Row("dpu program", ["dpu", "program", program, "-o", "out.txt"], "out.txt", short=False))
    out.append(Row("dpu run", ["dpu", "run", program, stimulus, "-q", "-o", "rec"], "rec", grows=True))
    out.append(Row("fleet plan", ["fleet", "plan", loop, other, "-o", "job"], "job"))
    out.append(Row("fleet local", ["fleet", "local", "job", "-j", "1"], "job/result.answers",
                   old=["fleet", "plan", loop, "-o", "job"], grows=True, files=lambda name: name == "job"))
    # Shards that the manifest does not count do not belong to the job.
    out.append(Row("fleet add", ["fleet", "add", "job", other], "job", old=["fleet", "plan", loop, "-o", "job"],
                   verify=["fleet", "status", "job"], grows=True))
    out.append(Row("fleet run-shard", ["fleet", "run-shard", "job", "0"], "job", old=["fleet", "plan", loop, "-o", "job"],
                   verify=["fleet", "status", "job"], grows=True, forks=True))
    # Slurm's commands are stand-ins (make_inputs). `fleet cancel` changes no file.
    out.append(Row("fleet submit", ["fleet", "submit", "job"], "job", old=["fleet", "plan", loop, "-o", "job"],
                   verify=["fleet", "status", "job"], grows=True))
    out.append(Row("fleet resume", ["fleet", "resume", "submitted"], "submitted", old=["fleet", "submit", "submitted"],
                   verify=["fleet", "status", "submitted"], grows=True))
    out.append(Row("fleet merge", ["fleet", "merge", inputs / "done-job", "-o", "a"], "a", old=["answers", other, "-o", "a"],
                   short=False))
    if not recorded:
        return out

    def of_perf(name):
        return name == "p.data.truth.txt" or name.startswith("p.data.truth_") and name.endswith(".bin")
    flow = ["record", "--from-start", "-q", "-o", "rec", "--", inputs / "a64"]
    perf = ["record", "-q", "--as", "perf", "-o", "p.data", "--", inputs / "a64"]
    profile = ["record", "-q", "--unit", "spe", "--period", "512", "-o", "p.data", "--", inputs / "a64"]
    counters = ["record", "-q", "--unit", "dpu", "-o", "rec", "--", inputs / "a32"]
    out += [Row("record", flow, "rec", old=flow, verify=["verify", "rec"], grows=True, reads=False),
            Row("record --buffer", [*flow[:2], "--truth", "--buffer", "1024", *flow[2:]], "rec", old=flow, verify=["verify", "rec"], grows=True,
                short=False, reads=False),
            Row("record --sink", [*flow[:2], "--truth", "--sink", "tmc-etr:4096", *flow[2:]], "rec", old=flow, verify=["verify", "rec"],
                grows=True, short=False, reads=False),
            Row("record --as perf", perf, "p.data", old=perf, verify=["verify", "p.data"], files=of_perf, reads=False),
            Row("record --unit spe", profile, "p.data", old=profile, verify=["spe", "records", "p.data"], files=of_perf, reads=False),
            Row("verify", ["verify", inputs / "recording", "-o", "out.txt"], "out.txt", short=False),
            Row("record --unit dpu", counters, "rec", old=counters, verify=["verify", "rec"], grows=True, reads=False)]
    return out


def without_row(waymark, all_rows, path=()):
    """Commands that have --output or --index, but no row. Other commands that write have rows because we know that they
    write."""
    text = subprocess.run([waymark, *path, "--help", "all"], capture_output=True, text=True, check=True).stdout
    below = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    names = [line.split()[0] for line in below.splitlines() if line.startswith("  ") and line[2] != " "]
    if names:
        return [missing for name in names for missing in without_row(waymark, all_rows, (*path, name))]
    known = any(tuple(row.words[:len(path)]) == path for row in all_rows)
    return [" ".join(path)] if ("--output" in text or "--index" in text) and not known else []


def served(command, place, environment, under_faults):
    """`waymark serve` until the index is complete or cannot be made; then SIGTERM ends it. faults.c does not pass signals on."""
    process = subprocess.Popen(command, cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment)
    url = process.stdout.readline().decode().strip()

    def ready():
        try:
            now = json.load(urllib.request.urlopen(f"{url}status", timeout=HANGS))
        except (OSError, ValueError, urllib.error.URLError):  # it was killed
            return True
        return now["indexed"] or now["failed"]
    if url:
        scratch.wait_for(ready, "the index is complete")
        try:
            of_faults = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for number in map(int, of_faults if under_faults else [process.pid]):
                os.kill(number, signal.SIGTERM)
        except (FileNotFoundError, ProcessLookupError):
            pass
    out, err = process.communicate(timeout=HANGS)
    return subprocess.CompletedProcess(command, process.returncode, url.encode() + out, err)


def contents(place):
    """The bytes of a file, or of the files of a folder by name; None: there is no file or folder."""
    if place.is_dir():
        return {str(p.relative_to(place)): p.read_bytes() for p in sorted(place.rglob("*")) if p.is_file()}
    return place.read_bytes() if place.exists() else None


class Checks:
    def __init__(self, waymark, faults, folder, every):
        self.waymark, self.faults, self.folder, self.every = waymark, faults, folder, every
        self.runs, self.failures = 0, []

    def environment(self):
        return {**os.environ, "TMPDIR": str(self.folder / "tmp"), "SOURCE_DATE_EPOCH": "1",
                "PATH": f"{self.folder / 'stand-ins'}:{os.environ['PATH']}"}

    def run(self, words, place, fault=None):
        command = [self.waymark, *words]
        if fault:
            below, kind, number = fault
            command = [self.faults, f"{below}/", kind, str(number), self.folder / "calls", *command]
        self.runs += 1
        if words[0] == "serve":
            done = served(command, place, self.environment(), fault is not None)
        else:
            done = subprocess.run(command, cwd=place, capture_output=True, stdin=subprocess.DEVNULL, timeout=HANGS,
                                  env=self.environment())
        return done, int((self.folder / "calls").read_text()) if fault else 0

    def fail(self, row, what, done=None):
        said = "" if done is None else f": status {done.returncode}, {done.stderr[-300:].decode(errors='replace')!r}"
        self.failures.append(f"{row.name}, {what}{said}")
        print("failed:", self.failures[-1], flush=True)
        scratch.failed()

    def fresh(self, row, with_old):
        place = self.folder / "out"
        shutil.rmtree(place, ignore_errors=True)
        if with_old and self.olds.get(row.name):
            shutil.copytree(self.olds[row.name], place)
        else:
            place.mkdir()
        return place

    def rest(self, row, place):
        """Names of files in the folder other than the output."""
        first = pathlib.Path(row.place).parts[0]
        here = [name.name for name in place.iterdir() if name.name != first and not row.files(name.name)]
        within = [str(p.relative_to(place)) for p in place.rglob("*")
                  if p.name.endswith(".part") or p.name in (".new", ".before", ".moving")]
        return sorted(set(here + within + os.listdir(self.folder / "tmp")))

    def is_whole(self, row, place, old, new):
        now = contents(place / row.place)
        if now is None:
            return old is None
        if row.verify is None:
            return now in (old, new) or row.grows and isinstance(now, dict) and all(
                new.get(k) == v for k, v in now.items() if not k.endswith(".part"))
        if now == old:
            return True
        # The earlier recording is there again as soon as another one is recorded into the folder.
        aside = [contents(place / row.place / name) for name in (".before", ".moving")]
        if any(a == old for a in aside) or self.run(row.verify, place)[0].returncode in ((0, 1, 4) if row.grows else (0,)):
            return True
        # Between the last two renames a perf.data file has no truth, but it never has another recording's truth.
        without = not (place / f"{row.place}.truth.txt").exists()
        return without and self.run(["flow", row.place, "--format", "summary"], place)[0].returncode == 0

    def numbers(self, calls):
        return range(1, calls + 1) if self.every or calls <= 3 else sorted({1, 2, calls // 2, calls - 1, calls})

    def check(self, row):
        self.olds = getattr(self, "olds", {})
        if row.old and row.name not in self.olds:
            keep = self.folder / "old" / row.name.replace(" ", "_")
            keep.mkdir(parents=True)
            if row.old[:2] == ["fleet", "submit"]:
                self.run(["fleet", "plan", self.folder / "inputs" / "loop", "-o", row.place], keep)
            done, _ = self.run(row.old, keep)
            if done.returncode not in (0, 1):
                return self.fail(row, "what was there before cannot be made", done)
            self.olds[row.name] = keep
        place = self.fresh(row, True)
        old = contents(place / row.place)
        done, calls = self.run(row.words, place, (place, "kill", 0))
        new = contents(place / row.place)
        if done.returncode not in (0, 1) or new is None or calls == 0:
            return self.fail(row, f"undisturbed, {calls} changes", done)
        if rest := self.rest(row, place):
            self.fail(row, f"undisturbed, left {rest}")
        for number in self.numbers(calls):
            for kind in ("kill", "full"):
                self.fault(row, kind, number, old, new)
        if row.reads:
            self.unreadable(row, new)
        if not row.forks:
            self.read_only(row, old)
        self.two_at_once(row)
        return None

    def fault(self, row, kind, number, old, new):
        place = self.fresh(row, True)
        what = f"{kind} at change {number}"
        done, calls = self.run(row.words, place, (place, kind, number))
        if calls < number:
            return
        if kind == "kill" and done.returncode != -signal.SIGKILL:
            return self.fail(row, what, done)
        if not self.is_whole(row, place, old, new):
            self.fail(row, f"{what}: neither the old output nor the new one is there", done)
        if kind == "full":
            if rest := self.rest(row, place):
                self.fail(row, f"{what}: left {rest}", done)
            if done.returncode == 0 and not row.verify and not row.serves and contents(place / row.place) != new:
                self.fail(row, what, done)
            name = pathlib.Path(row.place).parts[0].encode()
            if (done.returncode != 0 or row.serves) and contents(place / row.place) != new and (name not in done.stderr or b".part" in done.stderr):
                self.fail(row, f"{what}: the message does not name {row.place}", done)
            return
        # The next run can use the place, and removes remaining files.
        made = contents(place / row.place) == new
        done, _ = self.run(row.words, place)
        if done.returncode not in ((0, 1, 2) if made else (0, 1)) or not self.is_whole(row, place, None, new):
            self.fail(row, f"after {what} the next run", done)
        if rest := self.rest(row, place):
            self.fail(row, f"after {what} the next run left {rest}", done)

    def unreadable(self, row, new):
        """Input that cannot be read from the N-th read on."""
        inputs = self.folder / "inputs"
        place = self.fresh(row, True)
        old = contents(place / row.place)
        _, calls = self.run(row.words, place, (inputs, "unreadable", 0))
        for number in self.numbers(calls):
            place = self.fresh(row, True)
            done, reached = self.run(row.words, place, (inputs, "unreadable", number))
            if reached < number:
                continue
            what = f"unreadable at read {number}"
            if rest := self.rest(row, place):
                self.fail(row, f"{what}: left {rest}", done)
            now = contents(place / row.place)
            if done.returncode == 0 and not done.stderr and now != new:
                self.fail(row, f"{what}: other output without a word", done)
            if done.returncode != 0 and not done.stderr:
                self.fail(row, f"{what}: no word", done)
            if done.returncode < 0:
                self.fail(row, what, done)
            if now is None and old is not None:
                self.fail(row, f"{what}: the old output is gone", done)

    def read_only(self, row, old):
        place = self.fresh(row, True)
        done, _ = self.run(row.words, place, (place, "forbidden", 1))
        rest = self.rest(row, place)
        name = pathlib.Path(row.place).parts[0].encode()
        if rest or done.returncode in (0, 1) and not row.serves or contents(place / row.place) != old or name not in done.stderr:
            self.fail(row, f"in a read-only folder, left {rest}", done)

    def two_at_once(self, row):
        """Two runs at the same time, and the output of one of them."""
        place = self.fresh(row, True)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            ended = list(pool.map(lambda _: self.run(row.words, place)[0], range(2)))
        if all(done.returncode not in (0, 1) for done in ended):
            self.fail(row, f"two at once: {ended}")
        if row.verify and self.run(row.verify, place)[0].returncode != 0:
            self.fail(row, f"two at once: not whole; {ended}")
        if rest := self.rest(row, place):
            self.fail(row, f"two at once left {rest}; {ended}")


def make_stand_ins(folder):
    """Stand-ins for the commands of Slurm: a controller that takes every job, and no job waits."""
    folder.mkdir()
    for name, text in (("sbatch", "echo 7"), ("squeue", ""), ("scancel", ""), ("scontrol", "echo MaxArraySize = 1001")):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


def make_inputs(waymark, source, inputs):
    """Whether this machine can record."""
    fixtures = source / "tests" / "cli" / "fixtures"
    for name in ("loop", "spe", "dpu"):
        cli_test.use(fixtures, inputs, name, name)
    shutil.copytree(source / "examples" / "sort" / "capture", inputs / "sort")
    shutil.copy(source / "examples" / "sort" / "sort.elf", inputs)
    shutil.copytree(source / "examples" / "stimuli", inputs / "stimuli")
    # The bytes of an ITM's port.
    (inputs / "swo.bin").write_bytes(b"".join(bytes((1, byte)) for byte in b"boot ok\r\nvalue 17\r\ndone\n"))

    def run(*words):
        subprocess.run([waymark, *words], cwd=inputs, check=True, capture_output=True, timeout=HANGS)
    for name in ("loop", "sort"):
        run("answers", name, "-o", f"{name}.answers")
    run("export", "loop", "--to", "sqlite", "-o", "loop.sqlite")
    run("fleet", "plan", "loop", "-o", "done-job")
    run("fleet", "local", "done-job", "-j", "1")
    (inputs / "p.c").write_text(PROGRAM)
    for name, compiler in (("a64", "aarch64-linux-gnu-gcc"), ("a32", "arm-linux-gnueabihf-gcc")):
        if shutil.which(compiler) is None or shutil.which("qemu-aarch64") is None:
            print(f"SKIPPED: recordings: no {compiler} or qemu-aarch64 (Debian packages gcc-aarch64-linux-gnu, "
                  "gcc-arm-linux-gnueabihf, qemu-user)")
            return False
        subprocess.run([compiler, "-O1", "-static", "-o", name, "p.c"], cwd=inputs, check=True, timeout=HANGS)
    run("record", "--truth", "-q", "-o", "recording", "--", "./a64")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waymark", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        print("SKIPPED: no C compiler (Debian package gcc)")
        return 77
    with Folder() as name:
        folder = pathlib.Path(name).resolve()
        faults = folder / "faults"
        subprocess.run([compiler, "-O1", "-o", faults, pathlib.Path(__file__).with_name("faults.c")], check=True, timeout=HANGS)
        tried = subprocess.run([faults, f"{folder}/", "kill", "0", folder / "calls", "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            print(f"SKIPPED: system calls cannot be made to fail here: {tried.stdout.strip() or tried.returncode}")
            return 77
        waymark, inputs = options.waymark.resolve(), folder / "inputs"
        for made in (inputs, folder / "tmp"):
            made.mkdir()
        make_stand_ins(folder / "stand-ins")
        recorded = make_inputs(waymark, options.source.resolve(), inputs)
        checks = Checks(waymark, faults, folder, options.all)
        for missing in without_row(waymark, rows(inputs, True)):
            checks.failures.append(f"{missing} writes, and has no row here")
        for row in rows(inputs, recorded):
            if options.only not in row.name or not (row.short or options.all or options.only):
                continue
            before = checks.runs
            checks.check(row)
            print(f"{row.name}: {checks.runs - before} runs", flush=True)
        print(f"{checks.runs} runs, {len(checks.failures)} failed")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
