#!/usr/bin/env python3
"""Names of recorded position-independent programs and their libraries: which file was mapped where, and when.

    names_test.py WAYMARK SOURCE_DIR

The references are the programs' own counts, the symbol tables as printed by binutils, and the output of `readelf`.
"""
import collections
import json
import lzma
import os
import pathlib
import random
import re
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, number, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CROSS = "arm-linux-gnueabihf-"
LISTER = shutil.which("trc_pkt_lister")

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static __attribute__((noinline)) unsigned mix(unsigned x) {
    for (unsigned i = 0; i < 20; ++i) x = x * 31 + (x >> 3);
    return x;
}
static __attribute__((noinline)) int order(const void* a, const void* b) {
    return *(const unsigned*)a < *(const unsigned*)b ? -1 : 1;
}
int main(int argc, char** argv) {
    unsigned values[64], rounds = argc > 1 ? atoi(argv[1]) : 3, sum = 0;
    for (unsigned r = 0; r < rounds; ++r) {
        for (unsigned i = 0; i < 64; ++i) values[i] = mix(i + r);
        qsort(values, 64, sizeof *values, order);
        sum += values[0];
    }
    printf("%u\n", sum);
    return 0;
}
"""

# Loads each library in turn, calls a function in it and unloads it. FILE=NEW: NEW replaces FILE first, as a compiler
# does that rebuilds a plugin.
LOADS = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
    unsigned sum = 0;
    for (int i = 1; i + 2 < argc; i += 3) {
        char* replacement = strchr(argv[i], '=');
        if (replacement) {
            *replacement = 0;
            if (rename(replacement + 1, argv[i]) != 0) { perror("rename"); return 1; }
        }
        void* library = dlopen(argv[i], RTLD_NOW);
        unsigned (*run)(unsigned) = library ? (unsigned (*)(unsigned))dlsym(library, argv[i + 1]) : 0;
        if (!run) { fprintf(stderr, "%s\n", dlerror()); return 1; }
        for (int n = atoi(argv[i + 2]); n > 0; --n) sum += run(sum);
        printf("%s at %p\n", argv[i + 1], (void*)run);
        dlclose(library);
    }
    return sum == 1;
}
"""

