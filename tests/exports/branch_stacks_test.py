#!/usr/bin/env python3
"""Samples with branch stacks: perf.data written byte by byte and text of `perf script`, of x86-64 and AArch64, in every
command that takes them; compared with the output of other programs for the same files, where they are installed.

    branch_stacks_test.py WAYMARK SOURCE_DIR
"""
import gzip
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
PID = 4242
X86 = """
    .text
    .globl main, odd
    .type main, @function
main:
    push %rbx
    mov $10, %ebx
head:
    test $1, %bl
to_even:
    je even
    mov %ebx, %edi
call:
    call odd
after:
    add %eax, %ebx
even:
    dec %ebx
back:
    jne head
    pop %rbx
end:
    ret
    .size main, .-main
    .type odd, @function
odd:
    lea 1(%rdi), %eax
leave:
    ret
    .size odd, .-odd
"""
A64 = """
    .text
    .globl main, odd
    .type main, %function
main:
    mov w19, #10
head:
    tst w19, #1
to_even:
    b.eq even
    mov w0, w19
call:
    bl odd
after:
    add w19, w19, w0
even:
    subs w19, w19, #1
back:
    b.ne head
end:
    ret x20
    .size main, .-main
    .type odd, %function
odd:
    add w0, w0, #1
leave:
    ret
    .size odd, .-odd
"""
MISPREDICTED, PREDICTED, ABORTED = 1, 2, 8
HARDWARE_INDEX, COUNTERS = 1 << 17, 1 << 19


