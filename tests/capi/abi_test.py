#!/usr/bin/env python3
"""Compares what the shared library exports with what it promised: tests/capi/abi.txt, one line for each symbol.

    abi_test.py LIBRARY ROOT   WM_UPDATE_APPROVED=1 in the environment adds new symbols to the list; it removes none

A symbol that is missing breaks programs that use it. One that is not in the list would become a promise by accident. Each
function of include/waymark.h has to be there, and the sizes of structures that programs know must stay (abi.txt too).
"""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

# Structures that come in arrays, or that programs provide: the members listed here never change.
STRUCTURES = ["wm_block", "wm_range", "wm_event", "wm_packet", "wm_executed", "wm_operation", "wm_event_count",
              "wm_eonce_item"]


def exported(library):
    """Names with their versions, as `wm_open@@WAYMARK_1`."""
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], capture_output=True, text=True,
                         check=True).stdout
    return sorted(line.split()[2] for line in out.splitlines() if line.split()[1] != "A")


def soname(library):
    out = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return re.search(r"SONAME.*\[(.*)\]", out).group(1)


def layouts(root):
    """`wm_range 16: edge 0, offset 4, …` for each structure of STRUCTURES, as the compiler has it."""
    header = (root / "include" / "waymark.h").read_text()
    lines = ["#include <stdio.h>", "#include <waymark.h>", "int main(void) {"]
    for name in STRUCTURES:
        body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), header, re.S).group(1)
        body = re.sub(r"//[^\n]*", "", body)
        members = [m for statement in body.split(";") for m in re.findall(r"(\w+)\s*(?:\[\d+\])?\s*(?:,|$)", statement.strip())]
        lines.append(f'printf("{name} %zu:", sizeof({name}));')
        lines += [f'printf(" {m} %zu", offsetof({name}, {m}));' for m in members]
        lines.append('printf("\\n");')
    lines.append("return 0; }")
    with Folder() as folder:
        source = pathlib.Path(folder) / "layouts.c"
        source.write_text("\n".join(lines))
        program = pathlib.Path(folder) / "layouts"
        subprocess.run(["cc", f"-I{root}/include", source, "-o", program], check=True)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()


def compare(found, promised):
    wrong = [f"missing: {line}" for line in promised if line not in found]
    return wrong + [f"not promised: {line}" for line in found if line not in promised]


def main():
    library, root = sys.argv[1], pathlib.Path(sys.argv[2])
    approved = root / "tests" / "capi" / "abi.txt"
    found = [f"soname {soname(library)}", *exported(library), *layouts(root)]
    promised = approved.read_text().splitlines() if approved.exists() else []
    if os.environ.get("WM_UPDATE_APPROVED"):
        promised += [line for line in found if line not in promised]
        approved.write_text("\n".join(promised) + "\n")
    wrong = compare(found, promised)
    # The check can fail.
    assert compare(found[1:], promised) and compare([*found, "wm_more"], promised)
    header = (root / "include" / "waymark.h").read_text()
    functions = set(re.findall(r"^WM_API [^;(]*?\b(wm_\w+)\(", header, re.M))
    assert len(functions) > 50, functions
    wrong += [f"declared, but not exported: {name}" for name in sorted(functions)
              if not any(line.startswith(name + "@") for line in found)]
    if wrong:
        sys.exit("\n".join(wrong) + f"\nsymbols are listed in {approved.relative_to(root)} and src/capi/waymark.map")
    print(f"{len(found)} lines agree")


if __name__ == "__main__":
    main()
