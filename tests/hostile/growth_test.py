#!/usr/bin/env python3
"""Memory, output and time against the size of the input: each dimension of an input is doubled, and nothing may grow faster
than n log n, or beyond a bound.

usage: growth_test.py WAYMARK SOURCE_FOLDER [--long] [--only TEXT] [--write]

Without --long the inputs are small and mostly without the C library, whose code takes commands longer than the input, and only
memory and bytes written count, which do not depend on the machine's load. With --long, time of the processor counts too, where
it is long enough to mean something. --write renews one of the two tables of docs/growth.md.
"""
import argparse
import os
import pathlib
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS, Folder  # noqa: E402

import mutants  # noqa: E402

SMALL = "static volatile int g;\nint main() { for (int i = 0; i < 50; i++) g += i; return 0; }\n"
# For programs without the C library: calls main and ends by a system call.
START = ".text\n.global _start\n_start:\n bl main\n mov x8, #93\n svc #0\n"
MMAP2 = 10  # the type of a record

# Limits of one run, for every input.
MOST_MEMORY, MOST_SECONDS = 1 << 30, 60
# MOST_RATIO: the largest ratio between the increases of two successive doublings of n. 2 is linear, 2.3 is n log n at these
# sizes, 4 is quadratic. Increases below the LEAST_ values are noise. With --long a table that doubles its room is larger than
# that, so twice the memory is.
MOST_RATIO, LEAST_MEMORY, LEAST_BYTES, LEAST_SECONDS = 2.9, 12 << 20, 200_000, 1.0
# Memory that each thread may take, in bytes: for its decoder's tables, but not for a separate mapping of the program
# (700 KB).
EACH_THREAD = 400_000


class Row:
    """`make(folder, n)` makes the input; `commands` read it. `each`: bytes of memory that an increase of n by one may
    take."""

    def __init__(self, name, sizes, make, commands, each=None):
        self.name, self.sizes, self.make, self.commands, self.each = name, sizes, make, commands, each


