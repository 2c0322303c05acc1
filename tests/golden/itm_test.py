#!/usr/bin/env python3
"""Compares the packets of ITM captures with what other decoders give for them (docs/spec/itm.md, 6).

usage: itm_test.py WAYMARK SOURCE_FOLDER

The captures are not in the repository: WAYMARK_CORPUS, or ../shared/corpus beside the source folder.
"""
import csv
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import rows  # noqa: E402

WAYMARK = SOURCE = CORPUS = GOLDENS = None
NAMES = {"ITM_ASYNC": "SYNC", "ITM_OVERFLOW": "OVERFLOW", "ITM_SWIT": "STIMULUS", "ITM_DWT": "HARDWARE-SOURCE",
         "ITM_GTS_1": "GLOBAL-TIMESTAMP-1", "ITM_GTS_2": "GLOBAL-TIMESTAMP-2", "ITM_EXTENSION": "EXTENSION"}
RELATIONS = ("synchronous", "timestamp_delayed", "packet_delayed", "both_delayed")


def golden(name):
    return rows((GOLDENS / (name + ".tsv")).read_text())


def waymark(*arguments):
    done = subprocess.run([WAYMARK, *arguments], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise AssertionError(f"exit status {done.returncode}: {done.stderr}")
    return done.stdout


def fields(row):
    """The fields of a packet; a number in bytes of seven bits is (value, bytes)."""
    out = {}
    for name, value in re.findall(r"(\S+?)=(\S+)", row["fields"] or ""):
        out[name] = tuple(int(part, 0) for part in value.split("/")) if "/" in value else int(value, 0)
    return out


def packets(folder):
    return [row for row in rows(waymark("packets", CORPUS / folder, "--format", "tsv")) if row["packet"] != "GAP"]


def messages(folder, kind):
    return rows(waymark("messages", CORPUS / folder, "--kind", kind, "--format", "tsv"))


def key(row):
    """How OpenCSD lists one of our packets: name, offset, bytes, address, size, data, flags."""
    f, name = fields(row), row["packet"]
    theirs = {v: k for k, v in NAMES.items()}.get(name, "ITM_TS_LOCAL")
    data = row["bytes"].split()
    address = size = value = ""
    flags = ""
    if name in ("STIMULUS", "HARDWARE-SOURCE"):
        address, size, value = f["port" if name == "STIMULUS" else "discriminator"], (0, 1, 2, 4)[f["size"]], f["data"]
    elif name == "SHORT-TIMESTAMP":
        value, flags = f["delta"], "synchronous"
    elif name == "LOCAL-TIMESTAMP":
        value, flags = f["delta"][0], RELATIONS[f["relation"]]
    elif name == "GLOBAL-TIMESTAMP-1":
        bits, count = f["bits"]
        value, flags = bits & 0x3FFFFFF, f"bits={min(7 * count, 26) - 1}:0"
        flags += (",clock_change" if bits >> 26 & 1 else "") + (",wrap" if bits >> 27 & 1 else "")
        if count == 4:
            # OpenCSD lists the last byte without its flags.
            data[-1] = f"{int(data[-1], 16) & 0x1f:02x}"
    elif name == "GLOBAL-TIMESTAMP-2":
        value, flags = f["high"][0], "bits=47:26" if f["high"][1] == 4 else "bits=63:26"
    elif name == "EXTENSION":
        value, flags = f["low"], "page"
    return theirs, int(row["offset"], 0), " ".join(data), address, size, value, flags


def golden_key(row):
    number = lambda text: int(text, 0) if text else ""
    name = row["packet"]
    if name == "ITM_ASYNC":
        return name, int(row["offset"], 0), row["bytes"], "", "", "", ""
    return (name, int(row["offset"], 0), row["bytes"], number(row["address"]), number(row["size"]), number(row["data"]),
            row["flags"])


class Itm(unittest.TestCase):
    maxDiff = 2000

    def test_packets_are_those_of_opencsd(self):
        """OpenCSD omits everything before a synchronisation packet, and from damage to the next synchronisation
        packet."""
        for name in ("itm_only_raw", "itm_only_csformat", "ctrace-blinky"):
            theirs, synced = [], False
            for row in golden("itm-" + name + ".packets"):
                synced = (synced or row["packet"] == "ITM_ASYNC") and row["packet"] != "ITM_BAD_SEQUENCE"
                if synced and row["packet"] != "ITM_INCOMPLETE_EOT":
                    theirs.append(golden_key(row))
            first = theirs[0][1]
            ours = [key(row) for row in packets("itm/" + name)]
            with self.subTest(name=name):
                if name == "ctrace-blinky":
                    # Between the damage at 0x2003 and the synchronisation packet at 0x2888, OpenCSD gives nothing.
                    between = [o for o in ours if 0x2003 <= o[1] < 0x2888]
                    ours = [o for o in ours if o not in between]
                    self.assertEqual((len(between), between[0][1]), (468, 0x2004))
                else:
                    # Bytes before the first synchronisation packet are not packets; if they are parsed as packets, they
                    # take its first zero.
                    self.assertEqual(theirs.pop(0)[0], "ITM_ASYNC")
                    first += 1
                ours = [o for o in ours if o[1] >= first]
                if name == "itm_only_csformat":
                    # OpenCSD counts one byte less if a packet begins after the ID of a frame.
                    self.assertTrue(all(0 <= o[1] - t[1] <= 1 for o, t in zip(ours, theirs)))
                    ours, theirs = [(o[0], *o[2:]) for o in ours], [(t[0], *t[2:]) for t in theirs]
                self.assertEqual(ours, theirs)

    def test_elements_are_those_of_another_parser(self):
        """A parser of another author, which begins at the first byte, on captures of real cores in frames."""
        for name, folder in (("sigrok-stm32f105", "etmv3/sigrok-stm32f105"), ("ctrace-blinky-tb", "itm/ctrace-blinky-tb")):
            table = golden("itm-" + name)
            ours = packets(folder)
            for source in sorted({row["source"] for row in table}):
                theirs = [(row["element"], int(row["offset"], 0), row["address"] and int(row["address"], 0),
                           row["size"] and int(row["size"]), row["data"] and int(row["data"], 0))
                          for row in table if row["source"] == source and row["element"] != "end_of_trace"]
                mine = [self.element(row) for row in ours if int(row["source"], 0) == int(source, 0)]
                with self.subTest(name=name, source=source):
                    self.assertEqual([m for m in mine if m], theirs)

    @staticmethod
    def element(row):
        theirs, offset, _, address, size, value, _ = key(row)
        name = {"ITM_SWIT": "stimulus", "ITM_DWT": "dwt", "ITM_TS_LOCAL": "local_timestamp"}.get(theirs)
        return name and (name, offset, address, size, value)

    def test_sums_of_timestamps_are_those_of_opencsd(self):
        """OpenCSD begins at 0 again after an overflow and after damage."""
        for name in ("itm_only_raw", "itm_only_csformat", "ctrace-blinky"):
            theirs = {int(row["offset"], 0): int(row["timestamp"], 0) for row in golden("itm-" + name)
                      if row["element"] == "local_timestamp"}
            base, seen, compared = 0, 0, 0
            with self.subTest(name=name):
                for row in packets("itm/" + name):
                    at = re.match(r"at (?:least )?(\d+) cycles", row["meaning"])
                    offset = int(row["offset"], 0)
                    if row["packet"] == "OVERFLOW" or offset == 0x2888 or offset <= min(theirs) and not at:
                        base = seen
                    if not at:
                        continue
                    seen = int(at.group(1))
                    if offset in theirs:
                        self.assertEqual(seen - base, theirs[offset], row)
                        compared += 1
                    else:
                        base = seen
                self.assertEqual(compared, len(theirs))

    def test_global_times_are_those_of_opencsd(self):
        for name in ("itm_only_raw", "itm_only_csformat"):
            theirs = [int(row["timestamp"], 0) for row in golden("itm-" + name) if row["element"] == "global_timestamp"]
            ours = [int(row["meaning"].split()[-1]) for row in packets("itm/" + name)
                    if re.match(r"global time \d", row["meaning"])]
            self.assertEqual(ours, theirs, name)

    def test_accesses_are_those_of_ctrace(self):
        """Arm's ctrace, which also gives nothing between the damage and the next synchronisation packet."""
        with open(GOLDENS / "ctrace-blinky.csv", encoding="utf-8") as file:
            theirs = [(int(row["cycles"]), int(row["value"], 0), int(row["pc"], 0))
                      for row in csv.DictReader(file) if row["type"] == "dwt" and row["value"]]
        ours = [(int(row["offset"], 0), int(row["cycles"]), int(row["value"], 0), int(row["pc"], 0), row["comparator"],
                 row["access"]) for row in messages("itm/ctrace-blinky", "access") if row["value"] and row["pc"] and row["cycles"]]
        self.assertEqual({row[4:] for row in ours}, {("0", "write")})
        ours = [row for row in ours if row[0] >= 0xA94 and not 0x1FFE <= row[0] < 0x2888]
        self.assertEqual([row[2:4] for row in ours], [row[1:] for row in theirs])
        for name, first, end in (("before the damage", 0, 0x2000), ("after it", 0x2888, 1 << 32)):
            shifts = {o[1] - t[0] for o, t in zip(ours, theirs) if first <= o[0] < end}
            self.assertEqual(len(shifts), 1, name)

    def test_messages_are_those_of_another_parser(self):
        for name, folder in (("sigrok-stm32f105", "etmv3/sigrok-stm32f105"), ("ctrace-blinky-tb", "itm/ctrace-blinky-tb")):
            table = golden("itm-" + name)
            ours = messages(folder, "all")
            for source in sorted({row["source"] for row in table}):
                theirs = [row for row in table if row["source"] == source]
                mine = [row for row in ours if int(row["source"], 0) == int(source, 0)]
                data = lambda row: int(row["data"], 0)
                with self.subTest(name=name, source=source):
                    self.assertEqual([(int(r["port"]), int(r["value"], 0), int(r["value_bytes"])) for r in mine if r["kind"] == "text"],
                                     [(int(r["address"], 0), data(r), int(r["size"])) for r in theirs if r["element"] == "stimulus"])
                    dwt = [r for r in theirs if r["element"] == "dwt"]
                    self.assertEqual([int(r["pc"], 0) if r["pc"] else 0 for r in mine if r["kind"] == "sample"],
                                     [data(r) for r in dwt if int(r["address"], 0) == 2])
                    self.assertEqual([(int(r["number"]), ("", "entered", "left", "returned to").index(r["change"]))
                                      for r in mine if r["kind"] == "exception"],
                                     [(data(r) & 0x1FF, data(r) >> 12) for r in dwt if int(r["address"], 0) == 1])
                    self.assertEqual([(int(r["value"], 0), int(r["comparator"])) for r in mine if r["kind"] == "access" and r["value"]],
                                     [(data(r), int(r["address"], 0) >> 1 & 3) for r in dwt if 16 <= int(r["address"], 0) < 24])

    def test_the_cortex_m3_shows_what_sigrok_shows(self):
        """sigrok's table: 53 watchpoints, 14 overflows; it misses the first of 393 samples."""
        found = messages("etmv3/sigrok-stm32f105", "all")
        count = lambda kind: sum(row["kind"] == kind for row in found)
        self.assertEqual((count("sample"), count("overflow")), (393, 14))
        self.assertEqual(count("exception"), 16)
        text = waymark("messages", CORPUS / "etmv3/sigrok-stm32f105", "--port", "0")
        self.assertIn("Off", text)

    def test_samples_and_handlers_are_answers(self):
        folder = CORPUS / "etmv3/sigrok-stm32f105"
        found = messages("etmv3/sigrok-stm32f105", "all")
        by_pc = {}
        for row in found:
            if row["kind"] == "sample":
                by_pc[int(row["pc"], 0)] = by_pc.get(int(row["pc"], 0), 0) + 1
        table = rows(waymark("profile", folder, "--source", "1", "--by", "instruction", "--format", "tsv"))
        self.assertEqual({int(r["address"], 0): int(r["samples"]) for r in table}, by_pc)
        functions = rows(waymark("profile", folder, "--source", "1", "--symbols", folder / "trace_example.elf", "--format", "tsv"))
        self.assertEqual(sum(int(r["samples"]) for r in functions), 393)
        self.assertNotIn("[unknown]", {r["function"] for r in functions})
        handlers = rows(waymark("exceptions", folder, "--source", "1", "--format", "tsv"))
        self.assertEqual(sum(int(r["times"]) for r in handlers),
                         sum(r["kind"] == "exception" and r["change"] == "entered" for r in found))

    def test_handlers_have_times(self):
        handlers = rows(waymark("exceptions", CORPUS / "itm/ctrace-blinky-tb", "--source", "1", "--format", "tsv"))
        self.assertTrue(handlers)
        for row in handlers:
            if int(row["returned"]):
                self.assertLessEqual(int(row["least"]), int(row["most"]))
                self.assertLessEqual(int(row["most"]) , int(row["sum"]))

    def test_doctor_recognises_the_bytes_alone(self):
        for folder, file, count in (("itm/itm_only_raw", "itm_testdata.bin", 1), ("itm/itm_only_csformat", "itm_testdata_ID_0x14.bin", 1),
                                    ("itm/ctrace-blinky", "SWO.bin", 1), ("itm/ctrace-blinky-tb", "TB.bin", 2),
                                    ("etmv3/sigrok-stm32f105", "swo.bin", 1)):
            with self.subTest(file=file):
                text = waymark("doctor", CORPUS / folder / file)
                self.assertEqual(text.count("(ITM, DWT)"), count, text)


if __name__ == "__main__":
    WAYMARK, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
    CORPUS = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE / ".." / "shared" / "corpus")
    GOLDENS = CORPUS / ".." / "conformance" / "golden"
    if not (CORPUS / "itm").is_dir() or not GOLDENS.is_dir():
        print(f"SKIPPED: no captures and goldens beside {CORPUS}; set WAYMARK_CORPUS to the folder of the real captures")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
