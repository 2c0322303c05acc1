#!/usr/bin/env python3
"""How much a profile that `waymark pgo --for clang` made from a recording of filter.c agrees with a profile from instrumentation, by
`llvm-profdata overlap`.

    overlap.py PROFILE PROGRAM PACKETS [RUNTIME]

PROGRAM is the recorded program, of whose line table both are asked for. The same source is built with clang's counters
(-fprofile-instr-generate), for this machine, or, with RUNTIME, for AArch64: the libclang_rt.profile-aarch64.a of Debian's
libclang-rt-14-dev for arm64. It runs with PACKETS; its counts of lines become a sample profile. Counts of lines with inlined
calls are added up in both, since only one of the programs inlines.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent / "filter.c"


def run(*command, **more):
    return subprocess.run([str(c) for c in command], check=True, stdout=subprocess.PIPE, text=True, **more).stdout


def instrumented(folder, packets, runtime):
    """{function: {line of it: count}}, and how often it was entered, as the counters show."""
    target = ["--target=aarch64-linux-gnu"] if runtime else []
    generate = ["-fprofile-instr-generate", "-fcoverage-mapping"]
    run("clang", *target, "-O2", "-g", *generate, "-c", "-o", folder / "filter.o", SOURCE)
    if runtime:
        run("clang", *target, "-fuse-ld=lld", "-o", folder / "filter", folder / "filter.o", runtime,
            "-Wl,-u,__llvm_profile_runtime")
        start = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
    else:
        run("clang", *generate, "-o", folder / "filter", folder / "filter.o")
        start = []
    run(*start, folder / "filter", packets, env={"LLVM_PROFILE_FILE": str(folder / "raw"), "PATH": "/usr/bin:/bin"})
    run("llvm-profdata", "merge", folder / "raw", "-o", folder / "counts")
    text = run("llvm-cov", "export", "-format=lcov", folder / "filter", f"-instr-profile={folder / 'counts'}")
    begins = sorted((int(line), name.split(":")[-1]) for line, name in re.findall(r"^FN:(\d+),(.*)$", text, re.M))
    lines = collections.defaultdict(dict)
    for line, count in re.findall(r"^DA:(\d+),(\d+)$", text, re.M):
        begin, name = max(entry for entry in begins if entry[0] <= int(line))
        lines[name][int(line) - begin] = int(count)
    entries = {name.split(":")[-1]: int(count) for count, name in re.findall(r"^FNDA:(\d+),(.*)$", text, re.M)}
    return lines, entries, dict((name, begin) for begin, name in begins)


def sampled(profile):
    """The same for a sample profile: the code of a line counts as often as the most frequent part of the line, in each place into
    which it was inlined."""
    lines, entries = collections.defaultdict(collections.Counter), collections.Counter()
    stack, here = [], {}

    def add():
        for name, most in here.values():
            for line, count in most.items():
                lines[name][line] += count

    for text in pathlib.Path(profile).read_text().splitlines():
        depth = len(text) - len(text.lstrip(" "))
        if found := re.match(r"^([^ :]+):\d+:(\d+)$", text):
            add()
            here = {0: (found[1], {})}
            stack, entries[found[1]] = [0], entries[found[1]] + int(found[2])
        elif found := re.match(r"^ +\d+(?:\.\d+)?: ([^ :]+):\d+$", text):
            key = len(here)
            here[key] = (found[1], {})
            stack = stack[:depth] + [key]
        elif found := re.match(r"^ +(\d+)(?:\.\d+)?: (\d+)", text):
            most = here[stack[depth - 1]][1]
            most[int(found[1])] = max(most.get(int(found[1]), 0), int(found[2]))
    add()
    return lines, entries


def write(path, lines, entries):
    text = ""
    for name in sorted(lines):
        total = sum(lines[name].values())
        if total != 0:
            text += f"{name}:{total}:{entries.get(name, 0)}\n"
            text += "".join(f" {line}: {count}\n" for line, count in sorted(lines[name].items()))
    path.write_text(text)


def main(profile, program, packets, runtime=None):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        counted, entries, begins = instrumented(folder, packets, runtime)
        rows = run("llvm-dwarfdump", "--debug-line", program)
        with_code = {int(line) for line in re.findall(r"^0x[0-9a-f]+ +(\d+) ", rows, re.M)}
        # A closing brace counts, and has no code.
        counted = {name: {line: count for line, count in lines.items() if begins[name] + line in with_code}
                   for name, lines in counted.items()}
        samples = sampled(profile)
        own = {name: lines for name, lines in samples[0].items() if name in begins}
        write(folder / "instrumentation", counted, entries)
        write(folder / "samples", own, samples[1])
        print(run("llvm-profdata", "overlap", "--sample", folder / "instrumentation", folder / "samples"))


if __name__ == "__main__":
    main(*sys.argv[1:])
