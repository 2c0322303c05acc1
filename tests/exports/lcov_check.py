#!/usr/bin/env python3
"""Checks a tracefile by the rules of lcov 2.2 and later, whose genhtml refuses what breaks them: the line of each function
has a count, and a function has run if and only if one of its lines has. Where the last line of a function is not given, it is
the last one before the next function. Prints what the file contains.

    lcov_check.py FILE
"""
import pathlib
import re
import sys


def check(source, lines, functions, sums):
    by_line = {}
    for line, last, name in functions["FN"]:
        entry = by_line.setdefault(line, [0, last, name])
        entry[0] += functions["FNDA"][name]
    for line, (times, last, name) in by_line.items():
        assert line in lines, f"{source}:{line}: {name} is at a line without a count"
        if "{lambda(" in name and last is None:
            continue
        if last is None:
            later = [first for first, (_, _, other) in by_line.items() if first > line and "{lambda(" not in other]
            last = min(later, default=1 << 32) - 1
        assert last >= line, f"{source}:{line}: {name} ends at {last}"
        within = [at for at, hits in lines.items() if line <= at <= last and hits]
        if times == 0:
            assert not within, f"{source}:{line}: {name} has not run, and line {within[0]} has"
        else:
            assert within, f"{source}:{line}: {name} has run, and none of its lines has"
    assert sums["LF"] == len(lines) and sums["LH"] == sum(hits != 0 for hits in lines.values()), source
    assert sums["FNF"] == len(functions["FN"]), source
    assert sums["FNH"] == sum(functions["FNDA"][name] != 0 for _, _, name in functions["FN"]), source


def main():
    total = {"files": 0, "lines": 0, "functions": 0}
    for record in pathlib.Path(sys.argv[1]).read_text().split("end_of_record\n"):
        source = re.search(r"^SF:(.*)$", record, re.M)
        if source is None:
            assert not record.strip(), record
            continue
        lines = {int(line): int(hits) for line, hits in re.findall(r"^DA:(\d+),(\d+)$", record, re.M)}
        functions = {
            "FN": [(int(line), int(last) if last else None, name)
                   for line, last, name in re.findall(r"^FN:(\d+),(?:(\d+),)?([^,\n]+)$", record, re.M)],
            "FNDA": {name: int(times) for times, name in re.findall(r"^FNDA:(\d+),([^,\n]+)$", record, re.M)}}
        assert len(functions["FN"]) == len(re.findall("^FN:", record, re.M)), f"{source[1]}: a comma in a name"
        check(source[1], lines, functions, {name: int(n) for name, n in re.findall(r"^(LF|LH|FNF|FNH):(\d+)$", record, re.M)})
        total["files"] += 1
        total["lines"] += len(lines)
        total["functions"] += len(functions["FN"])
    print(", ".join(f"{n} {what}" for what, n in total.items()))


if __name__ == "__main__":
    main()
