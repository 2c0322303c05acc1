#!/usr/bin/env python3
"""Adds up CTest results and ends with one line: N passed, N failed, N skipped.

    summary.py PRESET=RESULTS…
    summary.py --self-test

RESULTS is the file of ctest --output-junit; left empty, or where there is no such file, the preset did not get as far
as its tests and counts as one failure. A test that reports each of its cases counts as that many: GoogleTest's
programs, Python's unittest with verbosity=2, and lines "ok: CASE" and "failed: CASE" with "N cases, N failed" at the
end. Each line "SKIPPED: reason" of a test that passed counts as one more case, which was skipped. Before the closing
line come the output of each failed case, what it left of its files ("kept: FOLDER") and the command that runs it alone, and
the reason of each skipped one. Exits with 1 if anything failed or nothing passed.
"""
import ast
import collections
import json
import pathlib
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree

SHOWN_LINES = 60  # number of lines of a failed test's output


def reason_for_skipping(output):
    """The test's own words: the text of GTEST_SKIP, or the rest of a line that begins with "SKIPPED:"."""
    said = re.search(r"^\S+:\d+: Skipped\n(.*?)\n*^\[  SKIPPED \]", output, re.MULTILINE | re.DOTALL)
    said = said or re.search(r"^SKIPPED: *(.+)$", output, re.MULTILINE)
    return " ".join(said.group(1).split()) if said and said.group(1).strip() else "gave no reason"


class Case(collections.namedtuple("Case", "name outcome output test part", defaults=(None, None))):
    """`outcome`: ok, failed or skipped. `test`: of CTest, and `part`: what that test calls the case, if it has several."""


def googletest_cases(output):
    """The cases of a GoogleTest program and the number that it set out to run; none if it is another program."""
    began = re.search(r"^\[={10}\] Running (\d+) tests? from", output, re.MULTILINE)
    if not began:
        return [], 0
    cases, name, start = [], None, 0
    for line in re.finditer(r"^\[( RUN      |       OK |  SKIPPED |  FAILED  )\] ([^\s,]+)(.*)$", output, re.MULTILINE):
        what = line[1].strip()
        if what == "RUN":
            name, start = line[2], line.start()
        elif line[2] == name and re.search(r"\(\d+ ms\)$", line[3]):
            outcome = {"OK": "ok", "FAILED": "failed", "SKIPPED": "skipped"}[what]
            cases.append(Case(name, outcome, output[start:line.end()]))
            name = None
    if name is not None:
        cases.append(Case(name, "failed", output[start:]))
    return cases, int(began[1])


def unittest_cases(output):
    """The cases of a Python unittest with verbosity=2, and how many it ran. A class that was skipped as a whole, or
    whose setUpClass failed, is one more case."""
    ran = re.search(r"^Ran (\d+) tests? in ", output, re.MULTILINE)
    if not ran:
        return [], 0
    blocks = re.split(r"^={70}\n", output, flags=re.MULTILINE)  # the log, then one block for each failure
    starts = list(re.finditer(r"^(?!OK |FAILED )(\w+) \((\S+)\)", blocks[0], re.MULTILINE))
    cases, classes = [], 0
    for start, following in zip(starts, [*starts[1:], None]):
        said = blocks[0][start.start():following.start() if following else len(blocks[0])]
        classes += not start[1].startswith("test")
        name = f"{start[2].removesuffix('.' + start[1]).rpartition('.')[2]}.{start[1]}"
        skipped = re.findall(r"""\.\.\. skipped (['"].*['"])$""", said, re.MULTILINE)
        if re.search(r"(\.\.\. |^)(FAIL|ERROR|unexpected success)$", said, re.MULTILINE):
            blamed = (block for block in blocks[1:] if re.match(rf"\w+: {re.escape(start[0])}", block))
            cases.append(Case(name, "failed", "\n".join([said, *blamed])))
        elif skipped:
            cases.append(Case(name, "skipped", "\n".join(f"SKIPPED: {ast.literal_eval(why)}" for why in skipped)))
        elif re.search(r"(\.\.\. |^)(ok|expected failure)$", said, re.MULTILINE):
            cases.append(Case(name, "ok", said))
        else:
            cases.append(Case(name, "failed", said + "\nit did not end"))
    return cases, int(ran[1]) + classes


def line_cases(output):
    """The cases of a program that reports each in a line, and the number that it states."""
    said = re.search(r"^(\d+) cases, \d+ failed$", output, re.MULTILINE)
    if not said:
        return [], 0
    cases, start = [], 0
    for line in re.finditer(r"^(ok|failed): (\S+)$", output, re.MULTILINE):
        cases.append(Case(line[2], line[1], output[start:line.end()]))
        start = line.end() + 1
    return cases, int(said[1])


