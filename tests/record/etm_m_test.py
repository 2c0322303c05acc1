#!/usr/bin/env python3
"""Recordings of programs for a Cortex-M3 with --unit etmv3, alone and in one funnel with an ITM and an STM.

    etm_m_test.py WAYMARK SOURCE_DIR

The witnesses are QEMU, through verify, OpenCSD, and the same messages recorded without an ETM beside them.
"""
import csv
import io
import pathlib
import shutil
import sys
import unittest

import opencsd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cortex_m import COMPILER, build  # noqa: E402
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
STM_PORTS = 0x21000000
# Conditional instructions in IT blocks, CBZ, a table of branches, and every way in which exceptions follow each other: an
# undefined instruction, an exception that preempts a handler, one that is chained to it, IRQ3 and IRQ12.
PROGRAM = r"""
#define REG(a) (*(volatile unsigned*)(a))
volatile unsigned seen, sum;
static void leave(void) {
    unsigned b[2] = {0x20026, 0};
    register unsigned r0 __asm__("r0") = 0x20;
    register void* r1 __asm__("r1") = b;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    for (;;) {}
}
static void now(void) { __asm__ volatile("dsb; isb" : : : "memory"); }
/* The handler skips the instruction, which has two bytes. */
__attribute__((naked)) void usage_fault(void) {
    __asm__ volatile("ldr r0, [sp, #24]\nadds r0, #2\nstr r0, [sp, #24]\nbx lr\n");
}
void nmi(void) { seen |= 1; }
void pend_sv(void) { seen |= 2; REG(0xE0000000) = seen; }
void irq3(void) { seen |= 4; REG(0xE000ED04) = 1u << 28; }
void irq12(void) { seen |= 8; REG(0xE000ED04) = 1u << 31; now(); seen |= 16; }
void supervisor(void) { REG(0xE000E200) = 1u << 3 | 1u << 12; now(); }
__attribute__((noinline)) static int pick(int n) {
    switch (n & 7) {
        case 0: return n + 1;
        case 1: return n * 3;
        case 2: return n - 7;
        case 3: return n ^ 0x55;
        case 4: return n << 2;
        case 5: return n >> 1;
        case 6: return n ? -n : 4;
        default: return n == 7 ? 0 : 12;
    }
}
void reset(void) {
    REG(0xE000ED24) = 1u << 18;          /* UsageFault has its own handler */
    REG(0xE000E100) = 1u << 3 | 1u << 12;
    REG(0xE000ED20) = 0xFFu << 16;       /* PendSV has the lowest priority */
    for (int i = 0; i < 200; ++i) {
        sum += (unsigned)pick(i);
        if (i % 50 == 10) __asm__ volatile("udf #1" : : : "r0", "memory");
        if (i % 50 == 20) __asm__ volatile("svc 1" : : : "memory");
        *(volatile unsigned char*)0xE0000000 = (unsigned char)('a' + i % 26);
        *(volatile unsigned*)(PORTS + 0x18) = sum;
    }
    leave();
}
extern unsigned stack_top;
__attribute__((section(".vectors"), used)) void* const vectors[32] = {
    &stack_top, (void*)reset, (void*)nmi, 0, 0, 0, (void*)usage_fault, 0, 0, 0, 0, (void*)supervisor, 0, 0, (void*)pend_sv, 0,
    0, 0, 0, (void*)irq3, 0, 0, 0, 0, 0, 0, 0, 0, (void*)irq12};
"""


