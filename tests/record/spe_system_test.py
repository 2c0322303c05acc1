#!/usr/bin/env python3
"""Profiles of AArch64 systems by a Statistical Profiling unit under qemu-system-aarch64.

    spe_system_test.py WAYMARK SOURCE_DIR

Witnesses: the comments of exceptions/profiled64.S, written by hand from docs/spec/spe.md; `waymark spe explain`, which has the
architecture's functions and no execution; and where the functions of examples/levels run.
"""
import collections
import csv
import json
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CROSS, SYSTEM = "aarch64-linux-gnu-gcc", "qemu-system-aarch64"
LEAVES_TO_EL1, TRAPS = 3 << 12, 1 << 14  # MDCR_EL2.E2PB, MDCR_EL2.TPMS
# What profiled64.S has programmed when it calls each function, at which level the function runs, and its number of operations.
COMMON = {"SCR_EL3": 0x501, "MDCR_EL3": 3 << 12, "MDCR_EL2": LEAVES_TO_EL1, "HCR_EL2": 1 << 31, "PMSCR_EL2": 0x18, "PMSIRR_EL1": 256,
          "PMBPTR_EL1": 0x50000000, "PMBLIMITR_EL1": 0x50010001}
LOADS_ONLY = 0x20002
CALLS = {"loop_before": ({"PMBPTR_EL1": 0, "PMBLIMITR_EL1": 0}, 1, 100_000), "loop_kernel": ({"PMSCR_EL1": 0x2a}, 1, 100_000),
         "loop_unsampled": ({"PMSCR_EL1": 1, "PMSFCR_EL1": LOADS_ONLY}, 1, 100_000),
         "loop_user": ({"PMSCR_EL1": 1, "PMSFCR_EL1": LOADS_ONLY}, 0, 100_000), "loop_mapped": ({"PMSCR_EL1": 0x32}, 1, 300_000)}


def symbols(program):
    """(first address, end, name) of functions."""
    listed = run("nm", "-S", program).stdout.split("\n")
    rows = [line.split() for line in listed if len(line.split()) == 4]
    return [(int(a, 16), int(a, 16) + int(size, 16), name) for a, size, _, name in rows]


