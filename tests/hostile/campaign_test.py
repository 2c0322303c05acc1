#!/usr/bin/env python3
"""Mutants of every kind of file that commands read: perf.data, answers, snapshots, lists of branches, jitdump, perf maps,
kallsyms, packages (APK), ELF, folders of a fleet; also through the C interface. Each run ends by itself, in bounded time and
memory, says what is wrong, and leaves nothing behind.

usage: campaign_test.py WAYMARK SOURCE_FOLDER [--mutants N] [--seed N] [--minutes N] [--kinds A,B] [--recorder WAYMARK]
           [--decode PROGRAM] [--live PROGRAM]

Mutant N of a file is the same everywhere and always. A failure names its kind and number: --kinds KIND --seed N --mutants 1
makes it again, and --keep FILE writes it there. --recorder is the program that records, for a WAYMARK with sanitizers;
--decode is the example of the C interface, which reads perf.data too; --live is its example that is fed in pieces.
"""
import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

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
SNAPSHOT = [["info"], ["flow", "--format", "summary"], ["profile"], ["coverage"], ["packets", "--format", "tsv"], ["doctor"],
          ["export", "--to", "folded", "-o", "made"], ["answers", "-o", "made"]]
PROGRAM = """
#include <stdio.h>
static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { printf("%d\\n", fib(9)); return 0; }
"""


def limit():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


