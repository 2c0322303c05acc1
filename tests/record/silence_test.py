#!/usr/bin/env python3
"""Captures that are empty since something was programmed wrong, one cause each: `explain` or `doctor` names the field.

    silence_test.py WAYMARK SOURCE_DIR

Where `record --registers` can program the mistake, the capture is what the modelled unit made of it. The others are a
recording with the registers and the empty buffer that such a unit leaves.
"""
import json
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
CROSS64, CROSS32 = "aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc"
A64 = """.globl _start
_start: mov x19, #50
1: bl f
 subs x19, x19, #1
 b.ne 1b
 mov x8, #93
 mov x0, #0
 svc #0
f: nop
 ret
"""
A32 = """.arm
.globl _start
_start: mov r4, #50
1: bl f
 subs r4, r4, #1
 bne 1b
 mov r7, #1
 mov r0, #0
 svc #0
f: nop
 bx lr
"""


class Silence(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        for name, text, compiler in (("p64", A64, CROSS64), ("p32", A32, CROSS32)):
            if shutil.which(compiler) is None:
                raise unittest.SkipTest(f"SKIPPED: {compiler} is not installed")
            (cls.folder / f"{name}.s").write_text(text)
            done = run(compiler, "-nostdlib", "-static", "-o", cls.folder / name, cls.folder / f"{name}.s")
            assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, unit):
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        program = self.folder / ("p32" if unit == "ptm" else "p64")
        done = run(WAYMARK, "record", "--unit", unit, "-o", out, "--", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    def test_programmed(self):
        """Each program keeps the modelled unit from tracing."""
        for unit, registers, field in (
                ("etmv4", "TRCVICTLR 0x200", "TRCVICTLR.EVENT"),  # an event that never happens
                ("etmv4", "TRCVICTLR 0x100201", "TRCVICTLR.EXLEVEL_NS"),  # the level at which the program runs
                ("etmv4", "TRCVIIECTLR 1\nTRCACVR0 0x10\nTRCACVR1 0x20", "TRCVIIECTLR.INCLUDE"),  # a range elsewhere
                ("ptm", "ETMTEEVR 0x406f", "ETMTEEVR")):
            with self.subTest(f"{unit} {registers}"):
                found, text = self.any(self.silent(unit, registers))
                self.assertTrue(any(name.startswith(field) for name in found), text)

    def silent(self, unit, registers):
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        (self.folder / "registers.txt").write_text(registers + "\n")
        program = self.folder / ("p32" if unit == "ptm" else "p64")
        done = run(WAYMARK, "record", "--unit", unit, "-o", out, "--registers", self.folder / "registers.txt", "--", program)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return out

    def any(self, out):
        done = run(WAYMARK, "explain", out, "--format", "json")
        unit = json.loads(done.stdout)["units"][0]
        found = list(unit["findings"])
        for level in unit["levels"]:
            found += level["obstacles"]
        return {f["field"]: f["effect"] for f in found}, done.stdout

    def left(self, out, registers):
        """The description of the unit after the run, and the empty buffer."""
        device = next(path for path in out.glob("*.ini") if "class=trace_source" in path.read_text())
        text = device.read_text()
        for name, value in registers.items():
            text = re.sub(rf"(?m)^{name}(\(.*\))?=.*\n", "", text)
            text = text.replace("[regs]\n", f"[regs]\n{name}={value}\n")
        device.write_text(text)
        for buffer in out.glob("trace*.bin"):
            buffer.write_bytes(b"")

    def test_left_so(self):
        """Enable, Programming bit, OS lock, power and authentication."""
        for unit, registers, field in (
                ("etmv4", {"TRCPRGCTLR": 0}, "TRCPRGCTLR.EN"),
                ("ptm", {"ETMCR": 0x400}, "ETMCR[10]"),
                ("etmv4", {"TRCPRGCTLR": 1, "TRCOSLSR": 0xa}, "TRCOSLSR.OSLK"),
                ("etmv4", {"TRCPRGCTLR": 1, "TRCPDSR": 0}, "TRCPDSR.POWER"),
                ("etmv4", {"TRCPRGCTLR": 1, "TRCAUTHSTATUS": 0x88}, "TRCAUTHSTATUS")):
            with self.subTest(f"{unit} {registers}"):
                out = self.record(unit)
                self.left(out, registers)
                found, text = self.any(out)
                self.assertTrue(any(name.startswith(field) for name in found), text)

    def test_sink(self):
        """A buffer that was never enabled, one that wrapped, and one in FIFO mode."""
        for registers, field in ((("CTL=0", "RSZ=0x400", "RWP=0", "RRP=0", "STS=4", "MODE=0"), "CTL.TraceCaptEn"),
                                 (("CTL=1", "RSZ=0x400", "STS=1", "MODE=0"), "STS.Full"),
                                 (("CTL=1", "MODE=2", "STS=0"), "MODE is 2"),
                                 (("CTL=1", "MODE=0", "STS=0xe", "FFCR=0x2001", "FFSR=2"), "FFCR.StopOnTrigEvt")):
            with self.subTest(field):
                out = self.record("etmv4")
                self.left(out, {})
                (out / "tmc.ini").write_text("[device]\nname=TMC_0\nclass=trace_sink\ntype=TMC-ETF\n\n[regs]\n" +
                                             "\n".join(registers) + "\n")
                snapshot = out / "snapshot.ini"
                text = snapshot.read_text()
                snapshot.write_text(text.replace("[device_list]\n", "[device_list]\ndevice99=tmc.ini\n"))
                done = run(WAYMARK, "doctor", out)
                self.assertIn(field, " ".join(done.stdout.split()), done.stdout + done.stderr)
                done = run(WAYMARK, "explain", out)
                self.assertIn(field, done.stdout + done.stderr)

    def test_samples(self):
        """SPE: a filter that no operation passes."""
        out = self.folder / "perf.data"
        done = run(WAYMARK, "record", "--unit", "spe", "-e", "arm_spe/min_latency=4095/", "-o", out, "--", self.folder / "p64")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found, text = self.any(out)
        self.assertIn("PMSLATFR_EL1.MINLAT", found, text)

    def test_counters(self):
        """DPU: tracing never turned on, an impossible buffer, and trace for the Nexus interface only."""
        buffer = "DP_TSA 0x20000000\nDP_TEA 0x20000fe0\nDP_TW {}\n"
        for program, field in ((buffer.format("0x20000000") + "DP_TC TMODE=FLOW\n", "DP_TC.EN"),
                               (buffer.format("0x30000000") + "DP_TC TMODE=FLOW EN=1\n", "DP_TW"),
                               (buffer.format("0x20000000") + "DP_TC TMODE=FLOW NXMODE=only EN=1\n", "DP_TC.NXMODE")):
            with self.subTest(field):
                path = self.folder / "dpu.txt"
                path.write_text(program)
                done = run(WAYMARK, "explain", path, "--format", "json")
                found = {f["field"] for f in json.loads(done.stdout)["units"][0]["findings"]}
                self.assertIn(field, found, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
