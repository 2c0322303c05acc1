#!/usr/bin/env python3
"""The verdict of doctor on pairs of programs and captures, right and wrong, shifted and not.

    pairs_test.py WAYMARK

A few small programs are generated and compiled: static, position-independent and without a C library, in ARM and Thumb
state and for AArch64, at several optimisation levels. Each runs once under QEMU, with a modelled PTM or ETE. Dumps that
contain only trace are then judged with the program that ran and with others, at the address where it ran and at others.
The program itself gives its address: it prints the address of main. The environment variable WAYMARK_PAIRS sets the number of pairs; without it, a few are tried.

No wrong program, and no wrong address of the right one, may be reported as agreeing; 99 % of the right ones must be found.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
PAIRS = int(os.environ.get("WAYMARK_PAIRS") or 0)
PREFIXES = {"arm": "arm-linux-gnueabihf-", "aarch64": "aarch64-linux-gnu-"}
SEED = int(os.environ.get("WAYMARK_SEED") or 1)
PATHS_TO_PROVE = 10  # different ones: doctor::paths_to_prove
KINDS = [(machine, kind) for machine in PREFIXES for kind in ("static", "pie", "bare")]
PAGE = 4096
DUMP_BYTES = 7168  # of a part of a trace

Program = collections.namedtuple("Program", "name machine kind path bias trace raw raw_address")
Pair = collections.namedtuple("Pair", "program trace image given right")  # right: the true address; None: another program


def run(*arguments, **more):
    return subprocess.run([str(a) for a in arguments], capture_output=True, timeout=HANGS, **more)


def source(draw):
    """A program with calls, branches and loops that prints the address of main."""
    functions = []
    count = draw.randint(4, 9)
    for i in range(count):
        lines = [f"NOINLINE static unsigned f{i}(unsigned a, unsigned b) {{", f"    unsigned s = b ^ {draw.getrandbits(16)}u;"]
        for _ in range(draw.randint(1, 4)):
            kind = draw.choice(("loop", "if", "switch", "call", "pointer", "bits"))
            k, m = draw.randint(2, 9), draw.randint(1, 250)
            if kind == "loop":
                lines.append(f"    for (unsigned i = 0; i < a % {k + 2}u + 1; ++i) if ((s >> (i & 15)) & 1) s += i * {m}u; else s ^= {m}u;")
            elif kind == "if":
                lines.append(f"    if (s % {k}u == {draw.randrange(k)}u) s += {m}u; else if (a > {m}u) s -= a;")
            elif kind == "switch":
                cases = " ".join(f"case {c}: s += sink({c * m + 1}u); break;" for c in range(draw.randint(3, 9)))
                lines.append(f"    switch ((s + a) % 11u) {{ {cases} default: s ^= {m}u; }}")
            elif kind == "call" and i > 0:
                lines.append(f"    s += f{draw.randrange(i)}(s % {k + 3}u, a);")
            elif kind == "pointer" and i > 0:
                lines.append(f"    {{ static function *const volatile p[] = {{ {', '.join(f'f{draw.randrange(i)}' for _ in range(3))} }}; s ^= p[s % 3u](a + {m}u, s); }}")
            else:
                lines.append(f"    while (s > {m * 1000}u && (s & 1)) s = s / 3u + {m}u;")
        lines += [f"    return s + {m}u;", "}"]
        functions.append("\n".join(lines))
    rounds = draw.randint(6, 20)
    calls = " ".join(f"s += f{draw.randrange(count)}(i + {draw.randint(0, 40)}u, s);" for _ in range(draw.randint(2, 4)))
    return f"""\
