#!/usr/bin/env python3
"""Checks that clang-tidy finds nothing in the sources, the tests and the fuzz targets (.clang-tidy).

    tidy_test.py ROOT BUILD [FILE…]   check the tree at ROOT, or those files of it
    tidy_test.py --self-test          check that the check finds what it must

BUILD is a folder of this test's own: it is configured for clang, each source by itself, and nothing is built in it. One
processor checks a source in 5 to 30 seconds. Versions of clang-tidy differ in what they find, so this needs version 14,
that of Debian 12; without it the test is skipped and says so.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
VERSION = "14"
FOLDERS = ("src", "tests", "fuzz", "examples")


def need(tool, package):
    for name in (f"{tool}-{VERSION}", tool):
        if path := shutil.which(name):
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            if f"version {VERSION}." in said:
                return path
    print(f"SKIPPED: sources are not checked: this needs {tool} {VERSION} (Debian package {package})")
    sys.exit(SKIPPED)


def findings(tidy, build, source, options=()):
    """The findings of clang-tidy in one source and the headers it includes, each with its place."""
    done = subprocess.run([tidy, "-p", build, "--quiet", *options, source], capture_output=True, text=True)
    found = re.findall(r"^(/.*?:\d+:\d+: (?:warning|error): .*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 and not found:
        found = [f"{source}: clang-tidy failed:\n{done.stdout}{done.stderr}"]
    return found


def check(root, build, tidy, compiler, wanted):
    """The number of sources, and the findings."""
    options = {"CMAKE_CXX_COMPILER": compiler, "CMAKE_BUILD_TYPE": "Debug", "WAYMARK_TESTS": "ON", "WAYMARK_FUZZ": "ON",
               "WAYMARK_WEB": "OFF"}
    done = subprocess.run(["cmake", "-S", root, "-B", build, "-G", "Ninja", *(f"-D{k}={v}" for k, v in options.items())],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cmake failed:\n{done.stdout}{done.stderr}")
    compiled = {pathlib.Path(entry["file"]) for entry in json.loads((build / "compile_commands.json").read_text())}
    sources = sorted(p for p in compiled if p.is_relative_to(root) and p.relative_to(root).parts[0] in FOLDERS)
    if wanted:
        sources = [p for p in sources if p in wanted]
        if missing := wanted - set(sources):
            sys.exit(f"not compiled, so not checked: {', '.join(map(str, sorted(missing)))}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda source: findings(tidy, build, source), sources)
        return len(sources), sorted({finding for each in found for finding in each})


def self_test(tidy):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copy(pathlib.Path(__file__).resolve().parent.parent / ".clang-tidy", root)
        (root / "src").mkdir()
        entries = []
        for name, text in {"good": "int twice(int n) { return n + n; }\n",
                           "bad": "int Twice(int n) { return n + n; }\n",
                           "broken": "int twice(int n) { return n + m; }\n"}.items():
            path = root / "src" / f"{name}.cc"
            path.write_text(text)
            command = ["clang++", "-std=c++20", "-c", str(path)]
            entries.append({"directory": str(root), "file": str(path), "arguments": command})
        (root / "compile_commands.json").write_text(json.dumps(entries))
        found = {path.stem: findings(tidy, root, path) for path in (root / "src").iterdir()}
        assert not found["good"], found
        assert len(found["bad"]) == 1 and "readability-identifier-naming" in found["bad"][0], found
        assert len(found["broken"]) == 1 and "undeclared identifier" in found["broken"][0], found
    print("findings are found")
    return 0


def main(arguments):
    if arguments != ["--self-test"] and (len(arguments) < 2 or arguments[0].startswith("-")):
        print(__doc__, file=sys.stderr)
        return 2
    tidy, compiler = need("clang-tidy", "clang-tidy"), need("clang++", "clang")
    if arguments == ["--self-test"]:
        return self_test(tidy)
    root, build, *files = (pathlib.Path(a).resolve() for a in arguments)
    count, found = check(root, build, tidy, compiler, set(files))
    print(*found, sep="\n")
    print(f"{count} sources, {len(found)} findings")
    return 1 if found or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
