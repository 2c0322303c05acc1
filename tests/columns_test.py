#!/usr/bin/env python3
"""A column that several documents describe has one meaning in all of them.

    columns_test.py SOURCE_DIR
    columns_test.py --self-test

docs/columns.md describes what the commands print for programs, docs/sqlite-schema.md what they export, docs/answers-file.md
what they keep. All are written from the code. Where a column of one has the name of a column of the other, and both tables
are about the same thing, the words are the same (include/waymark/answers/meanings.h has them once).
"""
import pathlib
import re
import sys

# Tables of both documents with the same rows: the command's, the export's.
SAME_ROWS = (("profile --by function", "functions"), ("branches", "branches"), ("loops", "loops"),
             ("exceptions", "exceptions"), ("profile --by level", "levels"))
# Exceptions in the answers file, whose rows are finer than the export's.
KEPT_DIFFERENT = {
    ("edges", "times"): "has edges between instructions, the export ways of control",
    ("loops", "line"): "is the line of the head",
    ("loops", "entries"): "the export has both kinds of loops in one table",
    ("loops", "depth"): "the export has both kinds of loops in one table",
    ("calls", "calls"): "counts nodes of the tree, the export paths of calls",
    ("slices", "merged"): "the export says which function a merged slice names",
    ("charts", "title"): "the export has it for tables too",
}
# Columns that differ on purpose, each with its reason.
DIFFERENT = {
    ("profile --by function", "address"): "is empty for what is no code",
    ("profile --by function", "calls"): "has rows of other kinds",
    ("profile --by function", "line"): "has the file's name in it",
    ("branches", "line"): "has the file's name in it",
    ("loops", "line"): "has the file's name in it, and is the head's",
    ("loops", "entries"): "of hardware loops the command has other words",
    ("loops", "depth"): "the command does not show it for hardware loops",
}


def printed(text):
    """{(command, column): meaning} of docs/columns.md."""
    out, command = {}, None
    for line in text.splitlines():
        if match := re.match(r"## `waymark (.*)`$", line):
            command = match[1]
        elif match := re.match(r"\| `([^`]+)` \|[^|]*\|[^|]*\| (.*) \|$", line):
            out[command, match[1]] = match[2]
    return out


def exported(text):
    """{(table, column): meaning} of docs/sqlite-schema.md."""
    out, table = {}, None
    for line in text.splitlines():
        if match := re.match(r"CREATE TABLE (\w+)", line):
            table = match[1]
        elif match := re.match(r"    (\w+) [A-Z]+.*?-- (.*)$", line):
            out[table, match[1]] = re.sub(r"; an address$| → [\w.]+$", "", match[2])
    return out


def stored(text):
    """{(table, column): meaning} of docs/answers-file.md, without columns whose meaning is a list of words."""
    out, table = {}, None
    for line in text.splitlines():
        if match := re.match(r"#+ `?([\w ]+)`?", line):
            table = match[1]
        elif (match := re.match(r"\| (\w+) \| (\w+) \| (.*) \|$", line)) and match[2] != "choice":
            out[table, match[1]] = match[3]
    return out


def stored_differences(file, kept):
    """The same for the answers file, whose tables have the names of the export's."""
    different = {at for at, meaning in file.items() if at in kept and kept[at] != meaning}
    out = [f"{column}: the answers file says '{file[table, column]}', the table {table} says '{kept[table, column]}'"
           for table, column in sorted(different - KEPT_DIFFERENT.keys())]
    out += [f"{column} of {table} in the answers file: the exemption is not needed"
            for table, column in sorted(KEPT_DIFFERENT.keys() - different)]
    return out, sum(at in kept for at in file)


def differences(shown, kept):
    """Sentences about columns with two meanings, and about exemptions that are not needed."""
    needed, out, compared = set(), [], 0
    for command, table in SAME_ROWS:
        for (of, column), meaning in shown.items():
            other = kept.get((table, column))
            if of != command or other is None:
                continue
            compared += 1
            if meaning == other:
                continue
            needed.add((command, column))
            if (command, column) not in DIFFERENT:
                out.append(f"{column}: waymark {command} says '{meaning}', the table {table} says '{other}'")
    out += [f"{column} of waymark {command}: the exemption ('{reason}') is not needed"
            for (command, column), reason in DIFFERENT.items() if (command, column) not in needed]
    return out, compared


def self_test():
    shown = printed("## `waymark branches`\n| `taken` | number |  | times |\n| `kind` | text |  | kind of it |\n")
    kept = exported("CREATE TABLE branches (\n    taken INTEGER,  -- times\n    kind TEXT,  -- of it\n")
    found = [line for line in differences(shown, kept)[0] if "exemption" not in line]
    assert found == ["kind: waymark branches says 'kind of it', the table branches says 'of it'"], found
    assert any("exemption" in line for line in differences(shown, kept)[0])


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        print("the check finds a difference, and an exemption that is not needed")
        return 0
    docs = pathlib.Path(sys.argv[1]) / "docs"
    kept = exported((docs / "sqlite-schema.md").read_text())
    found, compared = differences(printed((docs / "columns.md").read_text()), kept)
    more, others = stored_differences(stored((docs / "answers-file.md").read_text()), kept)
    found, compared = found + more, compared + others
    for line in found:
        print(line)
    if compared < 80:
        print(f"only {compared} columns were compared: the documents have another form")
        return 1
    print(f"{compared} columns compared, {len(found)} with two meanings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
