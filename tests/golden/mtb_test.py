#!/usr/bin/env python3
"""Compares the flow of the MTB captures with the instructions that QEMU executed (docs/spec/mtb.md).

usage: mtb_test.py WAYMARK SOURCE_FOLDER

The captures are not in the repository: WAYMARK_CORPUS, or ../shared/corpus beside the source folder.
"""
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, rows  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CORPUS = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or SOURCE.parent / "shared/corpus") / "mtb/model-m0"
# Instructions executed after the last packet, which the trace does not show.
BEHIND = 13


def waymark(*arguments, codes=(0,)):
    done = subprocess.run([str(a) for a in (WAYMARK, *arguments)], capture_output=True, text=True)
    if done.returncode not in codes:
        raise AssertionError(f"exit status {done.returncode}: {arguments}\n{done.stdout}{done.stderr}")
    return done.stdout


def registers(name):
    return dict(line.split("=") for line in (CORPUS / f"{name}.regs").read_text().split())


def options(name, without=()):
    out = ["--protocol", "mtb", "--buffer-format", "source_data", "--core", "Cortex-M0+"]
    for register, value in registers(name).items():
        if register not in without:
            out += ["--register", f"{register}={value}"]
    return out


class Mtb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.truth = [int(line, 16) for line in (CORPUS / "m0-1k.truth.txt").read_text().split()]
        code = (CORPUS / "program.elf").read_bytes()
        # The only segment with code begins at address 0; its offset in the file is in the program header.
        start = int.from_bytes(code[28:32], "little")
        offset = int.from_bytes(code[start + 4:start + 8], "little")
        cls.code = code[offset:]

    def instructions(self, flow):
        out = []
        for row in rows(flow):
            if row["element"] == "range":
                at, end = int(row["start"], 0), int(row["end"], 0)
                while at < end:
                    out.append(at)
                    at += 4 if self.code[at + 1] >> 3 >= 0x1d else 2
        return out

    def test_ranges_are_what_ran(self):
        for name, count in (("m0-1k", 137), ("m0-128", None)):
            for without in ((), ("MTB_POSITION",)):
                for decoder in ((), ("--reference-decoder",), ("--jobs", "3")):
                    with self.subTest(name=name, without=without, decoder=decoder):
                        flow = waymark("flow", CORPUS / f"{name}.bin", *options(name, without), "--image",
                                       CORPUS / "program.elf", "--format", "tsv", *decoder, codes=(0, 3))
                        found = self.instructions(flow)
                        end = len(self.truth) - BEHIND
                        self.assertEqual(found, self.truth[end - len(found):end])
                        if count:
                            self.assertEqual(len(found), count)
                        else:
                            self.assertGreater(len(found), 60)

    def test_packets_are_in_order(self):
        expected = [line.split() for line in (CORPUS / "m0-1k.packets.txt").read_text().splitlines()]
        for name in ("m0-1k", "m0-128"):
            found = []
            for row in rows(waymark("packets", CORPUS / f"{name}.bin", *options(name), "--format", "tsv", codes=(0, 3))):
                if row["packet"] != "JUMP":
                    continue
                fields = dict(f.split("=") for f in row["fields"].split())
                found.append([w for key, letter in (("source", "A"), ("destination", "S"))
                              for w in (letter if "," in fields[key] else "-", f"{int(fields[key].split(',')[0], 0):#010x}")])
            self.assertEqual(found, expected[-len(found):])
            self.assertEqual(len(found), {"m0-1k": 25, "m0-128": 16}[name])

    def test_exceptions_have_the_names_of_their_vectors(self):
        flow = waymark("flow", CORPUS / "m0-1k.bin", *options("m0-1k"), "--image", CORPUS / "program.elf")
        for name in ("SVC", "SysTick", "PendSV"):
            self.assertIn(name, flow)

    def test_a_snapshot_has_every_view(self):
        with Folder() as folder:
            folder = pathlib.Path(folder)
            (folder / "snapshot.ini").write_text(
                "[snapshot]\nversion=1.0\n[device_list]\ndevice0=cpu.ini\ndevice1=mtb.ini\n[trace]\nmetadata=trace.ini\n")
            (folder / "cpu.ini").write_text(
                "[device]\nname=cpu_0\nclass=core\ntype=Cortex-M0+\n[dump1]\nfile=code.bin\naddress=0x0\n"
                f"length={len(self.code)}\n")
            (folder / "code.bin").write_bytes(self.code)
            (folder / "mtb.ini").write_text("[device]\nname=MTB_0\nclass=trace_source\ntype=MTB\n[regs]\n" +
                                            "".join(f"{k}={v}\n" for k, v in registers("m0-128").items()))
            (folder / "trace.ini").write_text(
                "[trace_buffers]\nbuffers=buffer0\n[buffer0]\nname=MTB_RAM\nfile=mtb.bin\nformat=source_data\n"
                "[source_buffers]\nMTB_0=MTB_RAM\n[core_trace_sources]\ncpu_0=MTB_0\n")
            (folder / "mtb.bin").write_bytes((CORPUS / "m0-128.bin").read_bytes())
            symbols = ("--symbols", CORPUS / "program.elf")
            info = waymark("info", folder, codes=(0, 3))
            self.assertIn("source MTB_0  MTB, traces cpu_0 (Cortex-M0+)", info)
            self.assertIn("buffer MTB_RAM wrapped: it holds the last 128 bytes of trace", info)
            self.assertRegex(info, r"lost: [^;\n]*1 overwritten buffer")
            self.assertNotIn("before the recording began", info)
            for command, shows in (("flow", "main"), ("profile", "SysTick_H"), ("coverage", "3 of 7 functions ran"),
                                   ("exceptions", "PendSV")):
                with self.subTest(command=command):
                    self.assertIn(shows, waymark(command, folder, *symbols, codes=(0, 3)))

    def test_doctor_recognises_bytes_alone(self):
        for name in ("m0-1k", "m0-128"):
            done = subprocess.run([WAYMARK, "doctor", CORPUS / f"{name}.bin", "--image", CORPUS / "program.elf"],
                                  capture_output=True, text=True)
            self.assertIn("Micro Trace Buffer (MTB)", done.stdout)
            # m0-128 wrapped: its oldest jump lies inside the dump.
            self.assertNotIn("does not fit", done.stdout)
            self.assertRegex(done.stdout, r"\d+ ranges")
            with Folder() as folder:
                snapshot = pathlib.Path(folder) / "snapshot"
                done = subprocess.run([WAYMARK, "doctor", CORPUS / f"{name}.bin", "--image", CORPUS / "program.elf",
                                       "--write-snapshot", snapshot], capture_output=True, text=True)
                self.assertRegex(done.stderr, r"decodes [1-9]\d* ranges, [\d,]+ instructions and 0 contradictions")


if __name__ == "__main__":
    if not CORPUS.exists():
        print(f"SKIPPED: no captures at {CORPUS}")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
