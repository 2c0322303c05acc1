#!/usr/bin/env python3
"""Checks every #include of include/ and src/ against cmake/layers.cmake, which defines what each layer may use.

    layers_test.py ROOT         check the tree at ROOT
    layers_test.py --self-test  check that the check finds violations planted in a small tree

Reported as violations:
  - an include of a layer that the line of the including layer in cmake/layers.cmake does not name
  - in include/: any header but the standard library's and waymark/<layer>/..., but for layers of NOT_INSTALLED
  - in src/<layer>: a private header of another layer
  - a layer that names one not declared above it (so the table has no cycles), or one not declared at all
  - a source file in a folder that is not a layer
  - in include/waymark.h, the interface for C: any header but those of C
  - in src/python, which is over that interface: any other header of Waymark
  - in a header of a use, include/waymark/<use>.h (USES): any header but waymark/<layer>/...
"""
import re
import sys

import house

# The headers of C++20 (C++ names only: <cstdint>, not <stdint.h>).
STANDARD = set("""
    algorithm any array atomic barrier bit bitset cassert ccomplex cctype cerrno cfenv cfloat charconv chrono cinttypes
    climits clocale cmath codecvt compare complex concepts condition_variable coroutine csetjmp csignal cstdarg cstddef
    cstdint cstdio cstdlib cstring ctgmath ctime cuchar cwchar cwctype deque exception execution filesystem format
    forward_list fstream functional future initializer_list iomanip ios iosfwd iostream istream iterator latch limits
    list locale map memory memory_resource mutex new numbers numeric optional ostream queue random ranges ratio regex
    scoped_allocator semaphore set shared_mutex source_location span sstream stack stdexcept stop_token streambuf string
    string_view strstream syncstream system_error thread tuple type_traits typeindex typeinfo unordered_map
    unordered_set utility valarray variant vector version
""".split())
# Headers that include everything that one use of the library needs. No layer includes them.
USES = {"answers", "capture", "decode", "diagnose", "exports", "live", "models", "packets", "programs", "samples"}
# Layers of the program, whose headers in include/ nothing installs: they may include libraries.
NOT_INSTALLED = {"command_line"}
SUFFIXES = {".h", ".hpp", ".inc", ".def", ".cc", ".cpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]*)>|"([^"]*)"|(.*))')


def read_table(path):
    """The layers and what each may include, and the errors in the table itself."""
    text = re.sub(r"#.*", "", path.read_text())
    table, wrong = {}, []
    for name, rest in re.findall(r"\bwaymark_layer\(\s*(\w+)([^)]*)\)", text):
        uses = rest.split()
        for used in uses:
            if used not in table:
                wrong.append(f"{path.name}: {name} names {used}, which is not declared above it")
        table[name] = set(uses)
    if not table:
        wrong.append(f"{path.name}: declares no layer")
    return table, wrong


def check_file(root, path, side, table):
    """Violations of one file; side is "include" or "src"."""
    parts = path.relative_to(root / side).parts
    if side == "include":
        parts = parts[1:] if parts[0] == "waymark" else ("",)
    layer = parts[0] if len(parts) > 1 else None
    where = path.relative_to(root)
    if str(where) == "include/waymark.h":
        allowed = {"stddef.h", "stdint.h"}
        return [f"{where}: <{name}>: the interface for C includes <stddef.h> and <stdint.h> only"
                for name in re.findall(r'^\s*#\s*include\s*[<"]([^>"]*)', path.read_text(), re.M) if name not in allowed]
    if side == "src" and parts[0] == "python":
        return [f"{where}: {name}: the Python module includes waymark.h only"
                for name in re.findall(r'^\s*#\s*include\s*[<"]([^>"]*)', path.read_text(), re.M)
                if name.startswith("waymark/")]
    if side == "include" and len(parts) == 1 and path.stem in USES:
        return [f"{where}: {name}: a header of a use includes public headers of layers only"
                for name in re.findall(r'^\s*#\s*include\s*[<"]([^>"]*)', path.read_text(), re.M)
                if name.split("/")[0] != "waymark" or name.split("/")[1] not in table]
    if layer not in table:
        return [f"{where}: is in no layer of cmake/layers.cmake"]

    wrong = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        angle, quoted, other = match.groups()
        name = angle if angle is not None else quoted
        at = f"{where}:{number}: {line.strip()}"
        if name is None:
            wrong.append(f"{at}: cannot be checked, names no file ({other.strip()})")
            continue
        if name.startswith("waymark/"):
            target = name.split("/")[1]
            if target not in table:
                wrong.append(f"{at}: {target} is no layer")
            elif target != layer and target not in table[layer]:
                wrong.append(f"{at}: {layer} may not include {target}")
        elif side == "include" and layer not in NOT_INSTALLED:
            if quoted is not None or name not in STANDARD:
                wrong.append(f"{at}: public headers include only the standard library and waymark/")
        else:
            owner = private_owner(root, path, name, quoted is not None, table)
            if owner is not None and owner != layer:
                wrong.append(f"{at}: is a private header of {owner}")
    return wrong


def private_owner(root, path, name, quoted, table):
    """The layer in whose src/ folder an include ends, or None."""
    source = (root / "src").resolve()
    tries = [source / name, root.resolve() / name]
    if quoted:
        tries.insert(0, path.resolve().parent / name)
    for candidate in tries:
        candidate = candidate.resolve()
        if candidate.is_file() and candidate.is_relative_to(source):
            owner = candidate.relative_to(source).parts[0]
            return owner if owner in table else None
    return None


def check(root):
    """(files checked, violations)"""
    table, wrong = read_table(root / "cmake" / "layers.cmake")
    files = [(side, path) for side in ("include", "src") for path in sorted((root / side).rglob("*"))
             if path.suffix in SUFFIXES and path.is_file()]
    for side, path in files:
        wrong += check_file(root, path, side, table)
    return len(files), wrong


def self_test():
    table = "waymark_layer(core)\nwaymark_layer(isa core)  # comment (core)\nwaymark_layer(flow\n    core isa)\n"
    clean = {
        "include/waymark/core/a.h": "#include <cstdint>\n",
        "include/waymark/isa/b.h": '#include <span>\n#include "waymark/core/a.h"\n',
        "include/waymark/flow/c.h": '#include "waymark/isa/b.h"\n',
        "src/isa/b.cc": '#include "waymark/isa/b.h"\n#include "tables.h"\n#include <fmt/core.h>\n#include <elf.h>\n',
        "src/isa/tables.h": "#pragma once\n",
    }
    # (file, line added to it, part of the message expected)
    planted = [
        ("include/waymark/core/a.h", '#include "waymark/isa/b.h"', "core may not include isa"),
        ("src/isa/b.cc", "#include <waymark/flow/c.h>", "isa may not include flow"),
        ("src/isa/b.cc", '  #  include "waymark/flow/c.h"', "isa may not include flow"),
        ("src/isa/b.cc", '#include "waymark/spe/x.h"', "spe is no layer"),
        ("include/waymark/isa/b.h", "#include <fmt/core.h>", "only the standard library"),
        ("include/waymark/isa/b.h", "#include <elf.h>", "only the standard library"),
        ("include/waymark/isa/b.h", '#include "a.h"', "only the standard library"),
        ("src/flow/c.cc", '#include "../isa/tables.h"', "private header of isa"),
        ("src/flow/c.cc", '#include "isa/tables.h"', "private header of isa"),
        ("src/flow/c.cc", '#include "src/isa/tables.h"', "private header of isa"),
        ("src/flow/c.cc", "#include <isa/tables.h>", "private header of isa"),
        ("src/isa/b.cc", "#include HEADER", "cannot be checked"),
        ("src/other/d.cc", "int d;", "in no layer"),
        ("include/waymark/loose.h", "int e;", "in no layer"),
        ("include/waymark/decode.h", '#include "waymark/capture.h"', "headers of layers only"),
        ("include/waymark/decode.h", "#include <vector>", "headers of layers only"),
        ("include/waymark.h", "#include <stdio.h>", "the interface for C"),
        ("src/python/module.cc", '#include "waymark/isa/b.h"', "waymark.h only"),
        ("cmake/layers.cmake", "waymark_layer(image analysis)", "analysis, which is not declared above"),
    ]
    def files(extra):
        out = {"cmake/layers.cmake": table, **clean}
        if extra:
            out[extra[0]] = out.get(extra[0], "") + extra[1] + "\n"
        return out

    return house.run_cases((files(case), lambda root: check(root)[1], case and case[2]) for case in [None, *planted])


if __name__ == "__main__":
    sys.exit(house.main(__doc__, check, self_test))
