#!/usr/bin/env python3
"""Recordings of AArch64 systems by ETE and ETMv4 under qemu-system-aarch64.

    system64_test.py WAYMARK SOURCE_DIR

Witnesses: QEMU's own logs of other runs, which are the same since it counts instructions as time (-icount): which
instructions executed at which exception level (`-singlestep -d exec,nochain`), which exceptions were taken and where they
returned (`-d int`); OpenCSD's ranges, contexts and exceptions; what examples/levels prints; and the comments of
exceptions/system64.S, written by hand from docs/spec/etm4-registers.md, 2.13.
"""
import collections
import csv
import json
import pathlib
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import truth_file  # noqa: E402
from executed_test import follow, is_straight  # noqa: E402
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CROSS, SYSTEM = "aarch64-linux-gnu-gcc", "qemu-system-aarch64"
LISTER = shutil.which("trc_pkt_lister")
ICOUNT = ("-icount", "shift=7")
CORES = {"ete": "max", "etmv4": "cortex-a53"}
# MMU indices in the flags of a block: EL0 and EL1, EL2, EL3 (QEMU 7.2, target/arm/cpu.h).
LEVELS = {0: 0, 2: 1, 4: 1, 6: 2, 7: 3}
# Of functions of examples/levels: the exception level and the security state.
STATES = {"reset": (3, "S"), "start_monitor": (3, "S"), "monitor_call": (3, "S"), "monitor_fiq": (3, "S"),
          "monitor_tick": (3, "S"), "secure_entry": (1, "S"), "secure_service": (1, "S"), "hypervisor_start": (2, "NS"),
          "hypervisor_entry": (2, "NS"), "hypervisor": (2, "NS"), "kernel_start": (1, "NS"), "kernel_entry": (1, "NS"),
          "kernel_irq": (1, "NS"), "kernel_synchronous": (1, "NS"), "switch_task": (1, "NS"), "ask_secure": (1, "NS"),
          "first_task": (0, "NS"), "second_task": (0, "NS"), "work": (0, "NS"), "prime": (0, "NS"),
          "fibonacci": (0, "NS"), "multiply": (0, "NS")}


def entered(log):
    """(address, flags) of each block that QEMU entered and did not leave at once."""
    found = []
    for line in log.splitlines():
        if line.startswith("Trace "):
            _, pc, flags, _ = line[line.index("[") + 1:line.index("]")].split("/")
            found.append((int(pc, 16), int(flags, 16)))
        elif line.startswith("Stopped execution") and found:
            found.pop()
    return found


