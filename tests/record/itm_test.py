#!/usr/bin/env python3
"""Recordings of the example scheduler and of small programs for Cortex-M with --unit itm and mtb,itm.

    itm_test.py WAYMARK SOURCE_DIR

The witnesses are what the program's source says it writes, and QEMU's own log of the same run.
"""
import contextlib
import csv
import io
import json
import pathlib
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cortex_m import COMPILER, build  # noqa: E402
from scratch import Folder, HANGS, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
MACHINES = {"m3": "mps2-an385", "m33": "mps2-an505"}
BEGIN = r"""
#define REG(a) (*(volatile unsigned*)(a))
volatile unsigned level, other;
static void leave(void) {
    unsigned b[2] = {0x20026, 0};
    register unsigned r0 __asm__("r0") = 0x20;
    register void* r1 __asm__("r1") = b;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    for (;;) {}
}
"""
# Store-releases are the instructions for stores of atomic variables. TT (test target) has the encoding of a
# store-exclusive of the register 15.
STORES = BEGIN + r"""
#define DO(text, value) __asm__ volatile(text : : "r"(&level), "r"(value) : "r2", "r3", "cc", "memory")
void reset(void) {
    DO("str %1, [%0]", 1);
    DO("stl %1, [%0]", 2);
    DO("stlh %1, [%0]", 3);
    DO("stlb %1, [%0]", 4);
    DO("ldrex r2, [%0]; strex r3, %1, [%0]", 5);
    DO("ldrexh r2, [%0]; strexh r3, %1, [%0]", 6);
    DO("ldrexb r2, [%0]; strexb r3, %1, [%0]", 7);
    DO("ldaex r2, [%0]; stlex r3, %1, [%0]", 8);
    DO("ldaexh r2, [%0]; stlexh r3, %1, [%0]", 9);
    DO("ldaexb r2, [%0]; stlexb r3, %1, [%0]", 10);
    DO("tt r2, %0; ttt r2, %0; tta r2, %0; ttat r2, %0", 0);
    DO("cmp %1, #0; it eq; stleq %1, [%0]", 11);
    DO("cmp %1, #0; it ne; stlne %1, [%0]", 12);
    __atomic_store_n((unsigned char*)0xe0000000, 'R', __ATOMIC_RELEASE);
    leave();
}
extern unsigned stack_top;
__attribute__((section(".vectors"), used)) void* const vectors[] = {&stack_top, (void*)reset};
"""
# The handler of SVCall sets the NMI pending, which preempts it.
NESTED = BEGIN + r"""
__attribute__((noinline)) void inside(void) {
    REG(0xE000ED04) = 1u << 31;
    __asm__ volatile("dsb; isb");
    level = 1;
}
void supervisor(void) { inside(); }
void nmi(void) { other = 1; }
void reset(void) {
    __asm__ volatile("svc 1");
    leave();
}
extern unsigned stack_top;
__attribute__((section(".vectors"), used)) void* const vectors[16] = {
    &stack_top, (void*)reset, (void*)nmi, 0, 0, 0, 0, 0, 0, 0, 0, (void*)supervisor};
"""