class Inputs:
    def __init__(self, waymark, compiler, long):
        self.waymark, self.compiler, self.long = waymark, compiler, long

    def build(self, folder, source, *options, suffix=".c", libc=False):
        (folder / f"p{suffix}").write_text(source)
        files = [f"p{suffix}"]
        if not libc and not self.long:
            (folder / "start.s").write_text(START)
            files += ["start.s", "-nostdlib", "-Wl,--build-id"]
        subprocess.run([self.compiler, "-g", "-O1", "-static", *options, "-o", "p", *files], cwd=folder, check=True,
                       timeout=HANGS, capture_output=True)

    def record(self, folder, *words, options=()):
        subprocess.run([self.waymark, "record", "--from-start", "-q", *options, "-o", "in", "--", "./p", *words], cwd=folder, check=True,
                       timeout=HANGS, capture_output=True)

    def recursion(self, folder, n):
        self.build(folder, "__attribute__((noinline)) int odd(int n); __attribute__((noinline)) int even(int n)"
                   " { volatile int x = n; return n ? odd(n - 1) + x : 0; } int odd(int n) { volatile int x = n;"
                   f" return n ? even(n - 1) + x : 1; }}\nint main() {{ return even({n}) & 1; }}\n",
                   "-fno-optimize-sibling-calls")
        self.record(folder)

    def threads(self, folder, n):
        self.build(folder, "#include <pthread.h>\n#include <stdlib.h>\nstatic void* f(void* p) { volatile long s = 0;"
                   " for (long i = 0; i < 300; i++) s += i * (long)p; return 0; }\nint main(int c, char** v) { int n = atoi(v[1]);"
                   " pthread_t* t = malloc(n * sizeof *t); for (long i = 0; i < n; i++) pthread_create(t + i, 0, f, (void*)i);"
                   " for (int i = 0; i < n; i++) pthread_join(t[i], 0); return 0; }\n", "-pthread", libc=True)
        self.record(folder, str(n))

    def inlined(self, folder, n):
        name = "f" * 20_000
        self.build(folder, f"static volatile int g; static inline __attribute__((always_inline)) void {name}(void) {{ g++; }}\n"
                   f"#define F {name}\nint main() {{\n" + "F();\n" * n + "return 0; }\n")
        self.record(folder)

    def lines(self, folder, n):
        self.build(folder, "static volatile int g;\nint main() {\n" + "g++;\n" * n + "return 0; }\n")
        self.record(folder)

    def functions(self, folder, n):
        self.build(folder, "static volatile int g;\n"
                   + "".join(f"__attribute__((noinline)) void f{i}(void) {{ g++; }}\n" for i in range(n))
                   + "int main() {\n" + "".join(f"f{i}();\n" for i in range(n)) + "return 0; }\n")
        self.record(folder)

    def long_name(self, folder, n):
        self.build(folder, f"static volatile int g;\n__attribute__((noinline)) void {'x' * n}(void) {{ g++; }}\n"
                   f"int main() {{ {'x' * n}(); return 0; }}\n")
        self.record(folder)

    def nested(self, folder, n, size=8):
        """n symbols, each within the one before it."""
        text = ".text\n.global main\n.type main, %function\nmain:\n mov w0, #0\n ret\n.size main, . - main\n.global big\nbig:\n"
        text += "".join(f".type n{i}, %function\nn{i}:\n nop\n nop\n.size n{i}, {max(size * (n - i), 8)}\n" for i in range(n))
        self.build(folder, text + " ret\n", suffix=".s")
        self.record(folder)

    def sections(self, folder, n):
        text = ".text\n.global main\n.type main, %function\nmain:\n mov w0, #0\n ret\n.size main, . - main\n"
        text += "".join(f".section s{i}, \"ax\"\n.type g{i}, %function\ng{i}: ret\n.size g{i}, 4\n" for i in range(n))
        self.build(folder, text, suffix=".s")
        self.record(folder)

    def mappings(self, folder, n):
        """A program maps itself n times, and has about as many AUX ranges."""
        self.build(folder, "#include <fcntl.h>\n#include <stdlib.h>\n#include <sys/mman.h>\nint main(int c, char** v) {"
                   " volatile int s = 0; int f = open(v[0], O_RDONLY); for (int i = 0; i < atoi(v[1]); i++) {"
                   " mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0);"
                   " for (int k = 0; k < 3000; k++) s += k & i ? 1 : 2; } return 0; }\n", libc=True)
        self.record(folder, str(n), options=("--as", "perf", "--aux-buffer", "8"))

    def records(self, folder, n):
        """n more mappings, all of them in one process."""
        self.build(folder, SMALL)
        self.record(folder, options=("--as", "perf"))
        file = mutants.PerfFile(folder / "in")
        at, mapped = next((i, r) for i, r in enumerate(file.records) if r.kind == MMAP2)
        more = []
        for i in range(n):
            record = mutants.Record(mapped.kind, mapped.misc, mapped.body)
            struct.pack_into("<QQ", record.body, 8, (1 << 40) + (i << 16), 0x1000)
            more.append(record)
        file.records[at:at] = more
        (folder / "in").write_bytes(file.bytes())

    def dumps(self, folder, n):
        """A snapshot with n pieces of memory."""
        self.build(folder, SMALL)
        self.record(folder)
        (folder / "in" / "more.bin").write_bytes(bytes(4096))
        snapshot = (folder / "in" / "snapshot.ini").read_text()
        devices = [folder / "in" / line.split("=")[1].strip() for line in snapshot.splitlines() if line.startswith("device")]
        core = next(d for d in devices if "class=core" in d.read_text())
        core.write_text(core.read_text() + "".join(f"\n[dump_more_{i}]\nfile=more.bin\naddress={(1 << 40) + (i << 16):#x}\nlength=0x1000\n"
                                                   for i in range(n)))

    def packed_files(self, folder, n):
        """A program that was mapped from a package with n more files."""
        self.build(folder, SMALL)
        self.record(folder, options=("--as", "perf"))
        file = mutants.PerfFile(folder / "in")
        for record in file.records:
            mutants.map_from_package(record, b"/p", b"/data/base.apk!/lib/p")
        (folder / "in").write_bytes(file.bytes())
        mutants.package(folder / "base.apk", (folder / "p").read_bytes(), n)

    def rows_of_answers(self, folder, n):
        self.functions(folder, n)
        subprocess.run([self.waymark, "answers", "in", "--symbols", "p", "-o", "a"], cwd=folder, check=True, timeout=HANGS,
                       capture_output=True)


