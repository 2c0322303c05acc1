#!/usr/bin/env python3
"""Recordings of a program for Cortex-M with --unit stm: what it writes to the stimulus ports, and several units at once.

    stm_test.py WAYMARK SOURCE_DIR

The witness is what the program's source writes.
"""
import csv
import io
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cortex_m import COMPILER, build  # noqa: E402
from scratch import Folder, run  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
PORTS = 0x80000000  # PSRAM of mps2-an505
PROGRAM = r"""
#define PORT(channel, offset) (PORTS + 256 * (channel) + (offset))
#define WRITE(type, channel, offset, value) (*(volatile type*)PORT(channel, offset) = (type)(value))
volatile unsigned sum;
void reset(void) {
    WRITE(unsigned char, 1, 0x98, 'h');
    WRITE(unsigned short, 1, 0x98, 0x1234);
    WRITE(unsigned, 1, 0x98, 0xdeadbeef);
    WRITE(unsigned char, 1, 0x88, '!');
    WRITE(unsigned char, 300, 0x90, 1);
    WRITE(unsigned char, 300, 0x80, 2);
    WRITE(unsigned char, 300, 0x18, 3);
    WRITE(unsigned char, 300, 0xe8, 0);
    WRITE(unsigned char, 300, 0xe0, 0);
    WRITE(unsigned char, 300, 0xf8, 7);
    WRITE(unsigned char, 300, 0xc0, 9);
    for (unsigned i = 0; i < ROUNDS; ++i) WRITE(unsigned, 65535, 0x98, sum += i);
    *(volatile unsigned char*)0xE0000000 = 'I';
    unsigned b[2] = {0x20026, 0};
    register unsigned r0 __asm__("r0") = 0x20;
    register void* r1 __asm__("r1") = b;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    for (;;) {}
}
extern unsigned stack_top;
__attribute__((section(".vectors"), used)) void* const vectors[] = {&stack_top, (void*)reset};
"""
ROUNDS = 1000
# Kind, channel, marked, value, its size; and whether it has a timestamp.
WRITTEN = [("text", 1, False, ord("h"), 1, False), ("text", 1, False, 0x1234, 2, False), ("text", 1, False, 0xdeadbeef, 4, False),
           ("text", 1, True, ord("!"), 1, False), ("text", 300, False, 1, 1, True), ("text", 300, True, 2, 1, True),
           ("text", 300, False, 3, 1, False), ("flag", 300, True, None, 0, False), ("flag", 300, True, None, 0, True),
           ("trigger", 300, False, 7, 1, False)]  # the address 0xc0 is reserved


class Stm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.program = build(cls.folder, "m33", "ports", PROGRAM, f"-DPORTS={PORTS:#x}u", f"-DROUNDS={ROUNDS}")

    def record(self, units, *options, status=0):
        out = self.folder / units.replace(",", "-")
        done = run(WAYMARK, "record", "-q", "--unit", units, *options, "-o", out, "--", self.program)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return out, done

    def messages(self, out, *options):
        done = run(WAYMARK, "messages", out, "--kind", "all", "--format", "tsv", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t"))

    def test_messages_are_what_the_program_wrote(self):
        out, _ = self.record("stm", "--stm-ports", hex(PORTS))
        rows = self.messages(out)
        told = [(r["kind"], int(r["channel"]), r["marked"] == "1", int(r["value"], 0) if r["value"] else None,
                 int(r["value_bytes"] or 0), r["timestamp"] != "") for r in rows]
        self.assertEqual(told[:len(WRITTEN)], WRITTEN)
        self.assertEqual({r["master"] for r in rows}, {"64"})
        sums = [sum(range(i + 1)) for i in range(ROUNDS)]
        self.assertEqual([t[3] for t in told[len(WRITTEN):]], sums)
        self.assertEqual({t[1] for t in told[len(WRITTEN):]}, {65535})
        times = [int(r["timestamp"], 0) for r in rows if r["timestamp"]]
        self.assertEqual(times, sorted(set(times)), "cycles only grow")
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("equal", done.stdout)

    def test_the_middle_of_it_is_read_from_the_next_synchronisation_on(self):
        out, _ = self.record("stm", "--stm-ports", hex(PORTS))
        data = (out / "trace_STM_0.bin").read_bytes()
        part = self.folder / "part.bin"
        part.write_bytes(data[len(data) // 3:])
        done = run(WAYMARK, "doctor", part)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("system trace (STM, STPv2)", done.stdout)
        values = [int(r["value"], 0) for r in self.messages(part, "--protocol", "stm") if r["kind"] == "text"]
        self.assertGreater(len(values), ROUNDS // 2)
        self.assertEqual(values, [sum(range(i + 1)) for i in range(ROUNDS)][-len(values):])

    def test_units_stand_side_by_side(self):
        out, _ = self.record("mtb,itm,stm", "--stm-ports", hex(PORTS), "--mtb-size", "65536")
        self.assertEqual(sorted(p.name for p in out.glob("trace_*.bin")), ["trace_ITM_0.bin", "trace_MTB_0.bin", "trace_STM_0.bin"])
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = self.messages(out)
        self.assertEqual(len([r for r in rows if r["master"] == "64"]), len(WRITTEN) + ROUNDS)
        self.assertEqual([int(r["value"], 0) for r in rows if r["port"] == "0" and r["kind"] == "text"], [ord("I")])

    def test_wrong_uses_are_refused(self):
        for options, why in ((("--stm-ports", "0x80000001"), "multiple of 256"), (("--mtb-size", "64"), "--unit mtb")):
            _, done = self.record("stm", *options, status=2)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    if shutil.which("qemu-system-arm") is None or shutil.which(COMPILER) is None:
        print(f"SKIPPED: qemu-system-arm or {COMPILER} is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