#define NOINLINE __attribute__((noinline, noclone))
typedef unsigned function(unsigned, unsigned);
static volatile unsigned sunk;
NOINLINE static unsigned sink(unsigned a) {{ sunk += a; return sunk & 7; }}
{chr(10).join(functions)}
#ifdef BARE
static long call(long number, long a, long b, long c) {{
#ifdef __aarch64__
    register long n __asm__("x8") = number;
    register long x __asm__("x0") = a;
    register long y __asm__("x1") = b;
    register long z __asm__("x2") = c;
#else
    register long n __asm__("r7") = number;
    register long x __asm__("r0") = a;
    register long y __asm__("r1") = b;
    register long z __asm__("r2") = c;
#endif
    __asm__ volatile("svc 0" : "+r"(x) : "r"(n), "r"(y), "r"(z) : "memory");
    return x;
}}
#ifdef __aarch64__
enum {{ write_number = 64, exit_number = 94 }};
#else
enum {{ write_number = 4, exit_number = 248 }};
#endif
#define WRITE(text, bytes) call(write_number, 1, (long)(text), bytes)
#else
#include <unistd.h>
#define WRITE(text, bytes) write(1, text, bytes)
#endif
int main(void) {{
    unsigned s = {draw.getrandbits(20)}u;
    for (unsigned i = 0; i < {rounds}u; ++i) {{ {calls} }}
    char text[17];
    for (int i = 0; i < 16; ++i) {{
        unsigned digit = (unsigned)((unsigned long long)(unsigned long)main >> (60 - 4 * i)) & 15;
        text[i] = (char)(digit + (digit < 10 ? '0' : 'a' - 10));
    }}
    text[16] = '\\n';
    return WRITE(text, 17) != 17;
}}
#ifdef BARE
int raise(int signal) {{ (void)signal; __builtin_trap(); }}
void _start(void) {{ call(exit_number, main(), 0, 0); __builtin_unreachable(); }}
#endif
"""


def build(folder, number, machine, kind, draw):
    """A program that ran once, with its recording."""
    tool = PREFIXES[machine]
    level, state = draw.choice(("-O0", "-O1", "-O2", "-Os", "-O3")), draw.choice(("-marm", "-mthumb"))
    states = [state, "-march=armv7-a+fp"] if machine == "arm" else []
    name = f"{machine}-{kind}{number}{level}{state if states else ''}"
    path = folder / name
    text = folder / f"{name}.c"
    text.write_text(source(draw))
    flags = {"static": ["-static", "-no-pie"], "pie": ["-fPIE", "-pie"],
             "bare": ["-DBARE", "-nostdlib", "-static", "-no-pie", "-fno-builtin", "-fno-stack-protector", "-fomit-frame-pointer",
                      f"-Wl,-Ttext-segment={0x10000 * draw.randint(1, 9):#x}"]}[kind]
    done = run(f"{tool}gcc", "-w", level, *states, *flags, "-o", path, text, "-lgcc")
    assert done.returncode == 0, done.stderr.decode()
    out = folder / f"{name}.out"
    done = run(WAYMARK, "record", "--from-start", "-q", "-o", out, "--", path)
    assert done.returncode == 0, done.stderr.decode()
    main = int(re.search(rb"^([0-9a-f]{16})$", done.stdout, re.MULTILINE)[1], 16) & ~1
    symbol = int(re.search(rb"^([0-9a-f]+) T main$", run(f"{tool}nm", path).stdout, re.MULTILINE)[1], 16) & ~1
    trace = max(out.glob("*.bin"), key=lambda p: (p.name.startswith("trace"), p.stat().st_size))
    # The same as a raw dump of memory, beginning with the code.
    raw = folder / f"{name}.raw"
    done = run(f"{tool}objcopy", "-O", "binary", "-j", ".text", path, raw)
    assert done.returncode == 0, done.stderr.decode()
    text = int(re.search(rb" \.text +[0-9a-f]{8} +([0-9a-f]+)", run(f"{tool}objdump", "-h", path).stdout)[1], 16)
    return Program(name, machine, kind, path, main - symbol, trace, raw, text)


class Pairs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.draw = random.Random(SEED)
        count = 24 if PAIRS else 6
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            made = [pool.submit(build, cls.folder, i, *KINDS[i % len(KINDS)], random.Random(SEED * 1000 + i))
                    for i in range(count)]
            cls.programs = [m.result() for m in made]

    def image(self, program):
        """An image as file and address where it lay when it ran."""
        if program.kind != "pie" and self.draw.random() < 0.25:
            return program.raw, program.raw_address
        return program.path, program.bias

    def elsewhere(self, address, machine):
        """A page or many off."""
        pages = self.draw.choice((1, 2, 3, 16, 100, 4321, -1 + (1 << 20), 1 << 26))
        return (address + PAGE * pages) & (0xffffffff if machine == "arm" else 0xffffffffffffffff)

    def piece(self, program):
        """A dump of a part of a trace: of a program all of whose code is in one file."""
        if program.kind != "bare" and program.kind != "static" or self.draw.random() < 0.4:
            return program.trace
        trace = program.trace.read_bytes()
        if len(trace) <= DUMP_BYTES:
            return program.trace
        at = self.draw.randrange(0, len(trace) - DUMP_BYTES, 16)
        path = self.folder / f"{program.name}.{at}.bin"
        path.write_bytes(trace[at:at + DUMP_BYTES])
        return path

    def pairs(self):
        rights, wrongs = [], []
        wanted = max(PAIRS, 24)
        while len(rights) < wanted // 2:
            for program in self.programs:
                path, address = self.image(program)
                given = address if self.draw.random() < 0.3 else self.elsewhere(address, program.machine)
                rights.append(Pair(program, self.piece(program), path, given, address))
        while len(wrongs) < wanted - wanted // 2:
            program, other = self.draw.sample(self.programs, 2)
            path, address = self.image(other)
            given = address if self.draw.random() < 0.5 else self.elsewhere(address, other.machine)
            wrongs.append(Pair(program, self.piece(program), path, given, None))
        return rights[:wanted // 2] + wrongs

    def judge(self, pair):
        """The statements of doctor: the address at which the image agrees, or None; its finding; and the time it
        took."""
        begun = time.monotonic()
        done = run(WAYMARK, "doctor", pair.trace, "--image", f"{pair.image}@{pair.given:#x}", "--format", "json")
        seconds = time.monotonic() - begun
        assert done.returncode in (0, 1), done.stderr.decode()
        report = json.loads(done.stdout)
        (verdict,) = report["images"]
        found = None
        if verdict["verdict"] in ("agrees", "agrees elsewhere"):
            found = int(verdict["argument"].rpartition("@")[2], 0)
        return found, verdict, seconds

    def test_no_wrong_program_is_proven_and_the_right_ones_are_found(self):
        pairs = self.pairs()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            judged = list(pool.map(self.judge, pairs))
        wrong, missed, short, times = [], [], [], []
        for pair, (found, verdict, seconds) in zip(pairs, judged):
            times.append(seconds)
            line = f"{pair.trace.name} of {pair.program.name} with {pair.image.name}@{pair.given:#x}: {verdict}"
            if found is not None and found != pair.right:
                wrong.append(line)
            elif found is None and pair.right is not None:
                # A program that ran so briefly that its whole trace has fewer paths than a proof requires.
                _, there, _ = self.judge(pair._replace(given=pair.right))
                (short if there["trial"]["confirmed"] < PATHS_TO_PROVE else missed).append(line)
        rights = sum(p.right is not None for p in pairs)
        print(f"{len(pairs)} pairs of {len(self.programs)} programs (seed {SEED}): {rights} right, {len(missed)} of them "
              f"missed, and {len(short)} with a trace too short for a proof; {len(pairs) - rights} wrong; {len(wrong)} wrong "
              f"proofs; {max(times):.2f} s at most")
        self.assertFalse(wrong, "\n".join(["wrong proofs:", *wrong]))
        self.assertLessEqual(len(short), rights // 10, "\n".join(["too short:", *short]))
        self.assertLessEqual(len(missed), rights // 100, "\n".join(["missed:", *missed]))


if __name__ == "__main__":
    for prefix in PREFIXES.values():
        if shutil.which(f"{prefix}gcc") is None:
            print(f"SKIPPED: {prefix}gcc is missing (Debian package gcc-{prefix[:-1]})")
            sys.exit(77)
    del sys.argv[1:]
    unittest.main(verbosity=2)
