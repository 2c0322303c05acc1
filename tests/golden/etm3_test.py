#!/usr/bin/env python3
"""Compares the flow and packets of real ETMv3 captures with what OpenCSD gives for them (docs/spec/etmv3.md, 9 to 11).

usage: etm3_test.py WAYMARK SOURCE_FOLDER

The captures are not in the repository: WAYMARK_CORPUS, or ../shared/corpus beside the source folder. Both decoders are compared.
"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, rows  # noqa: E402

WAYMARK = SOURCE = CORPUS = GOLDENS = None
# Golden, capture, sources.
CAPTURES = [("etmv3-tc2", "ptm/tc2", ("0x10", "0x11", "0x12")), ("etmv3-sigrok-stm32f105", "etmv3/sigrok-stm32f105", ("0x02",))]
RANGE = ("start", "end", "instructions", "isa", "atom", "branch", "link", "cycles")
PACKETS = {"A_SYNC": "A-SYNC", "I_SYNC": "I-SYNC", "I_SYNC_CYCLE": "I-SYNC-CYCLES", "P_HDR": "P-HEADER",
           "BRANCH_ADDRESS": "BRANCH-ADDRESS", "TIMESTAMP": "TIMESTAMP", "TRIGGER": "TRIGGER", "EXCEPTION_EXIT": "EXCEPTION-RETURN"}


def text_of(name):
    packed = GOLDENS / (name + ".tsv.zst")
    if packed.exists():
        return subprocess.run(["zstd", "-dc", packed], capture_output=True, check=True).stdout.decode()
    return (GOLDENS / (name + ".tsv")).read_text()


def number(text):
    try:
        return int(text, 0)
    except (TypeError, ValueError):
        return text or ""


def waymark(*arguments):
    done = subprocess.run([WAYMARK, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return done.stdout


class Etm3(unittest.TestCase):
    def test_flow_is_that_of_the_golden(self):
        for name, folder, sources in CAPTURES:
            golden = rows(text_of(name))
            for source in sources:
                for decoder in ((), ("--reference-decoder",)):
                    ours = rows(waymark("flow", CORPUS / folder, "--source", source, "--format", "tsv", *decoder))
                    with self.subTest(name=name, source=source, decoder=decoder):
                        self.assertEqual(self.flow(golden, source), self.flow(ours, source))

    @staticmethod
    def flow(table, source):
        out = []
        for row in table:
            if number(row["source"]) != int(source, 0):
                continue
            if row["element"] == "range":
                out.append(("range", *(number(row[c]) for c in RANGE)))
            elif row["element"] == "exception_return":
                out.append(("exception_return",))
            elif row["element"] == "trace_on":
                out.append(("trace_on",))
        return out

    def test_packets_are_those_of_the_golden(self):
        for name, folder, sources in CAPTURES:
            golden = rows(text_of(name + ".packets"))
            ours = rows(waymark("packets", CORPUS / folder, "--format", "tsv"))
            for source in sources:
                with self.subTest(name=name, source=source):
                    theirs = [self.packet_of_golden(r) for r in golden
                              if number(r["source"]) == int(source, 0) and r["packet"] in PACKETS]
                    mine = [self.packet(r) for r in ours
                            if number(r["source"]) == int(source, 0) and r["packet"] in PACKETS.values()]
                    # The last packet may be cut by the end of the buffer.
                    self.assertLessEqual(len(theirs) - len(mine), 1)
                    self.assertEqual(theirs[:len(mine)], mine)

    @staticmethod
    def packet_of_golden(row):
        name = PACKETS[row["packet"]]
        atoms = row["atoms"] if name == "P-HEADER" else ""
        address = number(row["address"]) if name in ("I-SYNC", "I-SYNC-CYCLES", "BRANCH-ADDRESS") else ""
        return name, row["bytes"], atoms, address, number(row["timestamp"]) if name == "TIMESTAMP" else ""

    @staticmethod
    def packet(row):
        atoms = re.match(r"atoms=(\w*)/", row["fields"])
        address = re.search(r"(?:to |: )(0x[0-9a-f]+)", row["meaning"]) if row["packet"] in (
            "I-SYNC", "I-SYNC-CYCLES", "BRANCH-ADDRESS") else None
        time = number(row["meaning"]) if row["packet"] == "TIMESTAMP" else ""
        return (row["packet"], row["bytes"], atoms.group(1) if atoms else "", int(address.group(1), 16) if address else "", time)

    def test_decoders_agree_on_damaged_captures(self):
        """A bit flipped, a byte changed, bytes dropped, the end cut, parts swapped: the two decoders give the same."""
        original = CORPUS / "etmv3/sigrok-stm32f105"
        rnd = random.Random(1)
        with Folder() as name:
            copy = pathlib.Path(name) / "damaged"
            shutil.copytree(original, copy)
            trace = copy / "swo.bin"
            whole = trace.read_bytes()
            for number in range(10):
                at = rnd.randrange(64, len(whole) - 64)
                b = bytearray(whole)
                if number % 5 == 0:
                    b[at] ^= 1 << rnd.randrange(8)
                elif number % 5 == 1:
                    b[at] ^= rnd.randrange(1, 256)
                elif number % 5 == 2:
                    del b[at:at + 16]
                elif number % 5 == 3:
                    del b[at // 16 * 16:]
                else:
                    b[at:at + 32] = b[at + 16:at + 32] + b[at:at + 16]
                trace.chmod(0o644)
                trace.write_bytes(b)
                with self.subTest(number=number, at=at):
                    fast, reference = (waymark("flow", copy, "--format", "tsv", *d) for d in ((), ("--reference-decoder",)))
                    self.assertGreater(len(fast.splitlines()), 10)
                    self.assertEqual(fast, reference)

    def test_doctor_recognises_the_bytes_alone(self):
        """Without its description, the capture of a Cortex-A7 is recognised as cycle-accurate with 64-bit
        timestamps."""
        text = waymark("doctor", CORPUS / "ptm/tc2/cstrace.bin")
        self.assertEqual(text.count("(ETMv3)"), 3, text)
        self.assertEqual(text.count("proven    cycle counts: yes"), 4, text)


if __name__ == "__main__":
    WAYMARK, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
    CORPUS = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE / ".." / "shared" / "corpus")
    GOLDENS = CORPUS / ".." / "conformance" / "golden"
    if not (CORPUS / "etmv3").is_dir() or not GOLDENS.is_dir():
        print(f"SKIPPED: no captures and goldens beside {CORPUS}; set WAYMARK_CORPUS to the folder of the real captures")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
