#!/usr/bin/env python3
"""Gates on recordings that are not the whole run, or whose files changed since: none passes or fails falsely.

    gates_test.py WAYMARK SOURCE_DIR

The witnesses are the program itself, which is known to run all that it has, and a recording of the whole run.
"""
import collections
import contextlib
import csv
import json
import os
import pathlib
import re
import shutil
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, number, run  # noqa: E402

WAYMARK = pathlib.Path(sys.argv[1]).resolve()
CROSS = "arm-linux-gnueabihf-"

# Its last phase runs no code of the first two. Without LIBC it ends by a system call and is loaded alone: commands then
# take a fraction of the time they take with all code of the C library.
PROGRAM = r"""
#ifdef LIBC
#include <stdio.h>
#else
static volatile unsigned result;
#define printf(format, value) (void)(result = (value))
__asm__(".globl _start\n.thumb_func\n_start: bl main\n movs r7, #1\n svc 0\n");
#endif
#ifndef ROUNDS
#define ROUNDS 200
#endif
#ifndef SECOND
#define SECOND 50
#endif
static __attribute__((noinline)) unsigned first(unsigned x) { return x % 7 == 3 ? x + 5 : x * 31 + 1; }
static __attribute__((noinline)) unsigned second(unsigned x) { return (x ^ (x >> 3)) + 9; }
static __attribute__((noinline)) unsigned last(unsigned x) {
    for (unsigned i = 0; i < 4000; ++i) x = x * 3 + (x >> 5 & 1 ? i : 7);
    return x;
}
__attribute__((used, noinline)) unsigned never(unsigned x) { return x % 5 == 2 ? x : x + 3; }
int main(void) {
    unsigned sum = 1;
    for (unsigned i = 0; i < ROUNDS; ++i) sum += first(sum);
    for (unsigned i = 0; i < SECOND; ++i) sum += second(sum);
#ifdef PART
    if (sum == 1) sum = never(sum);
#endif
    printf("%u\n", last(sum));
    return 0;
}
"""

# Exported functions keep their names in a stripped library, `hidden` does not. Both files have a static function with
# the same name.
LIBRARY = r"""
#ifndef WORK
#define WORK 100
#endif
#ifndef EACH
#define EACH 20
#endif
static __attribute__((noinline)) unsigned each(unsigned x) {
    for (unsigned i = 0; i < EACH; ++i) x = x * 5 + 1;
    return x;
}
__attribute__((noinline, visibility("hidden"))) unsigned hidden(unsigned x) {
    for (unsigned i = 0; i < 60; ++i) x = (x >> 1) ^ i;
    return x;
}
__attribute__((noinline)) unsigned work(unsigned x) {
    for (unsigned i = 0; i < WORK; ++i) x = x * 7 + i;
    return hidden(each(x));
}
"""
USER = r"""
#ifndef USE
#define USE 400
#endif
unsigned work(unsigned);
static __attribute__((noinline)) unsigned each(unsigned x) {
    for (unsigned i = 0; i < USE; ++i) x = x * 9 + 3;
    return x;
}
int main(void) { return work(each(3)) == 12345; }
"""
# Overloads, and a function that can be renamed.
OVERLOADS = r"""
#ifndef NAME
#define NAME areas
#endif
struct Shape { unsigned size; };
__attribute__((noinline)) unsigned NAME(const Shape& s) { return s.size * s.size + 1; }
__attribute__((noinline)) unsigned NAME(const Shape& s, unsigned n) {
    unsigned sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += s.size ^ i;
    return sum;
}
__attribute__((noinline)) unsigned other(unsigned x) { return x * 3 + 1; }
int main(int n, char**) { Shape s{unsigned(n) + 4}; return NAME(s) + NAME(s, 90) + other(n) == 12345; }
"""