class EtmOfACortexM(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        done = run(SOURCE / "examples/build", "-o", cls.folder, "scheduler")
        assert done.returncode == 0, done.stdout + done.stderr
        cls.scheduler = cls.folder / "scheduler-m3.elf"
        cls.program = build(cls.folder, "m3", "exceptions", PROGRAM, f"-DPORTS={STM_PORTS:#x}u")

    def record(self, program, *options, status=0):
        out = self.folder / f"{program.stem}{'-'.join(options)}"
        done = run(WAYMARK, "record", "-q", *options, "-o", out, "--", program)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done if status else out

    def rows(self, command, out, *options):
        done = run(WAYMARK, command, out, "--format", "tsv", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t"))

    def messages(self, out):
        return self.rows("messages", out, "--kind", "all")

    def verified(self, out, of):
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, of)

    def test_what_ran_is_in_the_trace(self):
        for program in (self.scheduler, self.program):
            with self.subTest(program=program.name):
                out = self.record(program, "--unit", "etmv3")
                self.verified(out, r"equal: [\d,]+ instructions of 1 source")
                if opencsd.LISTER:
                    self.assertEqual(opencsd.differences(out), [])
        if not opencsd.LISTER:
            print(opencsd.MISSING)

    def test_exceptions_are_those_that_the_dwt_sent(self):
        out = self.record(self.program, "--unit", "etmv3,itm")
        sent = [int(r["number"]) for r in self.messages(out) if r["change"] == "entered"]
        # Exception numbers in packets of ETMv3, by the number of the exception.
        packet = {2: 10, 6: 9, 11: 11, 14: 14, 19: 3, 28: 28}
        taken = [int(r["detail"], 0) for r in self.rows("flow", out) if r["element"] == "exception"]
        self.assertEqual(taken, [packet[n] for n in sent])
        self.assertEqual(set(sent), set(packet))

    def test_a_funnel_joins_the_units(self):
        for units in ("etmv3,itm", "etmv3,stm", "etmv3,itm,stm"):
            with self.subTest(units=units):
                out = self.record(self.program, "--unit", units)
                self.assertEqual([p.name for p in out.glob("trace*.bin")], ["trace.bin"])
                self.verified(out, rf"messages of {1 + units.count(',')} sources")
        # The messages that the ITM and the STM sent without an ETM are here too.
        joined = self.messages(out)
        for unit, identity in (("itm", "0x01"), ("stm", "0x03")):
            alone = self.messages(self.record(self.program, "--unit", unit))
            without = ("source", "offset", "length", "buffer", "late", "confirmed")
            plain = [[{k: v for k, v in r.items() if k not in without} for r in rows]
                     for rows in (alone, [r for r in joined if r["source"] == identity])]
            self.assertTrue(alone)
            self.assertEqual(plain[0], plain[1])

    def test_messages_stand_among_the_instructions(self):
        """The DWT's message of an exception is near the branch packet of the ETM that enters the handler."""
        out = self.record(self.scheduler, "--unit", "etmv3,itm")
        told = [int(r["offset"], 0) for r in self.messages(out) if r["change"] == "entered"]
        traced = [int(r["offset"], 0) for r in self.rows("flow", out) if r["element"] == "exception"]
        self.assertEqual(len(told), len(traced))
        self.assertGreater(len(told), 20)
        self.assertLess(max(abs(a - b) for a, b in zip(told, traced)), 64)

    def test_doctor_names_both_from_the_bytes_alone(self):
        bare = self.folder / "bare.bin"
        shutil.copy(self.record(self.scheduler, "--unit", "etmv3,itm") / "trace.bin", bare)
        done = run(WAYMARK, "doctor", bare, "--image", self.scheduler)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("source 0x01 source_01  instrumentation and watchpoint trace (ITM, DWT)", done.stdout)
        self.assertIn("source 0x02 source_02  Embedded Trace Macrocell v3 (ETMv3)", done.stdout)
        self.assertIn("agrees, proven", done.stdout)

    def test_wrong_uses_are_refused(self):
        m33 = self.folder / "scheduler-m33.elf"
        for program, options, words in ((m33, ("--unit", "etmv3,itm"), "whose cores have none"),
                                        (m33, ("--unit", "etmv3"), "whose cores have none"),
                                        (self.program, ("--unit", "etmv3", "--cycle-accurate"), "fixed settings"),
                                        (self.program, ("--unit", "etmv3", "--mtb-size", "64"), "only for --unit mtb")):
            with self.subTest(options=options):
                self.assertIn(words, self.record(program, *options, status=2).stderr)


if __name__ == "__main__":
    if shutil.which("qemu-system-arm") is None or shutil.which(COMPILER) is None:
        print(f"SKIPPED: qemu-system-arm or {COMPILER} is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
