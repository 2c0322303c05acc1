#!/usr/bin/env python3
"""The right program is found for bare recordings of every unit in every setting, and no setting is wrongly proven.

    settings_test.py WAYMARK SOURCE MADE_ETM4

Generated programs (pairs_test.py) run under QEMU, each recorded by a unit with random settings: core, cycle counts and their
threshold, timestamps, Context IDs, return stack, branch broadcast, speculation, distance of synchronisations. The recorder
makes no trace of an ETMv4 beside a Cortex-M, and no Q elements: MADE_ETM4 (made_etm4.cc) makes them of what a recording of
the MTB, or of an ETMv4, shows. What is left of a recording is its bytes: of one source, in frames, or a part of them. doctor gets the program that ran, half of the time at
an address that is some pages off. The environment variable WAYMARK_RECORDINGS sets the number of recordings; without it, a
few are made. WAYMARK_SEED (1) decides programs and settings.

99 % of the programs must be found; no other address may be reported as agreeing; no setting called proven may be wrong.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from cortex_m import build as build_m  # noqa: E402
from dumps_test import deformat, frames_of  # noqa: E402
from pairs_test import PAGE, PATHS_TO_PROVE, PREFIXES, WAYMARK, Program, build, run, source  # noqa: E402
from scratch import Folder  # noqa: E402

RECORDINGS = int(os.environ.get("WAYMARK_RECORDINGS") or 20)
SEED = int(os.environ.get("WAYMARK_SEED") or 1)
MADE_ETM4 = pathlib.Path(sys.argv[3]).resolve()
UNITS = {"arm": ["ptm"], "aarch64": ["etmv4", "ete", "etmv4-q", "ete-q"], "m": ["etmv4-m"]}
TITLES = {"ptm": "Program Flow Trace (PTM)", "etmv4": "ETMv4 and ETE instruction trace", "ete": "ETMv4 and ETE instruction trace"}
# The generated functions in Thread mode, with SVC and SysTick.
CORTEX_M = r"""
#define REG(a) (*(volatile unsigned*)(a))
static volatile unsigned ticks, calls;
void tick(void) { ticks += sink(ticks) + 1; }
void supervisor(void) { calls += sink(calls) & 3; }
void reset(void) {
    REG(0xE000E014) = 1999; REG(0xE000E018) = 0; REG(0xE000E010) = 7;
    run();
    unsigned b[2] = {0x20026, 0};
    register unsigned r0 __asm__("r0") = 0x20;
    register void* r1 __asm__("r1") = b;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    for (;;) {}
}
void fault(void) { for (;;) {} }
extern unsigned stack_top;
__attribute__((section(".vectors"), used)) void* const vectors[16] = {
    &stack_top, (void*)reset, 0, (void*)fault, 0, 0, 0, 0, 0, 0, 0, (void*)supervisor, 0, 0, 0, (void*)tick};
