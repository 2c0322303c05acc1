#!/usr/bin/env python3
"""Compares SyS-T messages over STP with what MIPI's printer gives for them (docs/spec/sys-t.md, 8).

usage: syst_test.py WAYMARK SOURCE_FOLDER

The capture is not in the repository: WAYMARK_CORPUS, or ../shared/corpus beside the source folder.
"""
import csv
import io
import os
import pathlib
import subprocess
import sys
import unittest

WAYMARK = SOURCE = FOLDER = None


def messages(*options):
    done = subprocess.run([WAYMARK, "messages", FOLDER, "--kind", "record", "--format", "tsv", *options], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t", quoting=csv.QUOTE_NONE)), done.stderr


class Syst(unittest.TestCase):
    maxDiff = 2000

    def test_messages_are_those_of_mipis_printer(self):
        with open(FOLDER / "expected.csv", encoding="utf-8", newline="") as file:
            expected = list(csv.DictReader(file))
        found, said = messages("--catalog", FOLDER / "collateral.xml", "--client", "example")
        self.assertEqual(len(found), 283)
        self.assertNotIn("could not be read", said)
        for number, (mine, other) in enumerate(zip(found, expected)):
            # The printer's line breaks are blanks in the table; ours are escapes.
            text = mine["text"].replace("\\n", " ").replace("\\\\", "\\")
            self.assertEqual((text, mine["type"], mine["severity"], mine["location"], mine["record_bytes"]),
                             (other["Payload"], other["Type"], other["Severity"], other["Location"], other["Raw Length"]), number)
            if not other["Type"].startswith("SHORT"):
                self.assertEqual((mine["client"], mine["unit"]), (other["Origin"], other["Unit"]), number)
            self.assertEqual(mine["problem"], "")
        self.assertEqual(sum(row["checksum"] == "1" for row in found), 277)
        self.assertEqual({row["checksum"] for row in found}, {"1", ""})

    def test_without_a_catalogue_numbers_are_shown(self):
        found, said = messages("--layout", "sys-t")
        self.assertEqual(len(found), 283)
        self.assertIn("158 of 283 messages could not be read completely; the first: no catalogue of its client", said)
        self.assertEqual(sum(row["problem"] == "no catalogue of its client" for row in found), 158)


if __name__ == "__main__":
    WAYMARK, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
    FOLDER = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE / ".." / "shared" / "corpus") / "syst" / "mipi-client32"
    if not FOLDER.is_dir():
        print(f"SKIPPED: no folder {FOLDER}; set WAYMARK_CORPUS to the folder of the real captures")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