class SpeSystem(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def build(self, name, mdcr=LEAVES_TO_EL1, *more):
        program = self.folder / name
        done = run(CROSS, "-march=armv8.2-a+profile", f"-DMDCR={mdcr}", *more, "-nostdlib", "-static", "-Wl,-Ttext=0x40080000,-N,--no-warnings",
                   "-o", program, SOURCE / "tests/record/exceptions/profiled64.S")
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def record(self, program, *options, status=0):
        out = self.folder / (program.name + ".data")
        done = run(WAYMARK, "record", "--unit", "spe", "--system", "-c", "256", "-o", out, *options, "--", program)
        self.assertEqual(done.returncode, status, done.stderr)
        if status:
            return None, None, done.stderr
        truth = dict(line.split(" ", 1) for line in pathlib.Path(f"{out}.truth.txt").read_text().split("\n")
                     if line and not line.startswith("#"))
        listed = run(WAYMARK, "spe", "records", out, "--format", "tsv")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return list(csv.DictReader(listed.stdout.split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE)), truth, done.stderr

    def by_function(self, program, rows):
        """The records, by function and exception level."""
        known, out = symbols(program), collections.defaultdict(list)
        for row in rows:
            pc = int(row["pc"], 16)
            names = [name for first, end, name in known if first <= pc < end]
            out[names[0] if names else "", int(row["el"])].append(row)
        return out

    def explained(self, level, settings):
        words = [f"{name}={value:#x}" for name, value in {**COMMON, **settings}.items()]
        done = run(WAYMARK, "spe", "explain", f"PSTATE.EL={level}", *words, "--format", "json")
        return json.loads(done.stdout)

    def test_the_program_programs_the_unit(self):
        program = self.build("profiled")
        rows, truth, said = self.record(program)
        found = self.by_function(program, rows)
        for name, (settings, level, operations) in CALLS.items():
            with self.subTest(name):
                explained = self.explained(level, settings)["levels"][0]
                records = found.pop((name, level), [])
                self.assertEqual(bool(records), explained["sampled"]["value"])
                if not records:
                    continue
                # From one sample to the next: the interval, and up to 255 more. A load is one of five operations.
                fewest, most = operations // (256 + 255) - 1, operations // 256 + 1
                loads = settings.get("PMSFCR_EL1") == LOADS_ONLY
                if loads:
                    self.assertEqual({row["op"] for row in records}, {"LD"})
                    fewest, most = fewest // 10, most // 2
                self.assertTrue(fewest <= len(records) <= most, len(records))
                contents = explained["record"]
                for row in records:
                    self.assertEqual(bool(row["paddr"]), bool(row["vaddr"]) and contents["physical_address"]["value"])
                    self.assertEqual(row["context_el1"], "119" if contents["context_idr1"]["value"] else "")
                    self.assertEqual(row["context_el2"], "85" if contents["context_idr2"]["value"] else "")
                    self.assertEqual(bool(row["ts"]), contents["time_stamp"]["value"] != "None")
        self.assertLessEqual({name for name, _ in found}, {""})  # the code between the functions
        self.assertEqual({row["security"] for row in rows}, {"non-secure"})
        self.assertEqual(int(truth["samples.written"]), len(rows))
        # Profiling is off in loop_before and loop_unsampled, and before and between.
        self.assertTrue(200_000 < int(truth["operations.outside"]) < 200_500, truth["operations.outside"])
        # The page of loop_mapped is a gigabyte higher.
        self.assertEqual({int(row["paddr"], 16) - int(row["vaddr"], 16) for row in rows if row["paddr"]}, {0x40000000})
        # What the comments of the program say: 10 writes, one that EL0 may not make; a barrier; a buffer of 1024 records.
        self.assertEqual((truth["registers.written"], truth["registers.refused"], truth["registers.unread"]), ("10", "1", "0"))
        self.assertEqual(truth["barriers"], "1")
        self.assertEqual(int(truth["buffer-interrupts"]), len(rows) // 1024)
        self.assertIn("the first was PMSCR_EL1 at EL0: UNDEFINED", said)

    def test_the_file_states_the_programming_of_the_program(self):
        program, out = self.build("stated"), self.folder / "stated.data"
        done = run(WAYMARK, "record", "--unit", "spe", "--system", "-c", "65536", "-o", out, "--", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        quality = json.loads(run(WAYMARK, "spe", "quality", out, "--format", "json").stdout)
        self.assertEqual({sampling["interval"] for sampling in quality["sampling"]}, {COMMON["PMSIRR_EL1"]})
        self.assertRegex(quality["run"], r"what the filter leaves out \(.*profiling off for 200,\d\d\d operations, filters that changed\)")
        changed = self.build("changed", LEAVES_TO_EL1, "-DINTERVAL=1024")
        self.assertEqual(run(WAYMARK, "record", "--unit", "spe", "--system", "-o", out, "--", changed).returncode, 0)
        quality = json.loads(run(WAYMARK, "spe", "quality", out, "--format", "json").stdout)
        self.assertEqual([(s["interval"], s["longest_interval"]) for s in quality["sampling"]], [(256, 1024)])
        self.assertIn("interval  256 to 1,024 (it changed)", run(WAYMARK, "spe", "quality", out).stdout)

    def test_a_trap_refuses_what_the_architecture_refuses(self):
        program = self.build("trapped", LEAVES_TO_EL1 | TRAPS)
        out = self.folder / "trapped.data"
        done = run(WAYMARK, "record", "--unit", "spe", "--system", "-c", "256", "-o", out, "--", program)
        self.assertEqual(done.returncode, 1, done.stderr)  # nothing was sampled
        self.assertIn("the first was PMSIRR_EL1 at EL1: TrapToEL2", " ".join(done.stderr.split()))
        explained = self.explained(1, {"MDCR_EL2": LEAVES_TO_EL1 | TRAPS})
        self.assertEqual(explained["levels"][0]["profiling_access"]["value"], "TrapToEL2")

    def test_a_host_profiles_its_programs(self):
        """HCR_EL2.TGE: PMSCR_EL2.E0HSPE decides about EL0, and E2H gives PMSCR_EL2 the name of PMSCR_EL1."""
        program = self.build("host", 0, "-DHOST")
        rows, truth, _ = self.record(program)
        found = self.by_function(program, rows)
        self.assertEqual({name for name, level in found if level == 0} - {""}, {"loop_user"})
        self.assertEqual({level for _, level in found}, {0})
        self.assertEqual((truth["registers.refused"], int(truth["operations.el1"])), ("0", 0))
        settings = {"HCR_EL2": 1 << 34 | 1 << 31 | 1 << 27, "MDCR_EL2": 0, "PMSCR_EL2": 0x21}
        for level in (0, 2):
            self.assertEqual(self.explained(level, settings)["levels"][0]["sampled"]["value"], level == 0)

    def test_every_level_of_a_program_that_does_not_know_the_unit(self):
        done = run(SOURCE / "examples/build", "-o", self.folder, "levels")
        self.assertEqual(done.returncode, 0, done.stderr)
        program = self.folder / "levels-aarch64.elf"
        rows, truth, _ = self.record(program, "--qemu=-icount", "--qemu=shift=7")
        levels = collections.Counter(int(row["el"]) for row in rows)
        self.assertGreater(min(levels[0], levels[1]), 50)
        self.assertEqual(levels[3], 0)
        found = self.by_function(program, rows)
        self.assertGreater(len(found["prime", 0]), 50)
        self.assertEqual({name for name, level in found if level == 0} - {"prime", "fibonacci", "work", "multiply", "first_task", "second_task", "print_number"}, set())
        # EL3 is never profiled, nor is Secure state: all of its instructions are outside.
        self.assertGreaterEqual(int(truth["operations.outside"]), int(truth["operations.el3"]))
        # Registers that leave EL0 alone.
        registers = self.folder / "registers"
        registers.write_text("MDCR_EL2.E2PB 3\nPMSCR_EL1 0x1\n")
        rows, truth, _ = self.record(program, "--registers", registers, "--qemu=-icount", "--qemu=shift=7")
        self.assertEqual({row["el"] for row in rows}, {"0"})
        self.assertEqual({row["ts"] for row in rows}, {""})
        self.assertEqual(int(truth["operations"]) - int(truth["operations.outside"]), int(truth["operations.el0"]))

    def test_mistakes(self):
        program = self.build("mistakes")
        (self.folder / "cut").write_bytes(program.read_bytes()[:100])
        for name, words in (("missing", "there is no such file"), ("cut", "there is no code in it")):
            done = run(WAYMARK, "record", "--unit", "spe", "--system", "-o", self.folder / "none.data", "--", self.folder / name)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, " ".join(done.stderr.split()))
        registers = self.folder / "wrong"
        registers.write_text("TRCCONFIGR 1\n")
        for options, words in ((("--smp", "17"), "the modelled machine has 16 CPUs"),
                               (("--registers", registers), "TRCCONFIGR is not a register that profiling depends on"),
                               (("--sysroot", self.folder), "with --system there are no libraries"),
                               (("--qemu=-d", "--qemu=exec"), "cannot be used with --system")):
            with self.subTest(str(options)):
                _, _, said = self.record(program, *options, status=2)
                self.assertIn(words, " ".join(said.split()))
        for option in ("--registers", "--machine"):
            done = run(WAYMARK, "record", "--unit", "spe", option, registers, "-o", self.folder / "none.data", "--", program)
            self.assertEqual(done.returncode, 2)
            self.assertIn("is only for --system", done.stderr)


if __name__ == "__main__":
    missing = [tool for tool in (CROSS, SYSTEM) if shutil.which(tool) is None]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not installed (Debian packages gcc-aarch64-linux-gnu, qemu-system-arm)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
