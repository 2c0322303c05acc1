#!/usr/bin/env python3
"""Names of code in recordings of a DPU, where libraries lie at one address one after the other.

    dpu_names_test.py WAYMARK SOURCE_DIR [TEST…]

The references are how often the program says it calls each function, the symbol tables that nm prints, and truth.txt,
which the recorder counts without the unit.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from names_test import LOADS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CROSS = "arm-linux-gnueabihf-"

# Threads that load and unload the given libraries, each in its own order.
THREADS = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static char** libraries;
static int count;
static void* worker(void* argument) {
    unsigned seed = (unsigned)(long)argument, sum = 0;
    for (int round = 0; round < 30; ++round) {
        seed = seed * 1103515245 + 12345;
        int i = (seed >> 16) % count;
        char symbol[32];
        snprintf(symbol, sizeof symbol, "turn%d", i);
        void* library = dlopen(libraries[i], RTLD_NOW);
        unsigned (*run)(unsigned) = (unsigned (*)(unsigned))dlsym(library, symbol);
        for (int k = (seed >> 8) % 9; k >= 0; --k) sum += run(sum);
        dlclose(library);
    }
    return (void*)(long)sum;
}
int main(int argc, char** argv) {
    pthread_t threads[3];
    libraries = argv + 1;
    count = argc - 1;
    for (long i = 0; i < 3; ++i) pthread_create(&threads[i], 0, worker, (void*)(i + 7));
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
    return 0;
}
"""
# The same code in every library, under different names.
LIBRARY = """
    static __attribute__((noinline)) unsigned NAME_inner(unsigned x) {
        for (unsigned i = 0; i < 9; ++i) x = x * 7 + i;
        return x;
    }
    unsigned NAME(unsigned x) { return NAME_inner(x) + 1; }
"""


def run(*arguments, **more):
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS,
                          env={**os.environ, **more})


def swap_elf(data):
    """Makes the heads, symbols and notes of a little-endian ELF file of 32 bits big-endian."""
    def swap(at, form):
        struct.pack_into(">" + form, data, at, *struct.unpack_from("<" + form, data, at))

    phoff, shoff = struct.unpack_from("<II", data, 28)
    phnum, = struct.unpack_from("<H", data, 44)
    shnum, = struct.unpack_from("<H", data, 48)
    for i in range(shnum):
        kind, _, _, offset, size = struct.unpack_from("<IIIII", data, shoff + 40 * i + 4)
        if kind in (2, 11):  # SHT_SYMTAB, SHT_DYNSYM
            for at in range(offset, offset + size, 16):
                swap(at, "III")
                swap(at + 14, "H")
        elif kind == 7:  # SHT_NOTE
            swap(offset, "III")
        swap(shoff + 40 * i, "10I")
    for i in range(phnum):
        swap(phoff + 32 * i, "8I")
    swap(16, "HHIIIIIHHHHHH")
    data[5] = 2  # ELFDATA2MSB


