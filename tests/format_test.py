#!/usr/bin/env python3
"""Checks that clang-format would change nothing in our C++ sources and headers (.clang-format).

    format_test.py ROOT         check the tree at ROOT
    format_test.py --self-test  check that the check finds what it must

Versions of clang-format differ in how they break lines, so this needs version 14, that of Debian 12. Without it the test
is skipped and says so. `clang-format -i FILE` formats a file.

Programs in C are left as they are: they are recorded, and tests and documents cite their lines.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
VERSION = "14"
FOLDERS = ("bench", "examples", "fuzz", "guest", "include", "src", "tests")
SUFFIXES = (".cc", ".h")


def formatter():
    """The clang-format to use; ends the test where there is none."""
    found = []
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if path := shutil.which(name):
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
            if re.search(rf"version {VERSION}\.", said):
                return path
            found.append(said.strip())
    print(f"SKIPPED: sources are not checked: this needs clang-format {VERSION} (Debian package clang-format)" +
          "".join(f"; found {version}" for version in found))
    sys.exit(SKIPPED)


def sources(root):
    return sorted(p for folder in FOLDERS for p in (root / folder).rglob("*") if p.suffix in SUFFIXES and p.is_file())


def check(root, tool):
    """The number of files, and the files that clang-format would change, with the first place."""
    files = sources(root)
    done = subprocess.run([tool, "--dry-run", "--style=file", *files], cwd=root, capture_output=True, text=True)
    wrong = {}
    for path, place in re.findall(r"^(.+?):(\d+:\d+): warning: ", done.stderr, re.MULTILINE):
        wrong.setdefault(pathlib.Path(path).relative_to(root), place)
    if done.returncode != 0 and not wrong:
        sys.exit(f"{tool} failed:\n{done.stderr}")
    return len(files), wrong


def self_test(tool):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copy(pathlib.Path(__file__).resolve().parent.parent / ".clang-format", root)
        for name, text in {"src/a/good.cc": "int f() { return 1; }\n", "src/a/bad.cc": "int g() {return 1;}\n",
                           "include/waymark/a/bad.h": "int  h();\n", "docs/not_ours.cc": "int  k();\n"}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        count, wrong = check(root, tool)
        expected = {pathlib.Path("src/a/bad.cc"): "1:10", pathlib.Path("include/waymark/a/bad.h"): "1:4"}
        assert (count, wrong) == (3, expected), (count, wrong)
    print("files that are formatted otherwise are found")
    return 0


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-") and arguments[0] != "--self-test":
        print(__doc__, file=sys.stderr)
        return 2
    tool = formatter()
    if arguments[0] == "--self-test":
        return self_test(tool)
    count, wrong = check(pathlib.Path(arguments[0]).resolve(), tool)
    for path, place in wrong.items():
        print(f"{path}:{place}: clang-format would change this; run clang-format -i {path}")
    print(f"{count} files, {len(wrong)} formatted otherwise")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
