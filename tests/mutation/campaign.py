#!/usr/bin/env python3
"""Mutation campaign over the layers that decode and evaluate. README.md beside this file describes it.

    campaign.py [--seed N] [--count N] [--skip N] [--made N] [--seconds N] [--jobs N] [--sources] [--only FILE]…
                [--tests REGEX] [--target NAME]… [--corpus FOLDER]
                [--build FOLDER] [--tree FOLDER] [--details FILE] [FOLDER…]
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
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

import mutants as finder

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDERS = ("isa", "coresight", "spe", "pft", "dpu", "follow", "etm4", "capture", "pipeline", "answers", "analysis", "image",
           "exports", "record")
# In per cent; folders without a number here have 95.
WANTED = {"analysis": 90.0, "image": 90.0, "exports": 90.0, "record": 90.0}
# Tests that run nothing of the folders, that need a browser, or that pip or a compiler spends most time on.
LEFT_OUT = re.compile(r"(house|long|compile_fail|fuzz)\.|report\.(browser|closer|web)$|serve\.windows$|python\.pip$")
MEMORY = 4 << 30
LARGEST_FILE = 1 << 28
# Before a source with mutants, whose warnings would be errors. For g++ it works in sources that others include, as those
# of a unity build are; clang takes that pragma for an error in any other.
WITHOUT_WARNINGS = """#ifdef __clang__
#pragma clang diagnostic ignored "-Weverything"
#else
#pragma GCC system_header
#endif
"""


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


def text_of(m):
    return m.file, m.operator, m.text, m.change


class Tree:
    """A copy of the source tree whose sources hold the mutants, and a build of it."""

    def __init__(self, build, tree=None):
        self.tree = tree or build / "tree"
        self.build, self.log = self.tree / "build/release-test", build / "build.log"
        build.mkdir(parents=True, exist_ok=True)

    def write(self, texts, count):
        """Only files that changed are written, so that little is built again."""
        # Only sources with mutants contain the switch, so a compiler cache has all others.
        switch = f'{WITHOUT_WARNINGS}#define WAYMARK_MUTANTS {count}\n#include "{HERE}/switch.h"\n#line 1\n'
        texts = {name: switch + text for name, text in texts.items()}
        # The sweeps of the tests are as short as with sanitizers. No flag selects it, for the cache.
        sizes = "tests/support/sanitized.h"
        texts[sizes] = "#define WAYMARK_SANITIZED\n" + (ROOT / sizes).read_text(encoding="utf-8")
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                stdout=subprocess.PIPE, text=True, check=True).stdout
        names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
        for name in names:
            source, target = ROOT / name, self.tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if name in texts:
                if not target.exists() or target.read_text(encoding="utf-8") != texts[name]:
                    target.write_text(texts[name], encoding="utf-8")
            elif not target.exists() or target.read_bytes() != source.read_bytes():
                shutil.copy2(source, target)
                target.touch()
        for folder in {path.parts[0] for path in map(pathlib.PurePath, names) if len(path.parts) > 1}:
            for path in (self.tree / folder).rglob("*"):
                if path.is_file() and str(path.relative_to(self.tree)) not in names and "__pycache__" not in path.parts:
                    path.unlink()

    def configure(self):
        command = ["cmake", "--preset", "release-test", "-DWAYMARK_UNIT_TESTS=ON"]
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

    def tests(self, wanted):
        """The tests of CTest that are wanted, by name: command, folder and environment."""
        said = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
        tests = {}
        for test in json.loads(said.stdout)["tests"]:
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            if test.get("command") and wanted.search(test["name"]) and not LEFT_OUT.match(test["name"]):
                variables = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
                tests[test["name"]] = test["command"], properties.get("WORKING_DIRECTORY", self.build), variables
        return tests


class Campaign:
    def __init__(self, options):
        self.options = options
        self.tree = Tree(options.build, options.tree)
        self.equivalents = read_equivalents()
        self.sources, self.all, self.made = {}, {}, {}
        # Remembers mutants that do not compile, so that they are not searched again.
        self.dropped_path = options.build / "dropped.json"
        self.dropped = set(self.read(self.dropped_path, []))
        # The test that killed a mutant is the first to be asked the next time.
        self.killers_path = options.build / "killers.json"
        self.killers = self.read(self.killers_path, {})
        self.largest = {}  # the largest file that a test may write

    def read(self, path, otherwise):
        return json.loads(path.read_text()) if path.exists() else otherwise

    def draw(self):
        """The mutants of each folder to compile in: the first of the seed that compile."""
        for place, folder in enumerate(FOLDERS):
            if folder in self.options.folders:
                order = finder.draw(self.all[folder], len(self.all[folder]), self.options.seed)
                self.made[folder] = [m for m in order if m.key not in self.dropped][:self.options.made]
                # Separate numbers for each folder: mutants drawn in one folder change no source of another.
                for number, m in enumerate(self.made[folder], self.options.made * place):
                    m.number = number

    def write(self):
        texts = {}
        for folder in self.options.folders:
            for name, source in self.sources[folder].items():
                if made := [m for m in self.made[folder] if m.file == name]:
                    texts[name] = source.write(made)
        self.tree.write(texts, len(FOLDERS) * self.options.made)

    def build(self):
        for folder in self.options.folders:
            self.sources[folder], self.all[folder] = read_folder(folder)
            if self.options.sources:
                self.all[folder] = [m for m in self.all[folder] if m.file.startswith("src/")]
            if self.options.only:
                self.all[folder] = [m for m in self.all[folder] if pathlib.Path(m.file).name in self.options.only]
        configured = False
        for targets in ([f"waymark_{f}" for f in self.options.folders], self.options.target or ["all"]):
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
                    guilty = [m for f in self.options.folders for m in self.made[f] if self.at(m, places)]
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

    def run(self, name, seconds, said=subprocess.DEVNULL, **more):
        """The exit status of a test, negative for a signal, and the processor time. `seconds` is its usual time, `said`
        a file for its output."""
        command, folder, variables = self.tests[name]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("WAYMARK_")}
        most = int(4 + 5 * seconds)

        def limit():
            os.nice(10)
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.largest[name], self.largest[name]))

        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
            variables = kept | variables | {"WAYMARK_CORPUS": self.options.corpus or "/nonexistent", "TMPDIR": scratch} | more
            child = subprocess.Popen(command, env=variables, cwd=folder, stdout=said, stderr=said,
                                     stdin=subprocess.DEVNULL, preexec_fn=limit, start_new_session=True)
            # For a test that waits for ever; with other work on the machine it takes longer than usual.
            watch = threading.Timer(60 + 20 * seconds, os.killpg, (child.pid, signal.SIGKILL))
            watch.start()
            _, status, used = os.wait4(child.pid, 0)
            watch.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
            try:
                os.killpg(child.pid, signal.SIGKILL)  # what it left running
            except ProcessLookupError:
                pass
            return child.returncode, used.ru_utime + used.ru_stime

    def reach(self):
        """Runs each test without a mutant: notes its time and the mutants that it reaches. What was noted before holds
        until a new mutant, or a change of the test's own file."""
        path = self.options.build / "reach.json"
        known = self.read(path, {"keys": [], "tests": {}})
        mutants = {m.number: m.key for made in self.made.values() for m in made}
        if not set(mutants.values()) <= set(known["keys"]):
            known = {"keys": sorted(mutants.values()), "tests": {}}
        self.tests = self.tree.tests(re.compile(self.options.tests))

        outputs = self.options.build / "output"
        outputs.mkdir(exist_ok=True)

        def measure(name):
            command = self.tests[name][0]
            own = next((c for c in command if c.endswith("_test.py")), command[0])
            stamp = [" ".join(command), os.stat(own).st_mtime_ns]
            before = known["tests"].get(name, {})
            # A test that was skipped may run with real captures.
            if "largest" in before and before["stamp"] == stamp and (
                    before["status"] != 77 or before.get("corpus") == self.options.corpus):
                return
            output = outputs / f"{name.replace('/', '_')}.log"
            # Some tests, and QEMU for the memory of its machines, make sparse files far larger than what they write.
            for self.largest[name] in (LARGEST_FILE, resource.RLIM_INFINITY):
                with tempfile.NamedTemporaryFile() as reached, open(output, "wb") as said:
                    status, seconds = self.run(name, 600, said, WAYMARK_REACHED=reached.name)
                    keys = [mutants[i] for i, byte in enumerate(reached.read()) if byte != 0 and i in mutants]
                if status in (0, 77):
                    break
            known["tests"][name] = {"stamp": stamp, "status": status, "seconds": seconds, "reached": keys,
                                    "largest": self.largest[name], "corpus": self.options.corpus}
            if status == 0:
                output.unlink()

        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for done in concurrent.futures.as_completed([pool.submit(measure, name) for name in self.tests]):
                done.result()
                path.write_text(json.dumps(known))
        self.seconds, self.reaching = {}, {}
        for name in self.tests:
            test = known["tests"][name]
            if test["status"] != 0:
                what = "is skipped" if test["status"] == 77 else f"fails without a mutant ({test['status']}; {outputs})"
                print(f"{name} {what}, and is left out", file=sys.stderr)
                continue
            self.seconds[name], self.largest[name] = test["seconds"], test["largest"]
            for key in test["reached"]:
                self.reaching.setdefault(key, set()).add(name)
        total = sum(t["seconds"] for t in known["tests"].values())
        print(f"{len(self.seconds)} tests run; without a mutant all take {total:.0f} s of the processor", file=sys.stderr)

    def judge(self, m):
        """Which test that reaches the mutant notices it; quick tests are asked first."""
        names = sorted(self.reaching.get(m.key, ()), key=lambda name: (name != self.killers.get(m.key), self.seconds[name]))
        result, left = "survived" if names else "not reached", self.options.seconds
        for name in names:
            if self.seconds[name] > left:
                result = "survived for the time given"
                break
            status, seconds = self.run(name, self.seconds[name], WAYMARK_MUTANT=str(m.number))
            left -= seconds
            if status not in (0, 77):
                result = f"killed by {name}"
                self.killers[m.key] = name
                break
        # So an interrupted campaign leaves its results.
        with open(self.options.build / "results.log", "a", encoding="utf-8") as log:
            log.write(f"{result}: {m.file}:{m.line}: {m.operator}: {m.change}: {m.text}\n")
        return result

    def folder(self, folder):
        tried = self.made[folder][self.options.skip:self.options.skip + self.options.count]
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            results = list(pool.map(self.judge, tried))
        self.killers_path.write_text(json.dumps(self.killers))
        killed, total, wrong, lines = 0, 0, [], []
        for m, result in zip(tried, results):
            if text_of(m) in self.equivalents:
                if result.startswith("killed"):
                    wrong.append(m)
                continue
            total += 1
            killed += result.startswith("killed")
            if not result.startswith("killed"):
                lines.append((m, result))
        score = 100 * killed / total if total else 0.0
        print(f"{folder}: {killed} of {total} mutants killed, {score:.1f} %; {len(tried) - total} more are equivalent; "
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
        # What a compiler says of mutants is no error, whether a source is included in another or not.
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
    parser.add_argument("--count", type=int, default=108, help="how many of each folder are tried (108)")
    parser.add_argument("--skip", type=int, default=0, help="how many of the seed's are left out before these (0)")
    parser.add_argument("--made", type=int, default=108, help="how many of each folder are compiled in, as many as --skip "
                        "and --count ask for at least (108)")
    parser.add_argument("--seconds", type=float, default=120, help="processor time after which a mutant has survived (120)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time (one a processor)")
    parser.add_argument("--sources", action="store_true", help="no mutants of public headers, so that a compiler cache has "
                        "all but the folders")
    parser.add_argument("--only", action="append", metavar="FILE", help="mutants of the sources of this name alone; may be repeated")
    parser.add_argument("--target", action="append", help="build this instead of all; may be repeated")
    parser.add_argument("--tests", default="", metavar="REGEX", help="run the tests of these names alone")
    parser.add_argument("--corpus", metavar="FOLDER", help="real captures for tests that are skipped without (WAYMARK_CORPUS)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/mutation", help="where to build and to log")
    parser.add_argument("--tree", type=pathlib.Path, help="where the changed copy of the tree is, and below it its build")
    parser.add_argument("--details", type=pathlib.Path, help="write the survivors there, as entries of equivalents.toml")
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
    if options.corpus and not os.path.isdir(options.corpus):
        parser.error(f"--corpus {options.corpus}: there is no such folder")
    options.made = max(options.made, options.skip + options.count)
    campaign = Campaign(options)
    campaign.build()
    campaign.reach()
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