class System64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        done = run(SOURCE / "examples/build", "-o", cls.folder, "levels")
        assert done.returncode == 0, done.stdout + done.stderr
        cls.levels = cls.folder / "levels-aarch64.elf"

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, program, *options, status=0):
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = run(WAYMARK, "record", "--truth", "--system", "-o", out, *(f"--qemu={o}" for o in ICOUNT), *options, "--",
                   program)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return out, done

    def verify(self, out):
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("\nequal: ", done.stdout)

    def qemu(self, program, core, *options):
        log = self.folder / "log"
        done = run(SYSTEM, "-M", "virt,secure=on,virtualization=on", "-cpu", core, "-display", "none", "-monitor", "none",
                   "-serial", "stdio", "-nic", "none", "-semihosting-config", f"enable=on,target=native,arg={program}",
                   *ICOUNT, "-D", log, *options, "-kernel", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return log.read_text(errors="replace")

    def exceptions_of(self, out):
        """(type, return address) of every exception that was decoded."""
        text = run(WAYMARK, "flow", out).stdout
        return [(int(number), int(back, 16)) for number, back in
                re.findall(r"exception (\d+): .*?, return address (0x\w+)", text)]

    def test_what_executed_and_at_which_level(self):
        for unit, core in CORES.items():
            with self.subTest(unit):
                # Block-by-block execution of QEMU may move an interrupt by an instruction.
                out, done = self.record(self.levels, "--unit", unit, "--context-id", "4", "--qemu=-singlestep")
                self.assertIn("good", done.stderr)
                self.verify(out)
                log = entered(self.qemu(self.levels, core, "-singlestep", "-d", "exec,nochain"))
                ((_, ranges),) = truth_file.sources(out)
                left = int(re.search(r"unfinished_instructions (\d+) ", (out / "truth.txt").read_text())[1])
                stopped, rest = follow(ranges, [pc for pc, _ in log])
                # Two instructions do not execute: the trapped one, and the undefined one.
                self.assertEqual(stopped, 2)
                self.assertTrue(is_straight(rest[left:]))
                # The level of each range, by its contexts and by QEMU's flags of its first block. QEMU enters an access
                # to a device twice: it executes the access alone.
                ran = log[:len(log) - len(rest)]
                by_level = collections.Counter(LEVELS[flags >> 4 & 0xf] for n, (pc, flags) in enumerate(ran)
                                               if n == 0 or pc != ran[n - 1][0])
                decoded = collections.Counter()
                for level, count in self.levels_of(out):
                    decoded[level] += count
                self.assertEqual(self.profile_by_level(out), decoded)
                by_level.subtract(decoded)
                # The two instructions that did not execute were entered at EL1 and EL0.
                self.assertEqual({k: v for k, v in by_level.items() if v}, {0: 1, 1: 1})

    def profile_by_level(self, out):
        rows = run(WAYMARK, "profile", out, "--by", "level", "--format", "tsv").stdout.splitlines()
        found = collections.Counter()
        for row in csv.DictReader(rows, delimiter="\t"):
            found[int(row["level"].removeprefix("EL"))] += int(row["instructions"])
            self.assertEqual(row["state"], "AArch64")
            # The kernel calls the monitor, which calls a service at Secure EL1.
            self.assertIn(row["security"], {"EL3": ("Secure",), "EL1": ("Secure", "Non-secure")}.get(row["level"],
                                                                                                  ("Non-secure",)))
        return found

    def test_blocks_come_in_the_order_of_qemu(self):
        """Without -singlestep: QEMU's log has the blocks it entered, in the truth they are found in this order."""
        out, _ = self.record(self.levels)
        log = [pc for pc, _ in entered(self.qemu(self.levels, "max", "-d", "exec,nochain"))]
        ((_, ranges),) = truth_file.sources(out)
        executed = [pc for first, end, count, _ in ranges if count for pc in range(first, end, 4)]
        at = 0
        for number, pc in enumerate(log):
            near = executed[at:at + 64]
            if pc not in near:
                # Its first instruction did not execute, or the program ended.
                self.assertTrue(len(executed) - at < 64 or log[number + 1] in near, f"entry {number}: {pc:#x}")
                continue
            at += near.index(pc) + 1
        self.assertLess(len(executed) - at, 64)

    def levels_at_exceptions(self, out):
        level = None
        for line in run(WAYMARK, "flow", out).stdout.splitlines():
            if found := re.search(r"  context: (?:NS|S) EL(\d)", line):
                level = int(found[1])
            elif re.search(r"  exception \d+: ", line):
                yield level

    def levels_of(self, out):
        """Without -singlestep: QEMU's log has the blocks that it entered, and the truth has them in the same order."""
        level = None
        for line in run(WAYMARK, "flow", out).stdout.splitlines():
            if found := re.search(r"  context: (?:NS|S) EL(\d)", line):
                level = int(found[1])
            elif found := re.match(r" +0x\w+  0x\w+-\w+ +(\d+)  A64 ", line):
                yield level, int(found[1])

    def test_security_states_and_context_ids(self):
        out, _ = self.record(self.levels, "--context-id", "4")
        seen, contexts, state = set(), set(), None
        for line in run(WAYMARK, "flow", out).stdout.splitlines():
            if found := re.search(r"  context: (NS|S) EL(\d) CID=0x(\w+)", line):
                state, number = (int(found[2]), found[1]), int(found[3], 16)
                contexts.add((state, number))
            elif re.match(r" +0x\w+  0x\w+-\w+ +\d+  A64 ", line):
                name = re.match(r"\w*", re.split("  +", line)[-1])[0]
                if name in STATES:
                    seen.add(name)
                    self.assertEqual(state, STATES[name], line)
        self.assertEqual(seen, set(STATES))
        # The tasks have the numbers 1 and 2, the service in Secure state has its own.
        numbers = {state: {n for s, n in contexts if s == state} for state, _ in contexts}
        self.assertEqual(numbers[0, "NS"], {1, 2})
        self.assertEqual(numbers[1, "S"], {0x5ec})

    def test_exceptions_are_those_of_qemu(self):
        out, done = self.record(self.levels)
        log = self.qemu(self.levels, "max", "-d", "int")
        expected, levels = [], []
        for number, level, syndrome, elr in re.findall(
                r"^Taking exception (\d+) .*\n\.\.\.from EL(\d) .*\n\.\.\.with ESR 0x(\w+)/.*\n(?:\.\.\.with FAR.*\n)?\.\.\.with ELR 0x(\w+)",
                log, re.M):
            number, syndrome = int(number), int(syndrome, 16)
            kind = {5: 14, 6: 15}.get(number) or (2 if syndrome in (0x15, 0x16, 0x17) else 3)
            expected.append((kind, int(elr, 16)))
            levels.append(int(level))
        found = self.exceptions_of(out)
        # Its last action is to end QEMU.
        self.assertEqual(found, expected[:len(found)])
        self.assertLessEqual(len(expected) - len(found), 1)
        self.assertEqual(list(self.levels_at_exceptions(out)), levels[:len(found)])
        said = {name: int(value) for name, value in re.findall(r"^(\w[\w' ()]*?)  +(\d+)$", done.stderr, re.M)}
        kinds = collections.Counter(kind for kind, _ in found)
        self.assertEqual(kinds[15], said["monitor's timer (FIQ)"])
        self.assertGreaterEqual(kinds[14], said["timer interrupts (IRQ)"])
        self.assertEqual(kinds[3], said["undefined instructions"] + said["trapped by the hypervisor"])
        returns = len(re.findall(r"^Exception return from", log, re.M))
        self.assertEqual(run(WAYMARK, "flow", out).stdout.count("  exception return\n"), returns)

    def test_every_way_to_program_the_unit(self):
        for options in (("--return-stack",), ("--unit", "etmv4", "--cycle-accurate", "--timestamps", "--context-id", "4"),
                        ("--branch-broadcast", "--sync", "256", "--speculation", "8"), ("--smp", "2")):
            with self.subTest(options):
                out, _ = self.record(self.levels, *options)
                self.verify(out)
                if "--speculation" not in options:
                    self.compare_with_opencsd(out)
        # In real time.
        out = self.folder / "real"
        done = run(WAYMARK, "record", "--truth", "--system", "-o", out, "--", self.levels)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.verify(out)

    def build(self, *options):
        program = self.folder / "system64.elf"
        source = SOURCE / "tests/record/exceptions/system64.S"
        done = run(CROSS, "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-Wl,-N", "-Wl,--no-warn-rwx-segments",
                   "-Wl,-Ttext=0x40080000", *options, "-o", program, source)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def test_faults_and_traps(self):
        program = self.build()
        expected = [int(n) for n in re.findall(r"// = (\d+) ", (SOURCE / "tests/record/exceptions/system64.S").read_text())]
        log = self.qemu(program, "max", "-d", "int")
        backs = [int(elr, 16) for elr in re.findall(r"with ELR 0x(\w+)", log)]
        for options in ((), ("--unit", "etmv4"), ("--branch-broadcast",)):
            with self.subTest(options):
                out, _ = self.record(program, *options)
                self.verify(out)
                found = self.exceptions_of(out)
                if "etmv4" not in options:
                    self.assertEqual([back for _, back in found], backs[:len(found)])
                self.assertEqual([kind for kind, _ in found], expected)
                self.compare_with_opencsd(out)

    def test_what_is_not_traced_is_said(self):
        out, done = self.record(self.build("-DAARCH32"))
        self.assertIn("went to AArch32 state 1 time; what ran there is not recorded", done.stderr)
        self.verify(out)
        self.assertEqual(run(WAYMARK, "flow", out).stdout.count("trace on"), 2)
        _, done = self.record(self.build("-DCOPY"))
        self.assertIn("1 write of SCR_EL3, HCR_EL2 or CONTEXTIDR_EL1 by code that is not in the image", done.stderr)
        _, done = self.record(self.build("-DCOPY"), "--vmid")
        self.assertIn("1 write of SCR_EL3, HCR_EL2, VTTBR_EL2, CONTEXTIDR_EL2 or CONTEXTIDR_EL1 by code that is not in the "
                      "image: the values are not known, so the security state, VMID or Context ID may be wrong", done.stderr)

    def test_vmids(self):
        """As the program writes them, and as OpenCSD decodes them."""
        for unit, names, expected in (("ete", ("-DVMID", "-DCONTEXTIDR_EL2"), [0, 0x501, 0x502, 0x501]),
                                      ("etmv4", ("-DVMID",), [0, 0x11, 0x12, 0x13])):
            program = self.build(*names)
            for options in (("--vmid",), ("--vmid", "--context-id", "4"), ()):
                with self.subTest((unit, options)):
                    out, done = self.record(program, "--unit", unit, *options)
                    self.verify(out)
                    self.assertNotIn("by code that is not in the image", done.stderr)
                    text = run(WAYMARK, "flow", out).stdout
                    found = [int(n, 16) for n in re.findall(r"  context: .* VMID=0x(\w+)", text)]
                    found = [n for i, n in enumerate(found) if i == 0 or n != found[i - 1]]
                    self.assertEqual(found, expected if options else [])
                    self.compare_with_opencsd(out)
                    if LISTER and options:
                        self.assertEqual(self.vmids_of_opencsd(out), expected)

    def vmids_of_opencsd(self, out):
        log = out / "lister.log"
        run(LISTER, "-ss_dir", out, "-decode_only", "-logfilename", log)
        found = [int(n, 16) for n in re.findall(r"PE_CONTEXT\(.*VMID=0x(\w+)", log.read_text())]
        return [n for i, n in enumerate(found) if i == 0 or n != found[i - 1]]

    def test_a_program_that_never_ends(self):
        program = self.build("-DENDLESS")
        for options in (("--limit", "200000"), ("--stop-at", "again")):
            with self.subTest(options):
                out, done = self.record(program, *options)
                self.assertIn("the recording was stopped as asked for", done.stderr)
                self.verify(out)

    def test_an_image_for_another_board(self):
        program = self.build("-Wl,-Ttext=0x80000")
        _, done = self.record(program, status=1)
        self.assertIn("exception followed exception and nothing executed", done.stderr)
        self.assertIn("is the image made for the machine virt,", done.stderr)

    def test_exceptions_return(self):
        """In all views, an exception calls its handler, and the handler returns."""
        out, _ = self.record(self.levels)
        rows = json.loads(run(WAYMARK, "exceptions", out, "--format", "json").stdout)["rows"]
        times = {row["exception"]: (row["times"], row["returned"]) for row in rows}
        self.assertEqual(times["FIQ"][0], times["FIQ"][1])
        self.assertEqual(times["Trap"], (2, 2))
        calls = run(WAYMARK, "flow", out, "--format", "calls").stdout
        self.assertRegex(calls, r"\[exception: FIQ\]\n.*  monitor_vectors\n.*  monitor_fiq\n")

    def test_wrong_use(self):
        out = self.folder / "refused"
        a32 = SOURCE / "examples/sort/sort.elf"
        for program, options, text in ((a32, ("--unit", "ete"), "takes an AArch64 image"),
                                       (self.levels, ("--vectors", "reset"), "--vectors is for 32-bit images"),
                                       (self.levels, ("--context-id", "2"), "4 bytes; 0 means none"),
                                       (self.levels, ("--qemu=-d", "--qemu=int"), "QEMU has one log"),
                                       (a32, ("--context-id", "4"), "CONTEXTIDR"),
                                       (a32, ("--vmid",), "--vmid is for AArch64 images")):
            with self.subTest(text):
                done = run(WAYMARK, "record", "--system", *options, "-o", out, "--", program)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(text, done.stderr)
        done = run(WAYMARK, "record", "--vmid", "-o", out, "--", self.levels)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--vmid is only for --system", done.stderr)
        done = run(WAYMARK, "record", "--system", "--unit", "ptm", "-o", out, "--", self.levels)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("is an AArch64 program", done.stderr)
        done = run(WAYMARK, "record", "--system", "-o", out, "--", self.levels, env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("qemu-system-aarch64 is not on PATH; it is in the Debian package qemu-system-arm", done.stderr)

    def compare_with_opencsd(self, out):
        """Every range, context and exception OpenCSD gives, by source."""
        if LISTER is None:
            print("NOT COMPARED with OpenCSD: trc_pkt_lister is not on PATH; it is in the Debian package "
                  "libopencsd-bin")
            return
        log = self.folder / "opencsd.txt"
        log.unlink(missing_ok=True)
        run(LISTER, "-ss_dir", out, "-decode", "-logfilename", log)
        text = log.read_text(errors="replace")
        for number, (source, ranges) in enumerate(truth_file.sources(out)):
            found = re.findall(rf"ID:{0x10 + number:x}; OCSD_GEN_TRC_ELEM_INSTR_RANGE\(exec range=0x([0-9a-f]+):"
                               r"\[0x([0-9a-f]+)\] num_i\((\d+)\)", text)
            found = [(int(first, 16), int(end, 16), int(count)) for first, end, count in found]
            self.assertEqual(found, [r[:3] for r in ranges if r[2] != 0], source)
        theirs = [(int(number, 16), int(back, 16)) for back, number in re.findall(
            r"ELEM_EXCEPTION\(pref ret addr:0x(\w+)[^;]*; excep num \(0x(\w+)\)", text)]
        self.assertEqual(collections.Counter(self.exceptions_of(out)), collections.Counter(theirs))
        # It repeats the parts of a periodic synchronisation.
        def changes(states):
            return [state for n, state in enumerate(states) if n == 0 or state != states[n - 1]]

        for number, (name, _) in enumerate(truth_file.sources(out)):
            theirs = [f"{'NS' if security == 'N' else 'S'} EL{level}" for level, security in re.findall(
                rf"ID:{0x10 + number:x}; OCSD_GEN_TRC_ELEM_PE_CONTEXT\(\(ISA=A64\) EL(\d)([NS]);", text)]
            listing = run(WAYMARK, "flow", out, "--source", name).stdout
            ours = re.findall(r"context: (\w+ EL\d)", listing)
            self.assertEqual(changes(ours), changes(theirs), name)


if __name__ == "__main__":
    for tool, package in ((SYSTEM, "qemu-system-arm"), (CROSS, "gcc-aarch64-linux-gnu"),
                          ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