"""
LEAST_BYTES = 4096  # of a part; shorter ones may lack a proof for no fault of doctor's

Recording = collections.namedtuple("Recording", "program unit options how trace given facts")


def settings(draw, unit):
    """Options of the recorder, and the statement expected from doctor on each setting."""
    yes = lambda likelihood=0.5: draw.random() < likelihood  # noqa: E731
    options, facts = [], {}

    def flag(option, fact, on="yes", off="no", likelihood=0.5):
        given = yes(likelihood)
        if given:
            options.append(option)
        facts[fact] = on if given else off
        return given

    cycles = flag("--cycle-accurate", "cycle counts")
    size = draw.choice((0, 0, 1, 2, 4) if unit == "ptm" else (0,) if unit == "etmv4-m" else (0, 4))
    options.append(f"--context-id={size}")
    facts["Context ID"] = f"{size} byte{'s' if size > 1 else ''}" if size else "not traced"
    options.append(f"--sync={draw.choice((256, 512, 1024, 2048))}")
    stack = flag("--return-stack", "return stack")
    if unit == "ptm":
        options.append(f"--core={draw.choice(('cortex-a9', 'cortex-a15'))}")
        if yes():
            options.append("--timestamps")
        return options, facts
    flag("--timestamps", "timestamps")
    facts["Q elements"] = "yes" if unit.endswith("-q") else "no"
    facts["profile"] = "M" if unit == "etmv4-m" else "A"
    facts["unit"] = "ETE" if unit.startswith("ete") else "ETMv4"
    if not stack:
        flag("--branch-broadcast", "branch broadcast", likelihood=0.3)
    if cycles and yes():
        options.append(f"--cycle-threshold={draw.choice((8, 50, 400))}")
    if yes():
        options += [f"--speculation={draw.choice((2, 4, 16, 64, 256))}", f"--speculation-seed={draw.randint(1, 999)}"]
        facts["speculation"] = "yes"
    else:
        facts["speculation"] = "no"
    return options, facts


# Options of the recorder, and the settings of MADE_ETM4 that are the same.
MADE = {"--cycle-accurate": "cycles=4", "--cycle-threshold": "cycles", "--timestamps": "timestamps", "--context-id=4": "context-id",
        "--return-stack": "return-stack", "--branch-broadcast": "broadcast", "--speculation": "speculation", "--sync": "sync",
        "--speculation-seed": "seed"}


def made_setting(option):
    name, _, value = option.partition("=")
    return MADE.get(option) or (f"{MADE[name]}={value}" if name in MADE else None)


def build_cortex_m(folder, number, draw):
    """A program for a Cortex-M33 that ran once, with the recording of its MTB."""
    text = source(draw).replace("*const volatile p", "*const p")  # in flash memory: nothing fills in variables
    functions = text[:text.index("#ifdef BARE")]
    rounds = text[text.index("int main(void) {"):text.index("    char text[17];")].replace("int main(void)", "static void run(void)")
    rounds = rounds.replace("++i) {", "++i) { if ((i & 3) == 1) __asm__ volatile(\"svc 1\" ::: \"memory\");") + "    sink(s);\n}\n"
    path = build_m(folder, "m33", f"m{number}", functions + rounds + CORTEX_M, "-w", draw.choice(("-O0", "-O1", "-O2", "-Os")))
    out = folder / f"m{number}.out"
    done = run(WAYMARK, "record", "-q", "--unit", "mtb", "--mtb-size", 1 << 24, "-o", out, "--", path)
    assert done.returncode == 0, done.stderr.decode()
    return Program(path.name, "m", "bare", path, 0, out, None, None)


def what_ran(capture):
    """The lines of a recording in the form that MADE_ETM4 reads."""
    done = run(WAYMARK, "flow", capture, "--format", "tsv")
    assert done.returncode == 0, done.stderr.decode()
    head, *rows = (line.split("\t") for line in done.stdout.decode().splitlines())
    lines = []
    for row in (dict(zip(head, r)) for r in rows):
        if row["element"] == "range":
            lines.append(f"range {row['start']} {row['end']} {row['atom'] if row['atom'] in ('E', 'N') else '-'}")
        elif row["element"] == "exception" and row["target"]:
            lines.append(f"exception {row['detail']} {row['start']} {row['target']}")
        elif row["element"] == "exception_return":
            lines.append("return")
    return "\n".join(lines).encode()


class Settings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Folder()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        kinds = [(machine, kind) for machine in PREFIXES for kind in ("static", "bare")] + [("m", "bare")]
        count = 10 if RECORDINGS < 100 else 40
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            made = []
            for i in range(count):
                machine, kind = kinds[i % len(kinds)]
                draw = random.Random(SEED * 1000 + i)
                made.append(pool.submit(build_cortex_m, cls.folder, i, draw) if machine == "m" else
                            pool.submit(build, cls.folder, i, machine, kind, draw))
            cls.programs = [m.result() for m in made]

    def record(self, number):
        draw = random.Random(SEED * 100000 + number)
        program = self.programs[number % len(self.programs)]
        unit = draw.choice(UNITS[program.machine])
        options, facts = settings(draw, unit)
        folder = self.folder / f"recording{number}"
        if unit in TITLES:
            done = run(WAYMARK, "record", "--from-start", "-q", "--unit", unit, *options, "-o", folder, "--", program.path)
            self.assertEqual(done.returncode, 0, f"{unit} {options}: {done.stderr.decode()}")
            frames = (folder / "trace.bin").read_bytes()
            shutil.rmtree(folder)
        else:
            kind, _, more = unit.partition("-")
            capture = program.trace
            if more == "q":
                capture = folder
                run(WAYMARK, "record", "--from-start", "-q", "--unit", "etmv4", "-o", folder, "--", program.path)
            extra = [*(["ete"] if kind == "ete" else []), f"q={draw.choice((2, 8, 32))}" if more == "q" else "m"]
            done = run(MADE_ETM4, program.path, *extra, *filter(None, map(made_setting, options)), input=what_ran(capture))
            self.assertEqual(done.returncode, 0, f"{unit} {options}")
            frames = frames_of(done.stdout)
            shutil.rmtree(folder, ignore_errors=True)
        how = draw.choice(("source", "frames", "part"))
        data = deformat(frames) if how != "frames" else frames
        if how == "part" and len(data) > 2 * LEAST_BYTES:
            at = draw.randrange(len(data) - LEAST_BYTES)
            data = data[at:at + max(LEAST_BYTES, len(data) // 4)]
        trace = self.folder / f"trace{number}.bin"
        trace.write_bytes(data)
        given = program.bias
        if draw.random() < 0.5:
            given = (given + PAGE * draw.choice((1, 2, 16, 100, 4321))) & (0xffffffff if program.machine != "aarch64" else 0xffffffffffffffff)
        return Recording(program, unit, options, how, trace, given, facts)

    def examine(self, recording, given=None):
        done = run(WAYMARK, "doctor", recording.trace, "--format", "json", "--image",
                   f"{recording.program.path}@{recording.given if given is None else given:#x}")
        self.assertIn(done.returncode, (0, 1), done.stderr.decode())
        return json.loads(done.stdout)

    def judge(self, number):
        """Sentences on wrong, missed and too short results, and counts of settings by certainty."""
        recording = self.record(number)
        report = self.examine(recording)
        program = recording.program
        line = f"{number}: {recording.unit} {' '.join(recording.options)}, {recording.how}, {program.name}@{recording.given:#x}"
        wrong, missed, short, certain = [], [], [], collections.Counter()
        found = [int(v["argument"].rpartition("@")[2], 0) for v in report["images"] if v["verdict"] in ("agrees", "agrees elsewhere")]
        protocols = {s["protocol"] for s in report["sources"]}
        if protocols != {TITLES[recording.unit.partition("-")[0]]}:
            missed.append(f"{line}: recognised {protocols}")
        elif any(address != program.bias for address in found):
            wrong.append(f"{line}: agrees at {found}")
        elif not found:
            (there,) = self.examine(recording, program.bias)["images"]
            (short if there["trial"]["confirmed"] < PATHS_TO_PROVE else missed).append(f"{line}: {report['images']}")
        for source in report["sources"]:
            for fact in source["facts"]:
                if fact["what"] in recording.facts:
                    right = fact["value"] == recording.facts[fact["what"]]
                    certain[fact["certainty"], right] += 1
                    if fact["proven"] and not right:
                        wrong.append(f"{line}: {fact['what']} {fact['value']}, {fact['proof']}")
        recording.trace.unlink()
        return wrong, missed, short, certain

    def test_the_right_program_is_found_in_every_setting(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            judged = list(pool.map(self.judge, range(RECORDINGS)))
        wrong, missed, short = (sum((j[i] for j in judged), []) for i in range(3))
        certain = sum((j[3] for j in judged), collections.Counter())
        print(f"{RECORDINGS} recordings of {len(self.programs)} programs (seed {SEED}): {len(missed)} missed, {len(short)} too short "
              f"for a proof, {len(wrong)} wrong")
        for (certainty, right), n in sorted(certain.items()):
            print(f"{n:5} settings {certainty:8} {'right' if right else 'wrong'}")
        self.assertFalse(wrong, "\n".join(["wrong:", *wrong]))
        self.assertLessEqual(len(short), RECORDINGS // 10, "\n".join(["too short:", *short]))
        self.assertLessEqual(len(missed), RECORDINGS // 100, "\n".join(["missed:", *missed]))


if __name__ == "__main__":
    for prefix in PREFIXES.values():
        if shutil.which(f"{prefix}gcc") is None:
            print(f"SKIPPED: {prefix}gcc is missing (Debian package gcc-{prefix[:-1]})")
            sys.exit(77)
    del sys.argv[1:]
    unittest.main(verbosity=2)