def rows(inputs, long):
    def sizes(first):
        return [first * 2 ** i for i in range(3)] if not long else [first * 4 * 2 ** i for i in range(3)]
    symbols = ["in", "--symbols", "p"]
    views = [["profile", *symbols], ["coverage", *symbols], ["export", *symbols, "--to", "lcov", "-o", "out"],
             ["report", *symbols, "-o", "out"]]
    exports = [["export", *symbols, "--to", form, "-o", "out"] for form in ("speedscope", "folded", "callgrind", "pprof", "firefox")]
    return [
        Row("depth of a recursion", sizes(1000), inputs.recursion, [*exports, ["flow", *symbols, "--format", "calls"],
                                                                    ["report", *symbols, "-o", "out"]]),
        Row("threads", sizes(16), inputs.threads, [["info", "in"], ["flow", "in", "--format", "summary", "--jobs", "1"],
                                                   ["profile", "in", "--jobs", "1"]], EACH_THREAD),
        Row("inlined calls of a function with a name of 20,000 bytes", sizes(100), inputs.inlined, [
            ["profile", *symbols], ["answers", *symbols, "-o", "out"], exports[3]]),
        Row("source lines", sizes(1000), inputs.lines, [*views, ["profile", "--by", "line", *symbols]]),
        Row("functions that ran", sizes(500), inputs.functions, [*views, *exports]),
        Row("bytes of a name", sizes(50_000), inputs.long_name, [*views, exports[1]]),
        Row("nested symbols", sizes(1000), inputs.nested, views),
        Row("symbols of 1 MB that overlap", sizes(200), lambda f, n: inputs.nested(f, n, 1 << 20), views),
        Row("sections", sizes(500), inputs.sections, [["info", "in"], *views[:2]]),
        Row("mappings, and AUX ranges", sizes(50), inputs.mappings, [["info", "in"], ["flow", "in", "--format", "summary"],
                                                                    ["profile", "in"]]),
        Row("records of mappings", sizes(500), inputs.records, [["info", "in"], ["flow", "in", "--format", "summary"], ["profile", "in"]]),
        Row("pieces of memory in a snapshot", sizes(200), inputs.dumps, [["info", "in"], ["flow", "in", "--format", "summary"],
                                                                         ["doctor", "in"]]),
        Row("files of a package", sizes(500), inputs.packed_files, [["profile", "in", "--symfs", "."],
                                                                    ["flow", "in", "--symfs", ".", "--format", "summary"]]),
        Row("rows of answers", sizes(500), inputs.rows_of_answers, [
            ["profile", "a"], ["coverage", "a"], ["merge", "a", "a", "-o", "out"], ["diff", "a", "a"],
            ["export", "a", "--to", "csv", "-o", "out"], ["export", "a", "--to", "sqlite", "-o", "out"]]),
    ]