def run(*arguments, status=0, **more):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS, **more)
    assert status is None or done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def record(kind, body, misc=0):
    body += b"\0" * (-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def entry(source, target, flags=PREDICTED, cycles=0, kind=0):
    return struct.pack("<3Q", source, target, flags | cycles << 4 | kind << 20)


class PerfFile:
    """One event with IP, TID, TIME, CPU, PERIOD and branch stacks; more fields on request."""
    FIELDS = 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 11

    def __init__(self, program, address, size, offset, arch="x86_64", fields=0, branches=0):
        self.type = self.FIELDS | fields
        self.branches, self.arch = branches, arch
        name = str(program).encode() + b"\0"
        name += b"\0" * (-len(name) % 8)
        self.data = record(3, struct.pack("<II", PID, PID) + b"x86\0\0\0\0\0" + bytes(24), 1 << 13)
        self.data += record(10, struct.pack("<IIQQQIIQQII", PID, PID, address, size, offset, 0, 0, 0, 0, 5, 2) + name
                            + bytes(24))

    def sample(self, stack, time=1000, cpu=0, before=b"", index=-1, extra=b"", count=None):
        """`before`: of fields between the period and the stack."""
        body = struct.pack("<QIIQIIQ", stack[0][1] if stack else 0, PID, PID, time, cpu, 0, 1) + before
        body += struct.pack("<Q", len(stack) if count is None else count)
        if self.branches & HARDWARE_INDEX:
            body += struct.pack("<q", index)
        self.data += record(9, body + b"".join(entry(*e) for e in stack) + extra, 2)
        return self

    def bytes(self):
        attr = struct.pack("<IIQQQQQ", 0, 128, 0, 1000, self.type, 0, 1 << 18 | 1 << 8 | 1 << 23) + bytes(16) + bytes(8)
        attr += struct.pack("<Q", self.branches | 8)
        attr += bytes(128 - len(attr)) + struct.pack("<2Q", 0, 0)
        at = 104 + len(attr)
        arch = self.arch.encode() + b"\0"
        text = struct.pack("<I", len(arch)) + arch
        table = struct.pack("<2Q", at + len(self.data) + 16, len(text))
        head = b"PERFILE2" + struct.pack("<8Q", 104, len(attr), 104, len(attr), at, len(self.data), 0, 0)
        return head + (1 << 6).to_bytes(32, "little") + attr + self.data + table + text


class Program:
    def __init__(self, folder, name, text, compiler, *options):
        self.path = folder / name
        (folder / f"{name}.S").write_text(text)
        run(compiler, "-g", "-no-pie", "-static", "-nostdlib", "-Wl,-e,main", "-Wl,--build-id", *options, "-o", self.path,
            folder / f"{name}.S")
        self.at = {}
        for line in run("nm" if compiler == "gcc" else "aarch64-linux-gnu-nm", self.path).stdout.splitlines():
            address, _, symbol = line.split()
            self.at[symbol] = int(address, 16)
        headers = run("readelf", "-lW", self.path).stdout
        self.base = min(int(m[1], 16) for m in re.finditer(r"LOAD +\S+ (\S+)", headers))
        self.offset, self.address, self.size = next(
            (int(m[1], 16), int(m[2], 16), int(m[3], 16) + 0xfff & ~0xfff)
            for m in re.finditer(r"LOAD +(\S+) (\S+) \S+ (\S+) \S+ R E", headers))

    def stack(self, *pairs):
        """The newest first, as (from, to) labels."""
        return [(self.at[a], self.at[b]) for a, b in pairs]

    def stacks(self):
        """A round over `odd`, one over `even`, and the end of main."""
        return [self.stack(("back", "head"), ("leave", "after"), ("call", "odd"), ("back", "head")),
                self.stack(("back", "head"), ("to_even", "even"), ("back", "head")),
                self.stack(("back", "head"), ("to_even", "even"), ("back", "head"))]

    def file(self, arch, **more):
        perf = PerfFile(self.path, self.address, self.size, self.offset, arch, **more)
        for i, stack in enumerate(self.stacks()):
            perf.sample(stack, 1000 + i)
        return perf

    def text(self, fields=lambda stack: "", stacks=None):
        lines = [f"PERF_RECORD_MMAP2 {PID}/{PID}: [{self.address:#x}({self.size:#x}) @ {self.offset:#x} 08:01 12 0]: "
                 f"r-xp {self.path}"]
        for stack in stacks or self.stacks():
            lines.append(fields(stack) + f"{stack[0][1]:16x} "
                         + " ".join(f"{a:#x}/{b:#x}/P/-/-/0//" for a, b in stack))
        return "\n".join(lines) + "\n"


class BranchStacks(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        if shutil.which("gcc") is None or run("gcc", "-dumpmachine").stdout.split("-")[0] != "x86_64":
            raise unittest.SkipTest("NOT RUN: gcc for x86-64 is not on PATH")
        cls.x86 = Program(cls.folder, "x86", X86, "gcc")

    def save(self, name, contents):
        path = self.folder / name
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return path

    def answers(self, command, path, *more, status=0):
        done = run(WAYMARK, command, path, "--format", "json", *more, status=status)
        return json.loads(done.stdout), done.stderr

    def check_profile(self, program, path):
        """Counts of the three stacks, by hand: rounds over `odd` and `even`."""
        rows, said = self.answers("profile", path, "--by", "instruction")
        rows = {int(row["address"], 16): row for row in rows["rows"]}
        at = program.at
        # The loop's head ran in the middle of each stack: once in each.
        self.assertEqual(rows[at["head"]]["instructions"], 3)
        self.assertEqual(rows[at["odd"]]["instructions"], 1)
        self.assertEqual(rows[at["after"]]["instructions"], 1)
        self.assertEqual(rows[at["even"]]["instructions"], 3)
        # The same for the oldest entry of each stack.
        self.assertEqual(rows[at["back"]]["instructions"], 6)
        self.assertEqual(rows[at["call"]]["instructions"], 1)
        self.assertNotIn(at["end"], {a for a, row in rows.items() if row["instructions"]})
        return said

    def test_x86_in_every_view(self):
        path = self.save("x86.data", self.x86.file("x86_64").bytes())
        self.check_profile(self.x86, path)
        branches = run(WAYMARK, "branches", path, "--format", "tsv").stdout
        head, *rows = (line.split("\t") for line in branches.splitlines())
        rows = {int(row[head.index("address")], 16): dict(zip(head, row)) for row in rows}
        even = rows[self.x86.at["to_even"]]
        self.assertEqual((even["taken"], even["not_taken"]), ("2", "1"))
        coverage = run(WAYMARK, "coverage", path, "--by", "function").stdout
        self.assertRegex(coverage, r" 9 +0 +2 .* main\n")
        self.assertIn(f"{self.x86.at['head']:x}", run(WAYMARK, "loops", path, "--format", "json").stdout)
        info = run(WAYMARK, "info", path).stdout
        self.assertIn("LBR", info)
        doctor = run(WAYMARK, "doctor", path, status=None).stdout
        self.assertIn("branches_cpu0", doctor)
        run(WAYMARK, "report", path, "-o", self.folder / "report.html")
        for to in ("callgrind", "lcov", "pprof", "sqlite", "speedscope"):
            run(WAYMARK, "export", path, "--to", to, "-o", self.folder / f"export.{to}")
        text = run(WAYMARK, "profile", path).stdout
        self.assertIn("estimate", text)
        self.assertNotIn("exact", text)
        flow = run(WAYMARK, "flow", path).stdout
        self.assertIn(f"{self.x86.at['head']:x}", flow)
        self.assertIn("BRANCH", run(WAYMARK, "packets", path).stdout)

    def test_all_forms_say_the_same(self):
        """Fields before and after stacks, compressed files, text."""
        plain = self.x86.file("x86_64").bytes()
        want = run(WAYMARK, "profile", self.save("plain.data", plain), "--by", "instruction", "--format", "tsv").stdout
        index = self.x86.file("x86_64", branches=HARDWARE_INDEX).bytes()
        counters = PerfFile(self.x86.path, self.x86.address, self.x86.size, self.x86.offset, branches=COUNTERS)
        chain = PerfFile(self.x86.path, self.x86.address, self.x86.size, self.x86.offset, fields=1 << 5 | 1 << 10)
        for i, stack in enumerate(self.x86.stacks()):
            counters.sample(stack, 1000 + i, extra=bytes(8 * len(stack)))
            chain.sample(stack, 1000 + i, before=struct.pack("<4QI", 3, 1, 2, 3, 4) + b"rawd")
        prefix = (lambda stack: f"a b  {PID}/{PID} [003] 12.000345:  1 cycles:u: ")
        forms = {"index.data": index, "counters.data": counters.bytes(), "chain.data": chain.bytes(),
                 "x.data.gz": gzip.compress(plain), "stacks.txt": self.x86.text(),
                 "fields.txt": self.x86.text(prefix), "stacks.txt.gz": gzip.compress(self.x86.text().encode())}
        for name, contents in forms.items():
            with self.subTest(name):
                self.assertEqual(run(WAYMARK, "profile", self.save(name, contents), "--by", "instruction", "--format",
                                     "tsv").stdout, want)

    def test_text_without_maps(self):
        text = "".join(self.x86.text().splitlines(keepends=True)[1:])
        path = self.save("no-maps.txt", text)
        done = run(WAYMARK, "profile", path, "--image", f"{self.x86.path}@0", "--format", "json")
        self.assertIn('"main"', done.stdout)

    def test_text_alone_asks_for_what_is_missing(self):
        """Without maps and image: no advice about perf.data, and no machine, since none was observed."""
        stack = "".join(f" {0x402000 - 32 * i:#x}/{0x402008 - 32 * i:#x}/P/-/-/0//" for i in range(20))
        odd = stack + " 0x401003/0x401d00/P/-/-/0//"
        for name, line, machine, assumed in (("short", " ".join(stack.split()[:4]), "A64", True), ("a64", stack, "A64", False),
                                             ("x86", odd, "x86-64", False)):
            with self.subTest(name):
                said = run(WAYMARK, "info", self.save(f"alone-{name}.txt", f"{0x401000:16x} {line}\n")).stdout
                self.assertIn(f"instruction set {machine}{' (assumed)' if assumed else chr(10)}", said)
                self.assertEqual(("BRBE" in said, "AA64" in said), (machine == "A64" and not assumed,) * 2, said)
                self.assertEqual("AArch64 is assumed" in said, assumed, said)
                self.assertIn("--image FILE@0", said)
                self.assertNotIn("ring", said)
                self.assertNotIn("copied whole", said)

    def test_profiles_are_those_of_llvm(self):
        profgen = next(filter(None, map(shutil.which, recorded.newest("llvm-profgen"))), None)
        if profgen is None:
            self.skipTest("NOT RUN: llvm-profgen is missing (Debian package llvm-19)")
        path = self.save("witness.txt", self.x86.text())
        theirs, ours = self.folder / "theirs", self.folder / "ours"
        run(profgen, f"--perfscript={path}", f"--binary={self.x86.path}", "--skip-symbolization", f"--output={theirs}",
            "--format=text")
        run(WAYMARK, "pgo", path, "--for", "profgen", "-o", ours)
        self.assertEqual(*(self.tables(p) for p in (theirs, ours)))

    def tables(self, path):
        """Counts of the instructions at labels, of ranges with more than one, and branches."""
        counts, branches = {}, {}
        for line in path.read_text().splitlines():
            if match := re.fullmatch(r"([0-9a-f]+)->([0-9a-f]+):(\d+)", line):
                branches[match[1], match[2]] = int(match[3])
            elif match := re.fullmatch(r"([0-9a-f]+)-([0-9a-f]+):(\d+)", line):
                if match[1] != match[2]:
                    low, high = (int(match[n], 16) for n in (1, 2))
                    for a in {address - self.x86.base for address in self.x86.at.values()}:
                        if low <= a <= high:
                            counts[a] = counts.get(a, 0) + int(match[3])
        return counts, branches

    def test_perf_reads_the_files(self):
        perf = shutil.which("perf")
        if perf is None:
            self.skipTest("NOT RUN: perf is not on PATH")
        path = self.save("for-perf.data", self.x86.file("x86_64", branches=HARDWARE_INDEX).bytes())
        text = run(perf, "script", "-i", path, "-F", "ip,brstack", status=None).stdout
        if "0x" not in text:
            self.skipTest("NOT RUN: this perf shows no branch stacks")
        maps = self.x86.text().splitlines(keepends=True)[0]
        want = run(WAYMARK, "profile", path, "--by", "instruction", "--format", "tsv").stdout
        self.assertEqual(run(WAYMARK, "profile", self.save("of-perf.txt", maps + text), "--by", "instruction", "--format",
                             "tsv").stdout, want)

    def test_compilers_profiles(self):
        path = self.save("pgo.data", self.x86.file("x86_64").bytes())
        for form in ("autofdo", "profgen", "bolt", "clang"):
            with self.subTest(form):
                done = run(WAYMARK, "pgo", path, "--for", form, "-o", self.folder / f"x.{form}")
                self.assertIn("estimate", done.stderr)
        self.assertIn(f"{self.x86.at['back']:x}", (self.folder / "x.bolt").read_text())
        self.assertRegex((self.folder / "x.clang").read_text(), r"main:\d+:\d+")

    def test_contradictions_are_counted(self):
        at = self.x86.at
        perf = self.x86.file("x86_64")
        # Backwards; inside an instruction; over a jump that is always taken; to another target.
        perf.sample([(at["to_even"], at["even"]), (at["leave"], at["even"])])
        perf.sample([(at["call"] + 1, at["odd"]), (at["back"], at["head"])])
        perf.sample([(at["leave"], at["after"]), (at["back"], at["after"])])
        done = run(WAYMARK, "profile", self.save("wrong.data", perf.bytes()), "--strict", status=1)
        self.assertIn("contradict", done.stdout + done.stderr)

    def test_interrupts_end_a_stretch(self):
        at = self.x86.at
        kernel = 0xffffffff81000000
        perf = PerfFile(self.x86.path, self.x86.address, self.x86.size, self.x86.offset)
        perf.sample([(at["even"], kernel, 0), (at["back"], at["head"])][:1] + [(at["to_even"], at["even"]),
                                                                               (at["back"], at["head"])])
        rows, _ = self.answers("profile", self.save("irq.data", perf.bytes()), "--by", "instruction")
        counts = {int(r["address"], 16): r["instructions"] for r in rows["rows"]}
        self.assertEqual(counts[at["to_even"]], 1)
        self.assertEqual(counts.get(at["even"], 0), 0)

    def test_damage(self):
        good = self.x86.file("x86_64")
        lies = self.x86.file("x86_64").sample(self.x86.stacks()[0], count=1 << 40)
        done = run(WAYMARK, "profile", self.save("lies.data", lies.bytes()), status=3)
        self.assertIn("entries", done.stderr + done.stdout)
        empty = PerfFile(self.x86.path, self.x86.address, self.x86.size, self.x86.offset).sample([])
        done = run(WAYMARK, "profile", self.save("empty.data", empty.bytes()), status=1)
        self.assertIn("empty", done.stderr)
        whole = good.bytes()
        for size in range(0, len(whole), 37):
            done = run(WAYMARK, "profile", self.save("cut.data", whole[:size]), status=None)
            self.assertIn(done.returncode, (0, 1, 2, 3))
        done = run(WAYMARK, "profile", self.save("bad.txt", self.x86.text() + "  400000 0x1/0xzz/P/-/-/0\n"), status=3)
        self.assertIn("line 5", done.stderr + done.stdout)

    def test_aarch64(self):
        if shutil.which("aarch64-linux-gnu-gcc") is None:
            self.skipTest("NOT RUN: aarch64-linux-gnu-gcc is not on PATH")
        program = Program(self.folder, "a64", A64, "aarch64-linux-gnu-gcc")
        path = self.save("a64.data", program.file("aarch64").bytes())
        self.check_profile(program, path)
        self.assertIn("BRBE", run(WAYMARK, "info", path).stdout)
        self.check_profile(program, self.save("a64.txt", program.text()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
