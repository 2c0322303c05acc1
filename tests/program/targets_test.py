#!/usr/bin/env python3
"""Scripts of `waymark program`: ten sets of options for each unit, or WAYMARK_OPTION_SETS (long.targets: thirty), each
script run by the interpreter or compiler of its language against registers that only write down what is done to them. What
they do is what --for json says; what Linux's driver makes of its files, by its documentation, is what the registers are to
hold.

    targets_test.py WAYMARK SOURCE_FOLDER [CASE…]
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "support"))
from scratch import HANGS, Folder  # noqa: E402

WAYMARK = pathlib.Path(sys.argv.pop(1)).resolve()
SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
SEED = int(os.environ.get("WAYMARK_SEED", "36"))
COUNT = int(os.environ.get("WAYMARK_OPTION_SETS", "10"))
BASES = {"unit": 0x80010000, "sink": 0x80020000, "funnel": 0x80030000, "replicator": 0x80040000, "unit_cti": 0x80050000,
         "sink_cti": 0x80060000}
COMMANDS = ("start", "stop", "release")
OLD = ("ptm", "etmv3")  # units of Linux's driver etm3x


def option_sets():
    """COUNT sets of options for each unit, the same each time."""
    draw = random.Random(SEED)
    for unit in ("ptm", "etmv3", "etmv4", "ete"):
        for number in range(COUNT):
            options = ["--unit", unit]
            if draw.random() < 0.5:
                options += ["--cycle-accurate"]
                if unit not in OLD and draw.random() < 0.5:
                    options += ["--cycle-threshold", str(draw.randrange(4, 4096))]
            if draw.random() < 0.5:
                options += ["--timestamps"]
            stack = draw.random() < 0.5 and unit != "etmv3"
            if stack:
                options += ["--return-stack"]
            if draw.random() < 0.3 and not stack:
                options += ["--branch-broadcast"]
            if draw.random() < 0.4:
                options += ["--context-id", "4"]
            if draw.random() < 0.5:
                options += ["--sync", str(1 << draw.randrange(8, 12))]
            begin = 0x10000 + 4 * draw.randrange(64)
            if draw.random() < 0.4:
                options += ["--view-range", f"{begin:#x}-{begin + 64:#x}"]
            elif draw.random() < 0.3:
                options += ["--exclude-range", f"{begin:#x}-{begin + 64:#x}"]
            if draw.random() < 0.3:
                options += ["--trigger-at", f"{begin + 8:#x}"]
            options += ["--unit-base", hex(BASES["unit"]), "--trace-id", str(1 + draw.randrange(0x6f))]
            if draw.random() < 0.6:
                kind, size = draw.choice(["etb", "tmc-etb", "tmc-etf", "tmc-etr", "tpiu"]), 1 << draw.randrange(10, 17)
                options += ["--sink", kind, "--sink-base", hex(BASES["sink"])]
                options += ["--port-pins", str(1 + draw.randrange(32))] if kind == "tpiu" else ["--sink-size", str(size)]
                if kind == "tmc-etr":
                    options += ["--buffer-address", "0x90000000"]
                    if size >= 4096 and draw.random() < 0.5:
                        options += ["--scatter-list"]
                if "--trigger-at" in options and kind != "tpiu" and draw.random() < 0.5:
                    options += ["--stop-after-trigger", "512"]
                if "--trigger-at" in options and draw.random() < 0.5:
                    options += ["--cross-trigger", f"{draw.randrange(8)}:{draw.randrange(8)}",
                                "--unit-cti-base", hex(BASES["unit_cti"]), "--sink-cti-base", hex(BASES["sink_cti"])]
            if draw.random() < 0.4:
                options += ["--replicator-output", str(draw.randrange(2)), "--replicator-base", hex(BASES["replicator"])]
            if draw.random() < 0.4:
                options += ["--funnel-port", str(draw.randrange(8)), "--funnel-base", hex(BASES["funnel"])]
            yield f"{unit}-{number}", options
    for number in range(COUNT):
        options = ["--unit", "dpu", "--mode", draw.choice(["task", "flow", "raw", "compressed", "user", "sample"]),
                   "--events", f"{draw.randrange(1, 8)},{draw.randrange(1, 8)}", "--initial", str(draw.randrange(1 << 31)),
                   "--buffer-size", str(32 << draw.randrange(1, 10)), "--buffer-address", hex(0x20000000 + 32 * draw.randrange(1000)),
                   "--unit-base", hex(BASES["unit"])]
        if draw.random() < 0.3:
            options += ["--buffer-mode", "request"]
        yield f"dpu-{number}", options


SETS = list(option_sets())


def run(command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=HANGS, **more)


def program(options, target, *more):
    return run([WAYMARK, "program", "--for", target, *options, *more])


def accesses_of(plan, command):
    """What --for json says of a command: writes as (address, value), waits as (address, mask, value)."""
    components = plan["components"] if command == "start" else plan["components"][::-1]
    out = []
    for component in components:
        for step in component[command]:
            at = component["base"] + step["offset"]
            out.append((at, step["value"]) if step["access"] == "write" else (at, step["mask"], step["value"]))
    return out


class Targets(unittest.TestCase):
    """Each script, by the interpreter of its language."""

    @classmethod
    def setUpClass(cls):
        cls.plans = {}
        for name, options in SETS:
            done = program(options, "json")
            assert done.returncode == 0, (options, done.stderr)
            cls.plans[name] = json.loads(done.stdout)

    def test_json_is_proven(self):
        for name, plan in self.plans.items():
            with self.subTest(name):
                self.assertTrue(plan["proof"]["same_as_record"])
                self.assertGreater(plan["proof"]["trace_bytes"], 0)
                # Accesses go from the buffer to the unit, and each component is stopped before it is written.
                unit = plan["components"][-1]
                self.assertEqual(unit["name"], "unit")
                first_wait = next(i for i, step in enumerate(unit["start"]) if step["access"] == "wait")
                before = [step["register"] for step in unit["start"][:first_wait]]
                self.assertLessEqual(set(before), {"TRCLAR", "TRCOSLAR", "TRCPDCR", "TRCPRGCTLR", "ETMLAR", "ETMOSLAR", "ETMPDCR",
                                                   "ETMCR", "DP_TC"})

    def check(self, target, suffix, log_of):
        with Folder() as name_of_folder:
            folder = pathlib.Path(name_of_folder)
            for name, options in SETS:
                with self.subTest(name):
                    file = folder / f"{name}{suffix}"
                    done = program(options, target, "-o", file)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for command in COMMANDS:
                        expected = accesses_of(self.plans[name], command)
                        self.assertEqual(log_of(folder, file, command), expected, command)

    @unittest.skipUnless(shutil.which("dash"), "dash is not installed")
    def test_devmem(self):
        """A devmem that writes a log, and reads all ones and all zeros in turn, so that each wait ends."""
        def log_of(folder, file, command):
            fake, log = folder / "devmem", folder / "log"
            if not fake.exists():
                fake.write_text('#!/bin/dash\necho "$@" >>"$LOG"\n[ $# = 3 ] && exit\n'
                                'if [ -e "$LOG.ones" ]; then rm "$LOG.ones"; echo 0x00000000; '
                                'else : >"$LOG.ones"; echo 0xFFFFFFFF; fi\n')
                fake.chmod(0o755)
            log.write_text("")
            environment = {"PATH": f"{folder}:{os.environ['PATH']}", "LOG": str(log)}
            done = run(["dash", file, command], env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            waits = re.findall(r"wait_for \"\$(\w+)\" (0x\w+) (0x\w+) (0x\w+)", self.part(file.read_text(), command))
            waits = [(BASES[base] + int(offset, 16), int(mask, 16), int(value, 16)) for base, offset, mask, value in waits]
            out, polled = [], None
            for line in log.read_text().splitlines():
                address, _, *value = line.split()
                if value:
                    out.append((int(address, 16), int(value[0], 16)))
                elif address != polled:
                    out.append(waits.pop(0))
                    self.assertEqual(out[-1][0], int(address, 16))
                polled = None if value else address
            self.assertEqual(waits, [])
            return out
        self.check("devmem", ".sh", log_of)

    @staticmethod
    def part(text, command):
        """The lines of one command of a shell script."""
        return re.search(rf"^{command}\)\n(.*?)^    ;;", text, re.S | re.M).group(1)

    @unittest.skipUnless(shutil.which("tclsh"), "tclsh is not installed")
    def test_openocd(self):
        """OpenOCD's commands, in Tcl, as procedures that write down."""
        def log_of(folder, file, command):
            stub = folder / "stub.tcl"
            stub.write_text("""
proc mww {address value} { puts "[expr {$address}] [expr {$value}]" }
proc read_memory {address width count} { error "only waymark_wait reads" }
source [lindex $argv 0]
set body [info body waymark_wait]
foreach word {mask value} { if {[string first $word $body] < 0} { error "no $word" } }
set turn 0
proc read_memory {address width count} {
    global turn
    if {$width != 32 || $count != 1} { error "a word" }
    set turn [expr {!$turn}]
    return [expr {$turn ? 0xffffffff : 0}]
}
rename waymark_wait really_wait
proc waymark_wait {base offset mask value name} {
    puts "[expr {$base + $offset}] [expr {$mask}] [expr {$value}]"
    really_wait $base $offset $mask $value $name
}
waymark_[lindex $argv 1]
""")
            done = run(["tclsh", stub, file, command])
            self.assertEqual(done.returncode, 0, done.stderr)
            return [tuple(int(word) for word in line.split()) for line in done.stdout.splitlines()]
        self.check("openocd", ".tcl", log_of)

    @unittest.skipUnless(shutil.which("cc"), "no C compiler is installed")
    def test_csal(self):
        """The library's functions, in C, as functions that write a log."""
        with Folder() as name_of_folder:
            folder = pathlib.Path(name_of_folder)
            (folder / "csaccess.h").write_text("""
typedef void *cs_device_t;
typedef unsigned long cs_physaddr_t;
cs_device_t cs_device_register(cs_physaddr_t address);
unsigned int cs_device_read(cs_device_t device, unsigned int offset);
int cs_device_write_only(cs_device_t device, unsigned int offset, unsigned int data);
""")
            main = ['#include <stdio.h>', '#include <string.h>', '#include "csaccess.h"',
                    'static cs_physaddr_t last; static unsigned turn;',
                    'cs_device_t cs_device_register(cs_physaddr_t a) { return (char *)0 + a; }',
                    'unsigned int cs_device_read(cs_device_t d, unsigned int o) { cs_physaddr_t at = (cs_physaddr_t)d + o;',
                    '  if (at != last) { printf("%lu\\n", at); } last = at; turn = ~turn; return turn; }',
                    'int cs_device_write_only(cs_device_t d, unsigned int o, unsigned int v) {',
                    '  last = 0; return printf("%lu %u\\n", (cs_physaddr_t)d + o, v) < 0; }']
            calls = []
            for name, options in SETS:
                prefix = name.replace("-", "_")
                done = program(options, "csal")
                self.assertEqual(done.returncode, 0, done.stderr)
                text = done.stdout
                # Several waits in one program.
                for word in ("waymark_wait", *(f"waymark_{command}" for command in COMMANDS)):
                    text = re.sub(rf"\b{word}\b", f"{prefix}_{word}", text)
                text += "".join(f"#undef WAYMARK_{base.upper()}\n" for base in BASES)
                (folder / f"{prefix}.h").write_text(text)
                main.append(f'#include "{prefix}.h"')
                for command in COMMANDS:
                    calls.append(f'  printf("{name} {command}\\n"); last = 0; if ({prefix}_waymark_{command}() != 0) return 1;')
            main += ["int main(void) {", *calls, "  return 0;", "}"]
            (folder / "main.c").write_text("\n".join(main) + "\n")
            done = run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", folder, "-o", folder / "main", folder / "main.c"])
            self.assertEqual(done.returncode, 0, done.stderr)
            done = run([folder / "main"])
            self.assertEqual(done.returncode, 0, done.stderr)
            logs, log = {}, None
            for line in done.stdout.splitlines():
                words = line.split()
                if not words[0].isdigit():
                    log = logs.setdefault(tuple(words), [])
                else:
                    log.append(tuple(int(word) for word in words))
            for name, _ in SETS:
                for command in COMMANDS:
                    # A wait shows only its address.
                    expected = [a if len(a) == 2 else a[:1] for a in accesses_of(self.plans[name], command)]
                    merged = [a for i, a in enumerate(expected) if len(a) == 2 or i == 0 or expected[i - 1] != a]
                    self.assertEqual(logs[(name, command)], merged, (name, command))

    def test_t32(self):
        """No interpreter of PRACTICE exists here: the lines are compared with its documented forms."""
        write = re.compile(r"  Data\.Set &class:\(&(\w+)\+(0x[0-9a-f]+)\) %Long (0x[0-9a-f]+) ; .+$")
        wait = re.compile(r"  WAIT \(\(Data\.Long\(&class:\(&(\w+)\+(0x[0-9a-f]+)\)\)&(0x[0-9a-f]+)\)==(0x[0-9a-f]+)\) 1\.s ; .+$")

        def log_of(_folder, file, command):
            text = file.read_text()
            self.assertEqual(text.count("\n(\n"), text.count("\n)\n"))
            part = re.search(rf'^IF "&command"=="{command}"\n\(\n(.*?)^\)$', text, re.S | re.M).group(1)
            out = []
            for line in part.splitlines():
                if line.startswith("  ;"):
                    continue
                found = write.match(line) or wait.match(line)
                self.assertTrue(found, line)
                base, offset, *numbers = found.groups()
                out.append((BASES[base] + int(offset, 16), *(int(n, 16) for n in numbers)))
            return out
        self.check("t32", ".cmm", log_of)


