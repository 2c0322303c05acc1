#!/usr/bin/env python3
"""Every source of every real capture is named: by `info` from its description, by `doctor` from its bytes alone, and in a report.

usage: sources_test.py WAYMARK SOURCE_FOLDER

The captures are not in the repository: WAYMARK_CORPUS, or ../shared/corpus beside the source folder.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CORPUS = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE.parent / "shared/corpus")
# By the first letters of the type that a capture declares.
PROTOCOLS = {"ETM3": "Embedded Trace Macrocell v3 (ETMv3)", "PTM": "Program Flow Trace (PTM)", "ETM4": "ETMv4 and ETE instruction trace",
             "ETE": "ETMv4 and ETE instruction trace", "ITM": "instrumentation and watchpoint trace (ITM, DWT)",
             "STM": "system trace (STM, STPv2)"}
WITHOUT_DESCRIPTION = {"mtb/model-m0": "Micro Trace Buffer (MTB)", "spe": "Statistical Profiling (SPE)"}


def waymark(*arguments):
    done = subprocess.run([str(a) for a in (WAYMARK, *arguments)], capture_output=True, text=True)
    # Doctor exits with 1 where it has a warning, such as an overflow.
    if done.returncode not in (0, 1) or not done.stdout:
        raise AssertionError(f"exit status {done.returncode}: {arguments}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def protocol(kind):
    return next(name for letters, name in PROTOCOLS.items() if kind.upper().startswith(letters))


class Sources(unittest.TestCase):
    def named(self, trace):
        """Doctor's opinion of a file, copied away from its description: trace ID (none of a bare stream) -> protocol."""
        with Folder() as folder:
            shutil.copy(trace, pathlib.Path(folder) / "trace")
            return {s.get("trace_id"): s.get("protocol") for s in waymark("doctor", "--format", "json", pathlib.Path(folder) / "trace")["sources"]}

    def test_of_captures_with_a_description(self):
        captures = sorted(p.parent for p in CORPUS.rglob("snapshot.ini"))
        self.assertGreater(len(captures), 30)
        for capture in captures:
            trace = (capture / "trace.ini").read_text()
            files = {re.search(r"^name=(\S+)", part, re.M)[1]: re.search(r"^file=(\S+)", part, re.M)[1]
                     for part in re.split(r"^\[", trace, flags=re.M) if re.search(r"^file=", part, re.M)}
            expected = {}
            for source in waymark("info", "--format", "json", capture)["sources"]:
                for stream in source["streams"]:
                    with self.subTest(capture=capture.relative_to(CORPUS), source=source["name"], buffer=stream["buffer"]):
                        if stream["bytes"] != 0:
                            self.assertGreater(stream["bytes_in_packets"], 0)
                            expected.setdefault(files[stream["buffer"]], {})[int(source["trace_id"], 16)] = protocol(source["type"])
            for file, sources in expected.items():
                with self.subTest(capture=capture.relative_to(CORPUS), file=file):
                    got = self.named(capture / file)
                    if None in got:
                        sources = dict.fromkeys([None], *sources.values())
                    self.assertEqual({i: got.get(i) for i in sources}, sources)

    def test_of_bare_files(self):
        for folder, expected in WITHOUT_DESCRIPTION.items():
            files = sorted((CORPUS / folder).glob("*.bin"))
            self.assertNotEqual(files, [])
            for file in files:
                with self.subTest(file=file.relative_to(CORPUS)):
                    self.assertEqual(self.named(file), {None: expected})

    def test_commands_that_need_a_capture_folder_name_the_frames(self):
        done = subprocess.run([WAYMARK, "messages", CORPUS / "stm/stm_only/cstraceitm.bin"], capture_output=True, text=True)
        self.assertIn("a buffer of CoreSight frames; waymark doctor ", done.stderr)

    def test_one_report_has_the_sources_of_two_protocols(self):
        out = waymark("profile", "--format", "json", CORPUS / "ptm/tc2")
        self.assertEqual(out["unit"], "ETMv3 and PTM")


if __name__ == "__main__":
    if not CORPUS.is_dir():
        print(f"SKIPPED: no captures: {CORPUS} does not exist (WAYMARK_CORPUS)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
