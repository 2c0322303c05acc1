#!/usr/bin/env python3
"""Mutants of every kind of file that commands read: perf.data, answers, snapshots, lists of branches, jitdump, perf maps,
kallsyms, packages (APK), ELF, folders of a fleet; also through the C interface. Each run ends by itself, in bounded time and
memory, says what is wrong, and leaves nothing behind.

usage: campaign_test.py WAYMARK SOURCE_FOLDER [--mutants N] [--seed N] [--minutes N] [--kinds A,B]
           [--decode PROGRAM] [--live PROGRAM] [--server PROGRAM]
       campaign_test.py --self-test [--server PROGRAM]

Mutant N of a file is the same everywhere and always. A failure names its kind and number: --kinds KIND --seed N --mutants 1
makes it again, and --keep FILE writes it there. --decode is the example of the C interface, which reads perf.data too;
--live is its example that is fed in pieces. --server is a command_server (command_server.cc) of a build with sanitizers:
all commands run in it, in forks, and WAYMARK makes the inputs alone.
"""
import argparse
import collections
import os
import pathlib
import resource
import select
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
# Without a C library files are small: each mutant changes bytes that commands read, in milliseconds.
PROGRAM = """
static const char digits[] = "0123456789";
static long call(long number, long a, long b, long c) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
}
static inline int twice(int n) { return n + n; }
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static int sum(volatile const char* p) {
    int n = 0;
    for (int i = 0; i < 40; ++i) n += p[i % 10] > '4' ? twice(i) : i;
    return n;
}
void _start(void) {
    int n = fib(9) + sum(digits);
    call(64, 1, (long)&digits[n % 10], 1);
    call(93, 0, 0, 0);
    for (;;) {}
}
"""


# After a report of a sanitizer the status is this one, and an allocation of more than MEMORY is a finding even if it is
# never used. Freed memory is kept for a while to find later uses: less than by default, since it counts.
SANITIZERS = ":".join(("exitcode=99", "detect_leaks=0", "allocator_may_return_null=0", f"max_allocation_size_mb={MEMORY >> 20}",
                       "quarantine_size_mb=32", "malloc_context_size=6"))

Ended = collections.namedtuple("Ended", "status seconds memory")


class Processes:
    """Runs each command as a process."""

    def __init__(self, seconds=SECONDS):
        self.seconds = seconds

    def limit(self):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 1))

    def run(self, words, place, given, out, err):
        with open(given, "rb") as given, open(out, "wb") as out, open(err, "wb") as err:
            process = subprocess.Popen(words, cwd=place, stdin=given, stdout=out, stderr=err, preexec_fn=self.limit,
                                       env={**os.environ, "TMPDIR": str(place)})
        ends = select.poll()
        descriptor = os.pidfd_open(process.pid)
        ends.register(descriptor, select.POLLIN)
        if not ends.poll(HANGS * 1000):
            process.kill()
        os.close(descriptor)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Ended(process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


class Server:
    """Runs each command in a fork of command_server."""

    def __init__(self, program, seconds=SECONDS):
        self.seconds = seconds
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env={**os.environ, "ASAN_OPTIONS": SANITIZERS, "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1"})

    def run(self, words, place, given, out, err):
        request = (place, given, out, err, self.seconds, HANGS, *words)
        self.process.stdin.write(b"".join(os.fsencode(str(word)) + b"\0" for word in request) + b"\n")
        self.process.stdin.flush()
        status, microseconds, kib = map(int, self.process.stdout.readline().split())
        return Ended(status, microseconds / 1e6, kib * 1024)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Campaign:
    def __init__(self, folder, runner, seconds=SECONDS, memory=MEMORY):
        self.folder, self.runner, self.seconds, self.memory = folder, runner, seconds, memory
        self.failures, self.statuses, self.used = [], {}, 0.0

    def run(self, name, what, put, words, input_is_file=False):
        """`put(place)` makes the input in the folder where the command runs."""
        place, out, err = (self.folder / part for part in ("run", "out", "err"))
        place.mkdir()
        put(place)
        given = set(place.rglob("*"))
        ended = self.runner.run(words, place, place / "mutant" if input_is_file else os.devnull, out, err)
        self.statuses[ended.status] = self.statuses.get(ended.status, 0) + 1
        self.used += ended.seconds
        said, wrong = err.read_bytes(), []
        silent = not said and out.stat().st_size == 0
        if ended.status not in (0, 1, 2, 3) or b"Sanitizer" in said or b"runtime error:" in said:
            wrong.append(f"ended with {ended.status}: {said[:1500].decode(errors='replace')}")
        if ended.status != 0 and silent:
            wrong.append(f"status {ended.status} without a word")
        if ended.status == 0 and silent and not (place / "made").exists():
            wrong.append("status 0 without a result")
        if ended.seconds > self.seconds:
            wrong.append(f"took {ended.seconds:.1f} s")
        if ended.memory > self.memory:
            wrong.append(f"took {ended.memory >> 20} MB")
        left = sorted(str(path.relative_to(place)) for path in set(place.rglob("*")) - given
                      if path.relative_to(place).parts[0] not in ("made", "job") or path.name.endswith(".part"))
        if left:
            wrong.append(f"left {left}")
        if wrong:
            self.failures.append(f"{name} ({what}), {' '.join(map(str, words))}: {'; '.join(wrong)}")
            print(self.failures[-1], flush=True)
        shutil.rmtree(place)


