#!/usr/bin/env python3
"""Kernel modules (.ko) are relocatable files: their code is decoded as the kernel loaded it. A program is recorded whose
linker did what the kernel does; then its perf.data is made to say that this part was a module, and the same comes out as
for the linked program.

    perf_modules_test.py WAYMARK SOURCE_DIR
"""
import gzip
import itertools
import json
import lzma
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from perf_case import PerfCase, run  # noqa: E402
from perf_records import PerfRecords, Record  # noqa: E402

MMAP, MMAP2 = 1, 10
KERNEL = (1 << 32) - 1
BASE = 0x900000  # within reach of every call
# Calls and conditional branches between sections, calls of the kernel, and calls within one section.
MODULE = """
extern long kernel_help(long);
long mod_total;
static __attribute__((noinline)) long mod_inside(long n) { return n & 4 ? n * 3 : n + mod_total; }
__attribute__((noinline, section(".text.other"), aligned(64))) long mod_other(long n) {
    return n & 1 ? mod_inside(n) : n;
}
__attribute__((noinline, cold)) long mod_seldom(long n) { return kernel_help(n) + 7; }
__attribute__((noinline)) long mod_entry(long n) {
    long sum = 0;
    for (long i = 0; i < n; ++i) {
        sum += mod_other(i) + kernel_help(i);
        if (__builtin_expect((i & 63) == 63, 0)) sum += mod_seldom(i);
    }
    return mod_total += sum;
}
"""
PROGRAM = """
#include <unistd.h>
extern long mod_entry(long);
__attribute__((noinline)) long kernel_help(long n) { long s = n; while (n > 3) { s ^= n; n >>= 2; } return s; }
int main(void) {
    long sum = 0;
    for (int i = 0; i < 40; ++i) sum += mod_entry(100 + i);
    return (int)(sum & 1);
}
"""
# A kernel's layout: the sections with code one after another, in the order of the file.
LAYOUT = """
SECTIONS {{ .module {base:#x} : {{ {file}(.text) {file}(.text.other) {file}(.text.unlikely) }} }}
INSERT AFTER .text;
"""


