#!/usr/bin/env python3
"""Empty or short captures, each recorded with one mistake: `waymark explain` or `waymark doctor` names the cause.

    wrong_programming_test.py WAYMARK SOURCE_DIR [TEST…]
"""
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()

PROGRAM = r"""
static volatile unsigned result;
static __attribute__((noinline)) unsigned mixed(unsigned x) {
    for (unsigned i = 0; i < 40; ++i) x = (x >> 3 & 1) ? x * 5 + i : x * 3 + 7;
    return x;
}
__attribute__((noinline, used)) void never(void) { result += 1; }
int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 40; ++i) sum = mixed(sum + i);
    result = sum;
    if (sum == 1) never();
    return 0;
}
"""
START = {"arm": '__asm__(".globl _start\\n_start: bl main\\n mov r0, #0\\n mov r7, #1\\n svc 0\\n");',
         "aarch64": '__asm__(".globl _start\\n_start: bl main\\n mov x0, #0\\n mov x8, #93\\n svc 0\\n");'}
OLD = ("ptm", "etmv3")
COMPILERS = {"arm": "arm-linux-gnueabihf-gcc", "aarch64": "aarch64-linux-gnu-gcc"}

DPU_BUFFER = "DP_TSA 0x20000000\nDP_TEA 0x2000ffe0\nDP_TW 0x20000000\n"
# Unit, registers by name, other options, the expected sentence; and, for some, registers of the sink and the expected
# sentence before it.
CASES = {
    "exception level": ("ete", "TRCVICTLR.EXLEVEL_NS 1", (), "TRCVICTLR.EXLEVEL_NS[0] is 1"),
    "event of ViewInst": ("etmv4", "TRCVICTLR.EVENT.SEL 0", (), "TRCVICTLR.EVENT is selector 0, which is never true"),
    "start and stop": ("etmv4", "TRCVICTLR.SSSTATUS 0", (), "TRCVICTLR.SSSTATUS is 0"),
    "range that never ran": ("ete", "", ("--view-range", "never"), "TRCVIIECTLR.INCLUDE keeps only blocks"),
    "event of TraceEnable": ("ptm", "ETMTEEVR 0x406f", (), "ETMTEEVR is not always true, which never happens"),
    "no range included": ("ptm", "ETMTECR1 0", (), "nothing is included"),
    "all excluded": ("ptm", "", ("--exclude-range", "0x10000-0x90000"), "ETMTECR1 leaves out blocks"),
    "authentication": ("ptm", "", ("--authentication", "NIDEN=0"), "(NIDEN=0, "),
    "OS Lock": ("ptm", "", ("--os-lock", "on@main"), "(OS Lock, "),
    "an address that never ran": ("etmv3", "ETMACVR1 0x10\nETMTECR1 0\nETMTECR2 1", (), "ETMTECR1 keeps only instructions at 0x10"),
    "no address included": ("etmv3", "ETMTECR2 0\nETMTECR1 0", (), "neither ETMTECR1[7:0] nor ETMTECR2 selects a comparator"),
    "authentication of an ETMv3": ("etmv3", "", ("--authentication", "NIDEN=0"), "(NIDEN=0, "),
    "power": ("etmv4", "", ("--unit-power", "off@mixed"), "(no power, "),
    "no trigger": ("ptm", "", ("--sink", "tmc-etb:512", "--sync", "128", "--trigger-at", "never", "--stop-after-trigger", "64"),
                   "STS.Triggered is 0"),
    "wrapped": ("ptm", "", ("--sink", "etb:512", "--sync", "128"), "STS.Full is 1"),
    "filter of loads": ("spe", "", ("-e", "arm_spe/load_filter=1,min_latency=200/"), "PMSFCR_EL1.FL = 1: only operations that take 200 cycles"),
    "filter of events": ("spe", "", ("-e", "arm_spe/event_filter=0x80/"), "PMSFCR_EL1.FE = 1: only operations with all events"),
    "latency that nothing has": ("spe", "", ("-e", "arm_spe/min_latency=4095/"), "PMSLATFR_EL1.MINLAT = 0xfff"),
    "trace of a DPU is off": ("dpu", DPU_BUFFER + "DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1\nDP_TC TMODE=FLOW", (), "DP_TC.EN is 0"),
    "an ID that no task has": ("dpu", DPU_BUFFER + "DP_CR TIDCM=1\nDP_RPID 0x77\nDP_TC TMODE=FLOW IDFLT=1 EN=1", (), "DP_TC.IDFLT is 1"),
    "funnel": ("etmv4", "", ("--sink", "tmc-etb"), "FUNCTL[7:0] is 0x00", "FUNCTL 0x300"),
    "another input of the funnel": ("ptm", "", ("--sink", "etb"), "FUNCTL[7:0] is 0x02: only input 1 is open", "FUNCTL 0x302"),
    "filter of the replicator": ("ete", "", ("--sink", "tmc-etr"), "IDFILTER0[7:0] is 0x02: output 0 leaves out trace IDs 0x10 to 0x1f",
                                 "IDFILTER0 2"),
    "buffer that is off": ("ete", "", ("--sink", "tmc-etf"), "CTL.TraceCaptEn is 0: capture is off", "CTL 0"),
    "bytes without IDs": ("etmv4", "", ("--sink", "tmc-etb"), "FFCR.EnFt is 0", "FFCR 0"),
    "trigger behind a gate": ("ptm", "", ("--sink", "tmc-etb:512", "--sync", "128", "--trigger-at", "mixed", "--stop-after-trigger", "64"),
                              "CTIGATE is 0x0: channels 0 do not reach", "CTIGATE 0"),
    "trigger that is not mapped": ("etmv4", "", ("--sink", "tmc-etr:512", "--sync", "256", "--trigger-at", "mixed", "--stop-after-trigger", "64"),
                                   "CTICONTROL.GLBEN is 0", "CTICONTROL 0"),
    "early stop": ("etmv4", "", ("--sink", "tmc-etf:1024", "--sync", "256", "--trigger-at", "mixed", "--stop-after-trigger", "64"),
                   "STS.Triggered is 1: the trigger counter reached 0"),
}