# Shell commands with a fault, and the finding that each must give. The server has functions with these names.
PLANTED = {"crash": ("kill -SEGV $$", "ended with -11", "ended with 99"),
           "overread": (None, "ended with 99"),
           "overflow": (None, "ended with 99"),
           "allocation": ("dd if=/dev/zero of=/dev/null bs=100M count=1 status=none; echo made", " MB", "ended with 99"),
           "endless": ("while :; do :; done", "ended with -24"),
           "left": ("touch left.tmp; echo made", "left ['left.tmp']"),
           "nothing": ("true", "status 0 without a result"),
           "word": ("echo made", None)}


def self_test(server):
    """Each planted fault is found, and afterwards commands run as before."""
    missed = []
    for name, (shell, *wanted) in PLANTED.items():
        # The endless loop uses up its time. The others have enough time on any machine.
        seconds = 1 if name == "endless" else SECONDS
        if not server and shell is None:
            continue
        with Folder() as folder:
            runner = Server(server, seconds) if server else Processes(seconds)
            campaign = Campaign(pathlib.Path(folder), runner, seconds, MEMORY if server else 64 << 20)
            for words in (name, "word"):
                campaign.run(words, "planted", lambda place: None,
                             ["planted", words] if server else ["sh", "-c", PLANTED[words][0]])
            if server:
                runner.end()
        found = campaign.failures
        if wanted == [None] and found or wanted != [None] and (len(found) != 1 or not any(one in found[0] for one in wanted)):
            missed.append(f"{name}: found {found}, wanted {wanted}")
    for miss in missed:
        print(f"missed: {miss}")
    print(f"{len(missed)} planted faults missed")
    return 1 if missed else 0


def recorded(waymark, folder):
    """perf.data of flow, its answers, and what else is mutated; None: it cannot be made here."""
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if compiler is None:
        return "no aarch64-linux-gnu-gcc: install the Debian package gcc-aarch64-linux-gnu"
    (folder / "p.c").write_text(PROGRAM)
    subprocess.run([compiler, "-O1", "-g", "-static", "-nostdlib", "-Wl,--build-id,-Ttext=0x401000", "-o", "p", "p.c"], cwd=folder,
                   check=True)
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
    """Files of which one is changed, how it is changed, and the commands that read them. `given`: other files beside
    them. With `input_is_file` the changed file is standard input."""

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
        # Frames of a formatter; and the same bytes read as the stream of one unit, so that each frame is damage.
        sort = source / "examples" / "sort"
        shutil.copy(sort / "capture" / "trace.bin", folder / "trace.bin")
        described = ["protocol=PTM1.1", "core=Cortex-A15", "register=ETMCR=0x30001000", "register=ETMIDR=0x411cf312",
                     "register=ETMCCER=0x34c01000", f"image={sort / 'sort.elf'}"]
        framed = [*described, "buffer-format=coresight", "trace-id=0x10"]
        out["live"] = Kind("trace.bin", mutants.binary_mutant, [[live, *framed], [live, *described]], input_is_file=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waymark", type=pathlib.Path, nargs="?")
    parser.add_argument("source", type=pathlib.Path, nargs="?")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--mutants", type=int, default=100, help="of each kind of file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="end after that time, with the numbers that were reached")
    parser.add_argument("--kinds", help="only these, and what lies in these folders")
    parser.add_argument("--server", type=pathlib.Path)
    parser.add_argument("--decode", type=pathlib.Path)
    parser.add_argument("--live", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    server = options.server and options.server.resolve()
    if options.self_test:
        return self_test(server)
    if not options.source:
        parser.error("WAYMARK and SOURCE_FOLDER are missing")
    with Folder() as name:
        folder = pathlib.Path(name)
        waymark, decode, live = (path and path.resolve() for path in (options.waymark, options.decode, options.live))
        if why := recorded(waymark, folder):
            print(f"SKIPPED: {why}")
            return 77
        if server:
            waymark, decode, live = "waymark", "decode", "live"
        campaign, count = Campaign(folder, Server(server) if server else Processes()), {}
        kinds = kinds_of(folder, waymark, decode, live, options.source.resolve())
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
          f"by status: {dict(sorted(campaign.statuses.items()))}; {campaign.used:.0f} s of the processor; {len(campaign.failures)} failed")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