class Itm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        done = run(SOURCE / "examples/build", "-o", cls.folder, "scheduler")
        assert done.returncode == 0, done.stdout + done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, core, *options, status=0):
        return self.record_program(self.folder / f"scheduler-{core}.elf", *options, status=status)

    def record_program(self, program, *options, status=0):
        out = self.folder / f"{program.stem}{'-'.join(options).replace(' ', '')}"
        done = run(WAYMARK, "record", "-q", *options, "-o", out, "--", program)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertNotIn("exited with", done.stderr)
        return out

    def messages(self, out):
        done = run(WAYMARK, "messages", out, "--kind", "all", "--format", "tsv")
        self.assertEqual(done.returncode, 0, done.stderr)
        return list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t"))

    def log(self, core):
        """QEMU's figures for the same run: instructions, exceptions taken and returned from."""
        file = self.folder / f"{core}.log"
        run("qemu-system-arm", "-M", MACHINES[core], "-display", "none", "-monitor", "none", "-serial", "null",
            "-semihosting-config", "enable=on,target=native", "-singlestep", "-icount", "shift=0", "-d",
            "exec,nochain,int", "-D", file, "-kernel", self.folder / f"scheduler-{core}.elf")
        return file.read_text()

    def test_messages_are_what_the_program_did(self):
        for core in MACHINES:
            with self.subTest(core=core):
                rows = self.messages(self.record(core, "--unit", "itm", "--watch", "level"))
                text = "".join(chr(int(r["value"], 0)) for r in rows if r["kind"] == "text")
                self.assertTrue(text.startswith("scheduler: start\n"))
                self.assertGreaterEqual(text.count("fill: level"), 3)
                values = [int(r["value"], 0) for r in rows if r["kind"] == "access"]
                self.assertGreater(len(values), 20)
                level = 100
                for value in values:
                    self.assertTrue(value - level in (1, 2, -20), (level, value))
                    level = value
                self.assertIn(-20, [b - a for a, b in zip([100] + values, values)])
                self.assertTrue(all(r["access"] == "write" and r["pc"] for r in rows if r["kind"] == "access"))
                log = self.log(core)
                entered = re.findall(r"\.\.\.taking pending \S+ exception (\d+)", log)
                left = re.findall(r"Exception return: magic PC \w+ previous exception (\d+)", log)
                self.assertEqual([r["number"] for r in rows if r["change"] == "entered"], entered)
                self.assertEqual([r["number"] for r in rows if r["change"] == "left"], left)
                returned = [r["number"] for r in rows if r["change"].startswith("returned")]
                self.assertEqual(len(returned), log.count("...successful exception return"))
                cycles = [int(r["cycles"]) for r in rows]
                self.assertEqual(cycles, sorted(cycles))
                # Some lines of the log belong to an instruction that QEMU restarted, or did not begin.
                again = log.count("cpu_io_recompile") + log.count("Stopped execution of TB chain before")
                self.assertLessEqual(cycles[-1], len(re.findall("^Trace ", log, re.M)) - again)

    def test_every_store_instruction_of_registers_is_seen(self):
        program = build(self.folder, "m33", "stores", STORES)
        rows = self.messages(self.record_program(program, "--unit", "itm", "--watch", "level"))
        self.assertEqual([int(r["value"], 0) for r in rows if r["kind"] == "access"], [*range(1, 11), 12])
        self.assertEqual([chr(int(r["value"], 0)) for r in rows if r["kind"] == "text"], ["R"])

    def test_a_return_names_what_goes_on_also_where_its_entry_was_not_recorded(self):
        nmi, supervisor_call = ("2", "11")
        inner = [(nmi, "entered"), (nmi, "left"), (supervisor_call, "returned")]
        outer = [(supervisor_call, "left"), ("0", "returned")]
        for board in ("m0", "m33"):
            program = build(self.folder, board, "nested", NESTED)
            for options, expected in (((), [(supervisor_call, "entered"), *inner, *outer]),
                                      (("--start-at", "inside"), [*inner, *outer]),
                                      (("--start-at", "nmi"), [*inner[1:], *outer])):
                with self.subTest(board=board, options=options):
                    rows = self.messages(self.record_program(program, "--unit", "itm", *options))
                    self.assertEqual([(r["number"], r["change"].split()[0]) for r in rows if r["kind"] == "exception"],
                                     expected)

    def test_text_and_lines(self):
        done = run(WAYMARK, "messages", self.record("m3", "--unit", "itm"), "--kind", "all")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("port 0    scheduler: start", done.stdout)
        self.assertIn("SysTick entered", done.stdout)
        self.assertIn("PendSV left", done.stdout)

    def test_samples_and_no_exceptions(self):
        rows = self.messages(self.record("m33", "--unit", "itm", "--pc-samples", "10", "--no-exceptions"))
        samples = [r for r in rows if r["kind"] == "sample"]
        self.assertGreater(len(samples), 200)
        self.assertTrue(all(int(r["cycles"]) % 10 == 0 for r in samples))
        self.assertFalse([r for r in rows if r["kind"] == "exception"])
        symbols = run("arm-linux-gnueabihf-nm", self.folder / "scheduler-m33.elf").stdout
        work = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" work"))
        self.assertGreater(sum(work <= int(r["pc"], 0) < work + 64 for r in samples), len(samples) / 2)

    def test_both_units(self):
        out = self.record("m33", "--unit", "mtb,itm", "--mtb-size", "1024")
        done = run(WAYMARK, "verify", out, "--source", "MTB_0")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("source MTB_0: equal", done.stdout)
        self.assertIn("ITM_0: equal", done.stdout)
        self.assertRegex(done.stdout, r"equal: [\d,]+ instructions and [\d,]+ messages of 2 sources")
        # If the truth of one source is missing, the other source is compared nevertheless.
        truth = out / "truth.txt"
        truth.write_text("".join(line for line in truth.read_text().splitlines(True) if "source ITM_0" not in line))
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"equal: [\d,]+ instructions of 1 source; NOT COMPARED: \S+ ITM_0")
        self.assertIn("PendSV", run(WAYMARK, "flow", out).stdout)
        self.assertIn("scheduler: start", run(WAYMARK, "messages", out).stdout)
        self.assertEqual(run(WAYMARK, "doctor", out).returncode, 0)

    def test_messages_are_verified(self):
        for core in MACHINES:
            for options in ((), ("--no-timestamps",), ("--watch", "level", "--watch", "stacks", "--pc-samples", "100")):
                with self.subTest(core=core, options=options):
                    out = self.record(core, "--unit", "itm", *options)
                    done = run(WAYMARK, "verify", out)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertRegex(done.stdout, r"equal: [\d,]+ messages of 1 source")
        # A changed value.
        trace = out / "trace_ITM_0.bin"
        trace.write_bytes(trace.read_bytes().replace(b"\x01s", b"\x01t", 1))
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("ITM_0: DIFFERENT", done.stdout)

    def test_the_timeline_has_lines_variables_and_handlers(self):
        out = self.record("m3", "--unit", "itm", "--watch", "level")
        rows = self.messages(out)
        accesses = [r for r in rows if r["kind"] == "access"]
        self.assertEqual({r["variable"] for r in accesses}, {"level"})
        self.assertIn("comparator 0 (level): write", run(WAYMARK, "messages", out, "--kind", "access").stdout)

        def table(name):
            done = run(WAYMARK, "export", out, "--to", "csv", "--table", name)
            self.assertEqual(done.returncode, 0, done.stderr)
            return list(csv.DictReader(io.StringIO(done.stdout)))
        text = run(WAYMARK, "messages", out, "--port", "0").stdout
        lines = [line.split(None, 1) for line in text.splitlines() if not line.startswith("#")]
        listed = [(time, words.split("port 0", 1)[1].strip()) for time, words in lines]
        self.assertEqual(sorted((r["time"], r["what"]) for r in table("messages")), sorted(listed))
        self.assertEqual({(r["source"], r["sender"]) for r in table("messages")}, {("ITM_0", "port 0")})
        series = {r["name"]: r["id"] for r in table("series")}
        points = [(r["time"], int(float(r["value"]))) for r in table("points") if r["series"] == series["level"]]
        self.assertEqual(points, [(r["cycles"], int(r["value"], 0)) for r in accesses])
        # Each handler, from its entry to its exit, nested in the order of preemption.
        functions = {r["id"]: r["name"] for r in table("functions")}
        slices = [(functions[r["function"]].strip("[]"), r["begin_time"], r["end_time"]) for r in table("slices")]
        active, expected = [], []
        for r in rows:
            if r["kind"] == "exception" and r["change"] == "entered":
                active.append((r["name"], r["cycles"]))
            elif r["kind"] == "exception" and r["change"] == "left":
                expected.append((*active.pop(), r["cycles"]))
        self.assertGreater(len(expected), 20)
        self.assertEqual(sorted(slices), sorted(expected))

    def test_other_programs_get_the_messages(self):
        out = self.record("m33", "--unit", "itm", "--watch", "level")
        database, trace, profile = (self.folder / f"messages.{end}" for end in ("sqlite", "pftrace", "json"))
        for to, file in (("sqlite", database), ("perfetto", trace), ("firefox", profile)):
            done = run(WAYMARK, "export", out, "--to", to, "-o", file)
            self.assertEqual(done.returncode, 0, done.stderr)
        with contextlib.closing(sqlite3.connect(database)) as opened:
            texts = [row[0] for row in opened.execute("SELECT what FROM messages WHERE kind = 'user data'")]
            values = [row[0] for row in opened.execute("SELECT value FROM readings WHERE name = 'level'")]
        self.assertIn("scheduler: start", texts)
        self.assertEqual(values, [int(r["value"], 0) for r in self.messages(out) if r["kind"] == "access"])
        marks = [marker["name"] for thread in json.loads(profile.read_text())["threads"]
                 for marker in thread["markers"]["data"] if marker]
        bytes_of_trace = trace.read_bytes()
        for text in texts:
            self.assertIn(text, marks)
            self.assertIn(text.encode(), bytes_of_trace)

    def test_a_growing_file_is_followed(self):
        trace = (self.record("m3", "--unit", "itm") / "trace_ITM_0.bin").read_bytes()
        growing = self.folder / "growing.bin"
        growing.write_bytes(b"")
        with self.follow(growing) as listing:
            with growing.open("ab") as file:
                file.write(trace[:200])
                file.flush()
                self.assertIn("scheduler: start", self.line_with(listing, "scheduler"))
                file.write(trace[200:])
            self.line_with(listing, "drain: round 6")
            listing.send_signal(signal.SIGINT)
            rest, errors = listing.communicate(timeout=HANGS)
            self.assertEqual(listing.returncode, 0, errors)

    def test_a_tcp_port_and_standard_input_are_followed(self):
        out = self.record("m3", "--unit", "itm")
        trace = (out / "trace_ITM_0.bin").read_bytes()
        whole = run(WAYMARK, "messages", out / "trace_ITM_0.bin", "--protocol", "itm", "--register", "ITMTCR=0xf",
                    "--buffer-format", "source_data").stdout
        server = socket.create_server(("127.0.0.1", 0))
        with server, self.follow(f"tcp:{server.getsockname()[1]}") as listing:
            connection, _ = server.accept()
            with connection:
                connection.sendall(trace[:200])
                self.line_with(listing, "scheduler: start")
                connection.sendall(trace[200:])
            rest, errors = listing.communicate(timeout=HANGS)
            self.assertEqual(listing.returncode, 0, errors)
            self.assertTrue(whole.endswith(rest), rest)
        with self.follow("-") as listing:
            listing.stdin.write(trace[:200].decode("latin-1"))
            listing.stdin.flush()
            self.line_with(listing, "scheduler: start")
            rest, errors = listing.communicate(trace[200:].decode("latin-1"), timeout=HANGS)
            self.assertEqual(listing.returncode, 0, errors)
            self.assertTrue(whole.endswith(rest), rest)

    def follow(self, capture):
        return subprocess.Popen(
            [str(WAYMARK), "messages", str(capture), "--follow", "--protocol", "itm", "--register", "ITMTCR=0xf",
             "--buffer-format", "source_data"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="latin-1")

    def line_with(self, process, words):
        for line in process.stdout:
            if words in line:
                return line
        self.fail(f"no line with '{words}': {process.stderr.read()}")

    def test_without_timestamps_messages_have_no_time(self):
        rows = self.messages(self.record("m3", "--unit", "itm", "--no-timestamps"))
        self.assertTrue(rows)
        self.assertFalse([r for r in rows if r["cycles"]])

    def test_what_does_not_go_together(self):
        for options, words in ((("--watch", "nothing"), "no variable of that name"), (("--mtb-size", "64"), "only for --unit mtb"),
                               (("--itm-ports", "3"), "a multiple of 4"), (("--buffer", "64"), "only for")):
            done = run(WAYMARK, "record", "--unit", "itm", *options, "-o", self.folder / "refused", "--",
                       self.folder / "scheduler-m3.elf")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    if shutil.which(COMPILER) is None or shutil.which("qemu-system-arm") is None:
        print(f"SKIPPED: {COMPILER} or qemu-system-arm is missing")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
