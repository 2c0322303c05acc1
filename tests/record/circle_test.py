#!/usr/bin/env python3
"""Runs a program under qemu-arm, writes the trace that a macrocell would send, decodes it and compares.

    circle_test.py WAYMARK SOURCE_DIR [TEST…]

Compiles nothing: the programs are examples/sort/sort.elf and three of a few instructions that are generated here. An
independent record of what ran exists too: examples/sort/capture/truth.txt comes from QEMU's own log.
"""
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import endless  # noqa: E402
from scratch import Folder, HANGS, run, wait_for  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
SORT = SOURCE / "examples/sort/sort.elf"
SORT64 = SOURCE / "examples/sort/sort-aarch64.elf"
LISTER = shutil.which("trc_pkt_lister")
SYSTEM = shutil.which("qemu-system-arm")


def elf(*words, base=0x10000, entry=0, rights=5):
    """A program of A32 instructions at `base` + 0x60 whose entry point is the word with index `entry`."""
    code = struct.pack(f"<{len(words)}I", *words)
    head = 0x60
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, base + head + 4 * entry, 0x34, 0,
                                                            0x5000200, 0x34, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, head + len(code), head + len(code), rights, 0x1000)
    return (header + segment).ljust(head, b"\0") + code


ADD, LDR_PC, STR_0 = 0xe2800001, 0xe59f1000, 0xe5811000
ENDLESS = elf(ADD, LDR_PC, 0xe3500000, 0x0afffffe, 0xeafffffa)          # add, ldr, cmp, beq, b
CRASH = elf(0xe3a01004, ADD, 0xeaffffff, ADD, STR_0, ADD)               # mov r1, #4; add; b .+4; add; str [r1]
NOP, SELF = 0xe320f000, 0xeafffffe
# A vector table whose handlers return, then: VBAR = the table; svc #1; udf; the instructions of `ends`.
TABLE = (0xea000006, 0xea000011, 0xea000010, 0xea000003, 0xea00000f, NOP, 0xea00000e, 0xea00000d)
START = (0xe24f0028, 0xee0c0f10, 0xef000001, 0xe7f000f0, NOP, NOP, NOP)
HANDLERS = (0xe1b0f00e, 0xe25ef004, 0xe25ef004)                         # movs pc, lr; subs pc, lr, #4 twice
EXIT = (0xe3a00018, 0xe3001026, 0xe3401002, 0xef123456, SELF)           # semihosting's exit
BARE = elf(*TABLE, *START, *EXIT, *HANDLERS, base=0x60010000, entry=len(TABLE))
BARE_ENDLESS = elf(*TABLE, *START, 0xea000000, NOP, 0xeafffffc, NOP, NOP, *HANDLERS, base=0x60010000, entry=len(TABLE))


# 60 times: writes another instruction into a function, and calls it five times.
CHANGES = elf(0xe3a0403c, 0xe59f5034, 0xe28f6028,                       # mov r4, #60; ldr r5, =add; adr r6, the function
              0xe5865000, 0xe2855001, 0xe3a07005, 0xeb000006,           # str r5, [r6]; add r5, #1; mov r7, #5; bl
              0xe2577001, 0x1afffffc, 0xe2544001, 0x1afffff7,           # subs r7, bne to the bl; subs r4, bne to the str
              0xe3a00000, 0xe3a07001, 0xef000000,                       # exit(0)
              0xe2800000, 0xe12fff1e, 0xe2800000, rights=7)             # add r0, #n; bx lr


