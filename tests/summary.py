#!/usr/bin/env python3
"""Adds up CTest results and ends with one line: N passed, N failed, N skipped.

    summary.py PRESET=RESULTS…

RESULTS is the file of ctest --output-junit; left empty, or where there is no such file, the preset did not get as far
as its tests and counts as one failure. Before the closing line stand the output of each failed test and each skipped
test with its reason. Exits with 1 if anything failed or nothing passed.
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

SHOWN_LINES = 60  # of the output of a failed test


def reason_for_skipping(output):
    """What the test said: the text of GTEST_SKIP, or the rest of a line that begins with "SKIPPED:"."""
    said = re.search(r"^\S+:\d+: Skipped\n(.*?)\n*^\[  SKIPPED \]", output, re.MULTILINE | re.DOTALL)
    said = said or re.search(r"^SKIPPED: *(.+)$", output, re.MULTILINE)
    return " ".join(said.group(1).split()) if said and said.group(1).strip() else "gave no reason"


def main(arguments):
    passed, failed = 0, []
    skipped = collections.defaultdict(list)  # reason -> tests
    for argument in arguments:
        preset, separator, path = argument.partition("=")
        if not separator:
            print(__doc__, file=sys.stderr)
            return 2
        if not path or not pathlib.Path(path).is_file():
            failed.append((preset, "did not get as far as its tests; see above, and build/log"))
            continue
        for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
            test = f"{preset}: {case.get('name')}"
            output = case.findtext("system-out") or ""
            if case.get("status") == "run":
                passed += 1
            elif case.get("status") == "disabled":
                skipped["disabled in the sources"].append(test)
            elif case.get("status") == "notrun" and "SKIP_" in (case.find("skipped").get("message") or ""):
                skipped[reason_for_skipping(output)].append(test)
            else:  # failed, or could not be started
                failure = case.find("failure")
                if failure is None:
                    failure = case.find("skipped")
                why = failure.get("message") if failure is not None else ""
                failed.append((test, "\n".join(filter(None, [output.rstrip(), why])) or "no output"))

    for test, output in failed:
        print(f"\nFAILED  {test}")
        lines = output.rstrip().splitlines()
        if len(lines) > SHOWN_LINES:
            print(f"    … {len(lines) - SHOWN_LINES} lines before")
        for line in lines[-SHOWN_LINES:]:
            print(f"    {line}")
    for reason, tests in skipped.items():
        print(f"\nskipped, {reason}:")
        for test in tests:
            print(f"    {test}")
    count = sum(len(tests) for tests in skipped.values())
    print(f"\n{passed} passed, {len(failed)} failed, {count} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
