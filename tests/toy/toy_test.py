#!/usr/bin/env python3
"""The toy protocol of toy.patch, which was written by following docs/how-to/add-a-protocol.md, still fits the tree.

    toy_test.py SOURCE                        it applies, and touches what a protocol may touch and nothing else
    toy_test.py SOURCE WORK [CMAKE_OPTION…]   and in a copy of the tree at WORK it builds, passes its tests, decodes, lists
                                              its packets, is identified by `waymark doctor`, is recorded and verified
    toy_test.py --self-test                   the check of files finds those that are not allowed

If the patch no longer applies, or the tree has changed what a protocol must provide: apply it to a copy with `git apply
--3way`, mend it as the how-to says, mend the how-to where it is wrong, and write the patch anew with `git diff`.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

# The files that a new protocol adds, and the files that it changes, with the maximum number of added and removed lines.
ADDED = re.compile(r"(include/waymark|src|tests)/toy/[\w.]+|docs/spec/toy\.md|fuzz/toy_\w+\.cc|tests/data/fuzz/toy_\w+/\w+")
CHANGED = {"src/pipeline/protocols.cc": 2, "cmake/layers.cmake": 2, "CMakeLists.txt": 1, "tests/CMakeLists.txt": 2,
           "fuzz/CMakeLists.txt": 2}
MOST_LINES = 1200


def run(*arguments, **more):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stdout[-4000:]}"
                 f"{done.stderr[-4000:]}")
    return done.stdout


def wrong_files(numstat, existing):
    """Sentences on a `git diff --numstat`; `existing(name)`: the file was there before."""
    wrong, total = [], 0
    for line in numstat.splitlines():
        added, removed, name = line.split("\t")
        total += int(added)
        if existing(name):
            most = CHANGED.get(name)
            if most is None:
                wrong.append(f"{name} is changed; a protocol needs no change there")
            elif max(int(added), int(removed)) > most:
                wrong.append(f"{name}: {added} lines added and {removed} removed; at most {most} are needed")
        elif not ADDED.fullmatch(name):
            wrong.append(f"{name} is added outside the protocol's folders")
    if total == 0:
        wrong.append("the patch is empty")
    if total > MOST_LINES:
        wrong.append(f"{total} lines are added; {MOST_LINES} must be enough for a toy")
    return wrong


def self_test():
    there = {"src/pipeline/protocols.cc", "src/cli/info.cc", "cmake/layers.cmake"}
    cases = [("9\t0\tsrc/toy/protocol.cc\n2\t1\tsrc/pipeline/protocols.cc\n", 0),
             ("9\t0\tsrc/toy/protocol.cc\n1\t0\tsrc/cli/info.cc\n", 1),
             ("9\t0\tsrc/cli/toy.cc\n", 1),
             ("9\t0\tsrc/toy/a.cc\n7\t1\tcmake/layers.cmake\n", 1),
             ("9\t0\tsrc/toy/a.cc\n1\t7\tcmake/layers.cmake\n", 1),
             (f"{MOST_LINES + 1}\t0\tsrc/toy/a.cc\n", 1),
             ("", 1)]
    failures = [(numstat, wrong) for numstat, expected in cases
                if len(wrong := wrong_files(numstat, there.__contains__)) != expected]
    print(*failures, sep="\n", end="\n" if failures else "")
    print(f"{len(cases) - len(failures)} of {len(cases)} cases as expected")
    return 1 if failures else 0


def apply(source, patch, to):
    """Copies the tree, applies the patch, and returns the numstat of the changes."""
    # A separate repository: git then applies the patch here, wherever the copy is.
    git = ["git", "-C", to, "-c", "user.name=toy", "-c", "user.email=toy@invalid", "-c", "core.autocrlf=false"]
    shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("build", ".git", "node_modules", "__pycache__"))
    run("git", "init", "-q", to)
    run(*git, "add", "-A")
    run(*git, "commit", "-qm", "before")
    applied = subprocess.run(["git", "-C", str(to), "apply", "--index", str(patch)], capture_output=True, text=True)
    if applied.returncode != 0:
        sys.exit(f"{patch} does not apply to the tree:\n{applied.stderr}{__doc__.split(chr(10) * 2)[-1]}")
    return run(*git, "diff", "--cached", "--numstat", "HEAD")


def tsv(text):
    """Rows of a listing, as dictionaries."""
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def expect(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def executed(waymark, capture):
    """The ranges of a capture: start, end, instruction set."""
    rows = tsv(run(waymark, "flow", capture, "--format", "tsv"))
    return [(r["start"], r["end"], r["isa"]) for r in rows if r["element"] == "range"]


def use(waymark, source, work):
    """The commands that users run on a protocol."""
    out = work / "recorded"
    shutil.rmtree(out, ignore_errors=True)
    program = source / "examples/sort/sort.elf"
    run(waymark, "record", "--from-start", "--unit", "toy", "--truth", "-o", out, "--", program)
    run(waymark, "verify", out)
    ptm = work / "recorded-ptm"
    shutil.rmtree(ptm, ignore_errors=True)
    run(waymark, "record", "--from-start", "-o", ptm, "--", program)
    expect(executed(waymark, out) == executed(waymark, ptm) != [], "the flow is that of a recording with a PTM")

    packets = tsv(run(waymark, "packets", out, "--format", "tsv"))
    names = {row["packet"] for row in packets}
    expect(names == {"A-SYNC", "SYNC", "ATOM", "ADDRESS", "REACHED", "EXCEPTION"}, f"all packets are listed: {names}")

    info = json.loads(run(waymark, "info", out, "--format", "json"))
    expect("short_addresses" in json.dumps(info), "info shows how the unit was programmed")

    buffer = out / "trace.bin"
    found = run(waymark, "doctor", buffer, "--image", program)
    expect("source 0x10 source_10  Toy flow protocol (TOY)" in found and "agrees, proven" in found,
           f"doctor identifies it, and finds that the program is what ran: {found}")


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    if shutil.which("git") is None:
        print("SKIPPED: git is not installed; install it (apt-get install git) to apply the toy protocol")
        return 77
    source = pathlib.Path(arguments[0]).resolve()
    patch = source / "tests/toy/toy.patch"
    with Folder() as temporary:
        work = pathlib.Path(arguments[1]).resolve() if len(arguments) > 1 else pathlib.Path(temporary)
        tree = work / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        wrong = wrong_files(apply(source, patch, tree), lambda name: (source / name).exists())
        print(*wrong, sep="\n", end="\n" if wrong else "")
        if wrong:
            return 1
        for house in ("protocols_test.py", "layers_test.py"):
            print(run(sys.executable, tree / "tests" / house, tree), end="")
        if len(arguments) == 1:
            print("the toy protocol applies, and touches its own files alone")
            return 0

        build = work / "build"
        run("cmake", "-S", tree, "-B", build, "-DWAYMARK_TESTS=ON", *arguments[2:])
        run("cmake", "--build", build, "--parallel", str(os.cpu_count()), "--target", "waymark", "toy_test",
            "pipeline_test")
        print(run(build / "bin/toy_test", "--gtest_brief=1"), end="")
        own = run(build / "bin/pipeline_test", "--gtest_filter=*/TOY:Protocols.*", "--gtest_brief=1")
        expect(re.search(r"\b([7-9]|\d\d) tests from", own), f"tests of every row ran: {own}")
        print(own, end="")
        if shutil.which("qemu-arm") is None:
            print("SKIPPED: qemu-arm is not installed (apt-get install qemu-user): nothing was recorded; all else passed")
            return 77
        use(build / "bin/waymark", source, work)
    print("the toy protocol builds, decodes, is listed, identified, recorded and verified")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