class Modules:
    """A class for each instruction set, with the PREFIX and FLAGS of its compiler."""
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        if shutil.which(cls.PREFIX + "gcc") is None:
            raise unittest.SkipTest(f"NOT RUN: {cls.PREFIX}gcc is not on PATH (Debian package gcc-{cls.PREFIX[:-1]})")
        super().setUpClass()

    @classmethod
    def made(cls, *command):
        done = run(*command)
        assert done.returncode == 0, done.stderr

    @classmethod
    def make(cls):
        cls.object = cls.folder / "module.o"
        (cls.folder / "module.c").write_text(MODULE)
        (cls.folder / "program.c").write_text(PROGRAM)
        (cls.folder / "layout.ld").write_text(LAYOUT.format(base=BASE, file=cls.object))
        compiler = [cls.PREFIX + "gcc", "-O2", "-g", "-fno-pic", "-fno-ipa-icf", "-fno-reorder-functions", *cls.FLAGS]
        cls.made(*compiler, "-fno-section-anchors", "-c", "-o", cls.object, cls.folder / "module.c")
        cls.program = cls.folder / "program"
        cls.made(*compiler, "-static", "-no-pie", "-o", cls.program, cls.folder / "program.c", cls.object,
                 f"-Wl,-T,{cls.folder / 'layout.ld'}")
        cls.module = cls.folder / "mod-x.ko"
        cls.made(cls.PREFIX + "ld", "-r", "-o", cls.module, cls.object)
        cls.data = cls.folder / "perf.data"
        done = run(sys.argv[1], "record", "--as", "perf", "-o", cls.data, "--", cls.program)
        assert done.returncode in (0, 1), done.stderr
        cls.symbols = [(int(address, 16), kind, name) for address, kind, name in re.findall(
            r"^(\w+) ([tTwW]) ([\w.]+)$", run(cls.PREFIX + "nm", cls.program).stdout, re.M)]
        cls.kallsyms = cls.folder / "kallsyms"
        cls.write_kallsyms(cls.kallsyms)
        cls.expected, said = cls.functions(cls.data)
        cls.expected_lines = cls.lines(cls.data)
        assert "not known" not in said, said
        assert cls.expected["mod_entry"] > 10000 and len(cls.expected_lines) > 5
        assert min(cls.expected[name] for name in ("mod_inside", "mod_other", "mod_seldom", "kernel_help")) > 100
        # From here on only the module's file contains the module's code.
        cls.made(cls.PREFIX + "objcopy", "--remove-section", ".module", cls.program)

    @classmethod
    def write_kallsyms(cls, path, moved_by=lambda: 0):
        """As root sees it; `moved_by` gives what to add to the address of each function of the module."""
        path.write_text("".join(
            f"{address + moved_by():016x} {kind} {name}\t[mod_x]\n" if name.startswith("mod_") else
            f"{address:016x} {kind} {name}\n" for address, kind, name in cls.symbols))

    @classmethod
    def rows(cls, *arguments):
        done = run(sys.argv[1], "profile", *arguments, "--limit", "0", "--format", "json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)["rows"], " ".join(done.stderr.split())

    @classmethod
    def functions(cls, *arguments):
        rows, said = cls.rows(*arguments)
        return {row["function"]: row["instructions"] for row in rows}, said

    @classmethod
    def lines(cls, *arguments):
        """Of the module."""
        return {row["line"]: row["instructions"] for row in cls.rows(*arguments, "--by", "line")[0]
                if (row["file"] or "").endswith("module.c")}

    def as_module(self, name, earlier=0, features=()):
        """The file, changed so that the kernel maps the module's code, from `earlier` bytes before it on."""
        records, found = PerfRecords(self.data), 0
        for number, record in enumerate(records.records):
            if record.kind != MMAP2 or not record.word(8) <= BASE < record.word(8) + record.word(16):
                continue
            body = bytes(record.body)
            end = body.index(b"\0", 64)
            trailer = body[64 + (end - 64) // 8 * 8 + 8:]
            first, length = record.word(8), record.word(16)
            padded = str(name).encode() + bytes(8 - len(str(name)) % 8)
            # The remaining pages of the program stay where they are.
            self.assertEqual(first, BASE, "the module's code has pages of its own")
            records.records[number] = Record(MMAP, 1, struct.pack("<2I3Q", KERNEL, 0, first - earlier, length + earlier, 0)
                                             + padded + trailer)
            found += 1
        self.assertEqual(found, 1)
        records.features.update(features)
        return records.write(self.folder / "module.data")

    def test_as_the_linked_program(self):
        for earlier in (0, 0x1000):
            with self.subTest(earlier=earlier):
                data = self.as_module(self.module, earlier)
                self.assertEqual(self.functions(data, "--kallsyms", self.kallsyms)[0], self.expected)
                self.assertEqual(self.lines(data, "--kallsyms", self.kallsyms), self.expected_lines)

    def test_where_nobody_knows_the_kernel(self):
        """Code inside the module is decoded correctly; the targets of its calls into the kernel are unknown, and are
        not invented."""
        found, said = self.functions(self.as_module(self.module))
        for name, instructions in found.items():
            self.assertLessEqual(instructions, self.expected.get(name, 0), name)
        self.assertGreater(found["mod_entry"], 100)
        self.assertLess(found["mod_entry"], self.expected["mod_entry"])
        self.assertIn(f"where branches of {self.module} lead is not known", said)
        self.assertIn("--kallsyms", said)
        # Each command that decodes reads it.
        data, options = self.as_module(self.module), ("--kallsyms", self.kallsyms)
        self.assertNotIn("not known", self.waymark("flow", data, "--format", "summary", *options).stderr)
        self.assertIn("0 contradictions", self.waymark("doctor", data, *options).stdout)
        done = run(sys.argv[1], "flow", data, "--kallsyms", self.program)
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_files_are_found(self):
        root = self.folder / "root"
        place = root / "lib/modules/6.1.0/extra"
        place.mkdir(parents=True)
        # Statically linked code of the program itself is needed as well.
        target = root / self.program.relative_to("/")
        target.parent.mkdir(parents=True)
        shutil.copy(self.program, target)
        contents = self.module.read_bytes()
        zstd = subprocess.run(["zstd", "-q", "-c"], input=contents, capture_output=True, check=True).stdout
        for ending, packed in (("", contents), (".xz", lzma.compress(contents)), (".gz", gzip.compress(contents)),
                               (".zst", zstd)):
            file = place / f"mod-x.ko{ending}"
            file.write_bytes(packed)
            for name in ("[mod_x]", f"/lib/modules/6.1.0/extra/mod-x.ko{ending}"):
                with self.subTest(ending=ending, name=name):
                    found, _ = self.functions(self.as_module(name), "--symfs", root, "--kallsyms", self.kallsyms)
                    self.assertEqual(found, self.expected)
            file.unlink()
        # Given by hand, and in a folder with symbols.
        given = ("--kallsyms", self.kallsyms, "--symfs", root)
        found, _ = self.functions(self.as_module("[mod_x]"), "--image", self.module, *given)
        self.assertEqual(found, self.expected)
        folder = self.folder / "symbols"
        folder.mkdir()
        shutil.copy(self.module, folder)
        found, _ = self.functions(self.as_module("/vendor/mod-x.ko"), "--symdir", folder, *given)
        self.assertEqual(found, self.expected)
        damaged = folder / "mod-x.ko.xz"
        damaged.write_bytes(lzma.compress(contents)[:-40])
        said = self.functions(self.as_module(damaged), "--kallsyms", self.kallsyms)[1]
        self.assertIn("mod-x.ko.xz", said)

    def test_place_by_simpleperf(self):
        """Its feature 132 states the offset at which code begins in a module's memory: field 1 of field 7."""
        path = str(self.module).encode()
        file = bytes([1 << 3 | 2, len(path)]) + path + b"\x10\x02" + bytes([7 << 3 | 2, 3, 1 << 3, 0x80, 0x20])
        places = {132: struct.pack("<I", len(file)) + file}
        expected = self.functions(self.as_module(self.module))[0]
        self.assertEqual(self.functions(self.as_module(self.module, 0x1000, places))[0], expected)

    def test_place_by_the_file_alone(self):
        """Code that is aligned to pages, after the jumps that the kernel inserts: it begins one page into the module's
        memory."""
        jumps, script, module = self.folder / "jumps.o", self.folder / "module.ld", self.folder / "paged" / "mod-x.ko"
        module.parent.mkdir()
        (self.folder / "jumps.s").write_text(
            '.section .plt,"a",%progbits\n.byte 0\n.section .text.ftrace_trampoline,"a",%progbits\n.byte 0\n')
        script.write_text("SECTIONS { .plt 0 : { *(.plt) } .text.ftrace_trampoline 0 : { *(.text.ftrace_trampoline) } "
                          ".text 0 : { *(.text) } .text.other 0 : { *(.text.other) } .text.unlikely 0 : { *(.text.unlikely) } }")
        self.made(self.PREFIX + "as", "-o", jumps, self.folder / "jumps.s")
        self.made(self.PREFIX + "ld", "-r", "-T", script, "-o", module, jumps, self.object)
        expected = self.functions(self.as_module(self.module))[0]
        self.assertEqual(self.functions(self.as_module(module))[0], expected)  # not aligned: at the beginning
        self.made(self.PREFIX + "objcopy", "--set-section-alignment", ".text=4096", module)
        self.assertEqual(self.functions(self.as_module(module, 0x1000))[0], expected)
        self.assertEqual(self.functions(self.as_module(module, 0x1000), "--kallsyms", self.kallsyms)[0], self.expected)

    def test_another_build(self):
        moved, shift = self.folder / "moved", itertools.count(0, 64)
        self.write_kallsyms(moved, lambda: next(shift))
        said = self.functions(self.as_module(self.module), "--kallsyms", moved)[1]
        self.assertIn("it is of another build than the module that was loaded", said)


    def test_kallsyms_of_another_boot(self):
        """The mapping states where the module was; that kallsyms has other addresses for its functions, and a warning
        states that."""
        other = self.folder / "other_boot"
        self.write_kallsyms(other, lambda: 0x4000000)
        found, said = self.functions(self.as_module(self.module), "--kallsyms", other)
        self.assertIn("kallsyms is of another boot, or the module was loaded again", said)
        self.assertEqual(found["mod_inside"], self.expected["mod_inside"])


class A64Modules(Modules, PerfCase):
    PREFIX = "aarch64-linux-gnu-"


class A32Modules(Modules, PerfCase):
    PREFIX = "arm-linux-gnueabihf-"
    FLAGS = ("-marm",)


class T32Modules(Modules, PerfCase):
    PREFIX = "arm-linux-gnueabihf-"
    FLAGS = ("-mthumb",)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