def whole_name(test, case):
    """pft.Parser and Parser.Resets are pft.Parser.Resets; cli.usage and usage-raw are cli.usage-raw."""
    for dot in re.finditer(r"\.", test):
        if case.startswith(test[dot.end():]):
            return test[:dot.end()] + case
    return f"{test}: {case}"


def cases_of(test, status, output):
    """The cases of a test as it reports them. If it reports none, or fewer than it had, or CTest counts it as passed
    although it reports failures, the test as a whole with the reason. Lastly the parts that it skipped."""
    parts = re.findall(r"^SKIPPED: .*", output, re.MULTILINE) if status == "ok" else []
    kept = "".join(f"\n{line}" for line in re.findall(r"^kept: .*", output, re.MULTILINE))
    cases = [case._replace(test=test, output=re.sub(r"^kept: .*\n?", "", case.output, flags=re.MULTILINE).rstrip("\n") + kept)
             if case.outcome == "failed" else case._replace(test=test) for case in whole_cases_of(test, status, output)]
    return [*cases, *(Case(test, "skipped", part, test) for part in parts)]


def whole_cases_of(test, status, output):
    """The same without the parts that it skipped."""
    for count in (googletest_cases, unittest_cases, line_cases):
        cases, expected = count(output)
        if not expected and not cases:
            continue
        out = [case._replace(name=whole_name(test, case.name), part=case.name) for case in cases]
        if len(cases) != expected:
            out.append(Case(test, "failed", f"{output}\nit ran {len(cases)} of {expected} cases"))
        elif status == "failed" and not any(case.outcome == "failed" for case in cases):
            out.append(Case(test, "failed", f"{output}\nno case failed, but the program did"))
        return out
    if status == "ok" and re.search(r"^\[={10}\] Running 0 tests|^Ran 0 tests in ", output, re.MULTILINE):
        return [Case(test, "failed", f"{output}\nit has no cases")]
    return [Case(test, status, output)]


def cases_of_junit(path):
    """All cases in a file of ctest --output-junit."""
    for test in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name, output, status = test.get("name"), test.findtext("system-out") or "", test.get("status")
        message = (test.find("skipped").get("message") or "") if test.find("skipped") is not None else ""
        if status == "run":
            yield from cases_of(name, "ok", output)
        elif status == "disabled":
            yield Case(name, "skipped", "SKIPPED: disabled in the sources")
        elif status == "notrun" and "SKIP_" in message:
            yield from cases_of(name, "skipped", output)
        else:  # failed, or could not be started
            why = test.find("failure").get("message") if test.find("failure") is not None else message
            yield from cases_of(name, "failed", "\n".join(filter(None, [output.rstrip(), why])) or "no output")


class Alone:
    """How to run cases of a build alone."""

    def __init__(self, build):
        listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True, text=True,
                                check=False)
        try:
            self.tests = {test["name"]: test for test in json.loads(listed.stdout)["tests"]}
        except ValueError:
            self.tests = {}
        self.build = build

    def command(self, case):
        """None for results without a build, such as those from tests/shake, which state it themselves."""
        if not self.tests:
            return None
        test = self.tests.get(case.test)
        if test is None or not test.get("command"):
            return f"ctest --test-dir {shlex.quote(str(self.build))} -R {shlex.quote(f'^{re.escape(str(case.test))}$')} --output-on-failure"
        properties = {each["name"]: each["value"] for each in test.get("properties", [])}
        where = ["-C", properties["WORKING_DIRECTORY"]] if "WORKING_DIRECTORY" in properties else []
        return shlex.join(["env", *where, *properties.get("ENVIRONMENT", []), *only(test["command"], case.part)])


def only(command, part):
    """The command of a test for one of its cases: GoogleTest's filter, a class and method of unittest, or one of the cases
    that the command ends with."""
    if part is None:
        return command
    if any(word.startswith("--gtest_filter=") for word in command):
        return [f"--gtest_filter={part}" if word.startswith("--gtest_filter=") else word for word in command]
    if re.fullmatch(r"\w+\.(test\w*|setUpClass)", part):
        return [*(word for word in command if not re.fullmatch(r"\w+\.test\w*", word)), part.removesuffix(".setUpClass")]
    return command[:min(i for i in range(len(command)) if part in command[i:] and not any("/" in word for word in command[i:]))] + \
        [part] if part in command else command