UNMAPS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
static __attribute__((noinline)) unsigned after(unsigned x) { return x * 3 + 1; }
int main(void) {
    char* code = (char*)((unsigned long)main & ~4095ul);
    /* Both fail: the first address is none of a page, the second call asks for more than there is. */
    if (munmap(code + 2, 4096) == 0 || mremap(code, 4096, 0xf0000000, MREMAP_MAYMOVE) != MAP_FAILED) return 1;
    printf("%u\n", after(7));
    return 0;
}
"""


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.program = cls.build("program", PROGRAM)
        cls.out = cls.record(cls.folder / "out", cls.program, "3")

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def build(cls, name, source, *options, compiler=CROSS + "gcc"):
        (cls.folder / f"{name}.c").write_text(source)
        done = run(compiler, "-O1", "-g", "-o", cls.folder / name, cls.folder / f"{name}.c", *options)
        assert done.returncode == 0, done.stderr
        return cls.folder / name

    @staticmethod
    def record(out, *program, options=()):
        begin = () if "--start-at" in options else ("--from-start",)
        done = run(WAYMARK, "record", *begin, "-o", out, *options, "--", *program)
        assert done.returncode == 0, done.stdout + done.stderr
        return out

    def waymark(self, *arguments, status=0):
        done = run(WAYMARK, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def rows(self, *arguments):
        return json.loads(self.waymark("profile", *arguments, "--format", "json").stdout)["rows"]

    def calls_of(self, *arguments):
        times = collections.Counter()
        for row in self.rows(*arguments):
            times[row["function"]] += number(row["calls"])
        return times

    def moved(self, name):
        """A recording whose program was moved, and the program's new place."""
        home = self.folder / name
        home.mkdir()
        program = shutil.copy(self.program, home / "gone")
        out = self.record(home / "out", program, "3")
        elsewhere = home / "kept"
        elsewhere.mkdir()
        shutil.move(program, elsewhere / "gone")
        return out, elsewhere / "gone", program

    # ---- one program

    def test_everything_has_its_name_without_an_option(self):
        for row in self.rows(self.out):
            self.assertNotRegex(row["function"], "^0x[0-9a-f]{8}$", row)
        calls = self.calls_of(self.out)
        self.assertEqual(calls["mix"], 3 * 64)
        self.assertEqual(calls["main"], 1)
        self.assertEqual(calls["qsort"], 3)
        # The same for the entries of the procedure linkage table.
        self.assertEqual(calls["qsort@plt"], 3)
        self.assertGreater(calls["order"], 3 * 64)
        images = {row["image"] for row in self.rows(self.out)}
        self.assertEqual({"program", "libc.so.6", "ld-linux-armhf.so.3"}, images - {""})

    def test_the_map_is_that_of_the_files(self):
        text = (self.out / "maps.txt").read_text()
        self.assertTrue(text.startswith("waymark-maps 1\n"), text)
        notes = run("readelf", "-n", self.program).stdout
        build_id = re.search(r"Build ID: (\w+)", notes)[1]
        line = next(line for line in text.splitlines() if line.endswith(f" {self.program}"))
        self.assertIn(f" {build_id} ", line)
        if LISTER:
            log = self.folder / "lister.log"
            self.assertEqual(run(LISTER, "-ss_dir", self.out, "-decode_only", "-logfilename", log).returncode, 0)
            self.assertIn("OCSD_GEN_TRC_ELEM_INSTR_RANGE", log.read_text())
        self.assertIn("equal: ", self.waymark("verify", self.out).stdout)

    def test_every_command_that_names_code_does(self):
        for command in ("profile", "branches", "loops", "coverage --by function --only mix"):
            self.assertIn("mix", self.waymark(*command.split()[:1], self.out, *command.split()[1:]).stdout, command)
        flow = self.waymark("flow", self.out).stdout
        self.assertRegex(flow, r"-> mix\b")
        self.assertRegex(flow, r" mix\+0x\w+ ")
        self.assertIn("qsort", self.waymark("flow", self.out, "--format", "calls").stdout)
        symbols = {line.split("\t")[14] for line in self.waymark("flow", self.out, "--format", "tsv").stdout.splitlines()}
        self.assertIn("main", symbols)
        made = self.folder / "export.folded"
        self.waymark("export", self.out, "--to", "folded", "-o", made)
        self.assertRegex(made.read_text(), r"main;(qsort|.*order)")
        page = self.folder / "report.html"
        if self.tell_report(page):
            self.assertGreater(page.stat().st_size, 100000)

    def tell_report(self, page):
        done = run(WAYMARK, "report", self.out, "-o", page)
        if "was built without" in done.stderr:
            return False
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("No symbols are known", done.stderr)
        return True

    def test_lines_of_source_are_those_of_the_compiler(self):
        rows = json.loads(self.waymark("coverage", self.out, "--format", "json").stdout)
        self.assertIn("program.c", json.dumps(rows))

    # ---- files in other places, stripped, or of another build

    def test_symbols_and_image_are_placed_where_they_were_mapped(self):
        out, now, _ = self.moved("placed")
        done = self.waymark("profile", out)
        self.assertIn("gone was not found", done.stderr)
        self.assertNotIn("mix", done.stdout)
        self.assertRegex(done.stdout, r"gone\+0x[0-9a-f]+\?")
        for option in ("--symbols", "--image"):
            self.assertEqual(self.calls_of(out, option, now)["mix"], 3 * 64, option)
        renamed = shutil.copy(now, self.folder / "placed" / "other_name")
        self.assertEqual(self.calls_of(out, "--symbols", renamed)["mix"], 3 * 64, "by its build ID")

    def test_a_stripped_copy_takes_no_lines_away(self):
        stripped = self.folder / "without_lines"
        run(CROSS + "strip", "-o", stripped, self.program)

        def lines(*options):
            text = self.waymark("profile", self.out, "--by", "line", "--format", "tsv", *options).stdout
            return {row[-4] for row in (line.split("\t") for line in text.splitlines()) if row[-2].endswith("program.c")}

        self.assertGreater(len(lines()), 5)
        for option in ("--symbols", "--image"):
            self.assertEqual(lines(option, stripped), lines(), option)
            self.assertEqual(self.calls_of(self.out, option, stripped), self.calls_of(self.out), option)

    def test_doctor_places_an_image_where_it_was_mapped(self):
        self.waymark("doctor", self.out, "--image", self.program, "--strict")
        self.assertIn(f"agrees, proven: {self.program}", self.waymark("doctor", self.out, "--image", self.program).stdout)
        # The same code built again: its build ID shows that this file did not run, however well it decodes.
        other = self.folder / "another_build"
        self.assertEqual(run(CROSS + "gcc", "-O2", "-g", "-Wl,--build-id=0x0123456789abcdef", "-o", other,
                             self.folder / "program.c").returncode, 0)
        done = self.waymark("doctor", self.out, "--image", other, "--strict", status=1)
        self.assertIn("its build ID is 0123456789abcdef", done.stdout)
        self.assertNotIn("another_build: agrees", done.stdout)

    def test_doctor_takes_damage_for_no_wrong_register(self):
        damaged = self.folder / "turned_bits"
        shutil.copytree(self.out, damaged)
        trace = damaged / "trace.bin"
        contradicted = 0
        for seed in range(6):
            draw = random.Random(seed)
            content = bytearray((self.out / "trace.bin").read_bytes())
            for _ in range(20):
                content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
            trace.write_bytes(content)
            kinds = [finding["kind"] for finding in json.loads(run(WAYMARK, "doctor", damaged, "--format", "json").stdout)
                     ["findings"]]
            self.assertNotIn("return-stack", kinds, f"seed {seed}")
            self.assertNotIn("barrier-waypoints", kinds, f"seed {seed}")
            contradicted += bool({"image", "image-in-part"} & set(kinds))
        self.assertGreater(contradicted, 3)

    def test_symfs_has_files_by_path_and_by_name(self):
        out, now, before = self.moved("symfs")
        root = self.folder / "symfs" / "root"
        (root / pathlib.Path(before).parent.relative_to("/")).mkdir(parents=True)
        shutil.copy(now, root / pathlib.Path(before).relative_to("/"))
        self.assertEqual(self.calls_of(out, "--symfs", root)["mix"], 3 * 64)
        self.assertEqual(self.calls_of(out, "--symfs", now.parent)["mix"], 3 * 64)
        self.assertIn("is not a folder", self.waymark("profile", out, "--symfs", "/nowhere", status=2).stderr)

    def test_debug_dir_has_files_by_build_id(self):
        out, now, before = self.moved("debug")
        build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", now).stdout)[1]
        place = self.folder / "debug" / "dir" / ".build-id" / build_id[:2]
        place.mkdir(parents=True)
        self.assertEqual(run(CROSS + "objcopy", "--only-keep-debug", now, place / f"{build_id[2:]}.debug").returncode,
                         0)
        self.assertEqual(run(CROSS + "strip", "--strip-all", "-o", before, now).returncode, 0)
        self.assertNotIn("mix", self.waymark("profile", out).stdout)
        folder = self.folder / "debug" / "dir"
        self.assertEqual(self.calls_of(out, "--debug-dir", folder)["mix"], 3 * 64)
        self.assertEqual(self.calls_of(out, "--debug-dir", os.path.relpath(folder))["mix"], 3 * 64)
        for command in (("branches",), ("loops",), ("coverage", "--by", "function", "--only", "mix"), ("flow",),
                        ("flow", "--format", "calls")):
            text = self.waymark(command[0], out, *command[1:], "--debug-dir", folder).stdout
            self.assertIn("mix", text, command)
        self.assertEqual(self.waymark("diff", out, out, "--debug-dir", folder, "--threshold", "0").returncode, 0)

    def test_another_build_names_nothing(self):
        out, _, before = self.moved("rebuilt")
        done = run(CROSS + "gcc", "-O2", "-o", before, self.folder / "program.c")
        self.assertEqual(done.returncode, 0)
        done = self.waymark("profile", out)
        self.assertIn("is another build", done.stderr)
        self.assertNotRegex(done.stdout, r"\bmix\b")
        self.assertRegex(done.stdout, r"gone\+0x[0-9a-f]+\?")

    def test_stripped_files_are_named_by_what_comes_before_with_a_mark(self):
        out, now, before = self.moved("stripped")
        # If only one exported function is left, code after it is named by its distance, with a mark.
        self.assertEqual(run(CROSS + "objcopy", "--strip-all", "--keep-symbol=mix", now, before).returncode, 0)
        names = {row["function"] for row in self.rows(out)}
        self.assertIn("mix", names)
        symbols = dict(reversed(line.split()[::2]) for line in
                       run(CROSS + "nm", now).stdout.splitlines() if len(line.split()) == 3)
        distance = (int(symbols["order"], 16) & ~1) - (int(symbols["mix"], 16) & ~1)
        self.assertGreater(distance, 0)
        self.assertIn(f"mix+{distance:#x}?", names)
        # Code of different files is never combined in one row.
        rows = [row for row in self.rows(out) if row["function"].startswith("(no symbol)")]
        self.assertEqual(len(rows), len({row["image"] for row in rows}))

    def test_gnu_debugdata_has_names(self):
        out, now, before = self.moved("mini")
        home = self.folder / "mini"
        self.assertEqual(run(CROSS + "objcopy", "--only-keep-debug", now, home / "whole").returncode, 0)
        self.assertEqual(run(CROSS + "objcopy", "-S", "--remove-section", ".comment", "--keep-symbol=mix",
                             "--keep-symbol=order", "--keep-symbol=main", home / "whole", home / "debug").returncode,
                         0)
        debug = home / "debug"
        # As in Fedora: only symbols, xz-compressed, in a section of the stripped file.
        (home / "debug.xz").write_bytes(lzma.compress(debug.read_bytes()))
        self.assertEqual(run(CROSS + "strip", "--strip-all", "-o", before, now).returncode, 0)
        self.assertEqual(run(CROSS + "objcopy", "--add-section", f".gnu_debugdata={home}/debug.xz", before).returncode,
                         0)
        self.assertEqual(self.calls_of(out)["mix"], 3 * 64)
        self.assertGreater(self.calls_of(out)["order"], 3 * 64)
        # Damaged: only names are missing.
        packed = bytearray((home / "debug.xz").read_bytes())
        packed[len(packed) // 2] ^= 0x55
        (home / "debug.xz").write_bytes(packed)
        self.assertEqual(run(CROSS + "objcopy", "--update-section", f".gnu_debugdata={home}/debug.xz",
                             before).returncode, 0)
        self.assertEqual(self.calls_of(out)["mix"], 0)

    def test_debug_files_are_found_by_their_link_and_no_client_is_loaded_for_none(self):
        out, now, before = self.moved("linked")
        home, folder = self.folder / "linked", self.folder / "linked" / "debug"
        debug = home / "kept" / "gone.debug"
        self.assertEqual(run(CROSS + "objcopy", "--only-keep-debug", now, debug).returncode, 0)
        self.assertEqual(run(CROSS + "strip", "-o", before, now).returncode, 0)
        self.assertEqual(run(CROSS + "objcopy", f"--add-gnu-debuglink={debug}", before).returncode, 0)
        folder.mkdir()
        arguments = ("profile", out, "--by", "line", "--debug-dir", folder)
        below = home.resolve().relative_to("/")
        for place in (home, home / ".debug", folder, folder / below, folder / below.name):
            place.mkdir(parents=True, exist_ok=True)
            put = shutil.copy(debug, place)
            self.assertIn("program.c", self.waymark(*arguments).stdout, place)
            pathlib.Path(put).unlink()
        # The loader names each library that it looks for.
        done = run(WAYMARK, *arguments, env={**os.environ, "LD_DEBUG": "libs"})
        self.assertNotIn("program.c", done.stdout)
        if "libdw" in done.stderr:
            self.assertFalse("libdebuginfod" in done.stderr)

    # ---- time

    def library(self, name, function):
        source = f"unsigned {function}(unsigned x) {{ for (unsigned i = 0; i < 9; ++i) x = x * 7 + i; return x; }}"
        return self.build(f"{name}.so", source, "-shared", "-fPIC")

    def test_libraries_that_come_and_go(self):
        # The same code in two files, loaded one after the other: addresses and bytes are equal, names are not.
        loads = self.build("loads", LOADS)
        first, second = self.library("first", "in_first"), self.library("second", "in_other")
        out = self.folder / "loaded"
        self.record(out, loads, first, "in_first", "5", second, "in_other", "7", first, "in_first", "3")
        places = re.findall(r"(\w+) at (0x\w+)", run("qemu-arm", "-L", "/usr/arm-linux-gnueabihf", loads, first,
                                                       "in_first", "5", second, "in_other", "7").stdout)
        self.assertEqual(places[0][1], places[1][1], "the libraries should come to lie at one address")
        calls = self.calls_of(out)
        self.assertEqual((calls["in_first"], calls["in_other"]), (8, 7))
        maps = [line.split(" ", 8) for line in (out / "maps.txt").read_text().splitlines() if line.startswith("map ")]
        self.assertEqual(sum(line[8] == str(first) for line in maps), 2)
        ended = [line for line in maps if line[8] in (str(first), str(second))]
        self.assertTrue(all(line[3] != "-" for line in ended[:-1]), ended)
        self.assertIn("equal: ", self.waymark("verify", out).stdout)
        flow = self.waymark("flow", out).stdout
        self.assertIn("in_first", flow)
        self.assertIn("in_other", flow)

    def test_a_plugin_that_is_built_again_has_both_its_builds(self):
        # The plugin replaces its own file as soon as it runs: there is hardly any time to read the mapped file.
        loads, plugin = self.build("loads_rebuilt", LOADS), self.folder / "plugin.so"
        again = self.library("plugin_again", "in_other")
        self.build("plugin.so", f"""
            #include <stdio.h>
            static __attribute__((constructor)) void replace(void) {{ rename("{again}", "{plugin}"); }}
            unsigned in_first(unsigned x) {{ return x + 1; }}""", "-shared", "-fPIC")
        builds = [re.search(r"Build ID: (\w+)", run("readelf", "-n", file).stdout)[1] for file in (plugin, again)]
        out = self.record(self.folder / "rebuilt_plugin", loads, plugin, "in_first", "5", plugin, "in_other", "7")
        maps = [line.split(" ", 8) for line in (out / "maps.txt").read_text().splitlines() if line.startswith("map ")]
        self.assertEqual([line[7] for line in maps if line[8] == str(plugin)], builds)

    def test_an_unmapping_that_fails_takes_nothing_away(self):
        program = self.build("unmaps", UNMAPS)
        out = self.record(self.folder / "unmaps_out", program)
        line = next(line for line in (out / "maps.txt").read_text().splitlines() if line.endswith(f" {program}"))
        self.assertEqual(line.split()[3], "-", line)
        self.assertEqual(self.calls_of(out)["after"], 1)

    def test_a_library_that_is_loaded_twice_is_one(self):
        loads = self.build("loads_again", LOADS)
        first = self.library("again", "in_again")
        out = self.record(self.folder / "again_out", loads, first, "in_again", "5", first, "in_again", "7")
        self.assertEqual(self.calls_of(out)["in_again"], 12)
        self.assertIn("[trace_buffers]\nbuffers=buffer0\n", (out / "trace.ini").read_text())

    def test_runs_at_other_addresses_do_not_differ(self):
        home = self.folder / "moving"
        home.mkdir()
        program = pathlib.Path(shutil.copy(self.program, home / "gone"))
        # A library that is loaded before them moves the others. The names have equal lengths, because they are on the
        # stack.
        outs = []
        for name, library in (("1.so", "libm.so.6"), ("2.so", "libgcc_s.so.1")):
            shutil.copy(pathlib.Path("/usr/arm-linux-gnueabihf/lib") / library, home / name)
            outs.append(self.record(home / f"out{name[0]}", program, "3",
                                    options=("--qemu=-E", f"--qemu=LD_PRELOAD={home / name}")))

        def places(out):
            return {line.split(" ", 8)[8]: line.split()[4] for line in (out / "maps.txt").read_text().splitlines()
                    if line.startswith("map ")}

        libc = [next(at for file, at in places(out).items() if "libc.so" in file) for out in outs]
        self.assertNotEqual(libc[0], libc[1])

        def differences(*options):
            done = self.waymark("diff", *outs, *options, "--only", "libc.so.6", "--only", "gone", "--threshold", "0.1",
                             "--threshold-each", "0.5", "--format", "json")
            rows = json.loads(done.stdout)["rows"]
            self.assertGreater(len(rows), 5)
            return [r for r in rows if r["what"] != "same"], {r["function"] for r in rows}

        changed, names = differences()
        self.assertEqual(changed, [])
        self.assertIn("mix", names)
        # Without any file there are no symbols: names are file and offset.
        empty = home / "empty"
        empty.mkdir()
        changed, names = differences("--symfs", empty)
        self.assertEqual(changed, [])
        self.assertTrue(all(re.search(r"\+0x[0-9a-f]+\?$|^\(no symbol\) in ", name) for name in names), names)

    def test_the_program_at_another_address_does_not_differ(self):
        home = self.folder / "loader"
        home.mkdir()
        program = pathlib.Path(shutil.copy(self.program, home / "gone"))
        lib = pathlib.Path("/usr/arm-linux-gnueabihf/lib")
        # The dynamic linker, run as a program, takes the program's place and maps the program elsewhere.
        outs = [self.record(home / "alone", program, "3"),
                self.record(home / "loaded", lib / "ld-linux-armhf.so.3", "--library-path", lib, program, "3")]
        places = [next(line.split()[4] for line in (out / "maps.txt").read_text().splitlines()
                       if line.endswith(f" {program}")) for out in outs]
        self.assertNotEqual(*places)
        empty = home / "empty"
        empty.mkdir()
        for options in ((), ("--symfs", empty)):
            done = self.waymark("diff", *outs, *options, "--only", "gone", "--threshold", "0", "--threshold-each", "0",
                             "--format", "json")
            rows = json.loads(done.stdout)["rows"]
            self.assertGreater(len(rows), 0 if options else 5)
            self.assertEqual([r for r in rows if r["what"] != "same"], [])
            # The C library as well, except for its handling of names and places at its start.
            self.waymark("diff", *outs, *options, "--only", "gone", "--only", "libc.so.6", "--threshold", "0.1")
        # A function of the other program grows.
        other = self.record(home / "more", lib / "ld-linux-armhf.so.3", "--library-path", lib, program, "4")
        self.waymark("diff", outs[0], other, "--only", "gone", "--threshold", "1", status=1)

    # ---- where recording begins and stops

    def flow_of(self, *options, status=0):
        out = self.folder / "part"
        shutil.rmtree(out, ignore_errors=True)
        begin = () if "--start-at" in options else ("--from-start",)
        done = run(WAYMARK, "record", *begin, "-o", out, *options, "--", self.program, "3")
        self.assertEqual(done.returncode, status, done.stderr)
        return (self.calls_of(out), done.stderr) if status == 0 else (None, done.stderr)

    def first_place(self):
        rows = [line.split("\t") for line in
                self.waymark("flow", self.folder / "part", "--format", "tsv").stdout.splitlines()]
        return next(row[14] for row in rows if "range" in row)

    def test_recording_begins_at_a_symbol_of_a_program_that_is_loaded_anywhere(self):
        calls, _ = self.flow_of("--start-at", "mix")
        self.assertEqual(self.first_place(), "mix")
        self.assertEqual(calls["mix"], 3 * 64, "the recording begins where the first call leads")
        self.assertEqual(calls["_start"], 0)
        self.assertIn("equal: ", self.waymark("verify", self.folder / "part").stdout)

    def test_recording_stops_there(self):
        calls, _ = self.flow_of("--start-at", "main", "--stop-at", "order")
        self.assertEqual(self.first_place(), "main")
        self.assertEqual((calls["mix"], calls["order"]), (64, 0))
        # By the dynamic linker, whatever the address at which it mapped the file.
        out = self.folder / "part"
        lib = pathlib.Path("/usr/arm-linux-gnueabihf/lib")
        self.record(out, lib / "ld-linux-armhf.so.3", "--library-path", lib, self.program, "3",
                    options=("--start-at", "mix", "--stop-at", "order"))
        self.assertEqual(self.first_place(), "mix")

    def test_recording_begins_at_a_symbol_of_a_library(self):
        calls, _ = self.flow_of("--start-at", "qsort")
        self.assertEqual(self.first_place(), "qsort")
        self.assertEqual((calls["mix"], calls["qsort"]), (2 * 64, 3))

    def test_a_symbol_that_nothing_has_is_told(self):
        said = self.flow_of("--start-at", "nowhere", status=1)[1]
        self.assertIn("no file that ran has the symbol of --start-at nowhere", said)
        said = self.flow_of("--stop-at", "nowhere", status=1)[1]
        self.assertIn("--stop-at nowhere: no file that ran has such a symbol", said)
        self.assertIn("nothing stopped the recording", said)
        self.assertEqual(self.calls_of(self.folder / "part")["mix"], 3 * 64, "all of it is recorded")
        # A name without parameters that two functions have, one that a single one has, and one that is never reached.
        program = self.folder / "overloads"
        (self.folder / "overloads.cpp").write_text(
            "__attribute__((noinline, noclone)) int twice(int x) { asm volatile(\"\"); return 2 * x; }\n"
            "__attribute__((noinline, noclone)) int twice(long long x) { asm volatile(\"\"); return int(x) + 2; }\n"
            "__attribute__((noinline, noclone)) int thrice(int x) { asm volatile(\"\"); return 3 * x; }\n"
            "__attribute__((used)) int never(int x) { return x; }\n"
            "int main() { return twice(1) + twice(1ll) + thrice(2) - 11; }\n")
        run(CROSS + "g++", "-O1", "-g", self.folder / "overloads.cpp", "-o", program)
        for where, status, what in (("twice", 1, "several functions of that name"), ("twice(int)", 0, ""), ("thrice", 0, ""),
                                    ("never", 1, "execution never reached it; nothing stopped")):
            done = run(WAYMARK, "record", "--from-start", "-o", self.folder / "part", "--stop-at", where, "--", program)
            self.assertEqual(done.returncode, status, (where, done.stderr))
            self.assertIn(what, done.stderr, where)
            self.assertEqual("nothing stopped the recording" in done.stderr, status == 1, where)

    # ---- output of info

    def test_info_lists_what_was_mapped(self):
        maps = json.loads(self.waymark("info", self.out, "--format", "json").stdout)["maps"]
        self.assertEqual({pathlib.Path(f["file"]).name for f in maps["files"]},
                         {"program", "libc.so.6", "ld-linux-armhf.so.3"})
        build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", self.program).stdout)[1]
        mine = next(f for f in maps["files"] if f["file"] == str(self.program))
        self.assertEqual(mine["build_id"], build_id)
        text = self.waymark("info", self.out).stdout
        self.assertIn("mapped  3 files", text)
        address, size = int(mine["mapped"][0]["address"], 16), mine["mapped"][0]["bytes"]
        self.assertIn(f"  {address:#010x}-{address + size:#010x}  {self.program}, build ID {build_id[:16]}\n", text)

    # ---- damage

    def test_a_damaged_map_is_told_and_names_the_rest(self):
        text = (self.out / "maps.txt").read_text()
        lines = text.splitlines()
        copy = self.folder / "damaged"
        shutil.copytree(self.out, copy)
        at = next(i for i, line in enumerate(lines) if line.startswith("map ") and "libc" in line)
        lines[at] = lines[at].replace(" 0x", " 0xz", 1)
        (copy / "maps.txt").write_text("\n".join(lines) + "\n")
        done = self.waymark("profile", copy)
        self.assertRegex(done.stderr, rf"maps\.txt:{at + 1}: This line was omitted: .*no numbers")
        self.assertIn("mix", done.stdout)
        for contents in ("", "waymark-maps 99\n", "\0\0\0", text[:37], "map 0 0 - 1 1 1 - /x\n"):
            (copy / "maps.txt").write_text(contents)
            self.assertIn("maps.txt", self.waymark("profile", copy).stderr, contents)

    # ---- other units

    def test_dpu_names_stripped_and_separate(self):
        home = self.folder / "dpu"
        home.mkdir()
        program = shutil.copy(self.program, home / "prog")
        out = self.record(home / "out", program, "3", options=("--unit", "dpu"))
        self.assertIn(f" {program}\n", (out / "maps.txt").read_text())
        text = self.waymark("dpu", "functions", out).stdout
        self.assertRegex(text, r"\bmix\b")
        build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", program).stdout)[1]
        place = home / "dir" / ".build-id" / build_id[:2]
        place.mkdir(parents=True)
        for image in out.glob("image*.elf"):
            if image.read_bytes() == pathlib.Path(program).read_bytes():
                run(CROSS + "objcopy", "--only-keep-debug", image, place / f"{build_id[2:]}.debug")
                run(CROSS + "strip", "--strip-all", image)
        text = self.waymark("dpu", "functions", out, "--limit", "0").stdout
        self.assertNotRegex(text, r"\bmix\b")
        self.assertRegex(text, r"[\w.]+\+0x[0-9a-f]+\?")
        text = self.waymark("dpu", "functions", out, "--debug-dir", home / "dir").stdout
        self.assertRegex(text, r"\bmix\b")

    def test_spe_names_a_stripped_library_with_a_mark(self):
        compiler = "aarch64-linux-gnu-gcc"
        if not shutil.which(compiler):
            self.skipTest("aarch64-linux-gnu-gcc is not on PATH; it is in the Debian package gcc-aarch64-linux-gnu")
        program = self.build("a64", PROGRAM, compiler=compiler)
        run("aarch64-linux-gnu-objcopy", "--strip-all", "--keep-symbol=main", program)
        data = self.folder / "perf.data"
        self.record(data, program, "60", options=("--unit", "spe", "--period", "256"))
        text = self.waymark("spe", "report", data).stdout
        self.assertRegex(text, r"main\+0x[0-9a-f]+\?|\w+\+0x[0-9a-f]+\?")


if __name__ == "__main__":
    for tool, package in (("qemu-arm", "qemu-user"),
                          (CROSS + "gcc", "gcc-arm-linux-gnueabihf, with libc6-dev-armhf-cross")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    if not pathlib.Path("/usr/arm-linux-gnueabihf/include/stdio.h").exists():
        print("SKIPPED: the C library for Arm is missing; it is in the Debian package libc6-dev-armhf-cross")
        sys.exit(77)
    if not LISTER:
        print("SKIPPED: OpenCSD's counts are not compared: trc_pkt_lister is not on PATH (Debian package libopencsd-bin)",
              flush=True)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
