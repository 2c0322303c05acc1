#!/usr/bin/env python3
"""The right program is found for bare recordings of every unit in every setting, and no setting is wrongly proven.

    settings_test.py WAYMARK SOURCE

Generated programs (pairs_test.py) run under QEMU, each recorded by a unit with random settings: core, cycle counts and their
threshold, timestamps, Context IDs, return stack, branch broadcast, speculation, distance of synchronisations. What is left of
a recording is its bytes: of one source, in frames, or a part of them. doctor gets the program that ran, half of the time at
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
from dumps_test import deformat  # noqa: E402
from pairs_test import PAGE, PATHS_TO_PROVE, PREFIXES, WAYMARK, build, run  # noqa: E402
from scratch import Folder  # noqa: E402

RECORDINGS = int(os.environ.get("WAYMARK_RECORDINGS") or 10)
SEED = int(os.environ.get("WAYMARK_SEED") or 1)
UNITS = {"arm": ["ptm"], "aarch64": ["etmv4", "ete"]}
TITLES = {"ptm": "Program Flow Trace (PTM)", "etmv4": "ETMv4 and ETE instruction trace", "ete": "ETMv4 and ETE instruction trace"}
LEAST_BYTES = 4096  # of a part; shorter ones may lack a proof for no fault of doctor's

Recording = collections.namedtuple("Recording", "program unit options how trace given facts")


def settings(draw, unit):
    """Options of the recorder, and what doctor should say of each setting."""
    yes = lambda likelihood=0.5: draw.random() < likelihood  # noqa: E731
    options, facts = [], {}

    def flag(option, fact, on="yes", off="no", likelihood=0.5):
        given = yes(likelihood)
        if given:
            options.append(option)
        facts[fact] = on if given else off
        return given

    cycles = flag("--cycle-accurate", "cycle counts")
    size = draw.choice((0, 0, 1, 2, 4) if unit == "ptm" else (0, 4))
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


class Settings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Folder()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        kinds = [(machine, kind) for machine in UNITS for kind in ("static", "bare")]
        count = 8 if RECORDINGS < 100 else 40
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            made = [pool.submit(build, cls.folder, i, *kinds[i % len(kinds)], random.Random(SEED * 1000 + i)) for i in range(count)]
            cls.programs = [m.result() for m in made]

    def record(self, number):
        draw = random.Random(SEED * 100000 + number)
        program = self.programs[number % len(self.programs)]
        unit = draw.choice(UNITS[program.machine])
        options, facts = settings(draw, unit)
        folder = self.folder / f"recording{number}"
        done = run(WAYMARK, "record", "--from-start", "-q", "--unit", unit, *options, "-o", folder, "--", program.path)
        self.assertEqual(done.returncode, 0, f"{unit} {options}: {done.stderr.decode()}")
        frames = (folder / "trace.bin").read_bytes()
        shutil.rmtree(folder)
        how = draw.choice(("source", "frames", "part"))
        data = deformat(frames) if how != "frames" else frames
        if how == "part" and len(data) > 2 * LEAST_BYTES:
            at = draw.randrange(len(data) - LEAST_BYTES)
            data = data[at:at + max(LEAST_BYTES, len(data) // 4)]
        trace = self.folder / f"trace{number}.bin"
        trace.write_bytes(data)
        given = program.bias
        if draw.random() < 0.5:
            given = (given + PAGE * draw.choice((1, 2, 16, 100, 4321))) & (0xffffffff if program.machine == "arm" else 0xffffffffffffffff)
        return Recording(program, unit, options, how, trace, given, facts)

    def examine(self, recording, given=None):
        done = run(WAYMARK, "doctor", recording.trace, "--format", "json", "--image",
                   f"{recording.program.path}@{recording.given if given is None else given:#x}")
        self.assertIn(done.returncode, (0, 1), done.stderr.decode())
        return json.loads(done.stdout)

    def judge(self, number):
        """Sentences on what is wrong, missed and too short, and counts of settings by certainty."""
        recording = self.record(number)
        report = self.examine(recording)
        program = recording.program
        line = f"{number}: {recording.unit} {' '.join(recording.options)}, {recording.how}, {program.name}@{recording.given:#x}"
        wrong, missed, short, certain = [], [], [], collections.Counter()
        found = [int(v["argument"].rpartition("@")[2], 0) for v in report["images"] if v["verdict"] in ("agrees", "agrees elsewhere")]
        protocols = {s["protocol"] for s in report["sources"]}
        if protocols != {TITLES[recording.unit]}:
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
