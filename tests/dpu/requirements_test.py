#!/usr/bin/env python3
"""Checks that every requirement of docs/spec/dpu.md, section 2, is cited by a test.

    requirements_test.py ROOT         check the tree at ROOT
    requirements_test.py --self-test  check that the check finds planted mistakes

A test cites requirements in a comment line above it, with only other comment lines in between:

    // Requirements: R57 R63            # Requirements: R57 R63
    TEST(Flags, AreNoAddresses) {       def test_flags(self):

The script reads all tests in tests/dpu and tests/record. It reports requirements that no test cites, citations of
requirements that do not exist, and citations above something that is not a test or above a disabled test.
"""
import pathlib
import re
import sys
import tempfile

# Section 2 numbers the description R1 to R97 and the claims R101 to R129.
EXPECTED = [*range(1, 98), *range(101, 130)]
ROW = re.compile(r"^\| R(\d+) \|", re.MULTILINE)
CITATION = re.compile(r"^\s*(?://|#)\s*Requirements:(.*)$")
COMMENT = re.compile(r"^\s*(?://|#(?!include|define|if|endif))")
TEST = re.compile(r"^\s*(?:TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)|def\s+(\w+))")


def read_requirements(root):
    text = (root / "docs" / "spec" / "dpu.md").read_text(encoding="utf-8")
    found = [int(number) for number in ROW.findall(text)]
    wrong = []
    if found != EXPECTED:
        wrong.append("docs/spec/dpu.md: section 2 does not list R1 to R97 and R101 to R129 once each, in order")
    return sorted(set(found)), wrong


def read_citations(root):
    """{requirement: [test, ...]} and what is wrong with the citations."""
    cited, wrong = {}, []
    files = [path for folder in ("tests/dpu", "tests/record") for path in sorted((root / folder).rglob("*"))
             if path.suffix in {".cc", ".h", ".py"} and path.name != pathlib.Path(__file__).name]
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        for at, line in enumerate(lines):
            match = CITATION.match(line)
            where = f"{path.relative_to(root)}:{at + 1}"
            if not match:
                if path.suffix != ".h" and COMMENT.match(line) and "Requirements:" in line:
                    wrong.append(f"{where}: 'Requirements:' must begin its line")
                continue
            words = match.group(1).split()
            if not words or not all(re.fullmatch(r"R\d+", word) for word in words):
                if path.suffix == ".h":
                    continue  # a description of the convention
                wrong.append(f"{where}: 'Requirements:' wants numbers such as R57, separated by blanks")
                continue
            test = next((below for below in lines[at + 1:] if not COMMENT.match(below)), "")
            named = TEST.match(test)
            if not named:
                wrong.append(f"{where}: stands above no test: '{test.strip()}'")
                continue
            name = ".".join(part for part in named.groups() if part)
            if "DISABLED_" in name:
                wrong.append(f"{where}: the test {name} is turned off")
                continue
            for word in words:
                cited.setdefault(int(word[1:]), []).append(name)
    return cited, wrong


def check(root):
    """(lines to print, number of requirements, those not cited, what is wrong)"""
    required, wrong = read_requirements(root)
    cited, more = read_citations(root)
    wrong += more
    wrong += [f"R{number} is cited by {', '.join(cited[number])}, but is no requirement"
              for number in sorted(cited) if number not in required]
    missing = [number for number in required if number not in cited]
    lines = [f"R{number}: {', '.join(sorted(set(cited[number])))}" for number in required if number in cited]
    return lines, len(required), missing, wrong


def self_test():
    table = "".join(f"| R{number} | text | 1 |\n" for number in EXPECTED)
    every = " ".join(f"R{number}" for number in EXPECTED)
    good = {"docs/spec/dpu.md": table, "tests/dpu/a_test.cc": f"// Why.\n// Requirements: {every}\n// More.\nTEST(A, B) {{\n"}
    cases = [
        ({}, [], []),
        ({"tests/dpu/a_test.cc": f"// Requirements: {every[3:]}\nTEST(A, B) {{\n"}, [1], []),
        ({"tests/record/b.py": "# Requirements: R1\ndef test_it():\n"}, [], []),
        ({"tests/dpu/b_test.cc": "// Requirements: R98\nTEST(A, C) {\n"}, [], ["R98 is cited by A.C"]),
        ({"tests/dpu/b_test.cc": "// Requirements: R1\nint x;\n"}, [], ["stands above no test"]),
        ({"tests/dpu/b_test.cc": "// Requirements: R1\nTEST(A, DISABLED_C) {\n"}, [], ["is turned off"]),
        ({"tests/dpu/b_test.cc": "// Requirements: 57\nTEST(A, C) {\n"}, [], ["wants numbers"]),
        ({"tests/dpu/b_test.cc": "// Why. Requirements: R1\nTEST(A, C) {\n"}, [], ["must begin its line"]),
        ({"docs/spec/dpu.md": table.replace("| R57 |", "| R56 |")}, [], ["does not list", "R57 is cited"]),
        ({"tests/dpu/a_test.cc": ""}, EXPECTED, []),
    ]
    failures = 0
    for changes, want_missing, want_wrong in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in {**good, **changes}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            _, _, missing, wrong = check(root)
        if missing != want_missing or len(wrong) != len(want_wrong) or \
                not all(part in line for part, line in zip(want_wrong, wrong)):
            failures += 1
            print(f"{changes}: missing {missing}, wrong {wrong}")
    print(f"{len(cases) - failures} of {len(cases)} cases as expected")
    return 1 if failures else 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(arguments[0])
    lines, count, missing, wrong = check(root)
    print(*lines, *wrong, sep="\n")
    print(f"{count - len(missing)} of {count} requirements are cited by tests")
    if missing:
        print("not cited:", *(f"R{number}" for number in missing))
    if wrong:
        return 1
    if missing and not (root / "include/waymark/dpu/model.h").exists():
        print("SKIPPED: without the unit (include/waymark/dpu/model.h) its requirements cannot be tested")
        return 77
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