class Linux(unittest.TestCase):
    """Linux's drivers and perf."""

    # Files of the driver for ETMv4 and ETE (Documentation/trace/coresight/coresight-etm4x-reference.rst): bits of `mode`.
    MODE = {4: 3, 5: 4, 6: 6, 7: 7, 11: 11, 12: 12}  # -> bits of TRCCONFIGR
    # Files of the driver for ETMv3 and PTM: bits of `mode` -> bits of ETMCR.
    MODE_PTM = {1: 1 << 12, 3: 1 << 28, 4: 3 << 14, 5: 1 << 8, 6: 1 << 29}

    def registers_of(self, unit, writes):
        """The registers that the driver programs."""
        r, index, selector = {}, 0, 0
        for file, value in writes:
            numbers = [int(word, 0) for word in value.split()]
            if file == "addr_idx":
                index = numbers[0]
            elif file == "res_idx":
                selector = numbers[0]
            elif unit in OLD:
                if file == "mode":
                    # The driver itself enables the port, which a PTM does not have.
                    r["ETMCR"] = (1 << 11 if unit == "etmv3" else 0) | sum(to for bit, to in self.MODE_PTM.items() if numbers[0] >> bit & 1)
                    r["ETMTECR1"] = (numbers[0] & 1) << 24
                elif file == "sync_freq":
                    r["ETMSYNCFR"] = numbers[0]
                elif file == "addr_acctype":
                    r[f"ETMACTR{index + 1}"] = numbers[0]
                elif file == "addr_range":
                    r[f"ETMACVR{index + 1}"], r[f"ETMACVR{index + 2}"] = numbers
                    r["ETMTECR1"] |= 1 << index // 2
                elif file == "addr_single":
                    r[f"ETMACVR{index + 1}"] = numbers[0]
                elif file == "trigger_event":
                    r["ETMTRIGGER"] = numbers[0]
            elif file == "mode":
                r["TRCVICTLR"] = 1 | (0x200 if numbers[0] >> 27 & 1 else 0)
                r["TRCCONFIGR"] = 1 | sum(1 << to for bit, to in self.MODE.items() if numbers[0] >> bit & 1)
            elif file == "syncfreq":
                r["TRCSYNCPR"] = numbers[0]
            elif file == "cyc_threshold":
                r["TRCCCCTLR"] = numbers[0]
            elif file == "addr_range":
                r[f"TRCACVR{index}[31:0]"], r[f"TRCACVR{index + 1}[31:0]"] = numbers[:2]
                r["TRCVIIECTLR"] = r.get("TRCVIIECTLR", 0) | 1 << index // 2 + (16 if numbers[2] else 0)
            elif file == "addr_single":
                r[f"TRCACVR{index}[31:0]"] = numbers[0]
            elif file == "res_ctrl":
                r[f"TRCRSCTLR{selector}"] = numbers[0]
            elif file == "event":
                r["TRCEVENTCTL0R"] = numbers[0]
            elif file == "event_instren":
                r["TRCEVENTCTL1R"] = numbers[0]
        return r

    def test_sysfs(self):
        """The files lead to the registers of the plan; registers without a file are refused by name."""
        done_sets = 0
        with Folder() as name_of_folder:
            folder = pathlib.Path(name_of_folder)
            for name, options in SETS:
                with self.subTest(name):
                    unit = options[1]
                    done = program(options, "sysfs")
                    if unit == "dpu":
                        self.assertEqual((done.returncode, "no driver" in done.stderr), (2, True), done.stderr)
                        continue
                    # A TMC's driver never stops at a trigger, an ETB's always does.
                    stops, etb = "--stop-after-trigger" in options, "etb" in options
                    # The trigger of an ETMv4 or ETE reaches the bus by a register without a file in sysfs.
                    if "--trigger-at" in options and (stops != etb or stops and unit not in OLD or "--cross-trigger" in options):
                        self.assertEqual(done.returncode, 2, done.stderr)
                        self.assertIn("cannot express", done.stderr)
                        continue
                    self.assertEqual(done.returncode, 0, done.stderr)
                    done_sets += 1
                    for device in ("etm0", "tmc0"):
                        (folder / device).mkdir(exist_ok=True)
                    script = folder / "program.sh"
                    script.write_text(done.stdout)
                    environment = {"PATH": os.environ["PATH"], "devices": str(folder), "unit": "etm0", "sink": "tmc0"}
                    ran = run(["sh", "-x", script, "start"], env=environment)
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                    writes = re.findall(r"^\+ put etm0/(\w+) '?([^'\n]*)'?$", ran.stderr, re.M)
                    self.assertEqual(writes[0], ("reset", "1"))
                    self.assertEqual(writes[-1], ("enable_source", "1"))
                    self.assertEqual((folder / "tmc0/enable_sink").read_text(), "1\n")
                    if stops:
                        self.assertEqual((folder / "tmc0/trigger_cntr").read_text(), f"{512 // 4 - 1:#x}\n")
                    plan = json.loads(program(options, "json").stdout)
                    wanted = {}
                    for step in plan["components"][-1]["start"]:
                        if step["access"] == "write":
                            wanted[step["register"]] = step["value"]
                    for register, value in self.registers_of(unit, writes).items():
                        have = wanted[register]
                        if register == "TRCCONFIGR":
                            have |= 1  # RES1
                        self.assertEqual(value, have, register)
                    ran = run(["sh", script, "stop"], env=environment)
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                    self.assertEqual((folder / "etm0/enable_source").read_text(), "0\n")
        self.assertGreater(done_sets, 2 * COUNT)

    def test_perf(self):
        """Terms that the driver's event has; settings that perf cannot program are refused by name."""
        known = {"cycacc", "cc_threshold", "timestamp", "retstack", "branch_broadcast", "contextid"}
        done_sets = 0
        for name, options in SETS:
            with self.subTest(name):
                done = program(options, "perf")
                if options[1] == "dpu":
                    self.assertEqual((done.returncode, "no driver" in done.stderr), (2, True), done.stderr)
                    continue
                unknown = ["--exclude-range", "--view-range", "--trigger-at", "--sync", "--stop-after-trigger"]
                # The driver of a PTM refuses these terms, and then traces without the other terms.
                unknown += ["--context-id", "--branch-broadcast"] if options[1] in OLD else []
                cannot = [o for o in unknown if o in options]
                if cannot:
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertTrue(any(o in done.stderr for o in cannot), done.stderr)
                    continue
                self.assertEqual(done.returncode, 0, done.stderr)
                done_sets += 1
                self.assertEqual(run(["sh", "-n"], input=done.stdout).returncode, 0)
                terms = re.search(r"cs_etm/(.*?)/u", done.stdout).group(1)
                names = {term.split("=")[0] for term in terms.split(",") if term}
                self.assertLessEqual(names, known)
                self.assertEqual("cycacc" in names, "--cycle-accurate" in options)
                self.assertEqual("retstack" in names, "--return-stack" in options)
        self.assertGreater(done_sets, COUNT // 5)


def spe_option_sets():
    """COUNT events of SPE, the same each time."""
    draw = random.Random(SEED)
    for _ in range(COUNT):
        terms = []
        for term, values in (("ts_enable", (0, 1)), ("pa_enable", (0, 1)), ("jitter", (0, 1)), ("load_filter", (1,)), ("store_filter", (1,)),
                             ("branch_filter", (1,)), ("min_latency", (5, 40)), ("event_filter", (2, 4, 0x80)), ("inv_event_filter", (0x20,)),
                             ("inv_data_src_filter", (0xff,)), ("simd_filter", (1,)), ("load_filter_mask", (1,))):
            if draw.random() < 0.3:
                terms.append(f"{term}={draw.choice(values)}")
        yield ["--unit", "spe", "-e", f"arm_spe/{','.join(terms)}/", "-c", str(256 << draw.randrange(5)),
               "--buffer-size", str(4096 << draw.randrange(6))]


class Profiler(unittest.TestCase):
    """SPE: C is compiled for AArch64, and all three targets agree."""
    COMPILER = "aarch64-linux-gnu-gcc"

    @unittest.skipUnless(shutil.which(COMPILER), "no compiler for AArch64")
    def test_c(self):
        with Folder() as name_of_folder:
            folder = pathlib.Path(name_of_folder)
            for options in spe_option_sets():
                with self.subTest(options):
                    options = [*options, "--buffer-address", "0xffff000080000000"]
                    done = program(options, "c")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    source = folder / "profile.c"
                    source.write_text(done.stdout)
                    built = run([self.COMPILER, "-O2", "-Wall", "-Wextra", "-Werror", "-S", source, "-o", folder / "profile.s"])
                    self.assertEqual(built.returncode, 0, built.stderr)
                    plan = json.loads(program(options, "json").stdout)
                    self.assertTrue(plan["proof"]["same_as_record"])
                    # The compiled code has the barriers and the registers of the plan, in order.
                    made = re.findall(r"^\t(msr|isb|dsb|hint|mrs)\b *(?:x\d+, *)?(\w*)", (folder / "profile.s").read_text(), re.M)
                    registers = [name.upper() for kind, name in made if kind == "msr"]
                    wanted = [step["encoding"] for part in ("start", "stop") for step in plan[part] if step["access"] == "write"]
                    self.assertEqual(registers, wanted)
                    for kind, barrier in (("isb", "ISB"), ("dsb", "DSB NSH"), ("hint", "PSB CSYNC")):
                        count = sum(step.get("barrier") == barrier for part in ("start", "stop") for step in plan[part])
                        self.assertEqual(sum(found == kind for found, _ in made), count)

    def test_perf(self):
        known = {"ts_enable", "pa_enable", "jitter", "branch_filter", "load_filter", "store_filter", "discard", "min_latency", "event_filter",
                 "inv_event_filter", "inv_data_src_filter"}
        known |= {f"{kind}_filter{mask}" for kind in ("simd", "float") for mask in ("", "_mask")}
        known |= {f"{kind}_filter_mask" for kind in ("branch", "load", "store")}
        for options in spe_option_sets():
            with self.subTest(options):
                done = program(options, "perf", "./a program")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(run(["sh", "-n"], input=done.stdout).returncode, 0)
                terms, period = re.search(r"-e arm_spe_0/(.*?)/u -c (\d+) ", done.stdout).groups()
                got = dict(term.split("=") for term in terms.split(",") if term)
                self.assertLessEqual(set(got), known)
                wanted = dict(term.split("=") for term in options[3].split("/")[1].split(",") if term)
                for term, value in {"ts_enable": "1", "jitter": "1", **wanted}.items():
                    self.assertEqual(int(got.get(term, "0"), 0), int(value), term)
                self.assertEqual(period, options[5])
                self.assertTrue(done.stdout.endswith("-- './a program' \"$@\"\n"))

    def test_messages(self):
        for options, message in [
                (["--for", "devmem", "--buffer-address", "0x1000"], "only software on the core itself writes"),
                (["--for", "c"], "give --buffer-address"),
                (["--for", "c", "--buffer-address", "0x1004"], "multiple of 0x1000"),
                (["--for", "perf", "--cycle-accurate"], "--cycle-accurate is not for --unit spe"),
                (["--for", "perf", "--sink", "etb"], "--sink is not for --unit spe"),
                (["--for", "perf", "-e", "arm_spe/nothing=1/"], "no term nothing")]:
            with self.subTest(options):
                done = run([WAYMARK, "program", "--unit", "spe", *options])
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(message, done.stderr)
        done = run([WAYMARK, "program", "--unit", "ptm", "--for", "c"])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("for --unit spe", done.stderr)
        for options, message in [
                (["--unit", "ptm", "--period", "512"], "--period is not for --unit ptm; it is for --unit spe"),
                (["--unit", "ete", "--mode", "task"], "--mode is not for --unit ete; it is for --unit dpu"),
                (["--unit", "dpu", "--sink", "etb"], "--sink is not for --unit dpu"),
                (["--unit", "dpu"], "give --buffer-address"),
                (["--unit", "dpu", "--buffer-address", "0x10"], "multiple of 32"),
                (["--unit", "spe", "--unit-base", "0x1000"], "--unit-base is not for --unit spe")]:
            with self.subTest(options):
                done = run([WAYMARK, "program", "--for", "json", *options])
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(message, done.stderr)


class Mistakes(unittest.TestCase):
    """Messages for users' mistakes."""

    def test_messages(self):
        with Folder() as folder:
            registers = pathlib.Path(folder) / "registers.txt"
            registers.write_text("TRCVICTLR.EXLEVEL_NS 1\n")
            for target, status in (("sysfs", 2), ("perf", 2), ("json", 0)):
                done = run([WAYMARK, "program", "--unit", "etmv4", "--for", target, "--registers", registers])
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual("given by name" in done.stderr, status != 0)
        for options, status, message in [
                (["--unit", "etm5", "--for", "json"], 2, "etmv3"),
                (["--unit", "etmv3", "--for", "json", "--return-stack"], 2, "no return stack"),
                (["--unit", "ete", "--for", "devmem", "--trigger-at", "main"], 2, "name the PROGRAM that has this symbol"),
                (["--unit", "ete", "--for", "devmem", "--sink", "tmc-etr"], 2, "give --buffer-address"),
                (["--unit", "ete", "--for", "devmem", "--sink", "etb", "--buffer-address", "0x1000"], 2, "only for --sink tmc-etr"),
                (["--unit", "ete", "--for", "devmem", "--sink-size", "64"], 2, "is only for --sink"),
                (["--unit", "ete", "--for", "devmem", "--sink", "tpiu", "--sink-size", "64"], 2, "is for trace buffers"),
                (["--unit", "ete", "--for", "devmem", "--sink", "tpiu", "--port-pins", "33"], 2, "give 1 to 32"),
                (["--unit", "ete", "--for", "devmem", "--sink", "etb", "--port-pins", "4"], 2, "only for --sink tpiu"),
                (["--unit", "ete", "--for", "devmem", "--sink", "etb", "--cross-trigger", "4:1"], 2, "nothing triggers"),
                (["--unit", "ete", "--for", "devmem", "--trigger-at", "0x80", "--cross-trigger", "4:1"], 2, "name it by --sink"),
                (["--unit", "ete", "--for", "devmem", "--sink", "etb", "--trigger-at", "0x80", "--cross-trigger", "4"], 2, "as in 4:1"),
                (["--unit", "ete", "--for", "devmem", "--sink", "etb", "--trigger-at", "0x80", "--cross-trigger", "8:1"], 2, "0 to 7"),
                (["--unit", "ete", "--for", "devmem", "--sink-cti-base", "0x1000"], 2, "only for --cross-trigger"),
                (["--unit", "ete", "--for", "devmem", "--sink", "etb", "--stop-after-trigger", "64"], 2, "nothing triggers"),
                # An unsuitable target is refused before an option is requested that it does not need.
                (["--unit", "spe", "--for", "sysfs"], 2, "choose --for perf, c or json"),
                (["--unit", "dpu", "--for", "perf"], 2, "choose another target"),
                (["--unit", "ete", "--for", "json", "--trace-id", "0"], 2, "sources have 0x01 to 0x6f"),
                (["--unit", "ptm", "--for", "json", "--return-stack", "--branch-broadcast"], 2, "exclude each other"),
                (["--unit", "ete", "--for", "perf", "--vmid"], 2, "--vmid"),
                (["--unit", "ptm", "--for", "sysfs", "--sink", "etb", "--trigger-at", "0x8000"], 2, "always stops it"),
                (["--unit", "ptm", "--for", "json", "--vmid"], 2, "traces no VMIDs"),
                (["--unit", "ptm", "--for", "json", "--view-range", "0x100000000-0x100000100"], 2, "have 32 bits"),
                (["--unit", "ete", "--for", "json", "--unit-base", "0x1001"], 2, "multiple of 0x1000"),
                (["--unit", "ete", "--for", "perf", "--view-range", "0x100-0x200"], 2, "it takes functions of PROGRAM"),
                (["--unit", "ete", "--for", "json", "/nowhere", "--trigger-at", "main"], None, "/nowhere")]:
            with self.subTest(options):
                done = run([WAYMARK, "program", *options])
                if status is not None:
                    self.assertEqual(done.returncode, status, done.stderr)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stdout, "")
                self.assertIn(message, done.stderr)

    def test_symbols(self):
        """Functions of a program that is linked to a fixed place."""
        compiler = shutil.which("aarch64-linux-gnu-gcc")
        if compiler is None:
            self.skipTest("aarch64-linux-gnu-gcc is not installed")
        with Folder() as name_of_folder:
            folder = pathlib.Path(name_of_folder)
            (folder / "p.c").write_text("int work(int n) { return n + 1; }\nvoid fault(void) {}\nint main(void) { fault(); return work(0); }\n")
            done = run([compiler, "-static", "-no-pie", "-o", folder / "p", folder / "p.c"])
            self.assertEqual(done.returncode, 0, done.stderr)
            symbols = {}
            for line in run(["aarch64-linux-gnu-nm", "-S", folder / "p"]).stdout.splitlines():
                words = line.split()
                if len(words) == 4:
                    symbols[words[3]] = (int(words[0], 16), int(words[1], 16))
            done = run([WAYMARK, "program", "--unit", "etmv4", "--view-range", "work", "--trigger-at", "fault", "--for", "json",
                        folder / "p"])
            self.assertEqual(done.returncode, 0, done.stderr)
            steps = {s["register"]: s["value"] for s in json.loads(done.stdout)["components"][-1]["start"]}
            first, size = symbols["work"]
            self.assertEqual(steps["TRCACVR0[31:0]"], first)
            self.assertEqual(steps["TRCACVR1[31:0]"], first + size - 1)
            self.assertEqual(steps["TRCACVR2[31:0]"], symbols["fault"][0])
            done = run([WAYMARK, "program", "--unit", "etmv4", "--view-range", "work", "--for", "perf", folder / "p"])
            self.assertIn(f"--filter 'filter work @{folder / 'p'}'", done.stdout)
            # The ELF file is an input.
            done = run([WAYMARK, "program", "--unit", "etmv4", "--view-range", "work", "--for", "json", "-o", folder / "p",
                        folder / "p"])
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual((folder / "p").read_bytes()[:4], b"\x7fELF")


if __name__ == "__main__":
    unittest.main(verbosity=2)
