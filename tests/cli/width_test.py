#!/usr/bin/env python3
"""Every view in a terminal of 80 columns: no line is wider, and every table has the share of its sort key.

    width_test.py WAYMARK SOURCE_DIR
"""
import pathlib
import re
import sys
import unittest

import cli_test
import columns_test
import terminal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

COLUMNS = 80
SORT, SPE = columns_test.SORT, columns_test.SPE
# Beside the tables: lists, trees and sums.
OTHERS = (f"flow {SORT} --format calls", f"flow {SORT} --format summary", f"flow {SORT} --disassemble",
          "explain loop", "export --list")


class Width(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        fixtures = SOURCE / "tests" / "cli" / "fixtures"
        for fixture in ("loop", "spe", "dpu", "dpu-loops"):
            cli_test.use(fixtures, cls.folder, fixture, fixture)
        cli_test.use(SOURCE / "examples", cls.folder, "sort", "sort")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def shown(self, arguments, columns=COLUMNS):
        text, status = terminal.run([WAYMARK, *arguments.split(), "--no-pager"], columns, cwd=self.folder,
                                    env={"NO_COLOR": "1"})
        self.assertIn(status, (0, 1, 3), (arguments, text))
        # On a busy machine progress is shown, and erased before the output.
        return re.sub("[^\n]*\r\x1b\\[K", "", text)

    def test_no_line_is_wider(self):
        views = [arguments for arguments, formats in columns_test.commands()
                 if "tsv" in formats and "dpu-flow" not in arguments and not arguments.startswith("query")]
        self.assertGreater(len(views), 29)
        for arguments in (*views, *OTHERS):
            with self.subTest(arguments):
                for line in self.shown(arguments).splitlines():
                    # The terminal breaks the lines of standard error.
                    if not line.startswith("waymark: "):
                        self.assertLessEqual(len(line), COLUMNS, line)

    def test_no_line_of_a_fleet_is_wider(self):
        self.shown("fleet plan loop sort/capture -o job --image sort/sort.elf")
        for arguments in ("fleet local job", "fleet status job", "fleet merge job"):
            with self.subTest(arguments):
                shown = self.shown(arguments).splitlines()
                if "status" not in arguments:
                    self.assertTrue(any("cost of a capture" in line for line in shown), shown)
                for line in shown:
                    if not line.startswith("waymark: "):
                        self.assertLessEqual(len(line), COLUMNS, line)

    def test_shares_stay(self):
        for command in ("profile", "profile --by instruction", "profile --by block", "coverage", "coverage --by function",
                        "branches", "loops"):
            with self.subTest(command):
                self.assertRegex(self.shown(f"{command} {SORT}"), r"(?m)^ .*\d\.\d%")

    def test_columns_that_are_left_out_are_named(self):
        narrow = " ".join(self.shown(f"profile {SORT} --by function", 60).split())
        self.assertRegex(narrow, r"… no room for [^;]*calls[^;]*; --wide shows all columns")
        # The subject of a row has room in any width.
        self.assertIn("quicks", self.shown(f"profile {SORT} --by line", 44))
        self.assertNotIn("no room", self.shown(f"profile {SORT} --by instruction", 200))
        self.assertNotIn("no room", self.shown(f"profile {SORT} --by instruction --wide", 60))

    def test_rows_are_not_broken(self):
        """A heading stands in the line of headings, or is named as left out."""
        for arguments in (f"profile {SPE}", f"profile {SPE} --by line", f"spe report {SPE}", f"diff {SPE} {SPE}", "profile dpu",
                          "dpu tasks dpu", "dpu interrupts dpu", "dpu loops dpu-loops"):
            with self.subTest(arguments):
                lines = [re.split(r" {2,}", line.strip()) for line in self.shown(arguments, 300).splitlines()]
                heads = next(line for line in lines if len(line) > 4 and not re.search(r"\d", "".join(line).replace("95 %", "")))
                first, narrow = heads[0].split()[0], self.shown(arguments)
                line = next(line for line in narrow.splitlines() if re.match(rf" *{first}  +\S", line))
                omitted = re.search("no room for ([^;]*);", " ".join(narrow.split()))
                for head in heads[1:]:
                    self.assertIn(head, line + (omitted[1] if omitted else ""), narrow)

    def test_flow_and_calls_have_limits(self):
        self.assertRegex(self.shown(f"flow {SORT} --limit 5"), r"(?s)^([^\n]*\n){5,6}… and [\d,]+ more lines; --limit 0")
        calls = self.shown(f"flow {SORT} --format calls --limit 2")
        self.assertRegex(calls, r"… and \d+ more rows of at most [\d,]+ instructions each; --limit 0 shows all")
        self.assertNotIn("more", self.shown(f"flow {SORT} --format calls --limit 0"))
        # Output to a file is not shortened.
        whole = self.shown(f"flow {SORT} --limit 0")
        self.assertNotIn("more lines", whole)


def main():
    global WAYMARK, SOURCE
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    WAYMARK, SOURCE = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)


if __name__ == "__main__":
    main()
