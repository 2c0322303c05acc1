#!/usr/bin/env python3
"""Names of columns: programs read `--format tsv` and `json` by them, so none may change by accident.

usage: columns_test.py WAYMARK SOURCE_FOLDER

Runs every command that prints a table and compares the first line of tsv, and the names of all members of JSON in
their order, with tests/cli/columns.txt. WM_UPDATE_APPROVED=1 writes that file instead.
"""
import difflib
import json
import os
import pathlib
import subprocess
import sys

import cli_test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

LOOP = "loop"
SORT = "sort/capture --image sort/sort.elf"
SPE = "spe/perf.data"
DPU_VIEWS = ("report", "tasks", "functions", "paths", "interrupts", "ranges", "timeline", "loops",
             "data", "ratios", "health")
BY = {"profile": ("function", "line", "block", "instruction", "image"), "coverage": ("file", "function", "image")}
BOTH = ("tsv", "json")


def commands():
    """(arguments, format) of every command."""
    for capture in (LOOP, SORT, SPE, "dpu", "dpu-loops"):
        for by in BY["profile"]:
            yield f"profile {capture} --by {by}", BOTH
        for view in ("branches", "loops", "exceptions"):
            yield f"{view} {capture}", BOTH
        yield f"diff {capture.split()[0]} {capture}", BOTH
    for capture in (LOOP, SORT):
        yield f"calls {capture} --function *", BOTH
    yield f"profile {SORT} --by level", BOTH
    yield f"profile {SORT} --inlines", BOTH
    yield f"profile {SORT} --by instruction --inlines", BOTH
    yield "profile dpu dpu", BOTH
    for capture in (LOOP, SORT):
        for by in BY["coverage"]:
            yield f"coverage {capture} --by {by}", BOTH
        yield f"coverage {capture} --uncovered", BOTH
    for capture in (LOOP, SORT, "dpu", "dpu-loops"):
        yield f"packets {capture}", BOTH
        yield f"flow {capture}", BOTH
    for capture in (LOOP, SORT, SPE, "dpu", "dpu-loops"):
        yield f"info {capture}", BOTH
        yield f"doctor {capture}", BOTH
    yield "doctor loop/etb.bin", BOTH
    yield "messages loop --kind all", BOTH
    for by in ("function", "line", "pc", "file", "thread", "source"):
        yield f"spe report {SPE} --by {by}", BOTH
    for by in ("branch", "pair"):
        yield f"spe branches {SPE} --by {by}", BOTH
    for name in ("quality", "sharing --all", "records"):
        yield f"spe {name} {SPE}", BOTH
    yield "spe explain PMSCR_EL1=0x1 PSTATE.EL=0", ("json",)
    for capture in ("dpu", "dpu-flow", "dpu-loops"):
        for view in DPU_VIEWS:
            yield f"dpu {view} {capture}{' --range 0x8000-0x9000' if view == 'ranges' else ''}", BOTH
    yield "dpu program program.txt", ("json",)
    for capture in (SORT, "dpu"):
        yield f"export {capture} --to csv -o csv", ("csv",)
        yield f"export {capture} --to jsonl -o jsonl", ("jsonl",)
    yield "export loop --to sqlite -o out.sqlite", ()
    yield "query out.sqlite", BOTH


def members(value, path, out):
    """The names of all members, each once, in their order."""
    if isinstance(value, dict):
        for name, member in value.items():
            at = f"{path}.{name}" if path else name
            out.setdefault(at)
            members(member, at, out)
    elif isinstance(value, list):
        for element in value:
            members(element, path + "[]", out)


def names(text, form):
    """A table's names, one a line."""
    if form in ("tsv", "csv"):
        return text.splitlines()[0].split("\t" if form == "tsv" else ",") if text else []
    out = {}
    try:
        values = [json.loads(text)]
    except json.JSONDecodeError:  # an object per line
        values = [json.loads(line) for line in text.splitlines()]
    for value in values:
        members(value, "", out)
    return list(out)


def all_names(waymark, folder):
    lines = []
    for arguments, formats in commands():
        for form in formats or ("",):
            command = arguments.split() + (["--format", form] if form in BOTH else [])
            done = subprocess.run([waymark, *command], cwd=folder, capture_output=True, timeout=HANGS,
                                  env={**os.environ, "LC_ALL": "C.UTF-8"})
            if done.returncode not in (0, 1, 3):
                sys.exit(f"waymark {' '.join(command)}: status {done.returncode}: {done.stderr.decode()}")
            tables = {"": done.stdout.decode(errors="replace")}
            if form in ("csv", "jsonl"):
                tables = {path.name: path.read_text() for path in sorted((folder / form).glob(f"*.{form}"))}
            for table, text in tables.items():
                found = names(text, form) if form else []
                if found:
                    lines += [f"$ waymark {' '.join(command)}{' ' + table if table else ''}", ", ".join(found)]
            for path in (folder / form).glob("*") if form in ("csv", "jsonl") else ():
                path.unlink()
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    waymark = pathlib.Path(sys.argv[1]).resolve()
    source = pathlib.Path(sys.argv[2]).resolve()
    approved_file = source / "tests" / "cli" / "columns.txt"
    with Folder() as name:
        folder = pathlib.Path(name)
        for fixture in ("loop", "spe", "dpu", "dpu-loops"):
            cli_test.use(source / "tests" / "cli" / "fixtures", folder, fixture, fixture)
        cli_test.use(source / "tests" / "cli" / "fixtures", folder, "dpu", "dpu-flow")
        cli_test.prepare("replace dpu-flow/dpu.ini: DP_TC=0x00201085 => DP_TC=0x00201087", None, folder)
        cli_test.use(source / "examples", folder, "sort", "sort")
        (folder / "program.txt").write_text("DP_TC TMODE=FLOW EN=1\n")
        actual = all_names(waymark, folder)
    approved = approved_file.read_text() if approved_file.exists() else ""
    if actual == approved:
        print(f"the columns of {actual.count('$ ')} tables have their approved names")
        return 0
    if os.environ.get("WM_UPDATE_APPROVED") == "1":
        approved_file.write_text(actual)
        print("approved")
        return 0
    print("".join(difflib.unified_diff(approved.splitlines(True), actual.splitlines(True), "approved", "now")))
    print("Names of columns changed: programs that read them break.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
