#!/usr/bin/env python3
"""Recordings through the model of a trace buffer, and with signals that forbid trace.

    sink_test.py WAYMARK SOURCE_DIR [TEST…]

The reference is the same program recorded whole: a buffer holds a part of that trace, which this test finds with a deformatter
of its own. What executed is in truth.txt, which `waymark verify` compares.
"""
import json
import pathlib
import random
import re
import shutil
import sqlite3
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
__attribute__((noinline, used)) void fault(void) { result += 1; }
__attribute__((noinline, used)) void quiet(void) { result += 2; }
__attribute__((noinline, used)) void loud(void) { result += 3; }
__attribute__((noinline, used)) void never(void) { result += 4; }
int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < 400; ++i) {
        sum = mixed(sum + i);
        if (i == 150) quiet();
        if (i == 250) loud();
        if (i == 300) fault();
    }
    result = sum;
    if (sum == 1) never();
    return 0;
}
"""
START = {"arm": '__asm__(".globl _start\\n_start: bl main\\n mov r0, #0\\n mov r7, #1\\n svc 0\\n");',
         "aarch64": '__asm__(".globl _start\\n_start: bl main\\n mov x0, #0\\n mov x8, #93\\n svc 0\\n");'}
COMPILERS = {"arm": "arm-linux-gnueabihf-gcc", "aarch64": "aarch64-linux-gnu-gcc"}
UNITS = {"ptm": "arm", "etmv3": "arm", "etmv4": "aarch64", "ete": "aarch64"}
TRIGGER_ID = 0x7d


def run(*arguments, status=0):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == status, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout + done.stderr


def account(folder):
    done = subprocess.run([str(WAYMARK), "profile", str(folder), "--format", "json"], capture_output=True, text=True,
                          timeout=HANGS)
    return json.loads(done.stdout)["account"]


def sources(frames):
    """Bytes by ID, and for each trigger mark the number of bytes that each ID had before it."""
    out, marks, current = {}, [], None
    for at in range(0, len(frames), 16):
        frame = frames[at:at + 16]
        pending = None
        for k in range(8):
            flag = frame[15] >> k & 1
            if frame[2 * k] & 1:
                new = frame[2 * k] >> 1
                if flag and k < 7:
                    pending = new  # after the next byte
                else:
                    current = new
            else:
                put(out, marks, current, frame[2 * k] | flag)
            if k < 7:
                put(out, marks, current, frame[2 * k + 1])
            if pending is not None:
                current, pending = pending, None
    return out, marks


def put(out, marks, source, byte):
    if source is None:
        return
    if source == TRIGGER_ID:
        marks.append({i: len(b) for i, b in out.items()})
    out.setdefault(source, bytearray()).append(byte)


class Sinks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.programs = {}
        for arch, compiler in COMPILERS.items():
            source = cls.folder / f"{arch}.c"
            source.write_text(PROGRAM + START[arch])
            cls.programs[arch] = cls.folder / arch
            run(compiler, "-O1", "-static", "-nostdlib", *(["-marm"] if arch == "arm" else []), "-o", cls.programs[arch], source)
        cls.whole = {}
        for unit, arch in UNITS.items():
            folder = cls.folder / f"whole-{unit}"
            options = ("--trigger-at", "fault")
            run(WAYMARK, "record", "--unit", unit, *options, "-q", "-o", folder, "--", cls.programs[arch])
            cls.whole[unit] = bytes(sources((folder / "trace.bin").read_bytes())[0][0x10])

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, name, unit, *options, status=0):
        folder = self.folder / name
        return folder, run(WAYMARK, "record", "--unit", unit, "--truth", *options, "-o", folder, "--",
                           self.programs[UNITS[unit]], status=status)

    def registers(self, folder):
        (device,) = folder.glob("sink_*.ini")
        text = device.read_text()
        return {name: int(value, 16) for name, value in re.findall(r"^(\w+)=(0x[0-9a-f]+)$", text, re.M)}

    def test_the_buffer_holds_what_is_around_the_trigger(self):
        draw = random.Random(7)
        for n, (unit, sink) in enumerate((u, s) for u in UNITS for s in ("etb", "tmc-etb", "tmc-etf", "tmc-etr")):
            whole = self.whole[unit]
            size = 16 * draw.randrange(32, 80)
            after = 4 * draw.randrange(8, size // 8)
            with self.subTest(unit=unit, sink=sink, size=size, after=after):
                folder, said = self.record(f"sink-{n}", unit, "--sink", f"{sink}:{size}", "--trigger-at", "fault",
                                           "--stop-after-trigger", after, "--sync", 256)
                # With the same synchronisations.
                full, _ = self.record(f"full-{unit}", unit, "--trigger-at", "fault", "--sync", 256, "--force")
                whole = bytes(sources((full / "trace.bin").read_bytes())[0][0x10])
                frames = (folder / "trace.bin").read_bytes()
                self.assertEqual(len(frames), size)
                held, marks = sources(frames)
                self.assertEqual(len(marks), 1)
                there = bytes(held[0x10])
                # Before the first ID of a wrapped buffer, bytes belong to no source.
                self.assertGreater(len(there), size // 2)
                place = whole.find(there)
                self.assertGreaterEqual(place, 0, "not a part of the whole trace")
                self.assertEqual(whole.find(there, place + 1), -1)
                # The mark precedes the unit's own packet, which follows the waiting atoms and the branch out of
                # `fault`.
                before = place + marks[0].get(0x10, 0)
                self.assertIn(0x0c if UNITS[unit] == "arm" else 0x71, whole[before:before + 12])
                registers = self.registers(folder)
                self.assertEqual(registers["RSZ"], size // 4)
                self.assertEqual(registers["TRG"], 0)
                self.assertEqual(registers["STS"] & 7, 7)  # Full, Triggered, TMCReady
                self.assertEqual(registers["FFSR"] & 2, 2)
                base = 0x80000000 if sink == "tmc-etr" else 0
                self.assertEqual(registers["RRP"], registers["RWP"])
                sent = size + int(re.search(r"^overwritten=(\d+)$", (folder / "trace.ini").read_text(), re.M)[1])
                self.assertEqual(registers["RWP"], base + sent % size // (4 if sink == "etb" else 1))
                told = re.search(r"the trigger came after ([\d,]+) bytes? of frames; ([\d,]+) bytes? came after it", said)
                first, rest = (int(t.replace(",", "")) for t in told.groups())
                self.assertEqual(first + rest, sent)
                self.assertTrue(after <= rest <= after + 16 + 12, rest)
                self.assertIn("equal, as far as the buffer kept it", run(WAYMARK, "verify", folder))
                doctor = run(WAYMARK, "doctor", folder)
                self.assertIn("FFCR.StopOnTrigEvt is 1 and STS.Triggered is 1", doctor)
                self.assertIn("the buffer wrapped", doctor)
                self.assertIn("a trigger is marked in the frames", doctor)
                reasons = {row["reason"] for row in account(folder)}
                self.assertLessEqual({"overwritten", "after end"}, reasons)

    def test_timeline_and_findings_show_the_trigger(self):
        for unit in UNITS:
            with self.subTest(unit=unit):
                folder, _ = self.record(f"shown-{unit}", unit, "--sink", "tmc-etb", "--trigger-at", "fault")
                tables = self.folder / f"{unit}.sqlite"
                run(WAYMARK, "export", folder, "--to", "sqlite", "-o", tables)
                database = sqlite3.connect(tables)
                self.assertEqual(database.execute("SELECT count(*) FROM marks WHERE kind = 'trigger'").fetchone(), (1,))
                # The trigger comes after 300 of 400 rounds.
                (time,) = database.execute("SELECT begin_time FROM marks WHERE kind = 'trigger'").fetchone()
                (end,) = database.execute("SELECT max(end_time) FROM slices").fetchone()
                self.assertTrue(0.7 < time / end < 0.8, (time, end))
                health = " ".join(row[0] for row in database.execute("SELECT what FROM health"))
                self.assertRegex(health, r"Buffer TMC-ETB: a trigger is marked in its frames\.")
                database.close()

    def test_the_trigger_stays_however_much_comes_after_it(self):
        # The largest --stop-after-trigger that a buffer permits: the mark of the trigger stays.
        for size in 256, 512:
            for unit, sink in ("ptm", "etb"), ("etmv4", "tmc-etr"), ("ete", "tmc-etf"):
                with self.subTest(size=size, unit=unit, sink=sink):
                    folder, said = self.record(f"most-{size}-{unit}", unit, "--sink", f"{sink}:{size}", "--trigger-at", "fault",
                                               "--stop-after-trigger", size - 32, "--sync", 256)
                    self.assertEqual(len(sources((folder / "trace.bin").read_bytes())[1]), 1, said)
                    self.assertIn("a multiple of 4, at most", self.record("refused", unit, "--sink", f"{sink}:{size}",
                                                                          "--trigger-at", "mixed", "--stop-after-trigger",
                                                                          size - 28, status=2)[1])

    def test_components_before_the_buffer(self):
        """Funnel, replicator and cross triggers are devices of the snapshot, with their programming."""
        folder, _ = self.record("path", "etmv4", "--sink", "tmc-etb:2048", "--trigger-at", "fault", "--sync", 256)
        links = {}
        for device in folder.glob("link_*.ini"):
            text = device.read_text()
            self.assertIn("class=trace_link\n", text)
            links[re.search(r"^name=(.*)$", text, re.M)[1]] = {name: int(value, 16) for name, value in
                                                             re.findall(r"^(\w+)=(0x[0-9a-f]+)$", text, re.M)}
        self.assertEqual(sorted(links), ["CTI_0", "CTI_SINK", "FUNNEL", "REPLICATOR"])
        self.assertEqual(links["FUNNEL"]["FUNCTL"], 0x301)
        self.assertEqual(links["REPLICATOR"], {"IDFILTER0": 0, "IDFILTER1": 0xff})
        self.assertEqual((links["CTI_0"]["CTIINEN4"], links["CTI_0"]["CTIGATE"], links["CTI_0"]["CTICONTROL"]), (1, 1, 1))
        self.assertEqual((links["CTI_SINK"]["CTIOUTEN1"], links["CTI_SINK"]["CTICONTROL"]), (1, 1))
        self.assertIn("input 4 to channel 0", run(WAYMARK, "explain", folder))
        self.assertNotIn("CTI", run(WAYMARK, "doctor", folder))
        (cti,) = [d for d in folder.glob("link_*.ini") if "name=CTI_0\n" in d.read_text()]
        self.assertIn("It passes triggers on.", run(WAYMARK, "explain", cti))

    def test_scatter_list(self):
        """Pages anywhere in memory contain the same trace as one piece of memory."""
        options = ("--trigger-at", "fault", "--sync", 256, "--stop-after-trigger", 1024)
        plain, _ = self.record("in-one-piece", "ptm", "--sink", "tmc-etr:8192", *options)
        pages, _ = self.record("in-pages", "ptm", "--sink", "tmc-etr:8192", "--scatter-list", *options)
        self.assertEqual((plain / "trace.bin").read_bytes(), (pages / "trace.bin").read_bytes())
        registers = self.registers(pages)
        self.assertEqual(registers["AXICTL"] & 0x80, 0x80)
        self.assertNotEqual(registers["RWP"], self.registers(plain)["RWP"])
        self.assertRegex(run(WAYMARK, "verify", pages), r"(?m)^equal")

    def test_a_trace_port(self):
        for unit in UNITS:
            for pins in 1, 4, 16:
                with self.subTest(unit=unit, pins=pins):
                    folder, _ = self.record(f"port-{unit}-{pins}", unit, "--sink", f"tpiu:{pins}", "--trigger-at", "fault")
                    registers = self.registers(folder)
                    self.assertEqual((registers["CSPSR"], registers["FSCR"], registers["FFSR"] & 2), (1 << pins - 1, 0x40, 2))
                    sent = (folder / "trace.bin").read_bytes()
                    sync = b"\xff\xff\xff\x7f"
                    self.assertEqual(sent[:4], sync)
                    self.assertEqual((len(sent) - 4 * (1 + (len(sent) - 4) // 1028)) % 16, 0)
                    frames = b"".join(sent[at + 4:at + 1028] for at in range(0, len(sent), 1028))
                    self.assertTrue(all(sent[at:at + 4] == sync for at in range(0, len(sent), 1028)))
                    held, marks = sources(frames)
                    self.assertEqual(bytes(held[0x10]), self.whole[unit])
                    self.assertEqual(len(marks), 1)
                    self.assertRegex(run(WAYMARK, "verify", folder), r"(?m)^equal")
                    self.assertIn("TPIU", run(WAYMARK, "explain", folder))

    def test_nothing_stops_a_buffer_that_was_not_to_stop(self):
        for unit in UNITS:
            folder, said = self.record(f"runs-on-{unit}", unit, "--sink", "tmc-etb", "--trigger-at", "fault")
            self.assertIn("bytes came after it", said)
            self.assertNotIn("the trace buffer stopped", said)
            # A buffer that was stopped at the end causes no finding.
            self.assertNotIn("sink-register", run(WAYMARK, "doctor", folder))
            # PROGRAM calls it 400 times.
            _, said = self.record(f"often-{unit}", unit, "--sink", "tmc-etb", "--trigger-at", "mixed")
            self.assertIn("the first of 400 triggers came after ", said)

    def test_a_trigger_that_never_came(self):
        folder, said = self.record("never", "ptm", "--sink", "tmc-etb:1024", "--trigger-at", "never", "--stop-on-trigger", 256,
                                   "--sync", 256,
                                   status=1)
        self.assertIn("--stop-after-trigger: the trigger never came: execution never reached never; nothing stopped the trace "
                      "buffer, so it holds the end of the run", said)
        # The recording is complete, so another beginning would not help.
        self.assertNotIn("was to begin at main", said)
        self.assertEqual(self.registers(folder)["STS"] & 2, 0)
        doctor = run(WAYMARK, "doctor", folder)
        self.assertIn("FFCR.StopOnTrigEvt is 1 and STS.Triggered is 0", doctor)
        self.assertNotRegex(doctor, r"found +(\S+) \1\b")
        self.assertIn("equal, as far as the buffer kept it", run(WAYMARK, "verify", folder))

    def test_registers_alone_state_what_the_buffer_lacks(self):
        """Captures of other tools have the registers of the trace buffer, but no other facts about the run."""
        for name, options, reason, status in (
                ("wrapped", (), "overwritten", 0), ("stopped", ("--stop-after-trigger", 64), "after end", 0)):
            with self.subTest(name):
                folder, said = self.record(f"registers-{name}", "etmv4", "--from-start", "--sink", "tmc-etb:512", "--trigger-at",
                                           "fault", *options, "--sync", 256, status=status)
                ini = folder / "trace.ini"
                text = re.sub(r"^(overwritten|begins|ends)=.*\n", "", ini.read_text(), flags=re.M)
                self.assertNotEqual(text, ini.read_text(), said)
                ini.write_text(text)
                (row,) = (row for row in account(folder) if row["reason"] == reason)
                self.assertIsNone(row["bytes"])
                self.assertIn("decodes in part", run(WAYMARK, "doctor", folder))
                (device,) = folder.glob("sink_*.ini")
                device.write_text(re.sub(r"^STS=.*$", "STS=0x4", device.read_text(), flags=re.M))
                self.assertNotIn(reason, [row["reason"] for row in account(folder)])

    def test_the_first_trigger_stays_where_code_changed_after_it(self):
        """The changed code begins a separate buffer, which has a trigger too."""
        program = self.folder / "changing"
        source = self.folder / "changing.c"
        source.write_text(PROGRAM.replace("int main(void) {", r"""