def measured(waymark, folder, words):
    """Processor time in seconds, bytes of memory and bytes written."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True) if out.is_dir() else out.unlink(missing_ok=True)
    with (folder / "text").open("wb") as text:
        process = subprocess.Popen([waymark, *words], cwd=folder, stdout=text, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    made = [path for path in out.rglob("*") if path.is_file()] if out.is_dir() else [out if out.exists() else folder / "text"]
    written = sum(path.stat().st_size for path in made)
    return process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, written


def grows(values, least):
    """Whether the increase at the last doubling is out of proportion."""
    first, second = values[1] - values[0], values[2] - values[1]
    return second > least and second > MOST_RATIO * max(first, least / 4)


def run(waymark, inputs, options, folder):
    failures, table = [], []
    for row in rows(inputs, options.long):
        if options.only not in row.name:
            continue
        results = {" ".join(words): [] for words in row.commands}
        for n in row.sizes:
            place = folder / "place"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            row.make(place, n)
            for words in row.commands:
                status, *what = measured(waymark, place, words)
                if status not in (0, 1):
                    failures.append(f"{row.name} {n}: {' '.join(words)} ended with {status}")
                results[" ".join(words)].append(what)
        for words, values in results.items():
            seconds, memory, written = zip(*values)
            shown = words.replace(" in", "", 1).replace(" --symbols p", "").replace(" -o out", "")
            each = (memory[2] - memory[1]) / (row.sizes[2] - row.sizes[1])
            wrong = [what for what, bad in (("memory", grows(memory, LEAST_MEMORY * (2 if options.long else 1))),
                                            ("memory for each", row.each is not None and each > row.each),
                                            ("output", grows(written, LEAST_BYTES)),
                                            ("time", options.long and grows(seconds, LEAST_SECONDS)),
                                            ("more memory than the bound", max(memory) > MOST_MEMORY),
                                            ("more time than the bound", options.long and max(seconds) > MOST_SECONDS)) if bad]
            line = (row.name, shown, row.sizes[-1], seconds, memory, written)
            table.append(line)
            print(f"{'failed: ' + ', '.join(wrong) + ': ' if wrong else ''}{row.name}, {row.sizes}: {shown}: "
                  f"{' '.join(f'{s:.2f}' for s in seconds)} s, {' '.join(str(m >> 20) for m in memory)} MB, "
                  f"{' '.join(map(str, written))} bytes", flush=True)
            if wrong:
                failures.append(f"{row.name}: {shown}: {wrong}")
    print(f"{len(table)} commands, {len(failures)} failed")
    return failures, table


HEADINGS = {False: "## Small inputs", True: "## Large inputs"}
HEAD = "| dimension | command | sizes | seconds | MB | bytes written |\n|---|---|---|---|---|---|\n"


def write(path, table, options):
    """Renews the section of the document for inputs of these sizes."""
    text = f"{HEADINGS[options.long]}\n\n    tests/hostile/growth_test.py WAYMARK . {'--long ' if options.long else ''}--write\n\n"
    text += f"With {options.build}.\n\n{HEAD}"
    for name, words, largest, seconds, memory, written in table:
        text += (f"| {name} | `{words}` | {', '.join(f'{largest // 2 ** i:,}' for i in (2, 1, 0))} | "
                 f"{', '.join(f'{s:.2f}' for s in seconds)} | {', '.join(str(m >> 20) for m in memory)} | "
                 f"{', '.join(f'{w:,}' for w in written)} |\n")
    before = path.read_text()
    begin = before.index(HEADINGS[options.long])
    end = before.find("\n## ", begin)
    path.write_text(before[:begin] + text + (before[end:] if end >= 0 else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("waymark", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--build", default="an optimised build")
    options = parser.parse_args()
    compiler = shutil.which("aarch64-linux-gnu-gcc")
    if compiler is None or shutil.which("qemu-aarch64") is None:
        print("SKIPPED: no aarch64-linux-gnu-gcc or qemu-aarch64 (Debian packages gcc-aarch64-linux-gnu and qemu-user)")
        return 77
    with Folder() as name:
        failures, table = run(options.waymark.resolve(), Inputs(options.waymark.resolve(), compiler, options.long), options, pathlib.Path(name))
    if options.write:
        write(options.source / "docs" / "growth.md", table, options)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
