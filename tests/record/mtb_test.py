#!/usr/bin/env python3
"""Recordings of programs for Cortex-M with --unit mtb: verified, wrapped, stopped by the watermark.

    mtb_test.py WAYMARK SOURCE_DIR

The witness is what QEMU executed. The programs run on a Cortex-M0 (microbit) and on a Cortex-M33 (mps2-an505).
"""
import configparser
import csv
import io
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cortex_m import BOARDS, COMPILER, build  # noqa: E402
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
# Calls, loops, a table of functions, SVC, SysTick while the core sleeps and works, PendSV chained to SysTick.
PROGRAM = r"""
#define REG(a) (*(volatile unsigned*)(a))
volatile unsigned ticks, calls, pends, sum;
static int host(int operation, void* argument) {
    register int r0 __asm__("r0") = operation;
    register void* r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
void tick(void) { if (++ticks == 2) REG(0xE000ED04) = 1u << 28; }
void supervisor(void) { ++calls; }
void pend(void) { ++pends; }
void fault(void) { unsigned b[2] = {0x20026, 7}; host(0x20, b); for (;;) {} }
typedef unsigned (*step)(unsigned);
__attribute__((noinline)) static unsigned twice(unsigned a) { return a * 2; }
__attribute__((noinline)) static unsigned more(unsigned a) { return (a & 3) == 1 ? a + 7 : a - 1; }
static unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static const step steps[] = {twice, more, fib};
int main(void) {
    REG(0xE000E014) = PERIOD; REG(0xE000E018) = 0; REG(0xE000E010) = 7;
    unsigned next = 0, again = 0;
    for (unsigned i = 0; i < 45; ++i) {
        sum += steps[next](i & 7);
        if (++next == 3) next = 0;
        if (++again == 9) { again = 0; __asm__ volatile("svc 1"); }
    }
    while (ticks < 3) __asm__ volatile("wfi");
    unsigned b[2] = {0x20026, 0}; host(0x20, b); for (;;) {}
}
extern unsigned stack_top;
void reset(void) { main(); for (;;) {} }
__attribute__((section(".vectors"), used)) void* const vectors[16] = {
    &stack_top, (void*)reset, 0, (void*)fault, 0, 0, 0, 0, 0, 0, 0, (void*)supervisor, 0, 0, (void*)pend, (void*)tick};
"""

# Secure code calls a Non-secure function by BLXNS. This calls back through a gate (SG), and returns by FNC_RETURN. The Secure code
# first names the gate and the Non-secure code to the SAU, the SSE-200's NSCCFG and its memory protection controller.
GATE = """
.syntax unified
.thumb
.section .secure, "ax"
.word 0x38004000, reset + 1
.global reset
.thumb_func
reset: ldr r0, =0xE000EDD0
 movs r1, #0
 str r1, [r0, #8]
 str r1, [r0, #12]
 ldr r1, =0x0fffffe1
 str r1, [r0, #16]
 movs r1, #1
 str r1, [r0, #8]
 ldr r1, =0x10002000
 str r1, [r0, #12]
 ldr r1, =0x10002fe3
 str r1, [r0, #16]
 movs r1, #1
 str r1, [r0, #0]
 ldr r0, =0x50080014
 str r1, [r0]
 ldr r0, =0x58007000
 movs r2, #1
 mvn r1, #0
open: str r2, [r0, #0x18]
 str r1, [r0, #0x1c]
 adds r2, #1
 cmp r2, #8
 bne open
 dsb
 isb
 movs r5, #3
again: ldr r4, =0x00010000
 blxns r4
 subs r5, #1
 bne again
 movs r0, #0x18
 ldr r1, =0x20026
 bkpt 0xab
.thumb_func
behind: adds r3, #7
 bxns lr
.ltorg
.section .gate, "ax"
gate: sg
 b.w behind
.section .open, "ax"
 mov r6, lr
 ldr r2, =0x10002001
 blx r2
 bx r6
"""
GATE_LINKER = """ENTRY(reset) SECTIONS { . = 0x10000; .open : { *(.open) } . = 0x10000000; .secure : { *(.secure) }
 . = 0x10002000; .gate : { *(.gate) } }
"""


