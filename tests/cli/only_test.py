#!/usr/bin/env python3
"""--only of files and of functions that are called like them, on a program with debug information.

usage: only_test.py WAYMARK SOURCE_FOLDER
"""
import csv
import pathlib
import shutil
import subprocess
import sys

import strange_names_test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import scratch  # noqa: E402
from scratch import Folder  # noqa: E402

SKIPPED = 77


def rows(waymark, *arguments):
    done = subprocess.run([waymark, *arguments, "--format", "tsv"], capture_output=True, text=True)
    return done, list(csv.DictReader(done.stdout.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    waymark, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    failed = 0
    with Folder() as name:
        folder = pathlib.Path(name)
        (folder / "part").mkdir()
        # The file is called like one of its functions.
        program = strange_names_test.with_lines(source, folder, folder / "part" / "sorted.c")
        if program is None:
            return SKIPPED
        capture = folder / "capture"
        shutil.copytree(source / "examples" / "sort" / "capture", capture)

        def names(*only):
            words = [word for each in only for word in ("--only", each)]
            _, found = rows(waymark, "coverage", capture, "--image", program, "--by", "function", *words)
            return {row["function"] for row in found} - {"all"}

        everything = names()
        of_file = names("sorted.c")
        checks = [
            ("a function, not the file of that name", names("sorted") == {"sorted"}),
            ("a file has several functions", {"sorted", "quicksort", "fill"} <= of_file),
            ("a file has not those of others", of_file < everything),
            ("more of its path", names("part/sorted.c") == of_file),
            ("all of its path", names(str(folder / "part" / "sorted.c")) == of_file),
            ("a folder", names("part/") == of_file),
            ("patterns of files", names("*.c") == of_file and names("sort*.c") == of_file),
            ("patterns of functions", names("*sort*") == {f for f in everything if "sort" in f}),
            ("an image", names(program.name) == everything),
            ("file and function", names("sorted.c", "_start") == of_file | {"_start"}),
            ("part of a file's name", names("orted.c") == set()),
            ("part of a folder's name", names("art/") == set()),
        ]
        for what, good in checks:
            if not good:
                failed += 1
                print(f"failed: {what}")
        done, _ = rows(waymark, "coverage", capture, "--image", program, "--only", "orted.c")
        if done.returncode != 1 or "called 'orted.c'" not in done.stderr or "part/sorted.c" not in done.stderr:
            failed += 1
            print(f"failed: what there is instead: {done.returncode} {done.stderr}")
        if failed:
            scratch.failed()
    print(f"{len(checks) + 1} checks, {failed} failed; functions: {', '.join(sorted(everything))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
