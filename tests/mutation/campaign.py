#!/usr/bin/env python3
"""Mutation campaign over the layers that decode and evaluate. README.md beside this file describes it.

    campaign.py [--seed N] [--count N] [--jobs N] [--build FOLDER] [--details FILE] [--own|--cases] [--quick]
                [--only FILE]… [FOLDER…]
    campaign.py --self-test

Prints one line for each folder (all by default). Exit status: 0 if every folder reaches the required score and no mutant
listed as equivalent was killed, 1 if not, 2 if the build failed.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib

import mutants as finder

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDERS = ("isa", "coresight", "spe", "pft", "dpu", "follow", "etm4", "capture", "pipeline", "answers", "analysis", "image",
           "exports", "record")
# The test programs to run, one after another: mutants that survive one program are run in the next. Users of a
# protocol's row test the registry.
USERS = ("pipeline", "doctor")
# Readers of perf.data are tested with the pipeline, and answers with their producers and writers.
PROGRAMS = {"capture": ("capture_test", "pipeline_test"), "answers": ("answers_test", "analysis_test", "exports_test"),
            "isa": ("isa_test", "isa_objdump_test", "a64_objdump_test"), "follow": ("follow_test", "pft_test"),
            **{folder: (f"{folder}_test", *(f"{user}_test" for user in USERS)) for folder in ("spe", "pft", "dpu", "etm4")}}
# The cases of the command line are tests of the folders that only a whole program uses.
CASES = "command line"
WITH_CASES = ("capture", "pipeline", "answers", "analysis", "image", "exports")
WRAPPED = ("isa_objdump_test", "a64_objdump_test")  # programs of one source in tests/differential
# In per cent; folders without a number here have 95.
WANTED = {"analysis": 90.0, "image": 90.0, "exports": 90.0, "record": 90.0}
MEMORY = 4 << 30
# Before a source with mutants, whose warnings would be errors. For g++ it works in sources that others include, as those
# of a unity build are; clang takes that pragma for an error in any other.
WITHOUT_WARNINGS = """#ifdef __clang__
#pragma clang diagnostic ignored "-Weverything"
#else
#pragma GCC system_header
#endif
"""
# For a mutant that survives, cases of the command line are tried until they have taken this processor time, in seconds.
MOST_SECONDS_OF_CASES = 30
# Tests are grouped by their time in milliseconds; if a group kills the mutant, the later groups are not run.
GROUPS = (20, 200, 1000, float("inf"))


def fail(text):
    print(f"campaign.py: {text}", file=sys.stderr)
    sys.exit(2)


def sources_of(folder):
    places = (ROOT / "src" / folder, ROOT / "include/waymark" / folder)
    return sorted(p for place in places if place.exists() for p in place.iterdir() if p.suffix in (".cc", ".h"))


def read_folder(folder):
    """The sources of a folder, and all distinct mutants in them."""
    texts = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in sources_of(folder)}
    others = [p.read_text(encoding="utf-8") for p in sorted((ROOT / "include/waymark").glob("*/*.h"))
              if p.parent.name != folder]
    fields, enumerators = finder.read_names(texts.values(), others)
    sources = {name: finder.Source(name, text, fields, enumerators) for name, text in texts.items()}
    return sources, [m for s in sources.values() for m in s.mutants]


def read_equivalents():
    """The excluded mutants, by (file, operator, text of the line, change)."""
    path = HERE / "equivalents.toml"
    listed = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", []):
        for key in ("file", "operator", "line", "change", "reason"):
            if not entry.get(key):
                fail(f"{path.name}: an entry without {key}: {entry}")
        listed[entry["file"], entry["operator"], entry["line"], entry["change"]] = entry["reason"]
    return listed


def programs_of(folder, options):
    if options.own:
        return (f"{folder}_test",)
    if options.cases:
        return (CASES,)
    return PROGRAMS.get(folder, (f"{folder}_test",)) + ((CASES,) if folder in WITH_CASES else ())


def text_of(m):
    return m.file, m.operator, m.text, m.change


class Tree:
    """A copy of the source tree whose sources hold the mutants, and a build of it."""

    def __init__(self, build, tree=None, quick=False):
        self.tree, self.build, self.log, self.quick = build / "tree", build / "build", build / "build.log", quick
        self.tree = tree or self.tree
        if quick:
            self.build = self.tree / "build" / "release-test"
        build.mkdir(parents=True, exist_ok=True)

    def link(self, source, target):
        if target.is_symlink() and target.resolve() == source.resolve():
            return
        if target.is_symlink() or target.is_file():
            target.unlink()
        elif target.is_dir():
            shutil.rmtree(target)
        target.symlink_to(source)

    def put(self, target, text):
        """Does not write a file that already has this text, so that it is not built again."""
        if target.is_symlink():
            target.unlink()
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")

    def folder(self, target):
        if target.is_symlink():
            target.unlink()
        target.mkdir(parents=True, exist_ok=True)

    def spread(self, source, target, own):
        """Fills `target` with links to the contents of `source`, except for the folders in `own`, which become folders
        of links."""
        self.folder(target)
        names = set()
        for path in source.iterdir():
            relative = str(path.relative_to(ROOT))
            if relative in ("build", ".git"):
                continue
            names.add(path.name)
            if any(o == relative or o.startswith(relative + "/") for o in own):
                self.spread(path, target / path.name, own)
            elif path.is_file() and (target / path.name).is_file() and not (target / path.name).is_symlink() and \
                    relative in self.written:
                pass
            else:
                self.link(path, target / path.name)
        for path in target.iterdir():
            if path.name not in names and path != self.tree / "build" and path.name != "mutation_listener_test.cc":
                path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)

    def write(self, texts, count):
        # Only sources with mutants contain the switch, so a compiler cache has all others.
        switch = f'#define WAYMARK_MUTANTS {count}\n#include "{HERE}/switch.h"\n'
        if self.quick:
            switch = WITHOUT_WARNINGS + switch
        listener = f'{switch}#include "{HERE}/listener.cc"\n'
        texts = {name: f"{switch}#line 1\n{text}" for name, text in texts.items()}
        texts |= {f"tests/differential/{name}.cc": f'#include "{ROOT}/tests/differential/{name}.cc"\n{listener}'
                  for name in WRAPPED}
        if self.quick:
            # No flags select it, so that a compiler cache has the files that other builds compiled.
            sizes = "tests/support/sanitized.h"
            texts[sizes] = "#define WAYMARK_SANITIZED\n" + (ROOT / sizes).read_text(encoding="utf-8")
        self.written = set(texts)
        own = [f"{place}/{f}" for f in FOLDERS for place in ("src", "include/waymark")]
        own += [f"tests/{f}" for f in (*FOLDERS, *USERS, "differential", "support")]
        self.spread(ROOT, self.tree, own)
        for name, text in texts.items():
            self.put(self.tree / name, text)
        for folder in (*FOLDERS, *USERS):
            self.put(self.tree / "tests" / folder / "mutation_listener_test.cc", listener)

    def configure(self):
        # The sweeps of the tests are as short as with sanitizers.
        flags = "-w -fpermissive -Wno-narrowing -D_GLIBCXX_ASSERTIONS -DWAYMARK_SANITIZED"
        options = {"CMAKE_BUILD_TYPE": "Debug", "CMAKE_CXX_FLAGS_DEBUG": "-O1", "CMAKE_CXX_FLAGS": flags,
                   "CMAKE_CXX_COMPILER": "g++", "CMAKE_UNITY_BUILD": "ON", "WAYMARK_TESTS": "ON", "WAYMARK_WEB": "OFF"}
        if self.quick:
            options = {"WAYMARK_LONG": "ON"}
        command = ["cmake", "--preset", "release-test"] if self.quick else ["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja"]
        command += [f"-D{name}={value}" for name, value in options.items()]
        with open(self.log, "w", encoding="utf-8") as log:
            if subprocess.run(command, cwd=self.tree, stdout=log, stderr=subprocess.STDOUT, check=False).returncode != 0:
                fail(f"cmake failed; {self.log} says why")

    def make(self, jobs, targets):
        """Builds; returns None, or the (file, line) of each compiler error if the build fails."""
        run = subprocess.run(["ninja", "-C", self.build, "-k", "0", "-j", str(jobs), *targets], text=True,
                             errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.log.write_text(run.stdout, encoding="utf-8")
        if run.returncode == 0:
            return None
        errors, notes = set(), set()
        for path, line, kind in re.findall(r"^(\S+?):(\d+):\d+: +(?:fatal )?(\w+)", run.stdout, re.MULTILINE):
            try:
                name = os.path.normpath(self.build / path)
                name = str(pathlib.Path(name).relative_to(self.tree))
            except ValueError:
                continue
            (errors if kind == "error" else notes).add((name, int(line)))
        return errors, notes


class Campaign:
    def __init__(self, options):
        self.options = options
        self.tree = Tree(options.build, options.tree, options.quick)
        self.equivalents = read_equivalents()
        self.sources, self.all, self.drawn, self.cases = {}, {}, {}, None
        # Remembers mutants that do not compile, so that they are not searched again.
        self.dropped_path = options.build / "dropped.json"
        self.dropped = set(json.loads(self.dropped_path.read_text())) if self.dropped_path.exists() else set()

    def draw(self):
        """The mutants to make: the wanted number for each folder, and the equivalent ones drawn meanwhile."""
        for place, folder in enumerate(FOLDERS):
            if folder not in self.options.folders:
                continue
            possible = [m for m in self.all[folder] if m.key not in self.dropped]
            order = finder.draw(possible, len(possible), self.options.seed)
            drawn, wanted = [], self.options.count
            for m in order:
                if wanted == 0:
                    break
                drawn.append(m)
                wanted -= text_of(m) not in self.equivalents
            # Separate numbers for each folder: mutants drawn in one folder change no source of another.
            if len(drawn) > 2 * self.options.count:
                fail(f"most mutants of {folder} are equivalent")
            for number, m in enumerate(drawn, 2 * self.options.count * place):
                m.number = number
            self.drawn[folder] = drawn

    def write(self):
        texts = {}
        for folder in self.options.folders:
            for name, source in self.sources[folder].items():
                if drawn := [m for m in self.drawn[folder] if m.file == name]:
                    texts[name] = source.write(drawn)
        self.tree.write(texts, 2 * len(FOLDERS) * self.options.count)

    def build(self):
        for folder in self.options.folders:
            self.sources[folder], self.all[folder] = read_folder(folder)
            if self.options.quick:
                # A changed public header makes all layers above compile again.
                self.all[folder] = [m for m in self.all[folder] if m.file.startswith("src/")]
            if self.options.only:
                self.all[folder] = [m for m in self.all[folder] if pathlib.Path(m.file).name in self.options.only]
        libraries = [f"waymark_{f}" for f in self.options.folders]
        programs = [program for f in self.options.folders for program in programs_of(f, self.options)]
        programs = sorted({"waymark" if program == CASES else program for program in programs})
        configured = False
        for targets in (libraries, programs):
            for attempt in range(30):
                self.draw()
                self.write()
                if not configured:
                    self.tree.configure()
                    configured = True
                said = self.tree.make(self.options.jobs, targets)
                if said is None:
                    break
                guilty = []
                for places in said:
                    guilty = [m for f in self.options.folders for m in self.drawn[f] if self.at(m, places)]
                    # If a line has several, the mutant that depends least on types is suspected first.
                    suspects = [m for m in guilty if m.operator == "swapped_field"]
                    lines = {(m.file, m.line) for m in suspects}
                    guilty = suspects + [m for m in guilty if (m.file, m.line) not in lines]
                    if guilty:
                        break
                if not guilty:
                    fail(f"the mutated sources do not compile, and no mutant is to blame; {self.tree.log} says why")
                self.dropped |= {m.key for m in guilty}
                self.dropped_path.write_text(json.dumps(sorted(self.dropped)))
                print(f"{len(guilty)} mutants do not compile: others are drawn", file=sys.stderr)
            else:
                fail(f"the mutated sources do not compile; {self.tree.log} says why")

    def at(self, m, places):
        lines = range(m.line, m.line + self.sources_text(m).count("\n", m.start, m.end) + 1)
        if any((m.file, line) in places for line in lines):
            return True
        if not m.needs:
            return False
        text = self.sources_text(m)
        first, last = text.count("\n", 0, m.needs[0]) + 1, text.count("\n", 0, m.needs[3]) + 1
        return any((m.file, line) in places for line in range(first, last + 1))

    def sources_text(self, m):
        return self.sources[m.file.split("/")[1 if m.file.startswith("src/") else 2]][m.file].text

    # ---- running

    def environment(self, **more):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WAYMARK_")}
        return kept | {"WAYMARK_CORPUS": "/nonexistent"} | more

    def reach_of_cases(self):
        """The same for the cases of the command line, except cases that fail without a mutant."""
        if self.cases:
            return self.cases
        tests, reached = {}, {}
        for case in sorted((ROOT / "tests/cli/cases").glob("*.txt")):
            with tempfile.TemporaryDirectory() as scratch:
                out = pathlib.Path(scratch) / "reached"
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                run = subprocess.run(self.command_of_case(case.stem), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     env=self.environment(TMPDIR=scratch, WAYMARK_REACHED_BY_PROGRAM=str(out)), check=False)
                now = resource.getrusage(resource.RUSAGE_CHILDREN)
                if run.returncode != 0:
                    print(f"{case.stem} fails without any mutant, and is left out", file=sys.stderr)
                    continue
                tests[case.stem] = 1000 * (now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime)
                for number in set(out.read_text().split()) if out.exists() else ():
                    reached.setdefault(int(number), set()).add(case.stem)
        self.cases = tests, reached
        return self.cases

    def command_of_case(self, case):
        return [sys.executable, ROOT / "tests/cli/cli_test.py", self.tree.build / "bin" / "waymark", ROOT, case]

    def run_cases(self, number, names, times):
        """Whether one of these cases kills the mutant."""
        left = MOST_SECONDS_OF_CASES
        for name in sorted(names, key=times.get):
            if (left := left - times[name] / 1000) < 0:
                return False
            if self.run_limited(self.command_of_case(name), number, times[name]):
                return True
        return False

    def reach(self, program):
        """The mutants that each test of the program reaches, and the time of each test."""
        if program == CASES:
            return self.reach_of_cases()
        out = self.options.build / f"{program}.reached"
        run = subprocess.run([self.tree.build / "bin" / program, "--gtest_brief=1"], text=True, errors="replace",
                             env=self.environment(WAYMARK_REACHED=str(out)), stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
        if run.returncode != 0:
            fail(f"{program} fails without any mutant:\n{run.stdout[-3000:]}")
        tests, reached = {}, {}
        for line in out.read_text().splitlines():
            test, milliseconds, *numbers = line.split()
            tests[test] = float(milliseconds)
            for number in numbers:
                reached.setdefault(int(number), set()).add(test)
        tests.pop("-")
        # Mutants reached before the first test belong to all tests.
        return tests, {n: set(tests) if "-" in by else by for n, by in reached.items()}

    def run(self, program, number, names, milliseconds):
        """Whether these tests kill the mutant."""
        with tempfile.TemporaryDirectory() as folder:
            flags = pathlib.Path(folder) / "flags"
            flags.write_text("--gtest_filter=" + ":".join(names) + "\n")
            command = [self.tree.build / "bin" / program, f"--gtest_flagfile={flags}", "--gtest_fail_fast"]
            return self.run_limited(command, number, milliseconds)

    def run_limited(self, command, number, milliseconds):
        """Whether the command notices the mutant: a failure, a crash, or too much time or memory."""
        seconds = int(5 + 10 * milliseconds / 1000)

        def limit():
            os.nice(10)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))

        with tempfile.TemporaryDirectory() as scratch:
            try:
                run = subprocess.run(command, env=self.environment(WAYMARK_MUTANT=str(number), TMPDIR=scratch),
                                     cwd=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     stdin=subprocess.DEVNULL, timeout=30 + 8 * seconds, preexec_fn=limit, check=False)
            except subprocess.TimeoutExpired:
                return True
            return run.returncode != 0

    def judge(self, m, programs):
        """Whether any test that reaches the mutant notices it; quick tests are asked first."""
        result = "not reached"
        for program, (tests, reached) in programs.items():
            # Mutants reached in the child of a death test are not recorded.
            deaths = {t for t in tests if t.split(".")[0].endswith("DeathTest")}
            if program == CASES:
                if self.run_cases(m.number, reached.get(m.number, set()), tests):
                    return "killed"
                result = "survived" if m.number in reached else result
                continue
            left = sorted(reached.get(m.number, set()) | deaths, key=tests.get)
            for most in GROUPS:
                group = [t for t in left if tests[t] < most]
                left = left[len(group):]
                if not group:
                    continue
                result = "survived" if m.number in reached else result
                if self.run(program, m.number, group, sum(tests[t] for t in group)):
                    return "killed"
        return result

    def judge_and_log(self, m, programs):
        """The same, and a line in the log, so that an interrupted campaign leaves its results."""
        result = self.judge(m, programs)
        with open(self.options.build / "results.log", "a", encoding="utf-8") as log:
            log.write(f"{result}: {m.file}:{m.line}: {m.operator}: {m.change}: {m.text}\n")
        return result

    def folder(self, folder):
        began = time.monotonic()
        programs = {program: self.reach(program) for program in programs_of(folder, self.options)}
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            results = list(pool.map(lambda m: self.judge_and_log(m, programs), self.drawn[folder]))
        killed, total, wrong, lines = 0, 0, [], []
        for m, result in zip(self.drawn[folder], results):
            if text_of(m) in self.equivalents:
                if result == "killed":
                    wrong.append(m)
                continue
            total += 1
            killed += result == "killed"
            if result != "killed":
                lines.append((m, result))
        score = 100 * killed / total if total else 0.0
        excluded = len(self.drawn[folder]) - total
        print(f"{folder}: {killed} of {total} mutants killed, {score:.1f} %; {excluded} more are equivalent; "
              f"seed {self.options.seed}, {time.monotonic() - began:.0f} s", flush=True)
        for m in wrong:
            print(f"  listed as equivalent, but killed: {m.file}:{m.line}: {m.operator}: {m.change}: {m.text}")
        for m, result in sorted(lines, key=lambda r: (r[0].file, r[0].line)):
            print(f"  {result}: {m.file}:{m.line}: {m.operator}: {m.change}: {m.text}", flush=True)
        return score >= WANTED.get(folder, 95.0) and not wrong, lines


SELF_TEST = """// A comment with `if (a < b)` in it.
struct Pair {
    int first = 1, second = 2;
};
static_assert(1 < 2);
template <int N = 3>
constexpr int twice(int n) {
    return n + n;
}
constexpr int table[] = {5, 6};
enum class Kind { one, two };
int work(const Pair& pair, int limit) {
    int sum = 0;
    for (int i = 0; i < limit; ++i) {
        if (pair.first == 1 && i != 3)
            sum += twice(i);
        else
            sum -= pair.second;
    }
    const Kind kind = Kind::one;
    switch (kind) {
        case Kind::one: sum += 100; break;
        case Kind::two: break;
    }
    const auto off = [] { return false; };
    if (!off()) sum += 1;
    return sum;
}
"""


def self_test():
    """The mutants of a small source: each is found where it should be, and changes what the source does once it is on."""
    fields, enumerators = finder.read_names([SELF_TEST], [])
    source = finder.Source("src/x/x.cc", SELF_TEST, fields, enumerators)
    found = {(m.operator, m.line, m.change) for m in source.mutants}
    for expected in [("condition", 15, "never"), ("condition", 15, "always"), ("condition", 15, "&& -> ||"),
                     ("condition", 15, "== -> !="), ("off_by_one", 14, "< -> <="), ("constant", 20, "one -> two"),
                     ("swapped_field", 15, "first -> second"), ("deleted_statement", 16, "deleted"),
                     ("arithmetic", 16, "+= -> -="), ("arithmetic", 8, "+ -> -"), ("off_by_one", 22, "100 -> 101"),
                     ("deleted_statement", 22, "deleted")]:
        assert expected in found, f"not found: {expected}"
    for line in (1, 5, 6, 11):
        assert all(m.line != line for m in source.mutants), f"line {line} must be known while compiling"
    assert source.write([]) == SELF_TEST
    # Changes of other lines change neither a mutant's name nor its rank.
    moved = finder.Source("src/x/x.cc", "int more = 7;\n\n" + SELF_TEST, fields, enumerators)
    drawn = [m.key for m in finder.draw(source.mutants, 12, 1)]
    assert drawn == [m.key for m in finder.draw([m for m in moved.mutants if m.line > 2], 12, 1)]
    assert len({m.key for m in source.mutants}) == len(source.mutants)

    body = [m for m in source.mutants if m.line > 12 and m.operator != "constant" or m.line == 8]
    for number, m in enumerate(body):
        m.number = number
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch)
        for order in (body, body[::-1]):
            text = source.write(order)
            lost = [f"{m.line}: {m.change}" for m in body if f"wm_mutant({m.number})" not in text]
            assert not lost, f"not in the source: {lost}"
        assert text.count("\n") == SELF_TEST.count("\n"), "lines moved"
        (path / "x.cc").write_text(text + "int main(int argc, char**) { return work({}, 4 + argc); }\n")
        subprocess.run(["g++", "-std=c++20", f"-DWAYMARK_MUTANTS={len(body)}", "-include", HERE / "switch.h", "-o",
                        path / "x", path / "x.cc"], check=True)
        # With --quick, what a compiler says of mutants is no error, whether a source is included in another or not.
        (path / "quick.cc").write_text(f'{WITHOUT_WARNINGS}#define WAYMARK_MUTANTS {len(body)}\n#include "{HERE}/switch.h"\n{text}'
                                       "unsigned char narrow(int n) { unsigned char unused{n}; return n & 1 | 2; }\n")
        (path / "unity.cc").write_text('#include "quick.cc"\n')
        for compiler, file in (("g++", "unity.cc"), ("clang++", "unity.cc"), ("clang++", "quick.cc")):
            if shutil.which(compiler):
                subprocess.run([compiler, "-std=c++20", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", path / file],
                               check=True)

        def status(number=None):
            more = {} if number is None else {"WAYMARK_MUTANT": str(number)}
            return subprocess.run([path / "x"], env=os.environ | more, check=False, timeout=60,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 1))).returncode
        assert status() == 113, status()
        same = [f"{m.line}: {m.operator}: {m.change}" for m in body if status(m.number) == status()]
        # Deleting a statement makes no difference only if the switch ends there anyway, and neither does replacing a
        # true condition by true.
        assert same == ["22: deleted_statement: deleted #2", "23: deleted_statement: deleted",
                        "26: condition: always"], same
    print("1 passed, 0 failed")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="which mutants are drawn (1)")
    parser.add_argument("--count", type=int, default=108, help="how many of each folder (108)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time (one a processor)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/mutation", help="where to build")
    parser.add_argument("--details", type=pathlib.Path, help="write the survivors there, as entries of equivalents.toml")
    parser.add_argument("--own", action="store_true", help="run the folder's own tests alone, which takes less to build")
    parser.add_argument("--only", action="append", metavar="FILE", help="mutants of the sources of this name alone; may be repeated")
    parser.add_argument("--cases", action="store_true", help="run the cases of the command line alone")
    parser.add_argument("--quick", action="store_true", help="build with the preset release-test, of which a compiler cache has "
                        "much; no mutants of public headers")
    parser.add_argument("--tree", type=pathlib.Path, help="where the changed copy of the tree is, and below it its build")
    parser.add_argument("--self-test", action="store_true", help="check that mutants are found and can be switched")
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help=f"{', '.join(FOLDERS)} (all)")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    options.build = options.build.resolve()
    options.folders = options.folders or list(FOLDERS)
    for folder in options.folders:
        if folder not in FOLDERS:
            parser.error(f"{folder} is none of {', '.join(FOLDERS)}")
    campaign = Campaign(options)
    campaign.build()
    good, survivors = True, []
    for folder in options.folders:
        enough, lines = campaign.folder(folder)
        good = good and enough
        survivors += lines
    if options.details:
        options.details.write_text("".join(
            f"[[equivalent]]\nfile = {json.dumps(m.file)}\noperator = {json.dumps(m.operator)}\n"
            f"line = {json.dumps(m.text)}\nchange = {json.dumps(m.change)}\nreason = \"\"  # {result}\n\n"
            for m, result in survivors), encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
