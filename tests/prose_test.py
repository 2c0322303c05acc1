#!/usr/bin/env python3
"""Counts idioms that have to be read twice, in comments and strings of C++, and fails where a folder has more of them than
tests/prose.txt allows. The numbers there only fall.

    prose_test.py ROOT           check the tree at ROOT
    prose_test.py --show ROOT    the same, with each place
    prose_test.py --lower ROOT   writes smaller numbers into tests/prose.txt where a folder has fewer
    prose_test.py --self-test    check that the check counts what it should

What to write instead: subject and verb; the noun itself in place of "those of" and "of it"; the name of the constant or
parameter in place of "so many"; one idea a sentence.
"""
import pathlib
import re
import sys

import house

IDIOMS = re.compile(r"\b(?:those of|of it|so many|(?:is|are) said|told|whatever|what it is|what there is|"
                    r"what is known of|it is none)\b", re.I)
LIST = "tests/prose.txt"
TOKEN = re.compile(r'R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<string>(?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\\n])*\'|'
                   r'//[/!]?<?(?P<line>[^\n]*)|/\*(?P<block>.*?)\*/', re.S)


def sentences(text):
    """(line, text) of comments and strings: comments on lines in a row are one, and so are strings in a row."""
    out, kind, end = [], None, 0
    for token in TOKEN.finditer(text):
        now = token.lastgroup
        if now is None:
            continue
        piece = token.group(now)
        if now == kind and now in ("line", "string") and not text[end:token.start()].strip():
            out[-1][1] += piece if now == "string" else " " + piece
        else:
            out.append([text.count("\n", 0, token.start()) + 1, piece])
        kind, end = now, token.end()
    return [(line, re.sub(r"\s+", " ", piece)) for line, piece in out]


def count(root):
    """The number of files, and the places by folder."""
    files, places = 0, {}
    for side in ("include", "src"):
        for path in sorted((root / side).rglob("*")):
            if path.suffix not in (".h", ".cc", ".txt"):
                continue
            files += 1
            parts = path.relative_to(root).parts
            folder = "/".join(parts[:-1][:3 if side == "include" else 2])
            for line, text in sentences(path.read_text()):
                for found in IDIOMS.finditer(text):
                    near = text[max(0, found.start() - 40):found.end() + 20].strip()
                    places.setdefault(folder, []).append(f"{path.relative_to(root)}:{line}: {near}")
    return files, places


def read_list(root):
    rows = [line.split() for line in (root / LIST).read_text().splitlines() if line and line[0] != "#"]
    return {folder: int(number) for folder, number in rows}


def check(root, show=False):
    files, places = count(root)
    allowed, wrong = read_list(root), []
    for folder, found in sorted(places.items()):
        if show:
            print(*found, sep="\n")
        if len(found) > allowed.get(folder, 0):
            wrong.append(f"{folder}: {len(found)} idioms to be read twice, {allowed.get(folder, 0)} allowed by {LIST}; "
                         f"prose_test.py --show lists them")
    fewer = sum(number - len(places.get(folder, [])) for folder, number in allowed.items()
                if len(places.get(folder, [])) < number)
    if fewer:
        print(f"{fewer} fewer than {LIST} allows: prose_test.py --lower writes the new numbers")
    return files, wrong


def lower(root):
    places = count(root)[1]
    head = [line for line in (root / LIST).read_text().splitlines() if line.startswith("#")]
    rows = {folder: min(number, len(places.get(folder, []))) for folder, number in read_list(root).items()}
    (root / LIST).write_text("\n".join(head + [f"{f} {n}" for f, n in sorted(rows.items()) if n]) + "\n")
    print(f"{sum(rows.values())} in {len(rows)} folders")


def self_test():
    def one(text, allowed=0, name="src/cli/a.cc"):
        return {name: text, LIST: f"# head\nsrc/cli {allowed}\n"}, lambda root: check(root)[1]

    return house.run_cases([
        (*one("/// The rules are those\n/// of the table.\n"), "src/cli: 1 idioms"),
        (*one('say("the rest of "\n    "it");\n'), "src/cli: 1 idioms"),
        (*one("int those_of(int of); // of items, and so on\n"), None),
        (*one("/* So many bytes. */\n", allowed=1), None),
        (*one("/* So many bytes. It is none. */\n", allowed=1), "src/cli: 2 idioms"),
        (*one("int a;  // what there\nint b;  // is\n"), None),
        (*one('auto a = R"(what there\nis)";\n'), "src/cli: 1 idioms"),
        (*one("// told\n", name="include/waymark/core/a.h"), "include/waymark/core: 1 idioms"),
    ])


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--lower":
        lower(pathlib.Path(sys.argv[2]))
    elif len(sys.argv) == 3 and sys.argv[1] == "--show":
        print(*check(pathlib.Path(sys.argv[2]), show=True)[1], sep="\n")
    else:
        sys.exit(house.main(__doc__, check, self_test))