def shown(output):
    """The end of the output of a failed case, as lines."""
    lines = output.rstrip().splitlines()
    return ([f"… {len(lines) - SHOWN_LINES} lines before"] if len(lines) > SHOWN_LINES else []) + lines[-SHOWN_LINES:]


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
        alone = Alone(pathlib.Path(path).parent)
        for case in cases_of_junit(path):
            if case.outcome == "ok":
                passed += 1
            elif case.outcome == "skipped":
                skipped[reason_for_skipping(case.output)].append(f"{preset}: {case.name}")
            else:
                command = alone.command(case)
                failed.append((f"{preset}: {case.name}", case.output.rstrip() + (f"\nalone: {command}" if command else "")))

    for test, output in failed:
        print(f"\nFAILED  {test}")
        for line in shown(output):
            print(f"    {line}")
    for reason, tests in skipped.items():
        print(f"\nskipped, {reason}:")
        for test in tests:
            print(f"    {test}")
    count = sum(len(tests) for tests in skipped.values())
    print(f"\n{passed} passed, {len(failed)} failed, {count} skipped")
    return 1 if failed or not passed else 0


def self_test():
    """How each kind of output is counted."""
    def outcomes(status, output):
        return [(case.name, case.outcome) for case in cases_of("t", status, output)]

    def end_of_unittest(count, failed=None):
        block = f"{'=' * 70}\nFAIL: {failed}\n{'-' * 70}\nTraceback\n\n" if failed else ""
        return f"\n{block}{'-' * 70}\nRan {count} tests in 0.1s\n\n{'FAILED (failures=1)' if failed else 'OK'}\n"

    begin = "[==========] Running 2 tests from 1 test suite.\n"
    first = "[ RUN      ] S.a\n[       OK ] S.a (0 ms)\n"
    second = "[ RUN      ] S.b/2\n"
    bad = second + "x.cc:3: Failure\n[  FAILED  ] S.b/2, where GetParam() = 4 (1 ms)\n"
    end = "[  FAILED  ] 1 test, listed below:\n[  FAILED  ] S.b/2, where GetParam() = 4\n"
    skip = (second + "x.cc:5: Skipped\nno perf\n\n[  SKIPPED ] S.b/2 (0 ms)\n"
            "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] S.b/2\n")
    python = ("test_a (__main__.A.test_a)\nWhat it is about. ... ok\n"
              "test_b (__main__.A.test_b) ... noise\nok\n")
    for status, output, expected in (
            ("ok", begin + first + second + "[       OK ] S.b/2 (3 ms)\n", [("t: S.a", "ok"), ("t: S.b/2", "ok")]),
            ("failed", begin + first + bad + end, [("t: S.a", "ok"), ("t: S.b/2", "failed")]),
            ("skipped", begin + first + skip, [("t: S.a", "ok"), ("t: S.b/2", "skipped")]),
            # A case that ends the program; a failure that hides later output; a program that fails at its end.
            ("failed", begin + first + second + "AddressSanitizer\n", [("t: S.a", "ok"), ("t: S.b/2", "failed")]),
            ("failed", begin + second + "killed\n", [("t: S.b/2", "failed"), ("t", "failed")]),
            ("failed", begin + first + second + "[       OK ] S.b/2 (3 ms)\nLeakSanitizer\n",
             [("t: S.a", "ok"), ("t: S.b/2", "ok"), ("t", "failed")]),
            ("ok", begin + first, [("t: S.a", "ok"), ("t", "failed")]),
            ("ok", "[==========] Running 0 tests from 0 test suites.\n", [("t", "failed")]),
            ("ok", "ok: a\nok: b\n2 cases, 0 failed\n", [("t: a", "ok"), ("t: b", "ok")]),
            ("failed", "ok: a\n-x\n+y\nfailed: b\n2 cases, 1 failed\n", [("t: a", "ok"), ("t: b", "failed")]),
            ("ok", "ok: a\n2 cases, 0 failed\n", [("t: a", "ok"), ("t", "failed")]),
            # unittest: skips alone, in part, and of a whole class; failures; output that is cut short.
            ("ok", python + end_of_unittest(2), [("t: A.test_a", "ok"), ("t: A.test_b", "ok")]),
            ("ok", python + "test_c (__main__.A.test_c)\nWhy. ... skipped \"no 'x'\"\n" + end_of_unittest(3),
             [("t: A.test_a", "ok"), ("t: A.test_b", "ok"), ("t: A.test_c", "skipped")]),
            ("ok", "test_c (__main__.A) ... \n  test_c (__main__.A) (i=2) ... skipped 'no x'\n" + end_of_unittest(1),
             [("t: A.test_c", "skipped")]),
            ("ok", python + "setUpClass (__main__.C) ... skipped 'no x'\n" + end_of_unittest(2),
             [("t: A.test_a", "ok"), ("t: A.test_b", "ok"), ("t: C.setUpClass", "skipped")]),
            ("failed", "test_d (__main__.A.test_d) ... FAIL\n" + python + end_of_unittest(3, "test_d (__main__.A.test_d)"),
             [("t: A.test_d", "failed"), ("t: A.test_a", "ok"), ("t: A.test_b", "ok")]),
            ("failed", python + end_of_unittest(2), [("t: A.test_a", "ok"), ("t: A.test_b", "ok"), ("t", "failed")]),
            ("failed", python, [("t", "failed")]),
            ("ok", python + "test_c (__main__.A.test_c) ... skipped 'no x'\n" +
             end_of_unittest(3).replace("OK", "OK (skipped=1)"),
             [("t: A.test_a", "ok"), ("t: A.test_b", "ok"), ("t: A.test_c", "skipped")]),
            # Without verbosity=2 the reasons for skips are not in the output.
            ("ok", ".s\n" + end_of_unittest(2), [("t", "failed")]),
            ("ok", end_of_unittest(0), [("t", "failed")]),
            # A skipped part of a test that passed.
            ("ok", "SKIPPED: no corpus\nmore\nSKIPPED: no perf\n", [("t", "ok"), ("t", "skipped"), ("t", "skipped")]),
            ("ok", python + end_of_unittest(2) + "SKIPPED: no corpus\n",
             [("t: A.test_a", "ok"), ("t: A.test_b", "ok"), ("t", "skipped")]),
            ("failed", "Traceback\n", [("t", "failed")]),
            ("ok", "anything", [("t", "ok")]),
            ("skipped", "SKIPPED: no qemu", [("t", "skipped")])):
        assert outcomes(status, output) == expected, (output, outcomes(status, output))
    for test, case, expected in (("pft.Parser", "Parser.Resets", "pft.Parser.Resets"),
                                 ("differential.perf.Perf", "Perf.Agrees", "differential.perf.Perf.Agrees"),
                                 ("cli.usage", "usage-raw", "cli.usage-raw"),
                                 ("cli.usage", "other", "cli.usage: other")):
        assert whole_name(test, case) == expected, whole_name(test, case)
    assert reason_for_skipping(cases_of("t", "skipped", begin + first + skip)[1].output) == "no perf"
    assert reason_for_skipping(cases_of("t", "ok", "test_c (__main__.A.test_c) ... skipped 'no \\'x\\''\n" +
                                        end_of_unittest(1))[0].output) == "no 'x'"
    for command, part, expected in (
            (["b/pft_test", "--gtest_filter=S.*"], "S.b/2", ["b/pft_test", "--gtest_filter=S.b/2"]),
            (["python3", "x/circle_test.py", "w", "/s", "A.test_a", "A.test_b"], "A.test_b",
             ["python3", "x/circle_test.py", "w", "/s", "A.test_b"]),
            (["python3", "/x.py", "/w", "/s"], "A.setUpClass", ["python3", "/x.py", "/w", "/s", "A"]),
            (["python3", "/cli_test.py", "/w", "/s", "usage-a", "usage-b"], "usage-b", ["python3", "/cli_test.py", "/w", "/s", "usage-b"]),
            (["python3", "/x.py", "/w"], "some-case", ["python3", "/x.py", "/w"]),
            (["python3", "/x.py", "/w"], None, ["python3", "/x.py", "/w"])):
        assert only(command, part) == expected, only(command, part)
    failing = "kept: /tmp/a b\n" + python + end_of_unittest(3, "test_d (__main__.A.test_d)")
    failing = failing.replace("test_b (__main__.A.test_b) ... noise\nok", "test_d (__main__.A.test_d) ... FAIL")
    (case,) = [case for case in cases_of("t", "failed", failing) if case.part == "A.test_d"]
    assert (case.test, case.output.splitlines()[-1]) == ("t", "kept: /tmp/a b"), case
    quiet = [str(file) for file in sorted(pathlib.Path(__file__).parent.rglob("*.py")) if file != pathlib.Path(__file__)
             for line in file.read_text().splitlines() if "unittest.main(" in line and "verbosity=2" not in line]
    assert not quiet, f"unittest.main without verbosity=2, so that no case is counted: {quiet}"
    silent = [str(file) for file in sorted(pathlib.Path(__file__).parent.rglob("*.py")) if file != pathlib.Path(__file__)
              if re.search(r"print\(f?[\"']skipped:", file.read_text())]
    assert not silent, f"the reason for skipping is not shown, since it does not begin with SKIPPED: {silent}"
    print("what tests say is counted")
    return 0


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else main(sys.argv[1:]))