# Mistakes that `record` cannot make: registers as a debugger reads them beside an empty buffer, and the expected
# sentence.
READ = {
    "enable": ("etmv4", "TRCPRGCTLR=0x0", "TRCPRGCTLR.EN is 0"),
    "Programming bit": ("ptm", "ETMCR(id:0x00)=0x400", "ETMCR[10] is 1"),
    "Programming bit of an ETMv3": ("etmv3", "ETMCR(id:0x00)=0xc00", "ETMCR[10] is 1"),
    "power down": ("etmv3", "ETMCR(id:0x00)=0x801", "ETMCR[0] is 1"),
    "OS Lock": ("etmv4", "TRCOSLSR=0xa", "TRCOSLSR.OSLK is 1"),
    "OS Lock of a PTM": ("ptm", "ETMOSLSR=0x2", "ETMOSLSR[1] is 1"),
    "no power": ("ete", "TRCPDSR=0x0", "TRCPDSR.POWER is 0"),
    "authentication": ("etmv4", "TRCAUTHSTATUS=0x8", "TRCAUTHSTATUS.NSNID is 2"),
    "trace ID 0": ("ete", "TRCTRACEIDR=0x0", "TRCTRACEIDR is 0x00"),
    "trace ID 0 of a PTM": ("ptm", "ETMTRACEIDR(id:0x80)=0x0", "ETMTRACEIDR is 0x00"),
}


def output(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS)
    # The output breaks sentences into lines.
    return " ".join((done.stdout + done.stderr).split())