class Mtb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.programs = {name: cls.build(name, PROGRAM) for name in BOARDS}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def build(cls, board, program, name="program", period=1501):
        return build(cls.folder, board, name, program, f"-DPERIOD={period}")

    def record(self, name, board, *options, status=0):
        out = self.folder / name
        done = run(WAYMARK, "record", "-q", "--unit", "mtb", *options, "-o", out, "--", self.programs[board])
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return out

    def flow(self, out, *options):
        done = run(WAYMARK, "flow", out, "--format", "tsv", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t"))

    def registers(self, out):
        file = configparser.ConfigParser()
        file.optionxform = str
        file.read(next(out.glob("source_*.ini")))
        return {key.split("(")[0]: int(value, 0) for key, value in file["regs"].items()}

    def test_what_executed_is_in_the_trace(self):
        for board in BOARDS:
            with self.subTest(board=board):
                out = self.record(f"all-{board}", board, "--mtb-size", "65536")
                done = run(WAYMARK, "verify", out)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("equal", done.stdout)
                rows = self.flow(out)
                self.assertEqual(rows, self.flow(out, "--reference-decoder"))
                exceptions = [row["name"] if "name" in row else str(row) for row in rows
                              if row["element"] == "exception"]
                self.assertGreaterEqual(len(exceptions), 9)  # 5 SVC, 3 SysTick, 1 PendSV
                text = run(WAYMARK, "flow", out).stdout
                for word in ("SVC", "SysTick", "PendSV"):
                    self.assertIn(word, text)
                self.assertFalse(self.registers(out)["MTB_POSITION"] & 4)

    def test_gates_between_secure_and_non_secure_code(self):
        source, script, program = (self.folder / f"gate{end}" for end in (".S", ".ld", ".elf"))
        source.write_text(GATE)
        script.write_text(GATE_LINKER)
        built = run(COMPILER, "-mcpu=cortex-m33", "-mthumb", "-mcmse", "-mfloat-abi=soft", "-nostdlib", "-static", "-Wl,--build-id=none",
                    "-T", script, "-o", program, source)
        self.assertEqual(built.returncode, 0, built.stderr)
        for unit in ("mtb", "etmv4"):
            with self.subTest(unit=unit):
                out = self.folder / f"gate-{unit}"
                done = run(WAYMARK, "record", "-q", "--unit", unit, "-o", out, "--", program)
                self.assertEqual(done.returncode, 0, done.stderr)
                done = run(WAYMARK, "verify", out)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                ranges = [row for row in self.flow(out) if row["element"] == "range"]
                # QEMU executes SG without logging it.
                self.assertEqual([int(row["instructions"]) for row in ranges if int(row["start"], 0) == 0x10002000], [2, 2, 2])
                self.assertEqual(sum(int(row["start"], 0) == 0x10000 for row in ranges), 3)
        packets = list(csv.DictReader(io.StringIO(run(WAYMARK, "packets", self.folder / "gate-mtb", "--format", "tsv").stdout), delimiter="\t"))
        self.assertEqual(sum("destination=0xfefffffe" in row["fields"] for row in packets), 3)
        self.assertEqual(sum("source=0xfefffffe" in row["fields"] for row in packets), 3)

    def test_a_buffer_that_wraps_has_the_end(self):
        for size in ("64", "256", "2048"):
            with self.subTest(size=size):
                out = self.record(f"wrap-{size}", "m33", "--mtb-size", size)
                self.assertEqual((out / "trace_MTB_0.bin").stat().st_size, int(size))
                self.assertTrue(self.registers(out)["MTB_POSITION"] & 4)
                done = run(WAYMARK, "verify", out)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                done = run(WAYMARK, "doctor", out)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                # What the bytes leave open, the description states.
                self.assertIn("core: Cortex-M33 (the type of the core in the description)", done.stdout)
                self.assertRegex(done.stdout, r"oldest packet: by the pointer, 0x\w+ \(MTB_POSITION=0x\w+ of the")

    def test_the_watermark_keeps_the_begin(self):
        out = self.record("watermark", "m0", "--mtb-size", "1024", "--mtb-watermark", "512")
        registers = self.registers(out)
        self.assertEqual(registers["MTB_POSITION"], 512)
        self.assertFalse(registers["MTB_MASTER"] >> 31)
        whole = [(row["start"], row["end"]) for row in self.flow(self.record("whole", "m0", "--mtb-size", "65536"))
                 if row["element"] == "range"]
        begin = [(row["start"], row["end"]) for row in self.flow(out) if row["element"] == "range"]
        self.assertGreater(len(begin), 40)
        self.assertEqual(begin, whole[:len(begin)])
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_code_before_the_first_jump_is_not_called_unexecuted(self):
        """An MTB records jumps: what ran before the first one and behind the last one is not in its trace."""
        out = self.record("ends", "m0", "--mtb-size", "65536")
        rows = list(csv.DictReader(run(WAYMARK, "coverage", out, "--by", "function", "--format", "tsv").stdout.splitlines(),
                                   delimiter="\t"))
        self.assertGreater(sum(int(row["instructions executed"]) for row in rows), 40)
        self.assertEqual(sum(int(row["instructions not executed"]) for row in rows), 0)
        self.assertGreater(sum(int(row["instructions not observed"]) for row in rows), 0)
        self.assertIn("code before the first jump, and behind the last one", run(WAYMARK, "info", out).stdout)

    def test_a_watermark_at_the_size_does_not_wrap(self):
        out = self.record("full", "m0", "--mtb-size", "256", "--mtb-watermark", "256")
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(run(WAYMARK, "packets", out, "--format", "tsv").stdout.splitlines()), 33)
        # The pointer has wrapped, but no packet was overwritten: the trace begins with the run.
        shown = run(WAYMARK, "flow", out).stdout + run(WAYMARK, "info", out).stdout
        self.assertNotIn("the buffer wrapped", shown)
        self.assertIn("at the watermark", shown)

    def test_a_stretch_of_the_run(self):
        out = self.record("stretch", "m33", "--start-at", "fib", "--limit", "100")
        self.assertIn("fib", run(WAYMARK, "flow", out, "--format", "calls").stdout)
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_faults_and_interrupts_anywhere(self):
        """An interrupt each hundred or two hundred instructions, so that some come right after branches."""
        often = PROGRAM.replace('while (ticks < 3) __asm__ volatile("wfi");', "while (ticks < 60) sum += fib(5);")
        for period in (3, 4, 5):
            with self.subTest(period=period):
                for board in BOARDS:
                    self.programs[f"often-{board}"] = self.build(board, often,
                                                                 f"often{period}", period)
                    out = self.record(f"often-{period}-{board}", f"often-{board}", "--mtb-size", "65536")
                    done = run(WAYMARK, "verify", out)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_an_undefined_instruction(self):
        self.programs["undefined"] = self.build("m0", PROGRAM.replace("while (ticks", "__asm__ volatile(\"udf 1\"); while (ticks"),
                                                "undefined")
        out = self.record("undefined", "undefined", "--mtb-size", "65536")
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("HardFault", run(WAYMARK, "flow", out).stdout)

    def test_what_does_not_go_together(self):
        for options, words in ((("--mtb-size", "1000"), "power of two"), (("--mtb-watermark", "12"), "a multiple of 8"),
                               (("--cycle-accurate",), "is only for --unit"), (("--start-at", "nowhere"), "no such symbol")):
            out = self.folder / "refused"
            done = run(WAYMARK, "record", "--unit", "mtb", *options, "-o", out, "--", self.programs["m0"])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)
        done = run(WAYMARK, "record", "--unit", "mtb", "-o", self.folder / "refused", "--", WAYMARK)
        self.assertEqual(done.returncode, 3, done.stderr)
        # If no unit is chosen, the message names the units of a Cortex-M.
        done = run(WAYMARK, "record", "-o", self.folder / "refused", "--", self.programs["m0"])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--unit mtb", done.stderr)
        kept = self.record("kept", "m0")
        before = (kept / "truth.txt").read_text()
        self.record("kept", "m0", "--start-at", "fault", status=1)
        self.assertEqual((kept / "truth.txt").read_text(), before)


if __name__ == "__main__":
    if shutil.which(COMPILER) is None or shutil.which("qemu-system-arm") is None:
        print(f"SKIPPED: {COMPILER} or qemu-system-arm is missing")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
