#!/usr/bin/env python3
"""Recordings of programs for a Cortex-M3 with --unit etmv3, and for a Cortex-M7, M33 and M55 with --unit etmv4, alone and in one funnel with
an ITM and an STM.

    etm_m_test.py WAYMARK SOURCE_DIR

The witnesses are QEMU, through verify, OpenCSD, and the same messages recorded without an ETM beside them.
"""
import csv
import io
import pathlib
import re
import shutil
import sys
import unittest

import opencsd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cortex_m import COMPILER, build  # noqa: E402
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
# Addresses of the STM's ports, which the program does not use otherwise.
STM_PORTS = {"m3": 0x21000000, "m7": 0x20002000, "m33": 0x38002000, "m55": 0x21002000}
UNITS = {"m3": "etmv3", "m7": "etmv4", "m33": "etmv4", "m55": "etmv4"}
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
#if __ARM_ARCH_8_1M_MAIN__
/* Low-overhead loops, one of which is not entered. */
static void loop(unsigned n) {
    __asm__ volatile("wls lr, %0, 2f\n1: add %0, %0, #1\n le lr, 1b\n2:\n" : "+r"(n) : : "lr", "cc", "memory");
    sum += n;
}
#else
static void loop(unsigned n) { sum += n; }
#endif
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
        if (i % 64 < 4) loop((unsigned)i % 64);
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
        cls.programs = {board: build(cls.folder, board, "exceptions", PROGRAM, f"-DPORTS={STM_PORTS[board]:#x}u") for board in UNITS}
        cls.schedulers = {board: cls.folder / f"scheduler-{board}.elf" for board in ("m3", "m33")}

    def record(self, program, *options, status=0):
        out = self.folder / f"{program.stem}{'-'.join(options)}"
        done = run(WAYMARK, "record", "-q", *options, "-o", out, "--", program)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done if status else out

    def record_beside(self, board, program, *others):
        """The ETM of the board's core, and the units beside it."""
        ports = ("--stm-ports", hex(STM_PORTS[board])) if "stm" in others else ()
        return self.record(program, "--unit", ",".join((UNITS[board], *others)), *ports)

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
        for board, program in (*self.programs.items(), *self.schedulers.items()):
            with self.subTest(program=program.name):
                out = self.record_beside(board, program)
                self.verified(out, r"equal: [\d,]+ instructions of 1 source")
                # OpenCSD 1.3.3 knows neither the Cortex-M7 nor the M55, whose loops it cannot follow.
                if opencsd.LISTER and board != "m55":
                    description = out / "core_0.ini"
                    description.write_text(description.read_text().replace("Cortex-M7", "Cortex-M4"))
                    self.assertEqual(opencsd.differences(out), [])
        if not opencsd.LISTER:
            print(opencsd.MISSING)

    def test_exceptions_are_those_that_the_dwt_sent(self):
        # Exception numbers in packets of the ETM, by the number of the exception.
        packets = {"etmv3": {2: 10, 6: 9, 11: 11, 14: 14, 19: 3, 28: 28},
                   "etmv4": {2: 2, 6: 6, 11: 11, 14: 14, 19: 0x13, 28: 0x20c}}
        for board, program in self.programs.items():
            with self.subTest(board=board):
                out = self.record_beside(board, program, "itm")
                sent = [int(r["number"]) for r in self.messages(out) if r["change"] == "entered"]
                packet = packets[UNITS[board]]
                taken = [int(r["detail"], 0) for r in self.rows("flow", out) if r["element"] == "exception"]
                self.assertEqual(taken, [packet[n] for n in sent])
                self.assertEqual(set(sent), set(packet))

    def test_a_chained_exception_ends_the_one_before(self):
        """Each handler is left four times; only the NMI preempts another one. The MTB shows the same."""
        for board, program in self.programs.items():
            for unit in ("mtb", UNITS[board]):
                with self.subTest(board=board, unit=unit):
                    size = ("--mtb-size", "65536") if unit == "mtb" else ()
                    rows = self.rows("exceptions", self.record(program, "--unit", unit, *size))
                    self.assertEqual(sum(int(r["times"]) for r in rows), 24)
                    for row in rows:
                        self.assertEqual((row["times"], row["returned"]), ("4", "4"), row)
                        self.assertEqual(row["nested"], "4" if row["exception"] == "NMI" else "0", row)

    def test_modes_stand_in_place_of_exception_levels(self):
        out = self.record_beside("m33", self.programs["m33"])
        contexts = {(r["el"], r["detail"]) for r in self.rows("flow", out) if r["element"] == "context"}
        self.assertEqual(contexts, {("0", "S Thread mode"), ("3", "S Handler mode")})
        self.assertEqual({r["level"] for r in self.rows("profile", out, "--by", "level")}, {"Thread mode", "Handler mode"})

    def test_a_cortex_m7_has_the_registers_of_its_etm(self):
        """Programs for a Cortex-M4 and M7 are of one architecture: the unit decides."""
        program = self.programs["m7"]
        for unit, core in (("etmv4", "Cortex-M7"), ("etmv3", "Cortex-M4")):
            out = self.record(program, "--unit", unit)
            self.assertIn(f"type={core}", (out / "core_0.ini").read_text())
            self.verified(out, "equal")
        out = self.record(program, "--unit", "mtb", "--machine", "mps2-an500")
        self.assertIn("type=Cortex-M7", (out / "core_0.ini").read_text())
        text = (self.folder / f"{program.stem}--unit-etmv4/source_0.ini").read_text().lower()
        for register in ("trcidr0=0x080006e1", "trcidr1=0x4100f401", "trcidr2=0x00000004"):
            self.assertIn(register, text)

    def test_a_funnel_joins_the_units(self):
        for board, program in self.programs.items():
            for others in (("itm",), ("stm",), ("itm", "stm")):
                with self.subTest(board=board, others=others):
                    out = self.record_beside(board, program, *others)
                    self.assertEqual([p.name for p in out.glob("trace*.bin")], ["trace.bin"])
                    self.verified(out, rf"messages of {1 + len(others)} sources")
            # The messages that the ITM and the STM sent without an ETM are here too.
            joined = self.messages(out)
            for unit, identity in (("itm", "0x01"), ("stm", "0x03")):
                ports = ("--stm-ports", hex(STM_PORTS[board])) if unit == "stm" else ()
                alone = self.messages(self.record(program, "--unit", unit, *ports))
                without = ("source", "offset", "length", "buffer", "late", "confirmed")
                plain = [[{k: v for k, v in r.items() if k not in without} for r in rows]
                         for rows in (alone, [r for r in joined if r["source"] == identity])]
                self.assertTrue(alone)
                self.assertEqual(plain[0], plain[1])

    def test_messages_stand_among_the_instructions(self):
        """The DWT's message of an exception is near the branch packet of the ETM that enters the handler."""
        out = self.record_beside("m3", self.schedulers["m3"], "itm")
        told = [int(r["offset"], 0) for r in self.messages(out) if r["change"] == "entered"]
        traced = [int(r["offset"], 0) for r in self.rows("flow", out) if r["element"] == "exception"]
        self.assertEqual(len(told), len(traced))
        self.assertGreater(len(told), 20)
        self.assertLess(max(abs(a - b) for a, b in zip(told, traced)), 64)

    def test_doctor_names_both_from_the_bytes_alone(self):
        for board, name in (("m3", "Embedded Trace Macrocell v3 (ETMv3)"), ("m33", "ETMv4")):
            with self.subTest(board=board):
                bare = self.folder / f"bare-{board}.bin"
                shutil.copy(self.record_beside(board, self.schedulers[board], "itm") / "trace.bin", bare)
                done = run(WAYMARK, "doctor", bare, "--image", self.schedulers[board])
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("source 0x01 source_01  instrumentation and watchpoint trace (ITM, DWT)", done.stdout)
                self.assertRegex(done.stdout, rf"source 0x02 source_02  .*{re.escape(name)}")
                self.assertIn("agrees, proven", done.stdout)

    def test_wrong_uses_are_refused(self):
        m3, m33 = self.programs["m3"], self.programs["m33"]
        for program, options, words in ((m33, ("--unit", "etmv3,itm"), "--unit etmv4 records this program"),
                                        (m33, ("--unit", "etmv3"), "whose recorded cores have none"),
                                        (self.programs["m7"], ("--unit", "etmv4", "--machine", "mps2-an386"), "its Cortex-M4 has no such ETM"),
                                        (m33, ("--unit", "ete"), "a Cortex-M: choose --unit mtb"),
                                        (m3, ("--unit", "etmv4,itm"), "--unit etmv3 records this program"),
                                        (m3, ("--unit", "etmv3", "--cycle-accurate"), "fixed settings"),
                                        (m33, ("--unit", "etmv4", "--cycle-accurate"), "fixed settings"),
                                        (m3, ("--unit", "etmv3", "--mtb-size", "64"), "only for --unit mtb")):
            with self.subTest(options=options):
                self.assertIn(words, self.record(program, *options, status=2).stderr)


if __name__ == "__main__":
    if shutil.which("qemu-system-arm") is None or shutil.which(COMPILER) is None:
        print(f"SKIPPED: qemu-system-arm or {COMPILER} is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