class WrongProgramming(unittest.TestCase):
    def test_each_cause_is_named(self):
        with Folder() as name:
            folder = pathlib.Path(name)
            for arch, compiler in COMPILERS.items():
                (folder / f"{arch}.c").write_text(PROGRAM + START[arch])
                subprocess.run([compiler, "-O1", "-static", "-nostdlib", *(["-marm"] if arch == "arm" else []), "-o",
                                folder / arch, folder / f"{arch}.c"], check=True, timeout=HANGS)
            for case, (unit, registers, options, words, *path) in CASES.items():
                with self.subTest(case):
                    if registers:
                        (folder / "registers").write_text(registers + "\n")
                        options += ("--registers", folder / "registers")
                    if path:
                        (folder / "path").write_text(path[0] + "\n")
                        options += ("--sink-registers", folder / "path")
                    capture = folder / case
                    output(WAYMARK, "record", "--unit", unit, *options, "-o", capture, "--",
                           folder / ("arm" if unit in (*OLD, "dpu") else "aarch64"))
                    explained = output(WAYMARK, "explain", capture)
                    self.assertIn(words, explained + " " + output(WAYMARK, "doctor", capture))
                    # Registers do not show signals, so the recording states them beside the registers.
                    if words.startswith("("):
                        self.assertIn(", if signals permit it.", explained)
                        self.assertIn(f"Trace that signals prevented in this capture - {words[1:-2]}: ", explained)
                    else:
                        self.assertNotIn("signals", explained)
            # A recording contains every register that decides.
            for unit in *OLD, "etmv4", "ete":
                for name, options in (("plain", ()), ("all", ("--cycle-accurate", "--timestamps", "--context-id", "4")),
                                      ("range", ("--view-range", "mixed", "--trigger-at", "mixed"))):
                    with self.subTest(unit=unit, options=options):
                        capture = folder / f"{name}-{unit}"
                        output(WAYMARK, "record", "--unit", unit, *options, "-o", capture, "--",
                               folder / ("arm" if unit in OLD else "aarch64"))
                        said = output(WAYMARK, "explain", capture)
                        self.assertNotIn("ot given", said)
                        self.assertNotIn("not known", said)
                        self.assertEqual(subprocess.run([WAYMARK, "explain", capture], capture_output=True,
                                                        timeout=HANGS).returncode, 0)
                        self.assertIn("With these values a part of what runs is traced." if name == "range" else
                                      "With these values everything that runs is traced.", said)
                        # Its device files alone contain them as well.
                        (device,) = capture.glob("*source*.ini")
                        said = output(WAYMARK, "explain", device)
                        self.assertNotIn("not known", said)
                        self.assertIn("what runs is traced." if name == "range" else "everything that runs", said)
            for case, (unit, register, words) in READ.items():
                with self.subTest(case):
                    capture = folder / f"read-{case}"
                    shutil.copytree(folder / f"plain-{unit}", capture)
                    (device,) = capture.glob("*source*.ini")
                    name = register.split("=")[0]
                    lines = [line for line in device.read_text().splitlines() if not line.startswith(name + "=")]
                    device.write_text("\n".join([*lines, register]) + "\n")
                    (capture / "trace.bin").write_bytes(bytes(64))
                    said = output(WAYMARK, "explain", capture)
                    self.assertIn(words, said)
                    self.assertNotIn(words, output(WAYMARK, "explain", folder / f"plain-{unit}"))
            # A correct capture gets none of these sentences.
            said = ""
            for unit, program, options in (("ptm", "arm", ("--sink", "tmc-etb", "--trigger-at", "mixed")), ("dpu", "arm", ()),
                                           ("spe", "aarch64", ("-c", "256"))):
                output(WAYMARK, "record", "--unit", unit, *options, "-o", folder / f"right-{unit}", "--", folder / program)
                said += output(WAYMARK, "explain", folder / f"right-{unit}") + " " + output(WAYMARK, "doctor", folder / f"right-{unit}")
            for _, _, _, words, *_ in CASES.values():
                self.assertNotIn(words, said)


if __name__ == "__main__":
    missing = [tool for tool in ("qemu-arm", "qemu-aarch64", *COMPILERS.values()) if shutil.which(tool) is None]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} missing")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