class Campaign:
    def __init__(self, folder):
        self.folder, self.failures, self.statuses = folder, [], {}

    def run(self, name, what, put, words, input_is_file):
        """`put(place)` makes the input in the folder where the command runs."""
        place = self.folder / "run"
        place.mkdir()
        put(place)
        given = set(place.rglob("*"))
        given_input = place / "mutant" if input_is_file else os.devnull
        with open(given_input, "rb") as standard_input:
            process = subprocess.Popen(words, cwd=place, stdin=standard_input, stdout=subprocess.PIPE,
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
        if status == 0 and not out and not err and not (place / "made").exists():
            wrong.append("status 0 without a result")
        if used is not None and used.ru_utime + used.ru_stime > SECONDS:
            wrong.append(f"took {used.ru_utime + used.ru_stime:.1f} s")
        if used is not None and used.ru_maxrss * 1024 > MEMORY:
            wrong.append(f"took {used.ru_maxrss >> 10} MB")
        left = sorted(str(path.relative_to(place)) for path in set(place.rglob("*")) - given
                      if path.relative_to(place).parts[0] not in ("made", "job") or path.name.endswith(".part"))
        if left:
            wrong.append(f"left {left}")
        if wrong:
            self.failures.append(f"{name} ({what}), {' '.join(map(str, words))}: {'; '.join(wrong)}")
            print(self.failures[-1], flush=True)
        shutil.rmtree(place)

    def used(self, process):
        """What the children used is only known of all together, so the largest of them counts, and times are differences."""
        now, before = resource.getrusage(resource.RUSAGE_CHILDREN), getattr(self, "before", None)
        self.before = now
        if before is None:
            return None
        return resource.struct_rusage((now.ru_utime - before.ru_utime, now.ru_stime - before.ru_stime, now.ru_maxrss, *now[3:]))


def recorded(waymark, folder):
    """perf.data of flow, its answers, and what else is mutated; None: it cannot be made here."""
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if compiler is None:
        return "no aarch64-linux-gnu-gcc: install the Debian package gcc-aarch64-linux-gnu"
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run([compiler, "-O1", "-g", "-static", "-Wl,--build-id", "-o", "p", "p.c"], cwd=folder, check=True)
    made = subprocess.run([waymark, "record", "-q", "--as", "perf", "-o", "perf.data", "--", "./p"], cwd=folder,
                          capture_output=True, text=True)
    if made.returncode != 0:
        return f"nothing can be recorded: {made.stderr.strip()}"

    def run(*words):
        subprocess.run([waymark, *words], cwd=folder, check=True, capture_output=True)
    run("record", "--from-start", "-q", "-o", "snapshot", "--", "./p")
    run("answers", "perf.data", "-o", "answers")
    run("pgo", "answers", "--for", "branch-list", "-o", "branches")
    run("fleet", "plan", "perf.data", "-o", "job")
    run("fleet", "local", "job")
    code = (folder / "p").read_bytes()
    (folder / "jit.dump").write_bytes(mutants.jitdump(code[0x1000:], 0x401000))
    (folder / "perf.map").write_text("".join(f"{0x401000 + 64 * i:x} 40 made_{i}\n" for i in range(40)))
    modules = ("", "", "", "", "\t[module]")
    (folder / "kallsyms").write_text("".join(f"{0xffff800008000000 + 64 * i:016x} {'Tt'[i % 2]} made_{i}{modules[i % 5]}\n"
                                             for i in range(60)))
    mutants.package(folder / "base.apk", code)
    packaged = mutants.PerfFile(folder / "perf.data")
    for record in packaged.records:
        mutants.map_from_package(record, b"/p", b"/data/base.apk!/lib/p")
    (folder / "packaged.data").write_bytes(packaged.bytes())
    return None


class Kind:
    """Files of which one is changed, how, and the commands that read it. `given`: what else lies beside it. With
    `input_is_file` the file is their standard input."""

    def __init__(self, file, make, commands, given=(), input_is_file=False):
        self.file, self.make, self.commands, self.given, self.input_is_file = file, make, commands, given, input_is_file


def kinds_of(folder, waymark, decode, live, source):
    def with_file(command, *more):
        return [waymark, command[0], *more, *command[1:]]

    def other(option):
        return [with_file(c, folder / "snapshot", option, "mutant") for c in (["profile"], ["flow", "--format", "summary"], ["coverage"])]
    out = {
        "perf.data": Kind("perf.data", mutants.perf_mutant, [with_file(c, "mutant") for c in PERF]),
        "answers": Kind("answers", mutants.answers_mutant,
                        [with_file(c, "mutant", *([folder / "answers"] if c[0] in ("diff", "merge") else [])) for c in ANSWERS]),
        "branches": Kind("branches", mutants.binary_mutant, [[waymark, "pgo", "mutant", "--for", "branch-list", *version, "-o", "made"]
                                                             for version in ([], ["--branch-list-version", "1z"])]),
        "jitdump": Kind("jit.dump", mutants.binary_mutant, other("--jitdump")),
        "map": Kind("perf.map", mutants.text_mutant, other("--perf-map")),
        "kallsyms": Kind("kallsyms", mutants.text_mutant, other("--kallsyms") + [
            [waymark, "profile", folder / "perf.data", "--kallsyms", "mutant"]]),
        "elf": Kind("p", mutants.elf_mutant, other("--image") + other("--symbols") + [
            [waymark, "doctor", folder / "snapshot", "--image", "mutant"],
            [waymark, "report", folder / "snapshot", "--symbols", "mutant", "-o", "made"]]),
        "apk": Kind("base.apk", mutants.zip_mutant, [with_file(c, folder / "packaged.data", "--symfs", ".") for c in
                                                     (["profile"], ["flow", "--format", "summary"], ["coverage"])]),
    }
    for name, place, commands in (
            ("snapshot", "snapshot", [with_file(c, "snapshot") for c in SNAPSHOT]),
            ("fleet", "job", [[waymark, "fleet", *c] for c in (["status", "job"], ["merge", "job", "-o", "made"], ["local", "job"])])):
        files = sorted(path for path in (folder / place).rglob("*") if path.is_file() and path.name != "truth.txt")
        for path in files:
            binary = path.suffix in (".bin", ".answers")
            make = mutants.answers_mutant if path.suffix == ".answers" else mutants.binary_mutant if binary else mutants.text_mutant
            out[f"{name}/{path.relative_to(folder / place)}"] = Kind(path.relative_to(folder), make, commands, (place,))
    if decode:
        out["library"] = Kind("perf.data", mutants.perf_mutant, [[decode, "mutant"]])
    if live:
        # Frames of a formatter; and taken for the bytes of the unit alone, which makes damage of each frame.
        sort = source / "examples" / "sort"
        shutil.copy(sort / "capture" / "trace.bin", folder / "trace.bin")
        described = ["protocol=PTM1.1", "core=Cortex-A15", "register=ETMCR=0x30001000", "register=ETMIDR=0x411cf312",
                     "register=ETMCCER=0x34c01000", f"image={sort / 'sort.elf'}"]
        framed = [*described, "buffer-format=coresight", "trace-id=0x10"]
        out["live"] = Kind("trace.bin", mutants.binary_mutant, [[live, *framed], [live, *described]], input_is_file=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waymark", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--mutants", type=int, default=100, help="of each kind of file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="end after that time, with the numbers that were reached")
    parser.add_argument("--kinds", help="only these, and what lies in these folders")
    parser.add_argument("--recorder", type=pathlib.Path)
    parser.add_argument("--decode", type=pathlib.Path)
    parser.add_argument("--live", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with Folder() as name:
        folder = pathlib.Path(name)
        waymark = options.waymark.resolve()
        if why := recorded((options.recorder or waymark).resolve(), folder):
            print(f"SKIPPED: {why}")
            return 77
        campaign, count = Campaign(folder), {}
        kinds = kinds_of(folder, waymark, options.decode and options.decode.resolve(),
                         options.live and options.live.resolve(), options.source.resolve())
        groups = {}
        for kind in kinds:
            groups.setdefault(kind.split("/")[0], []).append(kind)
        began, number = time.monotonic(), options.seed - 1
        for number in range(options.seed, options.seed + options.mutants):
            if options.minutes and time.monotonic() - began > 60 * options.minutes:
                number -= 1
                break
            for group, members in groups.items():
                if options.kinds and group not in options.kinds.split(","):
                    continue
                # Each file of a folder in turn, with each command.
                name = members[number % len(members)]
                kind = kinds[name]
                mutant, what = kind.make(folder / kind.file, number)
                if options.keep:
                    options.keep.write_bytes(mutant)

                def put(place, kind=kind, mutant=mutant):
                    for given in kind.given:
                        shutil.copytree(folder / given, place / given)
                    target = place / (kind.file if kind.given or kind.file == "base.apk" else "mutant")
                    target.write_bytes(mutant)
                count[group] = count.get(group, 0) + 1
                campaign.run(f"{name} {number}", what, put, kind.commands[number // len(members) % len(kind.commands)],
                             kind.input_is_file)
    print(f"{sum(count.values())} mutants of the numbers {options.seed} to {number} ({', '.join(f'{n} of {kind}' for kind, n in count.items())}); "
          f"by status: {dict(sorted(campaign.statuses.items()))}; {len(campaign.failures)} failed")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