__asm__(".globl changing\n.type changing, %function\nchanging: mov r0, #1\n bx lr\n.size changing, . - changing\n");
extern unsigned changing(void);
int main(void) {
    result = changing();
    fault();
    *(volatile unsigned *)changing = 0xe3a00002;  // mov r0, #2
    result = changing();
""") + START["arm"])
        # -N: code can be written.
        run(COMPILERS["arm"], "-O1", "-static", "-nostdlib", "-marm", "-Wl,-N", "-o", program, source)
        said = run(WAYMARK, "record", "--unit", "ptm", "--sink", "tmc-etb", "--trigger-at", "fault", "-o",
                   self.folder / "changing.out", "--", program)
        self.assertIn("in 2 buffers since code changed 1 time", said)
        before = re.search(r"the first of 2 triggers came after ([\d,]+) bytes? of frames", said)
        # The second buffer begins after 300 calls of mixed.
        self.assertLess(int(before[1].replace(",", "")), 100)

    def test_too_little_after_the_trigger(self):
        _, said = self.record("late", "ptm", "--sink", "etb:65536", "--trigger-at", "fault", "--stop-after-trigger", 60000,
                              status=1)
        self.assertIn("too few to stop the trace buffer, so it holds the end of the run", said)
        # The advised number works, and is within two frames of the largest.
        most = int(re.search(r"; give (\d+) or less", said)[1])
        _, said = self.record("in-time", "ptm", "--sink", "etb:65536", "--trigger-at", "fault", "--stop-after-trigger", most)
        self.assertIn("the trace buffer stopped", said)
        self.record("late-again", "ptm", "--sink", "etb:65536", "--trigger-at", "fault", "--stop-after-trigger", most + 32,
                    status=1)

    def test_wrong_options_are_refused(self):
        for options, words in ((("--sink", "catu"), "there are etb, tmc-etb, tmc-etf, tmc-etr"),
                               (("--sink", "tpiu:x"), "expected the number of pins after the colon"),
                               (("--sink", "tpiu:33"), "a trace port of 33 pins: give 1 to 32"),
                               (("--sink", "tpiu", "--stop-after-trigger", 64), "not for --sink tpiu"),
                               (("--sink", "tmc-etb", "--scatter-list"), "only for --sink tmc-etr, not for tmc-etb"),
                               (("--scatter-list",), "only for --sink tmc-etr"),
                               (("--sink-registers", "/dev/null"), "--sink-registers is only for --sink"),
                               (("--sink", "etr"), "go with --as perf only"),
                               (("--sink", "etb:x"), "expected the size in bytes after the colon"),
                               (("--sink", "etb:1000"), "multiple of 16"),
                               (("--sink", "etb:1024", "--buffer", 1024), "--buffer cannot be used with --sink"),
                               (("--sink", "etb:1024", "--stop-after-trigger", 64), "nothing is a trigger"),
                               (("--sink", "etb:1024", "--trigger-at", "fault", "--stop-after-trigger", 1024),
                                "a multiple of 4, at most 992 of the 1024 bytes"),
                               (("--stop-after-trigger", 64), "is only for --sink"),
                               (("--authentication", "NIDEN=2"), "expected NIDEN, DBGEN, SPNIDEN or SPIDEN"),
                               (("--authentication", "KEY=0"), "expected NIDEN, DBGEN, SPNIDEN or SPIDEN"),
                               (("--authentication", "NIDEN=0@"), "no symbol or address follows @"),
                               (("--authentication", "NIDEN=0,NIDEN=1"), "NIDEN is given twice"),
                               (("--authentication", "NIDEN=0", "--authentication", "SPNIDEN=0,NIDEN=1"),
                                "both set NIDEN from the beginning"),
                               (("--os-lock", "on@main", "--os-lock", "off@main"), "both set the OS Lock at the same place"),
                               (("--unit-power", "off@"), "no symbol or address follows @"),
                               (("--trigger-at", ""), "the symbol or address is empty"),
                               (("--view-range", ""), "the symbol or address is empty"),
                               (("--trigger-at", "quiet", "--trigger-at", "loud"), "may be given only once"),
                               (("--unit-power", "off"), "as in off@SYMBOL"),
                               (("--os-lock", "shut@main"), "as in off@SYMBOL"),
                               (("--fifo", 64, "--os-lock", "on@main"), "--fifo cannot be used with")):
            with self.subTest(options=options):
                self.assertIn(words, self.record("refused", "ptm", *options, status=2)[1])
        self.assertIn("--sink-registers /nowhere: cannot be read",
                      self.record("refused", "ptm", "--sink", "etb", "--sink-registers", "/nowhere", status=3)[1])
        # The default for AArch64 is ete; the message names the units that support the option.
        refused = self.record("refused", "ete", "--authentication", "NIDEN=0", status=2)[1]
        self.assertIn("so NIDEN and DBGEN change nothing", refused)
        self.assertRegex(refused, r"--unit ptm or --unit etmv3 or --unit etmv4 obeys NIDEN")

    def test_registers_that_change_nothing_or_hold_all_back_are_named(self):
        file = self.folder / "registers.txt"
        for unit, registers, words in (("etmv4", "TRCTRACEIDR 0\n", "registers.txt:1: TRCTRACEIDR has no effect"),
                                       ("ete", "TRCPRGCTLR 0\n", "TRCPRGCTLR does not keep the unit off"),
                                       ("ptm", "ETMCR.Programming bit 1\n", "ETMCR does not keep the unit off"),
                                       ("etmv3", "ETMTRACEIDR 7\n", "ETMTRACEIDR has no effect")):
            with self.subTest(registers=registers):
                file.write_text(registers)
                folder, said = self.record("without-effect", unit, "--registers", file)
                self.assertIn(words, said)
                self.assertRegex(run(WAYMARK, "verify", folder), r"(?m)^equal")
                said = run(WAYMARK, "program", "--unit", unit, "--for", "json", "--registers", file)
                self.assertIn(words, said)
        file.write_text("FUNCTL 0x300\n")
        folder, said = self.record("held-back", "ptm", "--sink", "etb", "--sink-registers", file)
        self.assertIn(f"no trace came into the ETB; 'waymark explain {folder}' says", said)
        self.assertIn("FUNCTL[7:0] is 0x00", run(WAYMARK, "explain", folder, status=1))
        for option in ("--registers",), ("--sink", "etb", "--sink-registers"):
            self.assertIn("is no text", self.record("refused", "ptm", *option, self.programs["arm"], status=3)[1])

    def test_trace_that_is_not_permitted(self):
        cases = [(unit, options, reason) for unit in UNITS for options, reason in (
            (("--authentication", "NIDEN=0@quiet", "--authentication", "NIDEN=1@loud"), "NIDEN=0"),
            (("--unit-power", "off@quiet", "--unit-power", "on@loud"), "no power"),
            (("--os-lock", "on@quiet", "--os-lock", "off@loud"), "OS Lock")) if unit != "ete" or reason != "NIDEN=0"]
        for n, (unit, options, reason) in enumerate(cases):
            with self.subTest(unit=unit, options=options):
                folder, said = self.record(f"signals-{n}", unit, *options)
                told = re.search(r"of ([\d,]+) ranges that executed, ([\d,]+) are not in the trace on purpose: (.*)", said)
                self.assertRegex(told[3], rf"^{reason}, [\d,]+ instructions$")
                instructions = int(re.search(r"([\d,]+) instructions$", told[3])[1].replace(",", ""))
                every, hidden = (int(t.replace(",", "")) for t in told.groups()[:2])
                # 100 of 400 rounds.
                self.assertTrue(every * 0.2 < hidden < every * 0.3, (every, hidden))
                self.assertRegex(run(WAYMARK, "verify", folder), r"(?m)^equal: ")
                self.assertEqual((folder / "not_permitted.txt").read_text(),
                                 f"waymark-not-permitted 2\n{reason} (instructions={instructions}, ranges={hidden})\n")
                (row,) = [row for row in account(folder) if row["reason"] == "filtered"]
                self.assertEqual((row["of"], row["instructions"], row["ranges"]), (reason, instructions, hidden))
                for command in "profile", "doctor":
                    self.assertRegex(" ".join(run(WAYMARK, command, folder).split()),
                                     rf"not traced: .*\({reason}, {instructions:,} instructions, {hidden:,} ranges\)")
                # The same code is traced as without the signals.
                whole, _ = self.record(f"open-{unit}", unit, "--force")
                ran = [sum(r["instructions"] or 0 for r in account(f) if r["reason"] in ("decoded", "filtered"))
                       for f in (folder, whole)]
                self.assertTrue(abs(ran[0] - ran[1]) <= 4, ran)
        folder, said = self.record("closed", "ptm", "--authentication", "NIDEN=0", status=1)
        self.assertIn("none of which the unit was permitted to trace (NIDEN=0)", said)
        # Code that the unit was programmed to leave out, before and after `quiet`, is not a matter of permission.
        hidden = {}
        for name, options in (("all", ()), ("part", ("--exclude-range", "mixed")), ("other", ("--view-range", "loud"))):
            for unit in ("ptm", "etmv4"):
                _, said = self.record(f"{name}-{unit}", unit, "--authentication", "NIDEN=0@quiet", "--authentication",
                                      "NIDEN=1@loud", *options)
                told = re.search(r"([\d,]+) are not in the trace on purpose: NIDEN=0", said)
                hidden[name, unit] = int(told[1].replace(",", "")) if told else 0
        for unit in ("ptm", "etmv4"):
            self.assertEqual(hidden["other", unit], 0)
            # In each round of `main`, all of the 40 rounds in `mixed` are left out.
            self.assertTrue(100 <= hidden["part", unit] < hidden["all", unit] / 4, hidden)
        # A symbol that execution never reached is named, as for --start-at.
        for unit in UNITS:
            _, said = self.record(f"unreached-{unit}", unit, "--unit-power", "off@never", "--trigger-at", "never")
            self.assertIn("--unit-power off@never: execution never reached it; the signal did not change there", said)
            self.assertIn("--trigger-at never: execution never reached it; there was no trigger", said)
            _, said = self.record(f"reached-{unit}", unit, "--unit-power", "off@quiet", "--trigger-at", "fault")
            self.assertNotIn("never reached", said)
        folder, said = self.record("both", "ptm", "--authentication", "NIDEN=0", "--exclude-range", "mixed", status=1)
        self.assertIn("the unit was not permitted (NIDEN=0) to trace", said)
        # Invasive debug permits it too.
        self.record("open", "ptm", "--authentication", "NIDEN=0,DBGEN=1")
        # Only Secure state is permitted; a Linux program is Non-secure.
        _, said = self.record("secure", "ete", "--authentication", "SPNIDEN=0")
        self.assertNotIn("on purpose", said)


if __name__ == "__main__":
    missing = [tool for tool in ("qemu-arm", "qemu-aarch64", *COMPILERS.values()) if shutil.which(tool) is None]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} missing")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