class DpuNames(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.loads = cls.build("loads", LOADS)
        cls.first, cls.second = cls.library("first"), cls.library("other")
        cls.turns = (cls.first, "first", "5", cls.second, "other", "7", cls.first, "first", "3")
        cls.want = {"first": 8, "first_inner": 8, "other": 7, "other_inner": 7}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def build(cls, name, source, *options):
        (cls.folder / f"{name}.c").write_text(source)
        done = run(CROSS + "gcc", "-O1", "-g", "-o", cls.folder / name, cls.folder / f"{name}.c", *options)
        assert done.returncode == 0, done.stderr
        return cls.folder / name

    @classmethod
    def library(cls, name, *options, file=None):
        return cls.build(f"{file or name}.so", LIBRARY.replace("NAME", name), "-shared", "-fPIC", *options)

    def record(self, *turns, options=(), **environment):
        out = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "out"
        done = run(WAYMARK, "record", "--unit", "dpu", "-o", out, *options, "--", self.loads, *turns, **environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        places = set(re.findall(r" at (0x\w+)", done.stdout))
        self.assertEqual(len(places), 1, "the libraries should come to lie at one address")
        return out

    def waymark(self, *arguments, status=0):
        done = run(WAYMARK, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def json(self, *arguments):
        return json.loads(self.waymark(*arguments, "--format", "json").stdout)

    def calls(self, rows):
        """How often functions of the libraries were called; other functions are omitted."""
        out = collections.Counter()
        for row in rows:
            if re.fullmatch(r"\w+?(_inner)?", row["function"]) and row["function"].split("_")[0] in ("first", "other"):
                out[row["function"]] += int(row["calls"])
        return dict(out)

    def doubtful(self, rows):
        return [row for row in rows if re.search(r"\[.* or .*\]", row["function"])]

    def check(self, out, want=None):
        rows = self.json("dpu", "functions", out, "--limit", "0")["rows"]
        self.assertEqual(self.calls(rows), want or self.want)
        self.assertEqual(self.doubtful(rows), [])
        return rows

    def check_costs(self, out, rows, names):
        """The cost of each function is the sum that the recorder counted for the instructions of its library."""
        truth, wires = collections.Counter(), []
        for line in (out / "truth.txt").read_text().splitlines():
            words = line.split()
            if words and words[0] == "wires":
                wires = words[1:]
            elif words and words[0] == "code":
                truth[words[2]] += int(words[3 + wires.index("CYCLES")])
        got = collections.Counter()
        for row in rows:
            got[row["function"]] += row["CYCLES"]
        self.assertEqual({name: got[name] for name in names}, {name: truth[name] for name in names})
        self.assertTrue(all(got[name] for name in names))

    # ---- every command

    def test_functions_have_the_names_of_the_library_that_was_there(self):
        out = self.record(*self.turns)
        rows = self.check(out)
        self.check_costs(out, rows, self.want)
        self.assertIn("\nequal:", self.waymark("verify", out).stdout)
        text = (out / "maps.txt").read_text()
        self.assertIn("\nclock trace-bytes\n", text)
        maps = [line.split(" ", 8) for line in text.splitlines() if line.startswith("map ")]
        mine = [line for line in maps if line[8] in (str(self.first), str(self.second))]
        self.assertEqual([line[8] for line in mine], [str(self.first), str(self.second), str(self.first)])
        size = (out / "vtb.bin").stat().st_size
        times = [int(line[2]) for line in mine]
        self.assertEqual(times, sorted(set(times)))
        self.assertLess(times[-1], size, "times are places in the trace")

    def test_every_command_gives_the_same_names(self):
        out = self.record(*self.turns)
        rows = self.json("profile", out, "--limit", "0")["rows"]
        self.assertEqual(self.calls(rows), self.want)
        for row in rows:
            if row["function"] in self.want:
                self.assertEqual(row["image"], f"{row['function'].split('_')[0]}.so", row)
        images = {row["image"] for row in self.json("profile", out, "--by", "image")["rows"]}
        self.assertLessEqual({"first.so", "other.so", "loads", "libc.so.6", "ld-linux-armhf.so.3"}, images)

        # The listing: the runs of each library, in order.
        flow = self.waymark("flow", out).stdout
        entered = re.findall(r"→ 0x\w+ <(first|other)>", flow)
        self.assertEqual(entered, ["first"] * 5 + ["other"] * 7 + ["first"] * 3)
        left = re.findall(r"0x\w+ <(first|other)(?:\+0x\w+)?> → 0x\w+ <main\+", flow)
        self.assertEqual(left, entered)

        paths = self.json("dpu", "paths", out, "--limit", "0")["rows"]
        for name in ("first", "other"):
            mine = [row["calls"] for row in paths if row["path"].endswith(f"main;{name};{name}_inner")]
            self.assertEqual(mine, [self.want[name]])
        self.assertNotRegex("\n".join(row["path"] for row in paths), r"other;first|first;other")
        self.assertNotIn("first.so or", self.waymark("dpu", "report", out).stdout)

        folded = self.folder / "folded"
        self.waymark("export", out, "--to", "folded", "-o", folded)
        self.assertRegex(folded.read_text(), r"main;first;first_inner \d+\n")
        self.assertRegex(folded.read_text(), r"main;other;other_inner \d+\n")
        database = self.folder / "answers.db"
        self.waymark("export", out, "--to", "sqlite", "-o", database)
        done = self.waymark("query", database, "select f.name, i.name, sum(c.calls) from calls c join functions f "
                         "on f.id = c.function join images i on i.id = f.image where f.name in ('first', 'other') "
                         "group by 1, 2 order by 1", "--format", "tsv")
        self.assertEqual(done.stdout.splitlines()[1:], ["first\tfirst.so\t8", "other\tother.so\t7"])
        # Source lines belong to the file that was loaded at the time.
        lines = {row["function"]: row.get("file") or row.get("line") for row in rows if row["function"] in self.want}
        for name, line in lines.items():
            self.assertIn(f"{name.split('_')[0]}.so.c", str(line))
        self.waymark("diff", out, out, "--threshold", "0")

    def test_programs_for_starcore(self):
        """A DPU watches StarCore cores. Their programs, whose instructions are not decoded, give the same names and
        lines; big-endian programs as well."""
        out = self.record(*self.turns)

        def named(with_lines):
            done = run(WAYMARK, "profile", out, "--limit", "0", "--format", "json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("machine 58", done.stderr)
            return {row["function"]: (row["image"], *((row["file"], row["line"]) if with_lines else ()))
                    for row in json.loads(done.stdout)["rows"] if row["function"] in (*self.want, "main")}

        want = named(True)
        self.assertEqual(set(want), {*self.want, "main"})
        self.assertTrue(all(line for image, file, line in want.values()), want)
        machine = 18  # e_machine
        for order in ("little", "big"):
            for image in out.glob("*.elf"):
                data = bytearray(image.read_bytes())
                data[machine:machine + 2] = (58).to_bytes(2, "little")
                if order == "big":
                    swap_elf(data)
                image.write_bytes(data)
            if order == "little":
                self.assertEqual(named(True), want)
            else:  # the debug information is unchanged
                self.assertEqual(named(False), {function: place[:1] for function, place in want.items()})

    def test_info_says_which_file_each_copy_is(self):
        out = self.record(*self.turns)
        images = {image["copy_of"]: pathlib.Path(image["file"]) for image in self.json("info", out)["images"]}
        for file in (self.first, self.second, self.loads):
            self.assertEqual(images[str(file)].read_bytes(), file.read_bytes())
        self.assertIn(f", a copy of {self.second}\n", self.waymark("info", out).stdout)

    def test_ranges_of_a_function(self):
        out = self.record(*self.turns)
        rows = self.json("dpu", "ranges", out, "--range", "other_inner", "--range", "first_inner")["rows"]
        inside = {row["range"]: row["intervals"] for row in rows if row["part"] == "inside"}
        self.assertEqual(inside, {"other_inner": 7, "first_inner": 8})

    # ---- every way to trace

    def test_buffers(self):
        """A ring that wrapped, a ring that is read out, and messages instead of a buffer."""
        last = self.turns[:6] + (self.first, "first", "2000")
        ring = self.record(*last, options=("--buffer", "65536"))
        self.assertIn("overwritten", self.waymark("dpu", "functions", ring).stdout)
        names = {row["function"] for row in self.json("dpu", "functions", ring, "--limit", "0")["rows"]}
        self.assertIn("first_inner", names)
        self.assertNotIn("other_inner", names)
        for options in (("--buffer", "1048576"), ("--buffer", "4096", "--buffer-mode", "request"),
                        ("--nexus", "only"), ("--nexus", "mirror")):
            with self.subTest(options=options):
                self.check(self.record(*self.turns, options=options))

    def test_borders_of_buffers(self):
        """The interrupt that reads a buffer out comes anywhere, also between a call and the next instruction. The
        environment moves the stack, and so the borders of buffers."""
        for buffer in ("512", "640", "1024", "4096"):
            for pad in range(0, 32, 8):
                with self.subTest(buffer=buffer, pad=pad):
                    out = self.record(*self.turns, options=("--buffer", buffer, "--buffer-mode", "request"),
                                      PAD="x" * pad)
                    # No readout was too late.
                    self.assertIn("\nequal:", self.waymark("verify", out).stdout)
                    self.check(out)

    def test_threads_that_load_and_unload(self):
        """Many turns, some while another thread runs in a library beside it."""
        host = self.build("threads", THREADS, "-pthread")
        libraries = [self.library(f"turn{i}") for i in range(6)]
        names = [f"turn{i}{suffix}" for i in range(6) for suffix in ("", "_inner")]
        for options in ((), ("--nexus", "only"), ("--buffer", "4096", "--buffer-mode", "request")):
            with self.subTest(options=options):
                out = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "out"
                self.waymark("record", "--unit", "dpu", "-o", out, *options, "--", host, *libraries)
                self.assertGreater((out / "maps.txt").read_text().count("\nmap "), 40, "libraries took turns")
                rows = self.json("dpu", "functions", out, "--limit", "0")["rows"]
                self.check_costs(out, rows, names)
                self.assertEqual(self.doubtful(rows), [])

    def test_loops(self):
        out = self.record(*self.turns, options=("--mode", "compressed"))
        rows = {row["where"]: row for row in self.json("dpu", "loops", out)["rows"]}
        for name, calls in (("first_inner", 8), ("other_inner", 7)):
            self.assertEqual((rows[name]["runs"], rows[name]["iterations"]), (calls, 9 * calls), name)
        there = {row["function"]: row["runs"] for row in self.json("loops", out)["rows"]}
        self.assertEqual((there["first_inner"], there["other_inner"]), (8, 7))

    # ---- files

    def test_without_build_ids(self):
        turns = []
        for name, calls in (("first", "5"), ("other", "7"), ("first", "3")):
            turns += [self.library(name, "-Wl,--build-id=none", file=f"{name}_plain"), name, calls]
        out = self.record(*turns)
        self.check(out)
        rows = self.json("profile", out, "--limit", "0")["rows"]
        images = {row["function"]: row["image"] for row in rows if row["function"] in self.want}
        self.assertEqual(images, {name: f"{name.split('_')[0]}_plain.so" for name in self.want})
        everything = {row["image"] for row in self.json("profile", out, "--by", "image")["rows"]}
        self.assertFalse([name for name in everything if re.match(r"image\d", name)], everything)

    def test_a_plugin_that_is_built_again(self):
        """One path, two builds."""
        plugin = self.library("first", file="plugin")
        out = self.record(plugin, "first", "5", f"{plugin}={self.library('other', file='plugin_again')}", "other", "7")
        self.check(out, {"first": 5, "first_inner": 5, "other": 7, "other_inner": 7})

    # ---- unknowable names

    def test_builds_without_build_ids(self):
        """One path, two builds, and nothing that distinguishes them: Waymark guesses neither."""
        options = ("-Wl,--build-id=none",)
        plugin = self.library("first", *options, file="bare")
        out = self.record(plugin, "first", "5", f"{plugin}={self.library('other', *options, file='bare_again')}",
                          "other", "7")
        done = self.waymark("dpu", "functions", out, "--limit", "0", "--format", "json")
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual(self.calls(rows), {})
        self.assertTrue(any(row["function"].startswith("bare.so+0x") for row in rows))
        self.assertIn("bare.so was built again while the program ran", done.stderr)

    def test_a_copy_that_was_replaced(self):
        out = self.record(*self.turns)
        copies = [line.split(" ", 3) for line in (out / "maps.txt").read_text().splitlines() if line.startswith("copy ")]
        name = {words[3]: words[1] for words in copies}
        shutil.copy(out / name[str(self.first)], out / name[str(self.second)])
        done = self.waymark("dpu", "functions", out, "--limit", "0", "--format", "json")
        rows = json.loads(done.stdout)["rows"]
        self.assertEqual(self.calls(rows), {"first": 8, "first_inner": 8})
        self.assertTrue(any(row["function"].startswith("other.so+0x") for row in rows))
        self.assertIn("it is not the build of", done.stderr)

    def test_a_map_of_another_clock_names_nothing_wrongly(self):
        """Earlier recordings counted times in instructions, which the trace does not show: their rows name both
        libraries."""
        out = self.record(*self.turns)
        text = (out / "maps.txt").read_text()
        for changed in (text.replace("clock trace-bytes", "clock instructions"), text.replace("clock trace-bytes\n", "")):
            (out / "maps.txt").write_text(changed)
            done = self.waymark("dpu", "functions", out, "--limit", "0", "--format", "json")
            rows = json.loads(done.stdout)["rows"]
            self.assertEqual(self.calls(rows), {})
            doubtful = self.doubtful(rows)
            self.assertEqual([row["function"] for row in doubtful], ["[first.so or other.so]"])
            self.assertRegex(done.stderr, r"maps\.txt.*first\.so or other\.so")
            self.assertTrue(any(row["function"] == "main" for row in rows))
            flow = self.waymark("flow", out).stdout
            self.assertNotRegex(flow, r"<(first|other)\b")
            self.assertIn("[first.so or other.so]", flow)
            images = {row["image"] for row in self.json("profile", out, "--by", "image")["rows"]}
            self.assertIn("[first.so or other.so]", images)


if __name__ == "__main__":
    for tool, package in (("qemu-arm", "qemu-user"),
                          (CROSS + "gcc", "gcc-arm-linux-gnueabihf, with libc6-dev-armhf-cross")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