def has_ended(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:  # ENOENT or, while it is read, ESRCH
        return True


class Circle(unittest.TestCase):
    def setUp(self):
        self.temporary = Folder()
        self.folder = pathlib.Path(self.temporary.name)
        self.out = self.folder / "out"

    def tearDown(self):
        self.temporary.cleanup()

    def record(self, *options, program=(SORT,), status=0, **more):
        begin = () if "--start-at" in options else ("--from-start",)
        done = run(WAYMARK, "record", *begin, "-o", self.out, *options, "--", *program, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def verify(self, status=0):
        done = run(WAYMARK, "verify", self.out)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def truth(self):
        text = (self.out / "truth.txt").read_text()
        return dict(re.findall(r"(\w+) (\S+)", [line for line in text.splitlines() if line.startswith("source")][0]))

    def write_program(self, contents):
        path = self.folder / "program"
        path.write_bytes(contents)
        path.chmod(0o755)
        return path

    def wait_for_trace(self):
        trace = self.out / "trace.bin"
        wait_for(lambda: trace.exists() and trace.stat().st_size != 0 and "PTM" in (self.out / "trace.ini").read_text(),
                 "trace is written")

    def lister_ranges(self):
        log = self.folder / "lister.log"
        log.unlink(missing_ok=True)
        run(LISTER, "-ss_dir", self.out, "-decode_only", "-logfilename", log)
        return log.read_text().count("OCSD_GEN_TRC_ELEM_INSTR_RANGE")

    def test_every_way_to_program_the_unit(self):
        expected = dict(re.findall(r"^(\w+) (\d+)$", (SOURCE / "examples/sort/capture/truth.txt").read_text(), re.M))
        for options in ("", "--truth", "--cycle-accurate", "--timestamps", "--return-stack", "--branch-broadcast",
                        "--context-id 1", "--context-id 4 --cycle-accurate --timestamps", "--sync 0",
                        "--sync 100 --return-stack --timestamps", "--core cortex-a9",
                        "--core cortex-a9 --cycle-accurate --timestamps --branch-broadcast --context-id 2",
                        "--blocks --return-stack"):
            with self.subTest(options):
                done = self.record(*options.split())
                self.assertIn("ascending", done.stdout)  # the program's own output
                self.assertIn("equal: 5,602 instructions", self.verify())
                truth = self.truth()
                self.assertEqual(truth["ranges"], expected["ranges"])
                self.assertEqual(int(truth["hash"], 16), int(expected["range_hash"]))
                if LISTER:
                    self.assertEqual(self.lister_ranges(), int(expected["ranges"]), "ranges OpenCSD decodes")

    def test_overflow_is_declared(self):
        for options in ("--fifo 32 --drain 40 --branch-broadcast", "--fifo 32 --drain 40", "--fifo 32 --drain 30 --return-stack",
                        "--fifo 40 --drain 18 --cycle-accurate --context-id 4", "--fifo 48 --drain 20 --timestamps --blocks"):
            with self.subTest(options):
                self.record("--truth", *options.split())
                self.assertNotEqual(self.truth()["lost_ranges"], "0")
                self.assertIn("lost to a full FIFO", self.verify())

    def test_a_buffer_that_wraps_keeps_the_end(self):
        for options in ("", "--cycle-accurate --timestamps --context-id 4", "--return-stack"):
            with self.subTest(options):
                said = self.record("--truth", "--buffer", "512", "--sync", "60", *options.split()).stderr
                kept = re.search(r"of ([\d,]+) bytes of trace it holds the last 512 bytes", said)
                self.assertTrue(kept, said)
                trace = self.out / "trace.bin"
                self.assertEqual(trace.stat().st_size, 512)
                self.assertIn("buffer that wrapped", (self.out / "snapshot.ini").read_text())
                # All report the same number of bytes before the first A-sync.
                head = run(WAYMARK, "flow", self.out, "--recover", "-o", os.devnull).stderr
                head = re.search(r"([\d,]+) bytes before its first A-sync|A-sync in buffer ETB \(([\d,]+) bytes\)", head)
                self.assertTrue(head)
                head = head[1] or head[2]
                doctor = run(WAYMARK, "doctor", self.out).stdout
                self.assertIn(f" {head} bytes before an A-sync", doctor)
                self.assertRegex(doctor, fr"head +([\d,]+ of )?{head} bytes")
                text = self.verify()
                self.assertIn("equal, as far as the buffer kept it", text)
                self.assertRegex(text, r"equal: [1-9][\d,]* instructions")
                self.assertNotIn("equal: 5,602", text)
                # The kept trace is the end of the complete trace.
                last = trace.read_bytes()
                said = self.record("--truth", "--sync", "60", *options.split()).stderr
                self.assertNotIn("wrapped", said)
                self.assertTrue(trace.read_bytes().endswith(last))
                self.assertEqual(int(kept[1].replace(",", "")), trace.stat().st_size)

        self.record("--truth", "--buffer", "512", "--sync", "60")
        whole = trace.read_bytes()
        trace.write_bytes(whole[:-32])
        self.assertIn("first difference", self.verify(status=3))
        trace.write_bytes(whole[:300] + bytes([whole[300] ^ 2]) + whole[301:])
        self.verify(status=1)

        # Captures that cannot be compared are not called different.
        self.record("--buffer", "512", "--sync", "60")
        text = self.verify(status=4)
        self.assertIn("only a recording made with --truth", text)
        self.assertIn("\nNOT COMPARED: ", text)
        self.assertNotIn("DIFFERENT", text)
        self.record("--truth", "--buffer", "32", "--sync", "1000")
        self.assertIn("no synchronisation", run(WAYMARK, "verify", self.out).stderr)
        self.verify(status=4)
        self.record()
        (self.out / "truth.txt").unlink()
        self.verify(status=4)
        shutil.rmtree(self.out)
        self.record("--truth", "--buffer", "1048576")
        self.assertIn("equal: 5,602 instructions", self.verify())
        self.assertIn("multiple of 16", self.record("--buffer", "100", status=2).stderr)

    def test_damage_is_found_and_shown(self):
        self.record("--truth")
        trace = self.out / "trace.bin"
        whole = trace.read_bytes()
        # Trace that is cut between two frames looks complete, but the folder states the written length.
        half = len(whole) // 32 * 16
        description = (self.out / "trace.ini").read_text()
        self.assertIn(f"\nlength={len(whole)}\n", description)
        for cut, status in ((half + 5, 3), (half, 3), (len(whole), 0)):
            trace.write_bytes(whole[:cut])
            done = run(WAYMARK, "flow", self.out, "--format", "summary")
            self.assertEqual(done.returncode, status)
            self.assertEqual(f"of the {len(whole):,} bytes that were written" in done.stderr, status == 3)
        trace.write_bytes(whole[:half])
        text = self.verify(status=3)
        self.assertIn("first difference", text)
        self.assertIn("nothing further", text)

        code = min(self.out.glob("code_*.bin"))
        changed = bytearray(code.read_bytes())
        trace.write_bytes(whole)
        at = changed.index(struct.pack("<I", 0xe12fff1e))  # bx lr of `ascending`, in A32
        changed[at:at + 4] = struct.pack("<I", 0xe1a00000)
        code.write_bytes(changed)
        text = self.verify(status=1)
        self.assertIn("first difference", text)
        self.assertRegex(text, r"  > +0x[0-9a-f]+ ")

    def test_crash(self):
        done = self.record("--truth", program=(self.write_program(CRASH),), status=4)
        self.assertIn("SIGSEGV", done.stderr)
        self.assertIn("equal: 3 instructions", self.verify())
        self.assertRegex(run(WAYMARK, "info", self.out).stdout, r"\n  recorded under QEMU: \S+, ended by SIGSEGV\n")

    def start_endless(self, *options, **more):
        shutil.rmtree(self.out, ignore_errors=True)
        return endless.start(self, (WAYMARK, "record", "--from-start", "--truth", "-o", self.out, *options, "--",
                                    self.write_program(ENDLESS)), **more)

    def test_interrupt(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = self.start_endless()
            self.wait_for_trace()
            child.send_signal(number)
            _, said = child.communicate(timeout=HANGS)
            self.assertEqual(child.returncode, 5, said)
            self.assertIn(number.name, said)
            self.verify()

    def test_a_signal_that_is_ignored_stays_ignored(self):
        child = self.start_endless(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.wait_for_trace()
        status = pathlib.Path(f"/proc/{child.pid}/status").read_text()
        self.assertTrue(int(re.search(r"SigIgn:\s+(\w+)", status)[1], 16) & 1 << signal.SIGHUP - 1, status)
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=HANGS)
        self.assertEqual(child.returncode, 5, said)
        self.assertIn("SIGINT", said)

    def test_killed(self):
        child = self.start_endless()
        self.wait_for_trace()
        self.assertEqual(run(WAYMARK, "flow", self.out, "--format", "summary").returncode, 0)  # while it grows
        (qemu,) = (int(p) for p in pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split())
        child.kill()
        child.communicate(timeout=HANGS)
        # QEMU ends with the process that takes its trace.
        wait_for(lambda: has_ended(qemu), "QEMU ends")
        self.assertEqual(run(WAYMARK, "flow", self.out, "--format", "summary").returncode, 0)
        self.verify()

    def test_qemu_killed(self):
        child = self.start_endless()
        self.wait_for_trace()
        (qemu,) = (int(p) for p in pathlib.Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split())
        os.kill(qemu, signal.SIGKILL)
        _, said = child.communicate(timeout=HANGS)
        self.assertEqual(child.returncode, 4, said)
        self.assertIn("SIGKILL", said)
        self.verify()

    def test_full_disk(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (7000000, 7000000))
        child = self.start_endless("--branch-broadcast", preexec_fn=limit)
        _, said = child.communicate(timeout=HANGS)
        self.assertEqual(child.returncode, 6, said)
        self.assertIn("cannot write", said)
        self.assertEqual(run(WAYMARK, "flow", self.out, "--format", "summary").returncode, 0)
        self.verify()

    def test_one_recording_at_a_time(self):
        again = (WAYMARK, "record", "-o", self.out)
        for unit in ("ptm", "dpu"):
            with self.subTest(unit):
                shutil.rmtree(self.out, ignore_errors=True)
                child = endless.start(self, (WAYMARK, "record", "--from-start", "--unit", unit, "-o", self.out, "--",
                                             self.write_program(ENDLESS)))
                described = self.out / ("truth.txt" if unit == "ptm" else "dpu.ini")
                wait_for(described.exists, f"{described.name} is written")
                for options in ((), ("--force",), ("--unit", "dpu"), ("--unit", "dpu", "--force")):
                    done = run(*again, *options, "--", SORT)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn("another 'waymark record' is writing there", done.stderr)
                self.assertTrue(described.exists())
                child.kill()
                child.communicate(timeout=HANGS)
                # The lock ends when its process ends.
                done = run(*again, "--unit", unit, "--", SORT)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("replaced the previous recording", done.stderr)
                self.assertEqual(run(WAYMARK, "verify", self.out).returncode, 0)

    def test_an_earlier_recording_goes_for_one_that_has_something(self):
        contents = lambda: {p.name: p.read_bytes() for p in self.out.iterdir()}  # noqa: E731
        self.record()
        before = contents()
        done = run(WAYMARK, "record", "-o", self.out, "--start-at", "0x4", "--", SORT)  # which is never reached
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the recording that was there is kept", done.stderr)
        self.assertEqual(contents(), before)
        self.verify()
        self.assertIn("replaced the previous recording", self.record().stderr)
        perf = self.out.with_name("perf.data")
        for replaced in (False, True):
            done = run(WAYMARK, "record", "--as", "perf", "--unit", "etmv4", "-o", perf, "--", SORT64)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("replaced the previous recording" in done.stderr, replaced)

    def test_what_a_folder_holds_stays(self):
        self.out.mkdir()
        (self.out / "notes.txt").write_text("mine")
        (self.out / "my.ini").write_text("mine")
        self.assertIn("--force", self.record(status=2).stderr)
        self.record("--force")
        self.record()
        self.verify()
        # Another unit's recording is replaced only with --force, and then completely.
        self.record("--unit", "dpu", status=2)
        self.record("--unit", "dpu", "--force")
        self.assertFalse((self.out / "snapshot.ini").exists())
        self.verify()
        self.record(status=2)
        self.record("--force")
        self.assertFalse((self.out / "dpu.ini").exists())
        self.verify()
        for name in ("notes.txt", "my.ini"):
            self.assertEqual((self.out / name).read_text(), "mine")

    def test_pipes_are_refused(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for program, options in ((pipe, ("-o", self.out)), (SORT, ("-o", pipe)), (SORT, ("-o", "/dev/null")),
                                 (pipe, ("--unit", "dpu", "-o", self.out)), (SORT, ("--unit", "dpu", "-o", pipe)),
                                 (pipe, ("--unit", "spe", "-o", self.out))):
            done = run(WAYMARK, "record", *options, "--", program)
            self.assertIn(done.returncode, (2, 3), options)
            self.assertRegex(done.stderr, "is not a (regular file|folder)")
        self.assertEqual(run(WAYMARK, "verify", pipe).returncode, 3)

    @unittest.skipUnless(run("unshare", "-rm", "true").returncode == 0 if shutil.which("unshare") else False,
                         "no file system of its own can be mounted here: unshare -rm (Debian package util-linux) fails")
    def test_disk_full_from_the_start(self):
        disk = self.folder / "disk"
        disk.mkdir()
        for pages in (1, 2, 4, 6, 8, 16):
            for unit in ("ptm", "dpu"):
                script = (f'mount -t tmpfs -o size={pages * 4}k none "$1" && cd "$1" && '
                          f'"$2" record --unit {unit} -o out -- "$3" >/dev/null; echo status $? >&2; '
                          '[ -e out/snapshot.ini ] && "$2" flow out --format summary; true')
                done = run("unshare", "-rm", "sh", "-c", script, "sh", disk, WAYMARK, SORT)
                with self.subTest(pages=pages, unit=unit):
                    status = int(re.search(r"status (\d+)", done.stderr)[1])
                    self.assertIn(status, (0, 3, 6), done.stderr)
                    self.assertNotIn("program was ended", done.stderr)  # the program ran to its end
                    if status != 0:
                        self.assertRegex(done.stderr, "No space left|disk has room")
                    if "can be decoded" in done.stderr:
                        self.assertEqual("nothing of the recording" in done.stderr, "instructions" not in done.stdout)

    def test_code_that_changes(self):
        self.record("--truth", program=(self.write_program(CHANGES),))
        self.assertIn("of 60 sources", self.verify())
        # Each of the 300 calls counts once, even if it led to new code.
        calls = run(WAYMARK, "flow", self.out, "--format", "calls").stdout
        function = re.findall(r" +([\d,]+)  \S+ +[<>\d.]+% +(?:0x00010098|program\+0x98\??)$", calls, re.M)
        self.assertEqual(sum(int(n) for n in function), 300, calls)
        profile = run(WAYMARK, "profile", self.out, "--format", "tsv").stdout
        self.assertRegex(profile, r"(?m)^[\d.]+\t600\t600\t[\d.]+\t300\t\d*\t0x0*10098\t")
        info = run(WAYMARK, "info", self.out).stdout
        self.assertLess(info.count("\n"), 60, info)
        self.assertRegex(info, r"59 more buffers \([\d,]+ bytes\) with 59 sources continue PTM_1;")
        self.assertEqual(run(WAYMARK, "info", self.out, "--format", "json").stdout.count('"configuration"'), 60)
        # A source selected by name is shown.
        self.assertIn("source 0x10 PTM_1_7", run(WAYMARK, "info", self.out, "--source", "PTM_1_7").stdout)

    def test_limit(self):
        done = self.record("--limit", "1000")
        self.assertIn("ascending", done.stdout)  # the program continued
        self.assertRegex(self.verify(), r"equal: (1,0\d\d|9\d\d) instructions")

    def test_start_and_stop(self):
        self.record("--start-at", "quicksort", "--stop-at", "descending")
        self.verify()
        done = run(WAYMARK, "flow", self.out, "--symbols", SORT, "--format", "calls")
        self.assertIn("quicksort", done.stdout)
        self.assertNotIn("descending", done.stdout)
        self.record("--start-at", "0x4", status=1)
        self.assertIn("no such symbol", self.record("--start-at", "nowhere", status=2).stderr)

    # ---- without an operating system

    @unittest.skipUnless(SYSTEM, "qemu-system-arm is not on PATH; it is in the Debian package of that name")
    def test_bare_metal(self):
        program = self.write_program(BARE)
        # Two cores run the same image, and either may end QEMU.
        for options in ("--truth", "--blocks --cycle-accurate", "--smp 2 --return-stack"):
            with self.subTest(options):
                self.record("--system", "--core", "cortex-a9", *options.split(), program=(program,))
                self.assertIn("equal: ", self.verify())
                flow = run(WAYMARK, "flow", self.out).stdout
                self.assertRegex(flow, r"exception 10: SVC, to 0x60010068, return address 0x6001008c")
                self.assertRegex(flow, r"exception 9: Undefined Instruction, to 0x60010064, return address 0x60010090")
        self.record("--system", "--core", "cortex-a9", "--machine", "no-such-board", program=(program,), status=3)

    @unittest.skipUnless(SYSTEM, "qemu-system-arm is not on PATH; it is in the Debian package of that name")
    def test_bare_metal_that_never_ends(self):
        program = self.write_program(BARE_ENDLESS)
        # Standard input is left to others, such as the loop of a shell over the lines of a file.
        lines, writer = os.pipe()
        os.write(writer, b"the next line\n")
        os.close(writer)
        done = self.record("--system", "--core", "cortex-a9", "--limit", "100000", program=(program,), stdin=lines)
        with open(lines, "rb") as left:
            self.assertEqual(left.read(), b"the next line\n")
        self.assertIn("QEMU ended", done.stderr)
        self.assertIn("equal: ", self.verify())
        # The recording shows a part of the run, since the program does not end otherwise.
        self.assertRegex(run(WAYMARK, "info", self.out).stdout, r"ended after [\d,]+ instructions \(--limit\)")
        for command in ("profile", "coverage"):
            strict = run(WAYMARK, command, self.out, "--strict")
            self.assertEqual(strict.returncode, 1)
            self.assertIn("(--limit)", strict.stderr)
        for number, status in ((signal.SIGINT, 5), (signal.SIGTERM, 5), (signal.SIGKILL, -9)):
            with self.subTest(number.name):
                shutil.rmtree(self.out, ignore_errors=True)
                child = endless.start(self, (WAYMARK, "record", "--truth", "--system", "--core", "cortex-a9", "-o", self.out,
                                             "--", program), stdin=subprocess.DEVNULL)
                self.wait_for_trace()
                child.send_signal(number)
                _, said = child.communicate(timeout=HANGS)
                self.assertEqual(child.returncode, status, said)
                self.verify()
        # An image for another board: its addresses hold only empty memory.
        done = self.record("--system", "--core", "cortex-a15", program=(program,), status=1)
        self.assertIn("is the image made for the machine vexpress-a15?", done.stderr)

    def test_what_goes_with_a_system_only(self):
        for options in ("--machine virt", "--smp 2", "--vectors 0x0"):
            self.assertIn("is only for --system", self.record(*options.split(), status=2).stderr)
        for options in ("--sysroot /", "--context-id 4", "--blocks --qemu=-icount"):
            self.record("--system", *options.split(), status=2)

    def test_what_is_missing_is_told(self):
        done = self.record(status=3, env={**os.environ, "PATH": "/nonexistent"})
        self.assertIn("qemu-user", done.stderr)
        self.record(program=("/nonexistent",), status=3)
        self.record(program=("/bin/sh",), status=3)
        self.record("--context-id", "3", status=2)
        self.record("--return-stack", "--branch-broadcast", status=2)
        self.assertEqual(run(WAYMARK, "verify", SOURCE / "examples").returncode, 3)
        self.assertEqual(run(WAYMARK, "verify", self.folder / "nowhere").returncode, 3)


if __name__ == "__main__":
    if not shutil.which("qemu-arm"):
        print("SKIPPED: qemu-arm is not on PATH; it is in the Debian package qemu-user")
        sys.exit(77)
    if not LISTER:
        print("SKIPPED: OpenCSD's counts are not compared: trc_pkt_lister is not on PATH (Debian package libopencsd-bin)",
              flush=True)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