class Gates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.program = cls.build(cls.folder / "program")
        cls.whole = cls.record(cls.folder / "whole", cls.program)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def build(cls, path, *options, libc=False):
        source = cls.folder / "program.c"
        source.write_text(PROGRAM)
        path.parent.mkdir(exist_ok=True)
        done = run(CROSS + "gcc", "-O1", "-g", "-Wl,--build-id", "-o", path, source, "-DLIBC" if libc else "-nostdlib",
                   *options)
        assert done.returncode == 0, done.stderr
        return path

    @staticmethod
    def record(out, program, *options):
        begin = () if "--start-at" in options else ("--from-start",)
        done = run(WAYMARK, "record", *begin, "-o", out, *options, "--", program)
        assert done.returncode == 0, done.stdout + done.stderr
        return out

    def waymark(self, *arguments, status=0):
        done = run(WAYMARK, *arguments)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}{done.stderr}")
        return done

    def rows(self, *arguments):
        text = self.waymark(*arguments, "--format", "tsv").stdout
        return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))

    # ---- a part of the run

    def assert_is_part(self, out, words, states_rest=False):
        """Every command says so, nothing counts as not executed unless the capture states what ran in the rest, and no gate
        passes under --strict."""
        for command in ("profile", "coverage", "branches", "loops"):
            with self.subTest(command=command):
                done = self.waymark(command, out)
                self.assertRegex(done.stdout, rf"(?m)^warning .*{words}")
                self.assertRegex(self.waymark(command, out, "--strict", status=1).stderr, words)
        for command, *more in (("flow", "--format", "summary"), ("doctor",), ("diff", self.whole)):
            with self.subTest(command=command):
                done = self.waymark(command, *([*more, out] if command == "diff" else [out, *more]))
                # doctor breaks lines.
                self.assertRegex(re.sub(r"\s+", " ", done.stdout + done.stderr), words)
                self.waymark(command, *([*more, out] if command == "diff" else [out, *more]), "--strict", status=1)
        info = self.waymark("info", out).stdout
        self.assertRegex(info, words)
        self.assertNotIn("Nothing wrong was found", info)
        health = json.loads(self.waymark("profile", out, "--format", "json").stdout)["health"]
        self.assertNotIn("good", [finding["severity"] for finding in health])
        rows = self.rows("coverage", out, "--by", "function")
        if states_rest:
            self.assertGreater(sum(number(row["instructions not executed"]) for row in rows), 0)
            return
        for row in rows:
            self.assertEqual(number(row["instructions not executed"]), 0, row)
            self.assertEqual(number(row["directions not executed"]), 0, row)

    def test_a_buffer_that_wrapped_is_the_end_of_the_run(self):
        out = self.record(self.folder / "wrapped", self.program, "--buffer", "1024")
        self.assert_is_part(out, r"wrapped: it holds the last 1,024 of [\d,]+ bytes")
        # Code in the head is not known to have run, and not reported as not executed.
        row = {r["function"]: r for r in self.rows("coverage", out, "--image", self.program, "--by", "function")}
        self.assertEqual(number(row["first"]["instructions executed"]), 0)
        self.assertEqual(number(row["first"]["instructions not observed"]), number(row["first"]["instructions"]))

    def test_a_limit_is_the_beginning_of_the_run(self):
        out = self.record(self.folder / "limited", self.program, "--limit", "30000")
        self.assert_is_part(out, r"ended after 30,000 instructions \(--limit\)")

    def test_what_began_late_lacks_its_beginning(self):
        address = min(int(r["address"], 16) for r in self.rows("profile", self.whole) if r["function"] == "second")
        out = self.record(self.folder / "late", self.program, "--start-at", hex(address))
        self.assert_is_part(out, rf"began where execution first reached {address:#x} \(--start-at\)", states_rest=True)
        out = self.record(self.folder / "early", self.program, "--stop-at", hex(address))
        self.assert_is_part(out, rf"ended where execution reached {address:#x} \(--stop-at\)")

    def test_a_dpu_that_saw_a_part_says_so(self):
        for name, options, words in (("dpu-limited", ("--limit", "30000"), "The recording ended by --limit"),
                                     ("dpu-wrapped", ("--buffer", "4096"), "Older trace was overwritten")):
            with self.subTest(name):
                out = self.record(self.folder / name, self.program, "--unit", "dpu", *options)
                self.assertRegex(self.waymark("profile", out).stdout, f"(?m)^warning .*{words}")
                self.assertIn(words, self.waymark("profile", out, "--strict", status=1).stderr)
                self.waymark("dpu", "report", out, "--strict", status=1)

    def test_a_cut_file_leaves_the_rest_unknown(self):
        out = self.folder / "cut"
        shutil.copytree(self.whole, out)
        os.truncate(out / "trace.bin", (out / "trace.bin").stat().st_size // 32 * 16)
        done = self.waymark("coverage", out, "--by", "function", "--format", "tsv", status=3)
        for row in csv.DictReader(done.stdout.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
            self.assertEqual(number(row["instructions not executed"]), 0, row)

    def test_the_whole_run_is_no_part(self):
        for command in ("profile", "coverage", "branches", "doctor"):
            self.waymark(command, self.whole, "--strict")
        self.assertIn("Nothing wrong was found", self.waymark("info", self.whole).stdout)
        rows = self.rows("coverage", self.whole, "--by", "function")
        self.assertGreater(sum(number(r["instructions not executed"]) for r in rows), 100)

    def test_where_it_began_is_said_by_symbol(self):
        for name, options in (("pie", ()), ("fixed", ("-no-pie",))):
            program = self.build(self.folder / f"{name}-program", *options)
            out = self.record(self.folder / f"{name}-late", program, "--start-at", "second")
            self.assert_is_part(out, r"began where execution first reached second \(--start-at\)", states_rest=True)

    # ---- the default beginning

    def recorded_by_default(self, name, program, *options):
        out = self.folder / name
        done = self.waymark("record", "-o", out, *options, "--", program)
        self.assertEqual(done.stderr.count(f"next: waymark report {out}"), 1, done.stderr)
        self.assertNotIn("warning", done.stderr)
        return out, done.stderr

    def test_a_program_is_recorded_from_main_on(self):
        for name, options in (("main-fixed", ("-no-pie",)), ("main-pie", ())):
            with self.subTest(name):
                program = self.build(self.folder / f"{name}-program", *options, libc=True)
                out, said = self.recorded_by_default(name, program)
                self.assertEqual(said.count("the recording begins at main; --from-start"), 1, said)
                names = {r["function"] for r in self.rows("profile", out)}
                self.assertIn("main", names)
                self.assertFalse({"_start", "_dl_start", "__libc_start_main"} & names)
                part = r"not traced: what ran before main, where the recording began \([\d,]+ instructions\)"
                for command in ("profile", "coverage", "branches"):
                    done = self.waymark(command, out, "--strict")
                    self.assertRegex(done.stdout, part)
                    self.assertNotRegex(done.stdout + done.stderr, "(?m)^(waymark: )?warning")
                self.waymark("doctor", out, "--strict")
                self.assertRegex(self.waymark("info", out).stdout, part)
                # Code that ran before main is known (before_test.py); without before.txt, any code may have run.
                self.assertGreater(sum(number(row["instructions not executed"])
                                       for row in self.rows("coverage", out, "--by", "function")), 10)
                self.waymark("verify", out)
                (out / "before.txt").unlink()
                for row in self.rows("coverage", out, "--by", "function"):
                    self.assertEqual(number(row["instructions not executed"]), 0, row)
                self.waymark("coverage", out, "--strict", status=1)
                whole, said = self.recorded_by_default(f"{name}-whole", program, "--from-start")
                self.assertNotIn("begins at main", said)
                self.assertIn("_start", {r["function"] for r in self.rows("profile", whole)})
                self.assertNotIn("where the recording began", self.waymark("profile", whole).stdout)

    def test_own_code_that_runs_before_main_is_missed_by_strict_coverage(self):
        program, source = self.folder / "early-program", self.folder / "early.c"
        source.write_text("""
            volatile unsigned sum;
            __attribute__((constructor)) static void early(void) { for (unsigned i = 0; i < 9; ++i) sum += i; }
            int main(void) { return sum == 36 ? 0 : 1; }
            """)
        done = run(CROSS + "gcc", "-O1", "-g", "-Wl,--build-id", "-o", program, source)
        self.assertEqual(done.returncode, 0, done.stderr)
        own = ("--only", "early.c", "--strict")
        for name, begin in (("early-default", ()), ("early-explicit", ("--start-at", "main"))):
            with self.subTest(name):
                out, _ = self.recorded_by_default(name, program, *begin)
                # The recording states that `early` ran, and that it was not observed.
                self.waymark("coverage", out, *own)
                row = {r["function"]: r for r in self.rows("coverage", out, "--by", "function")}["early"]
                self.assertEqual(number(row["instructions executed"]) + number(row["instructions not executed"]), 0)
                (out / "before.txt").unlink()
                done = self.waymark("coverage", out, *own, status=1)
                self.assertRegex(done.stdout + done.stderr, r"own code, \d+ instructions and .* before main.*--from-start")
                self.waymark("coverage", out, "--only", "early.c")
                # All of main ran; a limit counts all other code as not run.
                self.waymark("coverage", out, "--only", "main", "--of", "lines", "--fail-under", "50", "--strict")
                self.waymark("coverage", out, *own, "--fail-under", "99", status=1)
        whole, _ = self.recorded_by_default("early-whole", program, "--from-start")
        self.assertIn("early", {r["function"] for r in self.rows("coverage", whole, "--by", "function")})
        self.waymark("coverage", whole, *own)

    def test_a_program_without_main_is_recorded_whole(self):
        program = self.build(self.folder / "stripped-program", "-s", libc=True)
        out, said = self.recorded_by_default("stripped", program)
        self.assertEqual(said.count("has no symbol main, so its recording begins with its first instruction"), 1, said)
        self.assertNotIn("where the recording began", self.waymark("profile", out, "--strict").stdout)

    # ---- kinds of code

    def test_own_code_alone(self):
        home = self.folder / "kinds"
        self.with_library("kinds")
        out = home / "whole"
        self.waymark("record", "-q", "--from-start", "-o", out, "--", home / "user")
        for command in (("profile",), ("coverage", "--by", "function"), ("branches",), ("loops",)):
            with self.subTest(command):
                every = self.rows(*command, out)
                shown = {kind: self.rows(*command, out, "--code", kind) for kind in ("own", "libraries", "all")}
                self.assertEqual(shown["all"], every)
                name = lambda r: r["function"] if "function" in r else r["place"].split("+")[0]
                own = {name(r) for r in shown["own"]} - {"all"}
                self.assertLessEqual(own, {"main", "work", "each", "hidden"})
                self.assertIn("each", own)
                libraries = {name(r) for r in shown["libraries"]}
                self.assertLessEqual(own, libraries)
                self.assertLess(len(libraries), len({name(r) for r in every}))
                # Shares refer to all code.
                if command != ("coverage", "--by", "function"):
                    self.assertEqual(shown["own"], [r for r in every if r in shown["own"]])
        images = [r["image"] for r in self.rows("coverage", out, "--by", "image", "--code", "libraries")]
        self.assertEqual(set(images), {"user", "libwork.so", "all"})
        lcov = self.waymark("export", "--to", "lcov", "--code", "own", out).stdout
        self.assertEqual({pathlib.Path(path).name for path in re.findall("(?m)^SF:(.*)$", lcov)}, {"user.c", "work.c"})
        self.assertIn("lcov", self.waymark("export", "--to", "csv", "--code", "own", out, status=2).stderr)
        self.assertIn("--code", self.waymark("profile", "--by", "level", "--code", "own", out, status=2).stderr)

    # ---- names

    def test_doctor_takes_names_as_other_commands_do(self):
        home = self.folder / "moved"
        (home / "there").mkdir(parents=True)
        program = self.build(home / "here" / "app")
        out = self.record(home / "out", program)
        copy = shutil.move(program, home / "there" / "app")
        advice = self.waymark("doctor", out).stdout
        self.assertIn("app was not found", advice)
        for option in set(re.findall(r"--[a-z-]+", advice)):
            self.assertIn(option, run(WAYMARK, "doctor", "--help", "all").stdout)
        self.assertNotIn("app was not found", self.waymark("doctor", out, "--symbols", copy).stdout)
        self.assertNotIn("app was not found", self.waymark("doctor", out, "--symfs", home / "there").stdout)
        self.assertIn("is not a folder", self.waymark("doctor", out, "--symfs", home / "nosuch", status=2).stderr)
        trace = min(out.glob("trace*.bin"))
        self.assertIn("--symbols is only for captures that contain", self.waymark("doctor", trace, "--symbols", copy, status=2).stderr)

    def home(self, name, *options, libc=False):
        """A program and its recording."""
        home = self.folder / name
        program = self.build(home / "app", *options, libc=libc)
        return program, self.record(home / "out", program)

    def test_missing_names_fail_no_gate(self):
        program, out = self.home("removed")
        program.unlink()
        for command in ("profile", "coverage", "branches", "loops", "doctor"):
            with self.subTest(command=command):
                self.waymark(command, out, "--strict")
        self.assertRegex(self.waymark("profile", out).stdout, "(?m)^warning .*app was not found")
        self.waymark("flow", out, "--format", "summary", "--strict")
        self.waymark("diff", out, out, "--threshold-count", "0", "--strict")

    def test_files_that_are_given_are_judged_alike_everywhere(self):
        program, out = self.home("given")
        program.unlink()
        other = self.build(self.folder / "given" / "other", "-DROUNDS=7")
        wrong = shutil.copy(other, self.folder / "given" / "app")  # named like the recorded program
        commands = ("profile", "coverage", "doctor", "flow --format summary")
        for command in (c.split() for c in commands):
            # A name of code that never ran is a mistake, like a misspelt name.
            done = self.waymark(*command, out, "--symbols", other, "--strict", status=1)
            self.assertRegex(re.sub(r"\s+", " ", done.stdout + done.stderr), "names nothing that ran")
            self.waymark(*command, out, "--symbols", other)
            for option in ("--symbols", "--image"):
                with self.subTest(command=command[0], option=option):
                    done = self.waymark(*command, out, option, wrong, "--strict", status=1)
                    self.assertRegex(done.stderr, r"error: .*\(--strict\)")

    def test_a_file_that_one_capture_needs_is_not_unused(self):
        # Without build IDs a file is found by its name.
        home = self.folder / "needed"
        programs = [self.build(home / f"needed-{n}", "-Wl,--build-id=none", f"-DROUNDS={n}") for n in (200, 203)]
        sides = [self.record(home / f"out-{program.name}", program) for program in programs]
        other = self.build(home / "other", "-DROUNDS=7")
        gate = ("--threshold", "50", "--strict")
        done = self.waymark("diff", *sides, "--symbols", other, *gate, status=1)
        self.assertRegex(done.stderr, r"error: .*other: .*names nothing that ran.*\(--strict\)")
        for program in programs:
            done = self.waymark("diff", *sides, "--symbols", program, *gate)
            self.assertRegex(done.stderr, rf"warning: .*{program.name}: .*names nothing that ran")
            self.waymark("profile", *sides, "--symbols", program, "--strict")
        self.waymark("profile", sides[1], "--symbols", programs[0], "--strict", status=1)

    def test_names_come_from_another_copy_of_the_build(self):
        program, before = self.home("stripped")
        copy = shutil.copy(program, program.with_name("ppa"))  # as long: ld.so copies the name
        after = self.record(self.folder / "copied", copy)
        run(CROSS + "strip", program)
        names = {r["function"] for r in self.rows("profile", before)}
        self.assertNotIn("first", names, "the file is not stripped")
        for sides in ((before, after), (after, before)):
            text = self.waymark("diff", *sides, "--threshold-count", "0").stdout
            self.assertIn("no function changed", text)
        program.unlink()
        self.assertIn("no function changed", self.waymark("diff", before, after, "--threshold-count", "0").stdout)

    def test_names_of_one_side_only_are_compared_with_nothing(self):
        program, before = self.home("rebuilt")
        self.build(program, "-DROUNDS=201")
        after = self.record(self.folder / "rebuilt" / "after", program)
        for sides, lacks in (((before, after), before), ((after, before), before)):
            for threshold in (("--threshold-each", "60", "--least", "100"), ("--threshold-count", "200"),
                              ("--only", "first", "--threshold-each", "1")):
                done = self.waymark("diff", *sides, *threshold, status=1)
                self.assertIn("functions of app cannot be compared", done.stderr)
                self.assertRegex(done.stderr, rf"{lacks} knows no names for \d+\.\d% of it")
                self.assertNotIn("grew", done.stderr)
                self.assertNotIn("from nothing", done.stderr)
                rows = run(WAYMARK, "diff", *sides, *threshold, "--format", "tsv").stdout.splitlines()
                self.assertFalse([row for row in csv.DictReader(rows, delimiter="\t") if row["exceeds"] == "true"])

    def test_a_stripped_build_of_another_name_has_names_on_one_side_only(self):
        for unit in ("ptm", "dpu"):
            home = self.folder / f"renamed-{unit}"
            program = self.build(home / "tool-1.0")
            before = self.record(home / "before", program, "--unit", unit)
            grown = self.build(home / "tool-1.1", "-DROUNDS=600")
            run(CROSS + "strip", "-o", home / "stool-1.1", grown)
            after = self.record(home / "after", home / "stool-1.1", "--unit", unit)
            for gate in (("--only", "first", "--threshold-each", "100"), ("--only", "first", "--threshold-count", "1"),
                         ("--only", "*tool-*", "--threshold-each", "1"),
                         # The dynamic linker differs by some per cent from run to run; the program grew threefold.
                         ("--threshold-each", "50", "--least", "900")):
                done = self.waymark("diff", before, after, *gate, status=1)
                self.assertIn(f"functions of tool-1.0 (stool-1.1 in {after}) cannot be compared", done.stderr)
                self.assertNotIn("grew", done.stderr)

    def test_stripped_builds_of_two_names_are_compared(self):
        home = self.folder / "stripped-names"
        captures = {}
        for name, rounds in (("prog-1.0", 200), ("prog-1.1", 203)):
            program = self.build(home / name, f"-DROUNDS={rounds}")
            run(CROSS + "strip", program)
            captures[name] = self.record(home / f"{name}-out", program)
        sides = captures.values()
        # Most of the program's cost is in functions that cannot be compared.
        compared = "no function that can be compared alone, and no code as a whole, grew"
        self.assertIn(compared, self.waymark("diff", *sides, "--threshold", "0.5").stderr)
        done = self.waymark("diff", *sides, "--only", "prog-*", "--threshold-each", "5", "--format", "json")
        self.assertIn(compared, done.stderr)
        of_image = lambda out: sum(number(r["instructions"]) for r in self.rows("profile", out, "--only", "prog-*"))
        self.assertIn(f"{of_image(captures['prog-1.0']):,} before, {of_image(captures['prog-1.1']):,} after",
                      self.waymark("diff", *sides, "--only", "prog-*").stdout)

    def test_only_an_image_sums_what_profile_sums(self):
        home = self.folder / "twins"
        home.mkdir()
        twin = "static __attribute__((noinline)) int twin(int x) { for (int i = 0; i < %d; ++i) x += x >> 2; return x; }\n"
        (home / "plus.c").write_text(twin % 7 + "int plus(int x) { return twin(x) + 1; }\n")
        (home / "twins.c").write_text("int plus(int);\n" + twin % 90 + "int main(int n, char** v) { return plus(twin(n)) == 9; }\n")
        for command in (("-shared", "-fPIC", "-o", home / "libplus.so", home / "plus.c"),
                        ("-o", home / "twins", home / "twins.c", home / "libplus.so", f"-Wl,-rpath,{home}")):
            done = run(CROSS + "gcc", "-O1", *command)
            self.assertEqual(done.returncode, 0, done.stderr)
        out = self.record(home / "out", home / "twins")
        sums = {r["image"]: number(r["instructions"]) for r in self.rows("profile", out, "--by", "image")}
        self.assertEqual([r["function"] for r in self.rows("profile", out)].count("twin"), 2)
        for image in ("twins", "libplus.so"):
            self.assertIn(f"of --only  {sums[image]:,} before, {sums[image]:,} after",
                          self.waymark("diff", out, out, "--only", image).stdout)
        # Sums by name, over all images.
        both = sum(number(r["instructions"]) for r in self.rows("profile", out, "--only", "twin"))
        self.assertIn(f"of --only  {both:,} before", self.waymark("diff", out, out, "--only", "twin").stdout)

    def test_a_capture_without_its_map_has_no_names(self):
        out = self.folder / "no-map"
        shutil.copytree(self.whole, out)
        (out / "maps.txt").unlink()
        said = f"{out}/maps.txt: This file is missing"
        self.assertIn(said, self.waymark("profile", out, "--strict").stdout + self.waymark("profile", out).stderr)
        self.assertIn(said, self.waymark("info", out).stdout)
        self.assertIn("maps.txt: This file is missing", re.sub(r"\s+", " ", self.waymark("doctor", out, "--strict").stdout))
        for sides in ((self.whole, out), (out, self.whole)):
            done = self.waymark("diff", *sides, "--threshold", "0", status=1)
            self.assertIn(f"{out} knows no file for 100.0% of its code", done.stderr)
            self.assertNotIn("grew", done.stderr)
        self.waymark("diff", out, out, "--threshold", "0", "--strict")

    def test_builds_whose_names_are_known_are_compared(self):
        _, before = self.home("one")
        _, after = self.home("two", "-DROUNDS=300")
        done = self.waymark("diff", before, after, "--threshold-each", "45", "--least", "100", status=1)
        self.assertRegex(done.stderr, "1 function grew.*: first by 5")
        self.waymark("diff", before, after, "--threshold-each", "60", "--least", "100")

    # ---- rows that stand for several functions

    def pair(self, name, before=(), after=(), strip=True, libc=False):
        """Recordings of two builds of the program, NAME-1.0 and NAME-1.1."""
        home, out = self.folder / name, []
        for version, options in (("1.0", before), ("1.1", after)):
            program = self.build(home / f"{name}-{version}", *options, libc=libc)
            if strip:
                run(CROSS + "strip", program)
            out.append(self.record(home / f"out-{version}", program))
        return out

    def with_library(self, name, *options, strip=False, debug="-g", split=True, version=""):
        """A recording of USER with LIBRARY, in a separate folder; both files have the version in their names."""
        user, library = f"user{version}", f"libwork{version}.so"
        home = self.folder / name
        home.mkdir()
        (home / "work.c").write_text(LIBRARY)
        (home / "user.c").write_text(USER)
        both = (debug, "-O1", "-Wl,--build-id", *options)
        if split:
            commands = (("-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", home / library, home / "work.c", *both),
                        ("-o", home / user, home / "user.c", home / library, "-Wl,-rpath,$ORIGIN", *both))
        else:
            commands = (("-o", home / user, home / "user.c", home / "work.c", *both),)
        for command in commands:
            done = run(CROSS + "gcc", *command)
            self.assertEqual(done.returncode, 0, done.stderr)
        if strip:
            run(CROSS + "strip", home / library)
        return self.record(home / "out", home / user)

    def test_code_without_names_of_two_builds_is_held_to_a_limit_as_a_whole(self):
        # One function grew by a tenth; another one cost more than that before, and costs less now.
        before, after = self.pair("wholes", (), ("-DROUNDS=220", "-DSECOND=1"))
        for only in ((), ("--only", "wholes-*"), ("--only", "wholes-1.0", "--only", "wholes-1.1")):
            gate = (before, after, *only, "--threshold-each", "0", "--least", "200")
            done = self.waymark("diff", *gate)
            self.assertRegex(done.stderr, "warning: code without names of wholes-1.0 .* cannot be compared function by "
                                          "function")
            done = self.waymark("diff", *gate, "--strict", status=1)
            self.assertRegex(done.stderr, "error: code without names of wholes-1.0 .* cannot be compared function by "
                                          r"function.*\(--strict\)")
            self.assertNotIn("no function grew", done.stderr)
        # The sum grew, because the costs changed in the opposite way.
        self.assertIn("grew", self.waymark("diff", after, before, "--threshold-each", "0", "--only", "wholes-*",
                                        status=1).stderr)
        # No function grew by more than the cost of all functions.
        done = self.waymark("diff", before, after, "--threshold-count", "1000000", "--strict")
        self.assertNotIn("cannot be compared", done.stderr)
        # Names do not change any figure.
        names = [word for v in ("1.0", "1.1") for word in ("--symbols", self.folder / "wholes" / f"named-{v}")]
        for version, options in (("1.0", ()), ("1.1", ("-DROUNDS=220", "-DSECOND=1"))):
            self.build(self.folder / "wholes" / f"named-{version}", *options)
        done = self.waymark("diff", before, after, *names, "--threshold-each", "5", "--least", "200", "--strict", status=1)
        self.assertRegex(done.stderr, "1 function grew.*: first by ")
        self.assertNotIn("cannot be compared", done.stderr)
        self.assertNotIn("warning", done.stderr, "each file is of one side")

    def test_named_code_that_became_cheaper_lacks_no_names(self):
        old, new = (self.with_library(f"pl{n}", f"-DWORK={n}00", strip=True) for n in (5, 1))
        done = self.waymark("diff", old, new, "--threshold-each", "0")
        self.assertNotIn("knows no names", done.stderr)
        self.assertIn("code without names of libwork.so cannot be compared function by function", done.stderr)
        self.assertRegex(self.waymark("diff", new, old, "--threshold-each", "0", status=1).stderr, "1 function grew.*: work by")

    def test_one_build_is_no_two_builds(self):
        program, before = self.home("build")
        run(CROSS + "strip", "-o", program.with_name("sap"), program)
        after = self.record(self.folder / "build" / "after", program.with_name("sap"))
        for sides in ((before, after), (after, before)):
            done = self.waymark("diff", *sides)
            self.assertNotIn("two builds", done.stderr)
            self.waymark("diff", *sides, "--only", "first", "--threshold-each", "0", "--strict")
        # One program, under any file name.
        alone = self.rows("coverage", before, "--only", "app", "--by", "image")
        for captures in ((before, after), (after, before)):
            images = {r["image"]: r for r in self.rows("coverage", *captures, "--by", "image")}
            self.assertEqual(len({"app", "sap"} & set(images)), 1, list(images))
            both = images.get("app", images.get("sap"))
            self.assertEqual(both["instructions"], alone[0]["instructions"])
            images = [r["image"] for r in self.rows("profile", *captures, "--by", "image")]
            self.assertEqual(len([i for i in images if i in ("app", "sap")]), 1, images)
            loops = [r for r in self.rows("loops", *captures) if r["function"] == "last"]
            self.assertEqual(len(loops), 1)
        # The same if its names are unknown.
        program.unlink()
        copy = program.with_name("sapp")
        shutil.copy(program.with_name("sap"), copy)
        again = self.record(self.folder / "build" / "again", copy)
        images = [r["image"] for r in self.rows("coverage", after, again, "--by", "image")]
        self.assertEqual(len([i for i in images if i.startswith("sap")]), 1, images)
        one, two = (sum(number(r["instructions"]) for r in self.rows("coverage", *c, "--by", "function"))
                    for c in ((after,), (after, again)))
        self.assertEqual(one, two)

    def test_functions_of_one_name_are_not_one(self):
        # The function of the library grows by half; the function of the program is 20 times its size.
        before, after = self.with_library("each1"), self.with_library("each2", "-DEACH=30")
        done = self.waymark("diff", before, after, "--threshold-each", "10", "--strict", status=1)
        self.assertRegex(done.stderr, "1 function grew.*: each in libwork.so by [34]")
        rows = {r["image"]: r for r in self.rows("diff", before, after, "--only", "each")}
        self.assertEqual(number(rows["user"]["change"]), 0)
        self.assertEqual(rows["libwork.so"]["exceeds"] if "exceeds" in rows["libwork.so"] else "", "false")
        # Within an image, source files distinguish the functions; without source files nothing does.
        before, after = (self.with_library(f"one{n}", f"-DEACH={n}", split=False) for n in (20, 30))
        done = self.waymark("diff", before, after, "--threshold-each", "10", "--strict", status=1)
        self.assertRegex(done.stderr, "1 function grew.*: each in work.c by [34]")
        self.assertEqual({r["file"].split("/")[-1] for r in self.rows("diff", before, after, "--only", "work.c")
                          if r["function"] == "each"}, {"work.c"})
        before, after = (self.with_library(f"bare{n}", f"-DEACH={n}", split=False, debug="-g0") for n in (20, 30))
        done = self.waymark("diff", before, after, "--threshold-each", "10")
        self.assertIn("warning: each: several functions have this name", done.stderr)
        self.assertIn("Debug information (-g) has the source files\n", done.stderr)
        self.assertIn("error: each: several", self.waymark("diff", before, after, "--threshold-each", "10", "--strict",
                                                         status=1).stderr)
        self.waymark("diff", before, before, "--threshold-each", "0", "--strict")

    def chosen(self, out, only):
        return sum(number(row["instructions"]) for row in self.rows("profile", out, "--only", only))

    def without_files(self, out, *renames):
        """A copy of a recording of `with_library`, whose original files are not found."""
        copy = out.with_name(f"nameless{len(renames)}")
        shutil.copytree(out, copy)
        maps = (copy / "maps.txt").read_text().replace(f"{out.parent}/", "/nowhere/")
        for old, new in renames:
            self.assertIn(old, maps)
            maps = maps.replace(old, new)
        (copy / "maps.txt").write_text(maps)
        return copy

    def test_images_that_were_renamed_together_are_paired(self):
        # Both have `each`: the program's function grows, and the library's function shrinks by more.
        old, same, grown = (self.with_library(f"both{v}", *options, debug="-g0", version=f"-{v}")
                            for v, options in (("1.0", ("-DEACH=900",)), ("1.1", ("-DEACH=900",)),
                                               ("1.2", ("-DEACH=20", "-DUSE=600"))))
        for only in ("user-*", "libwork-*"):
            for after in (same, grown):
                sums = [f"{self.chosen(out, only):,}" for out in (old, after)]
                self.assertRegex(self.waymark("diff", old, after, "--only", only).stdout,
                                 "of --only +{} before, {} after".format(*sums))
        done = self.waymark("diff", old, grown, "--only", "user-*", "--threshold-count", "500", status=1)
        self.assertRegex(done.stderr, r"instructions grew by \S+ in total")
        self.assertRegex(done.stderr, "1 function grew .*: each by")
        self.assertIn("no function grew", self.waymark("diff", old, grown, "--only", "libwork-*", "--threshold-each", "5",
                                                    "--strict").stderr)
        for only in ((), ("--only", "user-*"), ("--only", "user-1.0", "--only", "user-1.1")):
            self.waymark("diff", old, same, "--threshold-each", "5", *only, "--strict")

        # Without names only their versions differ.
        nameless = [self.without_files(out) for out in (old, same)]
        done = self.waymark("diff", *nameless, "--threshold-each", "5", "--only", "user-*")
        self.assertIn("code without names of user-1.0 (user-1.1 in", done.stderr)
        self.assertNotIn("grew from", done.stderr)
        self.assertIn("compared with the limit as a whole", self.waymark("diff", *nameless, "--threshold-each", "5", "--only",
                                                                "user-*", "--strict", status=1).stderr)
        # With other names, nothing shows which file corresponds to which.
        nameless[1] = self.without_files(same, ("user-1.1", "tool"), ("libwork-1.1", "libplug"))
        for more in (("--threshold-each", "5"), ("--threshold-count", "1")):
            done = self.waymark("diff", *nameless, *more, status=1)
            self.assertRegex(done.stderr, "error: functions of .*tool.* cannot be compared.*: neither build IDs, names nor "
                                          "functions show which image")
            self.assertNotIn("from nothing", done.stderr)
            self.assertNotIn("grew", done.stderr)
        self.waymark("diff", *nameless, "--threshold-count", "1000000", "--strict")

    # ---- given names

    def overloads(self, name, *options):
        home = self.folder / name
        home.mkdir()
        (home / "over.cc").write_text(OVERLOADS)
        done = run(CROSS + "g++", "-O1", "-g", "-Wl,--build-id", "-o", home / "over", home / "over.cc", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.record(home / "out", home / "over")

    def test_renames_take_names_as_only_does(self):
        before, after = self.overloads("areas"), self.overloads("zones", "-DNAME=zones")
        gate = ("--threshold-each", "0", "--strict")
        self.assertIn("from nothing", self.waymark("diff", before, after, *gate, status=1).stderr)
        self.waymark("diff", before, after, "--rename", "areas=zones", *gate)
        whole = "areas(Shape const&)=zones(Shape const&)", "areas(Shape const&, unsigned int)=zones(Shape const&, unsigned int)"
        self.waymark("diff", before, after, *[word for each in whole for word in ("--rename", each)], *gate)
        self.waymark("diff", before, after, "--rename", "areas=zones", "--only", "zones", *gate)
        done = self.waymark("diff", before, after, "--rename", "area=zones", status=2)
        self.assertRegex(done.stderr, r"--rename area=zones: .*no function that ran is called 'area', but areas\(Shape")
        done = self.waymark("diff", before, after, "--rename", "areas=znoes", status=2)
        self.assertRegex(done.stderr, "no function that ran is called 'znoes', but zones")
        done = self.waymark("diff", before, after, "--rename", "areas=zone", status=2)
        self.assertRegex(done.stderr, "no function that ran is called 'zone', but zones")
        done = self.waymark("diff", before, after, "--rename", "areas=other", status=2)
        self.assertIn("give both with their parameters", done.stderr)

    def test_a_function_that_one_side_has_alone_is_compared_with_nothing(self):
        before, after = self.overloads("old-areas"), self.overloads("new-areas", "-DNAME=zones")
        for sides, word in (((before, after), "areas"), ((after, before), "zones")):
            gate = (*sides, "--only", word, "--threshold", "50")
            done = self.waymark("diff", *gate)
            self.assertRegex(done.stderr, rf"warning: --only {word}: .* ran before alone.*--rename '{word}")
            done = self.waymark("diff", *gate, "--strict", status=1)
            self.assertRegex(done.stderr, rf"error: --only {word}: .*\(--strict\)")
        # A function that is called on both sides is not in doubt, and neither is a pattern that matches it.
        self.waymark("diff", before, after, "--only", "other", "--threshold", "50", "--strict")
        self.assertNotIn("warning", self.waymark("diff", before, after, "--only", "o*", "--threshold", "50", "--strict").stderr)

    def test_patterns_are_of_names_as_they_are_shown(self):
        before, after = self.pair("patterns", (), ("-DROUNDS=220",), libc=True)
        rows = self.rows("diff", before, after, "--only", "(no symbol) in patterns*")
        self.assertEqual([r["function"] for r in rows], ["(no symbol) in patterns-1.0"])
        self.assertIn("(no symbol) in patterns-1.0", {r["function"] for r in self.rows("diff", before, after, "--only",
                                                                                       "(no symbol)*")})
        for word in ("printf@plt", "*@plt", "print?@plt"):
            self.assertIn("printf@plt", {r["function"] for r in self.rows("diff", before, after, "--only", word)})

    # ---- coverage with an unknown total

    def test_a_gate_on_coverage_needs_to_know_what_there_is(self):
        program, out = self.home("covered", "-DPART")
        gate = ("coverage", out, "--only", "app", "--fail-under")
        self.assertNotIn("warning", self.waymark(*gate, "20", "--strict").stderr)
        self.waymark(*gate, "100", "--strict", status=1)
        whole = shutil.move(program, program.with_name("whole"))
        run(CROSS + "strip", "-o", program.with_name("strip"), whole)
        self.build(program.with_name("other"), "-DPART", "-DROUNDS=3")
        for name in (None, "strip", "other"):
            with self.subTest(there=name):
                program.unlink(missing_ok=True)
                if name:
                    shutil.copy(program.with_name(name), program)
                done = self.waymark(*gate, "20")
                self.assertIn("the total number of instructions of app is not known", done.stderr)
                self.assertIn("warning", done.stderr)
                self.assertRegex(self.waymark(*gate, "20", "--strict", status=1).stderr,
                                 r"error: .*of app is not known.*\(--strict\)")
                self.waymark(*gate, "100", status=1)
                # Names from the build make it known again.
                if name != "other":
                    self.waymark(*gate, "20", "--strict", "--symbols", whole)
        shutil.copy(whole, program)
        self.waymark(*gate, "20", "--strict")
        # The whole includes libraries without symbols; a function with a symbol is known.
        _, out = self.home("covered-with-libraries", libc=True)
        self.waymark("coverage", out, "--fail-under", "0.1", "--strict", status=1)
        self.waymark("coverage", out, "--fail-under", "50", "--only", "first", "--strict")

    # ---- --only

    def test_shares_are_of_everything(self):
        _, after = self.home("more", "-DROUNDS=220")
        every = {r["function"]: r for r in self.rows("diff", self.whole, after)}["first"]
        for only in ("first", "program.c"):
            one = {r["function"]: r for r in self.rows("diff", self.whole, after, "--only", only)}["first"]
            self.assertEqual(one, every)
        own = number(every["change"]) / number(every["before"])
        of_all = float(every["change_points"])
        self.assertLess(of_all, 100 * own / 2)
        self.waymark("diff", self.whole, after, "--only", "first", "--threshold", of_all * 1.5)
        self.waymark("diff", self.whole, after, "--only", "first", "--threshold", of_all / 2, status=1)

    def test_an_image_of_another_name_is_not_passed(self):
        grown = self.build(self.folder / "program2", "-DROUNDS=400")
        after = self.record(self.folder / "grown", grown)
        gate = ("--threshold-count", "10")
        done = self.waymark("diff", self.whole, after, "--only", "program", *gate, status=1)
        self.assertIn(f"{after} has no image called 'program'", done.stderr)
        done = self.waymark("diff", self.whole, after, "--only", "program2", *gate, status=1)
        self.assertIn(f"{self.whole} has no image called 'program2'", done.stderr)
        for names in (("program", "program2"), ("program*",)):
            only = [word for name in names for word in ("--only", name)]
            self.assertIn("grew", self.waymark("diff", self.whole, after, *only, *gate, status=1).stderr)
        # Two names belong to one image if most functions are the same, not merely because there are two names.
        home = self.folder / "unlike"
        home.mkdir()
        (home / "unlike.c").write_text("".join(f"__attribute__((noinline)) int f{i}(int x) {{ return x * {i} + 3; }}\n"
                                               for i in range(40)) +
                                       "int main(int n, char** v) { return (" +
                                       " + ".join(f"f{i}(n)" for i in range(40)) + ") == 1; }\n")
        self.assertEqual(run(CROSS + "gcc", "-O1", "-g", "-nostartfiles", "-Wl,-emain", "-o", home / "unlike",
                             home / "unlike.c").returncode, 0)
        for name, strip in (("unlike", False), ("stripped2", True)):
            if strip:
                run(CROSS + "strip", "-o", home / name, grown)
            other = run(WAYMARK, "record", "--from-start", "-o", home / f"{name}-out", "--", home / name)
            self.assertTrue((home / f"{name}-out").exists(), other.stderr)
            done = self.waymark("diff", self.whole, home / f"{name}-out", "--only", "program", "--only", name, *gate,
                             status=1)
            self.assertIn("cannot be compared as one image", re.sub(r"\s+", " ", done.stderr))
            self.assertNotIn("grew", done.stderr)
        same = self.record(self.folder / "same", shutil.copy(self.program, self.folder / "progran"))
        self.waymark("diff", self.whole, same, "--only", "program", "--threshold-count", "0")

    def test_only_means_the_same_everywhere(self):
        def rows(command, *only):
            return self.rows(command, self.whole, *[word for each in only for word in ("--only", each)])

        where = {"profile": "function", "loops": "function"}
        for command, column in where.items():
            every = rows(command)
            for only, names in ((("last",), {"last"}), (("program.c",), {"first", "second", "last", "main"}),
                                (("last", "fir*"), {"last", "first"})):
                expected = [r for r in every if r[column] in names]
                self.assertTrue(expected)
                self.assertEqual(rows(command, *only), expected, "shares are of everything")
            image = rows(command, "program")
            self.assertLess(len(image), len(every))
            self.assertLessEqual({"last"}, {r[column] for r in image})
            self.assertIn("no function, source file or image is called 'program.d'",
                          self.waymark(command, self.whole, "--only", "program.d", status=1).stderr)
        every = rows("branches")
        self.assertEqual(rows("branches", "last"), [r for r in every if r["place"].split("+")[0] == "last"])
        own = {by: sum(number(r["instructions"]) for r in self.rows("profile", self.whole, "--only", "program.c", "--by",
                                                                    by))
               for by in ("function", "line", "instruction", "image")}
        self.assertEqual(len(set(own.values())), 1, own)

    def test_images_have_no_row_for_exceptions(self):
        images = {r["image"]: number(r["instructions"]) for r in self.rows("profile", self.whole, "--by", "image")}
        self.assertNotIn("[no image]", images)
        self.assertEqual(sum(images.values()), sum(number(r["instructions"]) for r in self.rows("profile", self.whole)))

    def test_long_names_are_shortened_in_text_alone(self):
        name = "a_name_" + "that_is_long_" * 8 + "f"
        home = self.folder / "long"
        home.mkdir()
        source = home / "long.c"
        source.write_text("__attribute__((noinline)) int %s(int x) { for (int i = 0; i < 9; ++i) x += x >> 2; return x; }\n"
                          "int main(int n, char** v) { return %s(n) == 1; }\n" % (name, name))
        self.assertEqual(run(CROSS + "gcc", "-O1", "-o", home / "long", source).returncode, 0)
        out = self.record(home / "out", home / "long")
        note = "… in a name: shortened"
        for command in (("profile", "--only", name), ("loops", "--only", name), ("profile", "--by", "instruction", "--only", name)):
            text = self.waymark(*command, out).stdout
            self.assertNotIn(name, text)
            self.assertRegex(text, "a_name_that_[a-z_]*…[a-z_]*_long_f")
            self.assertIn(note, text)
            self.assertLessEqual(max(len(line) for line in text.splitlines()), 200)
            wide = self.waymark(*command, out, "--wide").stdout
            self.assertIn(name, wide)
            self.assertNotIn(note, wide)
            for form in ("tsv", "json"):
                self.assertIn(name, self.waymark(*command, out, "--format", form).stdout)
        self.assertNotIn(note, self.waymark("profile", self.whole).stdout)

    # ---- code that never ran

    def test_functions_that_never_ran_count_whole(self):
        home = self.folder / "never"
        home.mkdir()
        step = "x = x * 3 + 1; if (x & 64) x ^= 5; __asm__ volatile(\"\" : \"+r\"(x));\n"
        (home / "never.c").write_text(
            r'__asm__(".globl _start\n.thumb_func\n_start: movs r0, #1\n bl main\n movs r7, #1\n svc 0\n b .\n");' "\n"
            "__attribute__((noinline)) int never(int x) {\n" + step * 900 + "return x; }\n"
            "int main(int n, char** v) { return n > 100 ? never(n) : 0; }\n")
        program = home / "never"
        self.assertEqual(run(CROSS + "gcc", "-O1", "-g", "-nostdlib", "-Wl,--build-id", "-o", program,
                             home / "never.c").returncode, 0)
        size = next(int(line.split()[2]) for line in run(CROSS + "readelf", "-sW", program).stdout.splitlines()
                    if line.split()[-1:] == ["never"])
        self.assertGreater(size, 2 * 4096)
        listing = run(CROSS + "objdump", "-d", "--disassemble=never", program).stdout
        expected = len(re.findall(r"(?m)^ +[0-9a-f]+:\t", listing))
        out = self.record(home / "out", program)
        row = lambda *more: self.rows("coverage", out, "--by", "function", "--only", "never.c", *more)
        found = {r["function"]: number(r["instructions"]) for r in row()}
        self.assertEqual(found["never"], expected)
        self.assertEqual(row(), row("--image", program))
        self.assertEqual({r["function"] for r in row("--entered")}, {"main"})
        self.waymark("export", out, "--to", "lcov", "-o", home / "lcov")
        self.assertRegex((home / "lcov").read_text(), r"FNDA:0,never")
        # Code of another build is not used, and a message says so.
        moved = shutil.move(program, home / "moved")
        self.assertIn("only the pages that ran are known", self.waymark("coverage", out).stdout)
        self.assertEqual({r["function"]: number(r["instructions"]) for r in row("--symbols", moved)}["never"], expected)
        self.build(program)
        text = self.waymark("coverage", out).stdout
        self.assertRegex(re.sub(r"\s+", " ", text), "only the pages that ran are known")

    def test_a_file_without_a_build_id_gives_no_code(self):
        program = self.build(self.folder / "no-id", "-Wl,--build-id=none")
        out = self.record(self.folder / "no-id-out", program)
        self.assertRegex(self.waymark("coverage", out).stdout, "no-id: only the pages that ran are known")
        self.assertEqual(self.waymark("profile", out).stdout.count("only the pages"), 0)

    def test_a_file_that_was_built_again_without_a_build_id_names_nothing(self):
        program = self.build(self.folder / "again", "-Wl,--build-id=none")
        out = self.record(self.folder / "again-out", program)
        names = {row["function"] for row in self.rows("profile", out)}
        self.assertLessEqual({"main", "first", "second", "last"}, names)
        self.build(program, "-Wl,--build-id=none", "-O3", "-funroll-loops")
        done = self.waymark("profile", out)
        self.assertRegex(done.stderr + done.stdout, "again is not the file that ran: of .* it is not used")
        self.assertFalse({"main", "first", "second", "last"} & {row["function"] for row in self.rows("profile", out)})
        # A user who knows the right file may name it.
        self.assertIn("main", {row["function"] for row in self.rows("profile", out, "--symbols", program)})

    # ---- images

    def test_another_build_is_not_counted(self):
        right = self.rows("coverage", self.whole, "--image", self.program)
        other = self.build(self.folder / "program3", "-DROUNDS=7")
        home = self.folder / "same-name"
        home.mkdir()
        for image in (other, pathlib.Path(shutil.copy(other, home / "program"))):
            done = self.waymark("coverage", self.whole, "--image", image)
            self.assertRegex(done.stderr, f"warning: {image}: .*it is not used")
            self.assertEqual(self.rows("coverage", self.whole, "--image", image), self.rows("coverage", self.whole))
            self.waymark("coverage", self.whole, "--image", image, "--strict", status=1)
        self.assertNotEqual(right, [])
        self.assertEqual(self.waymark("coverage", self.whole, "--image", self.program, "--strict").stderr, "")

    def test_another_build_at_an_address_is_told(self):
        base = min(int(r["address"], 16) for r in self.rows("profile", self.whole) if r["function"] == "main") & ~0xfff
        other = self.build(self.folder / "program4", "-DROUNDS=3", "-DPAD")
        done = self.waymark("profile", self.whole, "--image", f"{other}@{base:#x}")
        self.assertRegex(done.stderr, f"warning: {other}: it is of another build")

    # ---- the rest

    def test_what_records_nothing_says_so(self):
        first = run("readelf", "-h", self.program).stdout
        self.assertIn("DYN", first)
        plain = pathlib.Path(shutil.copy(self.program, self.folder / "plain"))
        plain.chmod(0o644)
        for unit in ("ptm", "dpu"):
            done = self.waymark("record", "--unit", unit, "-o", self.folder / "none", "--", plain, status=3)
            self.assertIn(f"{plain} is not executable", done.stderr)
            self.assertFalse((self.folder / "none").exists())

    def test_a_stretch_without_a_branch_is_nothing(self):
        # The first two instructions of a function lie in one block.
        address = min(int(r["address"], 16) for r in self.rows("profile", self.whole) if r["function"] == "second")
        done = self.waymark("record", "-o", self.folder / "nothing", "--start-at", hex(address), "--stop-at",
                         hex(address + 4), "--", self.program, status=1)
        self.assertIn("nothing recorded: ", done.stderr)

    def test_samples_are_not_compared(self):
        if not shutil.which("aarch64-linux-gnu-gcc"):
            self.skipTest("aarch64-linux-gnu-gcc is not on PATH; it is in the Debian package gcc-aarch64-linux-gnu")
        program = self.folder / "samples"
        self.assertEqual(run("aarch64-linux-gnu-gcc", "-O1", "-DLIBC", "-o", program, self.folder / "program.c").returncode, 0)
        data = self.record(self.folder / "perf.data", program, "--unit", "spe", "--period", "1024")
        done = self.waymark("verify", data, status=4)
        self.assertRegex(done.stderr, rf"{data}: NOT COMPARED: .*summed in {data}.truth.txt")
        self.assertTrue(pathlib.Path(f"{data}.truth.txt").exists())

    def test_verify_says_what_it_cannot_compare(self):
        self.assertIn("nosuch: no such file or folder", self.waymark("verify", self.folder / "nosuch", status=3).stderr)
        self.assertIn("nosuch: no such file or folder", self.waymark("profile", self.folder / "nosuch", status=3).stderr)
        empty = self.folder / "empty"
        empty.mkdir()
        self.assertEqual(self.waymark("verify", empty, status=3).stderr, self.waymark("profile", empty, status=3).stderr)

    def test_numbers_below_zero_are_refused(self):
        for command in ("profile", "coverage", "loops"):
            self.assertIn("'-1' is below 0", self.waymark(command, self.whole, "--limit", "-1", status=2).stderr)

    def test_a_name_has_one_cost_in_all_views(self):
        program, out = self.home("nameless", libc=True)
        for stripped in (False, True):
            if stripped:
                run(CROSS + "strip", program)
            base = self.folder / f"costs-{stripped}.sqlite"
            self.waymark("export", out, "--to", "sqlite", "-o", base)
            with contextlib.closing(sqlite3.connect(base)) as db:
                # Summed in one query for all functions: the table of instructions has no index by function.
                rows = db.execute("SELECT f.name, f.self, coalesce(i.times, 0) FROM functions f LEFT JOIN (SELECT function, "
                                  "sum(times) AS times FROM instructions GROUP BY function) i ON i.function = f.id").fetchall()
            # The C library's and the dynamic linker's hidden functions have no names.
            self.assertGreater(sum(name.endswith("?") for name, *_ in rows), 50)
            self.assertEqual([row for row in rows if row[1] != row[2]], [])
            by_function = collections.Counter()
            for row in self.rows("profile", out):
                by_function[row["function"]] += number(row["instructions"])
            by_callgrind = self.callgrind_costs(out)
            self.assertEqual({name: cost for name, cost in by_function.items() if cost},
                             {name: cost for name, cost in by_callgrind.items() if cost})

    def callgrind_costs(self, out):
        """Own costs by function, in callgrind's format: lines after calls= and jump= are not own costs."""
        path = self.folder / "callgrind.out"
        path.unlink(missing_ok=True)
        self.waymark("export", out, "--to", "callgrind", "-o", path)
        names, costs, function, called = {}, collections.Counter(), None, False
        for line in path.read_text().splitlines():
            if match := re.match(r"[cj]?fn=\((\d+)\)(?: (.*))?$", line):
                if match[2] is not None:
                    names[match[1]] = match[2]
                if line.startswith("f"):
                    function = names[match[1]]
            elif re.match("calls=|jump=|jcnd=", line):
                called = True
            elif re.match(r"(0x[0-9a-f]+|[+*-]?\d*) ", line) and function is not None:
                if not called:
                    costs[function] += int(line.split()[-1])
                called = False
        return costs

    def test_functions_are_as_many_as_their_table_has(self):
        base = self.folder / "all.sqlite"
        self.waymark("export", self.whole, "--to", "sqlite", "-o", base)
        query = lambda text: self.waymark("query", base, text, "--format", "tsv").stdout.split()[-1]
        self.assertEqual(query("SELECT value FROM summary WHERE name='functions'"),
                         query("SELECT count(*) FROM functions WHERE calls > 0 OR self > 0 OR inclusive > 0"),
                         "functions that ran; others have lines alone")


if __name__ == "__main__":
    for tool, package in (("qemu-arm", "qemu-user"),
                          (CROSS + "gcc", "gcc-arm-linux-gnueabihf, with libc6-dev-armhf-cross")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    if not pathlib.Path("/usr/arm-linux-gnueabihf/include/stdio.h").exists():
        print("SKIPPED: the C library for Arm is missing; it is in the Debian package libc6-dev-armhf-cross")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
