#!/usr/bin/env python3
"""Compares packets and messages of STM captures with what OpenCSD gives for them (docs/spec/stm.md, 6).

usage: stm_test.py WAYMARK SOURCE_FOLDER

The captures are not in the repository: WAYMARK_CORPUS, or ../shared/corpus beside the source folder.
"""
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import rows  # noqa: E402

WAYMARK = SOURCE = CORPUS = GOLDENS = None
CAPTURES = {"stm_only": ("stm/stm_only", ()), "stm_only-juno": ("stm/stm_only-juno", ()),
            "juno_r1_1": ("etmv4/juno_r1_1", ("--source", "0x20"))}


def golden(name):
    return rows((GOLDENS / (name + ".tsv")).read_text())


def waymark(*arguments):
    done = subprocess.run([WAYMARK, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return done.stdout


def number(text):
    return int(text, 0) if text else ""


def opencsd_packets(name):
    """Elements up to the end or the first damage, where OpenCSD stops."""
    out = []
    for row in golden(f"stm-{name}.packets"):
        if row["packet"] == "NOTSYNC":
            continue
        if row["packet"] in ("BAD_SEQUENCE", "RESERVED") or row["packet"].startswith("INCOMPLETE"):
            return out, True
        out.append((row["packet"], int(row["offset"], 0), number(row["master"] or row["channel"] or row["data"] or row["value"])))
    return out, False


class Stm(unittest.TestCase):
    maxDiff = 2000

    def test_packets_are_those_of_opencsd(self):
        for name, (folder, options) in CAPTURES.items():
            theirs, ended = opencsd_packets(name)
            ours = []
            for row in rows(waymark("packets", CORPUS / folder, *options, "--format", "tsv")):
                if row["packet"] == "GAP":
                    continue
                value = re.search(r"(?:value|version)=(\S+)", row["fields"] or "")
                ours.append((row["packet"], int(row["offset"], 0), number(value and value.group(1))))
            with self.subTest(name=name):
                self.assertTrue(theirs)
                self.assertTrue(len(ours) >= len(theirs) if ended else len(ours) == len(theirs), (len(ours), len(theirs)))
                for mine, other in zip(ours, theirs):
                    self.assertEqual((mine[0], mine[2]), (other[0], other[2]), (mine, other))
                    # OpenCSD counts one or two bytes less or more if a packet begins after the ID of a frame.
                    self.assertLessEqual(abs(mine[1] - other[1]), 2, (mine, other))

    def test_messages_are_the_elements_of_opencsd(self):
        for name, (folder, options) in CAPTURES.items():
            kinds = {"frequency": "frequency", "trigger": "trigger"}
            theirs = []
            for row in golden("stm-" + name):
                if row["element"] != "software":
                    continue
                flags = row["flags"].split(",")
                kind = next((kinds[f] for f in flags if f in kinds), "text" if row["data"] else "flag")
                theirs.append((kind, "" if kind == "frequency" else number(row["master"]), "" if kind == "frequency" else number(row["channel"]),
                               number(row["data"]), number(row["timestamp"]), "marker" in flags))
            ours = [(row["kind"], number(row["master"]), number(row["channel"]), number(row["value"]), number(row["timestamp"]),
                     row["marked"] == "1")
                    for row in rows(waymark("messages", CORPUS / folder, *options, "--kind", "all", "--format", "tsv"))
                    if row["kind"] not in ("damage", "overflow")]
            with self.subTest(name=name):
                self.assertTrue(theirs)
                self.assertEqual(ours[:len(theirs)], theirs)
                self.assertEqual(len(ours), len(theirs))

    def test_doctor_recognises_the_bytes_alone(self):
        for folder, file in (("stm/stm_only", "cstraceitm.bin"), ("stm/stm_only-juno", "cstraceitm.bin"), ("syst/mipi-client32", "stp.bin")):
            with self.subTest(folder=folder):
                text = waymark("doctor", CORPUS / folder / file)
                self.assertEqual(text.count("(STM, STPv2)"), 1, text)


if __name__ == "__main__":
    WAYMARK, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
    CORPUS = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE / ".." / "shared" / "corpus")
    GOLDENS = CORPUS / ".." / "conformance" / "golden"
    if not (CORPUS / "stm").is_dir() or not GOLDENS.is_dir():
        print(f"SKIPPED: no captures and goldens beside {CORPUS}; set WAYMARK_CORPUS to the folder of the real captures")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
