#!/usr/bin/env python3
"""From recordings to faster programs: answers files in place of captures, merged in any order, and the profiles that
`waymark pgo` makes from them, read by the tools that they are for. examples/pgo/run.sh does the same at full size.

    pgo_test.py WAYMARK SOURCE_DIR
"""
import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import sys
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
AARCH64 = ("--target=aarch64-linux-gnu", "-fuse-ld=lld", "-O2", "-Wl,--emit-relocs", "-Wl,--build-id")
ROOT = ["-L", "/usr/aarch64-linux-gnu"]


def pairs(lines):
    """`a-b:n` or `a->b:n` → (a, b): n."""
    return {tuple(int(x, 16) for x in re.split("->|-", line.rsplit(":", 1)[0])): int(line.rsplit(":", 1)[1])
            for line in lines}


class Pgo(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.source = cls.folder / "filter.c"
        shutil.copy(SOURCE / "examples/pgo/filter.c", cls.source)
        cls.program = cls.built("filter", "-g", "-fdebug-info-for-profiling")
        cls.captures, cls.answers = [], []
        for packets in (300, 200, 100):
            cls.captures.append(cls.recorded(cls.program, packets))
            cls.answers.append(cls.folder / f"{packets}.answers")
            recorded.run(WAYMARK, "answers", cls.captures[-1], "-o", cls.answers[-1])

    @classmethod
    def built(cls, name, *options):
        recorded.run(CLANG, *AARCH64, *options, "-o", cls.folder / name, cls.source)
        return cls.folder / name

    @classmethod
    def recorded(cls, program, packets, *how):
        capture = cls.folder / f"{program.name}-{packets}{''.join(how)}"
        recorded.run(WAYMARK, "record", "--from-start", "--unit", "etmv4", *how, "-o", capture, "--", program, packets)
        return capture

    def pgo(self, tool, *captures, status=0, options=()):
        out = self.folder / f"profile.{tool}"
        out.unlink(missing_ok=True)
        done = recorded.run(WAYMARK, "pgo", *captures, "--for", tool, "-o", out, *options, status=status)
        return (out.read_text(errors="replace") if tool != "branch-list" else out) if status == 0 else None, done.stderr

    # ---- answers files

    def test_a_file_shows_what_its_capture_shows(self):
        for command in (["profile"], ["profile", "--by", "line"], ["profile", "--by", "instruction"],
                        ["profile", "--by", "block"], ["profile", "--inlines"], ["coverage"], ["coverage", "--by", "function"],
                        ["coverage", "--entered"], ["branches"], ["loops"], ["exceptions"]):
            shown = []
            for source in (self.captures[0], self.answers[0]):
                delivered = json.loads(recorded.run(WAYMARK, command[0], source, *command[1:], "--format", "json").stdout)
                delivered.pop("capture", None)
                shown.append(delivered)
            self.assertEqual(shown[1], shown[0], command)
        changed = recorded.run(WAYMARK, "diff", self.captures[0], self.answers[0], "--format", "json").stdout
        self.assertTrue(all(row["change"] == 0 for row in json.loads(changed)["rows"]), changed[:2000])
        for to in ("llvm-profile", "lcov", "callgrind", "folded", "bolt", "autofdo-text", "profgen"):
            written = []
            for number, source in enumerate((self.captures[0], self.answers[0])):
                out = self.folder / f"export{number}"
                recorded.run(WAYMARK, "export", source, "--to", to, "-o", out)
                written.append([line for line in out.read_text().splitlines() if str(source) not in line])
            self.assertEqual(written[1], written[0], to)

    def test_merging_gives_the_same_bytes_in_any_order(self):
        merged = set()
        for number, order in enumerate(itertools.permutations(self.answers)):
            out = self.folder / f"merged{number}"
            recorded.run(WAYMARK, "merge", *order, "-o", out)
            merged.add(out.read_bytes())
        two, three = self.folder / "two", self.folder / "three"
        recorded.run(WAYMARK, "merge", *self.answers[1:], "-o", two)
        said = recorded.run(WAYMARK, "merge", two, self.answers[0], "-o", three).stderr
        merged.add(three.read_bytes())
        self.assertEqual(len(merged), 1)
        self.assertIn("3 captures in 2 files", said)
        # The commands that take several captures add them up in the same way.
        both = [json.loads(recorded.run(WAYMARK, "profile", *sources, "--format", "json").stdout)["rows"]
                for sources in ((three,), self.captures)]
        self.assertEqual(both[0], both[1])
        # Timelines have no sum, and a note states that, in the file too.
        self.assertIn("timeline is a sample", said if "timeline is a sample" in said else
                      recorded.run(WAYMARK, "merge", *self.answers, "-o", two).stderr)

    def test_branch_lists_of_both_versions(self):
        old, head = b"\x0a\x18simpleperf:EtmBranchList", b"simpleperf:EtmBranchList\x01\0\0\0"
        texts = []
        for version, begins in (("0", old), ("1", head)):
            how = ("--branch-list-version", version)
            written = self.pgo("branch-list", self.answers[0], options=how)[0].read_bytes()
            self.assertTrue(written.startswith(begins), written[:40])
            exported = self.folder / "exported"
            recorded.run(WAYMARK, "export", self.answers[0], "--to", "branch-list", "-o", exported, *how)
            self.assertEqual(exported.read_bytes(), written)
            # The file that is read again.
            kept = self.folder / f"version{version}.list"
            kept.write_bytes(written)
            texts.append(self.pgo("autofdo", kept)[0])
            self.assertTrue(self.pgo("branch-list", kept, options=how)[0].read_bytes().startswith(begins))
        self.assertEqual(texts[0], texts[1])
        self.assertGreater(len(texts[0].splitlines()), 10)
        empty = self.folder / "empty.bl"
        empty.write_bytes(b"\x0a\x18simpleperf:EtmBranchList")
        for tool in ("branch-list", "bolt"):
            self.assertIn("empty.bl has no branches", self.pgo(tool, empty, status=1)[1])
        said = self.pgo("bolt", self.answers[0], status=2, options=("--branch-list-version", "1"))[1]
        self.assertIn("--branch-list-version is for --for branch-list", said)
        self.pgo("branch-list", self.answers[0], status=2, options=("--branch-list-version", "2"))

    def test_what_is_no_answers_file_is_refused(self):
        done = recorded.run(WAYMARK, "merge", self.source, "-o", self.folder / "none", status=2)
        self.assertIn("not an answers file", done.stderr)
        cut = self.folder / "cut"
        cut.write_bytes(self.answers[0].read_bytes()[:-20])
        for command in (("merge", cut, "-o", self.folder / "none"), ("profile", cut)):
            done = recorded.run(WAYMARK, *command, status=3)
            self.assertIn("it was cut after", done.stderr)
        self.assertFalse((self.folder / "none").exists())
        done = recorded.run(WAYMARK, "profile", self.answers[0], "--symbols", self.program, status=2)
        self.assertIn("leave out --symbols", done.stderr)

    # ---- profiles

    def executed(self):
        """Address in the program → execution count, as `waymark export` gives it for the captures themselves."""
        bias = None
        total = collections.Counter()
        for capture in self.captures:
            tables = self.folder / f"tables-{capture.name}"
            recorded.run(WAYMARK, "export", capture, "--to", "jsonl", "-o", tables)
            rows = {table: [json.loads(line) for line in (tables / f"{table}.jsonl").read_text().splitlines()]
                    for table in ("instructions", "functions", "images")}
            image = next(i["id"] for i in rows["images"] if i["name"] == self.program.name)
            of = {f["id"]: f for f in rows["functions"]}
            main = next(f for f in rows["functions"] if f["name"] == "main" and f["image"] == image)
            symbol = int(re.search(r"^(\w+) T main$", recorded.run(NM, self.program).stdout, re.M)[1], 16)
            bias = int(main["address"], 16) - symbol
            for row in rows["instructions"]:
                if row["times"] and row["function"] is not None and of[row["function"]]["image"] == image:
                    total[int(row["address"], 16) - bias] += row["times"]
        return total

    def test_ranges_cover_what_ran(self):
        offset, base = {}, None
        for line in recorded.run(READELF, "-lW", self.program).stdout.splitlines():
            if found := re.match(r"^ +LOAD +(\w+) (\w+) \w+ (\w+) ", line):
                offset[int(found[2], 16)] = (int(found[1], 16), int(found[3], 16))
                if base is None and " R E " in line:
                    base = int(found[2], 16) & ~0xfff
        def in_file(address):
            start = max(a for a in offset if a <= address)
            return address - start + offset[start][0]
        wanted = self.executed()
        for tool, convert in (("autofdo", in_file), ("profgen", lambda a: a - base)):
            text, _ = self.pgo(tool, *self.captures)
            lines = [line for line in text.splitlines() if not line.startswith("//") and line]
            ranges = int(lines[0])
            covered = collections.Counter()
            for (first, last), times in pairs(lines[1:1 + ranges]).items():
                for address in range(first, last + 4, 4):
                    covered[address] += times
            self.assertEqual(covered, collections.Counter({convert(a): n for a, n in wanted.items()}), tool)
        self.assertIn(f"// build_id: 0x{self.build_id():0<40}", self.pgo("autofdo", *self.captures)[0])

    def build_id(self):
        return re.search(r"Build ID: (\w+)", recorded.run(READELF, "-n", self.program).stdout)[1]

    def test_answers_give_the_same_profiles(self):
        merged = self.folder / "all.answers"
        small = []
        for number, capture in enumerate(self.captures):
            small.append(self.folder / f"small{number}")
            recorded.run(WAYMARK, "answers", capture, "--only-ranges", "-o", small[-1])
        recorded.run(WAYMARK, "merge", *small, "-o", merged)
        # Captures are added up before the profile is made, for all tools alike: one tool is enough to show that their
        # order does not matter.
        for tool in ("clang", "autofdo", "profgen", "bolt"):
            orders = (self.captures, reversed(self.captures)) if tool == "clang" else (self.captures,)
            profiles = {self.pgo(tool, *sources)[0] for sources in (*orders, self.answers, [merged])}
            self.assertEqual(len(profiles), 1, tool)

    def test_a_sum_says_that_it_lacks_the_functions_of_a_file_of_ranges(self):
        ranges, both = self.folder / "ranges", self.folder / "both"
        recorded.run(WAYMARK, "answers", self.captures[1], "--only-ranges", "-o", ranges)
        recorded.run(WAYMARK, "merge", self.answers[0], ranges, "-o", both)
        alone, left_out, sum_of = (json.loads(recorded.run(WAYMARK, "profile", a, "--format", "json").stdout)
                                   for a in (self.answers[0], self.answers[1], both))
        instructions = [next(row["instructions"] for row in of["account"] if row["reason"] == "decoded")
                        for of in (alone, left_out, sum_of)]
        self.assertEqual(instructions[2], sum(instructions[:2]))
        row = next(row for row in sum_of["account"] if row["reason"] == "no functions")
        self.assertEqual((row["state"], row["times"], row["instructions"]), ("not decoded", 1, instructions[1]))
        clause = f"captures without functions ({instructions[1]:,} instructions)"
        self.assertIn(clause, sum_of["run"])
        for view in ("profile", "coverage", "branches"):
            self.assertIn(clause, recorded.run(WAYMARK, view, both, "--strict", status=1).stdout, view)
        self.assertIn(clause, recorded.run(WAYMARK, "export", both, "--to", "callgrind").stdout)
        recorded.run(WAYMARK, "diff", self.answers[0], both, "--threshold", "1", "--strict", status=1)
        # Code that did not run in one capture may have run in the other.
        missing = []
        for a in (self.answers[0], both):
            rows = json.loads(recorded.run(WAYMARK, "coverage", a, "--by", "image", "--format", "json").stdout)["rows"]
            missing.append(sum(row["instructions not executed"] for row in rows))
        self.assertGreater(missing[0], 0)
        self.assertEqual(missing[1], 0)
        # Profiles of ranges are complete.
        profiles = [self.pgo("autofdo", *sources) for sources in (self.captures[:2], [both])]
        self.assertEqual(profiles[1][0], profiles[0][0])
        covers = [re.search(r"the profile covers ([^;]+);", said)[1] for _, said in profiles]
        self.assertEqual(covers[1], covers[0])

    def test_clang_weighs_the_planted_branches(self):
        text, said = self.pgo("clang", *self.captures)
        recorded.run(PROFDATA, "merge", "--sample", "--extbinary", self.folder / "profile.clang", "-o", self.folder / "ext")
        self.assertRegex(text, r"(?m)^main:\d+:\d+$")
        self.assertRegex(said, r"filter: [\d,]+ instructions executed, [\d.]+% of all(?: that was decoded)?; in the profile")
        self.assertRegex(said, r"the profile covers (?:at most )?[\d.]+% of the run as far as it is known, and [\d.]+% of what was ")
        code = {}
        plain = recorded.run(CLANG, *AARCH64[:3], "-g", "-S", "-emit-llvm", "-o", "-", self.source).stdout
        self.assertNotRegex(plain, r"icmp eq .*@accept_data")
        for profile in (self.folder / "profile.clang", self.folder / "ext"):
            ir = recorded.run(CLANG, *AARCH64[:3], "-g", "-S", "-emit-llvm", f"-fprofile-sample-use={profile}", "-o", "-",
                              self.source).stdout
            code[profile] = re.findall(r"!\{!\"branch_weights\".*", ir)
            # The indirect call is compared with the rule that is met most often, which is then inlined; a long packet
            # is rare.
            self.assertRegex(ir, r"icmp eq .*@accept_data")
        self.assertGreater(len(code[self.folder / "profile.clang"]), 2)
        self.assertEqual(*code.values())
        # It executes fewer instructions than without the profile, and prints the same.
        better = self.built("better", "-g", f"-fprofile-sample-use={self.folder / 'profile.clang'}")
        said = [recorded.run(QEMU, *ROOT, program, 1000).stdout for program in (self.program, better)]
        self.assertEqual(said[1], said[0])
        before, after = (self.instructions(self.recorded(p, 250), p.name) for p in (self.program, better))
        self.assertLess(after, 0.98 * before)

    def test_agrees_with_instrumentation(self):
        """The counts of counters in the same program, line by line, by llvm-profdata."""
        self.pgo("clang", self.captures[0])
        said = recorded.run(sys.executable, SOURCE / "examples/pgo/overlap.py", self.folder / "profile.clang", self.program,
                            300).stdout
        self.assertGreater(float(re.search(r"Whole program sample overlap: ([\d.]+)%", said)[1]), 99.0)
        self.assertRegex(said, r"Function overlap: 100\.000%")
        # A profile with other counts does not give this result.
        text = (self.folder / "profile.clang").read_text()
        self.assertIn("\n 8: 300\n", text)
        wrong = self.folder / "wrong.prof"
        wrong.write_text(text.replace("\n 8: 300\n", "\n 8: 30000\n"))
        said = recorded.run(sys.executable, SOURCE / "examples/pgo/overlap.py", wrong, self.program, 300).stdout
        self.assertLess(float(re.search(r"Whole program sample overlap: ([\d.]+)%", said)[1]), 60.0)

    def test_a_capture_that_gives_nothing_is_left_out(self):
        nothing = self.folder / "nothing"
        shutil.copytree(self.captures[0], nothing)
        for file in re.findall(r"^file=(\S+)$", (nothing / "trace.ini").read_text(), re.M):
            (nothing / file).write_bytes(bytes((nothing / file).stat().st_size))
        alone, _ = self.pgo("clang", self.captures[0])
        for order in ((nothing, self.captures[0]), (self.captures[0], nothing)):
            out = self.folder / "profile.clang"
            out.unlink()
            done = recorded.run(WAYMARK, "pgo", *order, "--for", "clang", "-o", out, status=1)
            self.assertEqual(out.read_text(), alone)
            self.assertRegex(done.stderr, rf"warning: {nothing}: .*\. It is omitted: the result is about the other")
            done = recorded.run(WAYMARK, "profile", *order, status=1)
            self.assertIn("It is omitted", done.stderr)
            self.assertIn("main", done.stdout)
        _, said = self.pgo("clang", nothing, nothing, status=1)
        self.assertNotIn("left out", said)

    def instructions(self, capture, image):
        rows = json.loads(recorded.run(WAYMARK, "profile", capture, "--by", "image", "--format", "json").stdout)["rows"]
        return next(row["instructions"] for row in rows if row["image"] == image)

    def test_profgen_reads_it(self):
        text, _ = self.pgo("profgen", *self.captures)
        for options in (["--unsymbolized-profile", self.folder / "profile.profgen"],
                        ["--perfscript", self.folder / "script"]):
            if options[0] == "--perfscript":
                recorded.run(WAYMARK, "export", self.answers[0], "--to", "profgen-script", "-o", options[1])
            out = self.folder / "profgen.prof"
            out.unlink(missing_ok=True)
            done = recorded.attempt(PROFGEN, *options, "--binary", self.program, "-o", out, "--format=text")
            if "unsupported" in done.stderr.lower() or "Unknown command line" in done.stderr:
                self.skipTest(f"{PROFGEN} does not take this: {done.stderr.strip().splitlines()[0]} (Debian package llvm-19)")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(out.read_text(), r"(?m)^main:\d+:\d+$")

    def blocks_of_bolt(self, merged, times):
        """BOLT's execution count of each block is the count of the block's first instruction."""
        printed = recorded.run(BOLT, self.program, "-data", merged, "-o", self.folder / "same", "-print-cfg")
        compared = collections.Counter()
        for function in re.split(r'(?m)^Binary Function "', (printed.stdout + printed.stderr).partition('\nBinary Function "')[2]):
            if not re.search(r"^  IsSimple +: 1$", function, re.M):
                continue  # BOLT does not follow an indirect jump in it
            address = int(re.search(r"^  Address     : 0x(\w+)$", function, re.M)[1], 16)
            for count, offset in re.findall(r"^  Exec Count : (\S+)\n(?:  .*\n)*?    (\w{8}): \t[^!]", function, re.M):
                ran = times.get(address + int(offset, 16), 0)
                self.assertEqual(0 if count == "<unknown>" else int(count), ran, (function.partition('"')[0], offset))
                compared["ran" if ran else "did not"] += 1
        self.assertGreaterEqual(compared["ran"], 20, compared)
        self.assertGreaterEqual(compared["did not"], 3, compared)

    def test_bolt_reads_it(self):
        text, _ = self.pgo("bolt", *self.captures)
        times = collections.Counter()
        in_file = int(re.search(r"(?m)^(\w+) T main$", recorded.run(NM, self.program).stdout)[1], 16)
        for capture in self.captures:
            functions, instructions = (
                json.loads(recorded.run(WAYMARK, "profile", capture, "--by", by, "--format", "json").stdout)["rows"]
                for by in ("function", "instruction"))
            base = next(int(row["address"], 16) for row in functions if row["function"] == "main") - in_file
            for row in instructions:
                if row["image"] == self.program.name:
                    times[int(row["address"], 16) - base] += row["times"]
        lines = text.splitlines()
        self.assertEqual({line[0] for line in lines}, {"B", "F"})
        merged = self.folder / "bolt.fdata"
        said = recorded.run(PERF2BOLT, "--pa", "-p", self.folder / "profile.bolt", "-o", merged, self.program)
        said = said.stdout + said.stderr
        self.assertIn(f"read {len(lines)} aggregated LBR entries", said)
        # BOLT does not know the targets of the stubs in the linkage table; it finds all other targets in its own
        # disassembly.
        begin, size = (int(x, 16) for x in re.search(r"\] \.plt +PROGBITS +(\w+) \w+ (\w+)",
                                                     recorded.run(READELF, "-SW", self.program).stdout).groups())
        stubs = sum(int(n) for kind, first, last, n, *_ in map(str.split, lines)
                    if kind == "F" and begin <= int(first, 16) < begin + size)
        self.assertRegex(said, rf"traces mismatching disassembled function contents: {stubs} ")
        self.assertIn("Out of range traces involving unknown regions: 0 ", said)
        self.blocks_of_bolt(merged, times)
        better = self.folder / "bolted"
        said = recorded.run(BOLT, self.program, "-data", merged, "-o", better, "-reorder-blocks=ext-tsp", "-dyno-stats")
        self.assertRegex(said.stdout + said.stderr, r"taken branches")
        self.assertEqual(recorded.run(QEMU, *ROOT, better, 1000).stdout, recorded.run(QEMU, *ROOT, self.program, 1000).stdout)

    def test_all_writes_a_file_for_each_binary(self):
        folder = self.folder / "profiles"
        recorded.run(WAYMARK, "pgo", *self.captures, "--for", "autofdo", "--all", "-o", folder)
        names = {path.name for path in folder.iterdir()}
        self.assertIn(f"{self.build_id()}.autofdo.txt", names)
        self.assertGreater(len(names), 1)  # the C library

    def test_says_why_a_profile_would_be_empty(self):
        plain = self.built("plain")  # without debug information
        capture = self.recorded(plain, 50)
        _, said = self.pgo("clang", capture, status=1)
        self.assertIn("plain has no debug information", said)
        self.assertFalse((self.folder / "profile.clang").exists())
        self.pgo("bolt", capture)  # needs none
        _, said = self.pgo("autofdo", self.captures[0], status=1, options=["--of-image", "nobody"])
        self.assertIn("no image is called 'nobody'", said)
        # A library that is mapped and never runs.
        begun = self.folder / "begun.data"
        recorded.attempt(WAYMARK, "record", "--as", "perf", "--start-at", "main", "--limit", "20", "-o", begun, "--",
                         self.program, 50)
        for target in ("clang", "autofdo", "bolt", "profgen", "branch-list"):
            _, said = self.pgo(target, begun, status=1, options=["--of-image", "libc.so.6"])
            self.assertIn("nothing of libc.so.6 ran in a file that was found", said)

    def test_create_llvm_prof_uses_autofdo_text(self):
        """Debian's version, 0.19: by its own rule for addresses, and with DWARF 4; from DWARF 5 it makes nothing, and
        pgo warns."""
        if not shutil.which("create_llvm_prof"):
            self.skipTest("SKIPPED: create_llvm_prof is missing (Debian package autofdo)")
        for version, linker, rule in (("4", "lld", "loaded"), ("4", "bfd", "offsets"), ("5", "lld", "loaded")):
            with self.subTest(dwarf=version, linker=linker):
                program = self.built(f"autofdo-{version}-{linker}", f"-fuse-ld={linker}", f"-gdwarf-{version}",
                                     "-fdebug-info-for-profiling")
                text, made = self.folder / f"{program.name}.txt", self.folder / f"{program.name}.prof"
                capture = self.recorded(program, 100)
                said = recorded.run(WAYMARK, "pgo", capture, "--for", "autofdo", "--autofdo-addresses", rule, "-o", text).stderr
                recorded.run("create_llvm_prof", "--profiler", "text", "--binary", program, "--profile", text, "--out", made,
                             "--format", "text", env={**os.environ, "GLOG_log_dir": str(self.folder)})
                functions = {name: int(total) for name, total in re.findall(r"(?m)^([\w.]+):(\d+):\d+$", made.read_text(errors="replace"))}
                if version == "5":
                    self.assertEqual(functions, {})
                    self.assertIn("warning: ", said)
                    self.assertIn("-gdwarf-4", said)
                else:
                    self.assertNotIn("DWARF", said)
                    self.assertGreater(functions["main"], 0)
                    self.assertGreater(len(functions), 2)


class Simpleperf(unittest.TestCase):
    def test_ranges_are_those_of_simpleperf(self):
        """Android's test file, which the corpus also contains as a snapshot, against the expectation of simpleperf's
        own test."""
        corpus = recorded.corpus(SOURCE)
        if corpus is None:
            self.skipTest("no corpus of captures (WAYMARK_CORPUS)")
        capture = corpus / "etmv4/simpleperf-etm_test_loop"
        golden = corpus / "../conformance/golden/autofdo-simpleperf-etm_test_loop.txt"
        if not golden.is_file():
            self.skipTest(f"there is no {golden}")
        with Folder() as folder:
            out = pathlib.Path(folder) / "profile"
            recorded.run(WAYMARK, "pgo", capture, "--image", f"{capture / 'etm_test_loop'}@0x582b2b0000", "--for", "autofdo",
                         "-o", out)
            given, expected = out.read_text().splitlines(), golden.read_text().splitlines()
        count = int(expected[0])
        self.assertEqual(given[:count + 2], expected[:count + 2])  # ranges, and no addresses
        # Branches agree too, except that simpleperf has 0 for the target of an indirect branch.
        begin = count + 3
        self.assertEqual(given[begin - 1], expected[begin - 1])
        lines = int(expected[begin - 1])
        unknown = [line for line in given[begin:begin + lines] if line not in expected]
        self.assertEqual([re.sub("->.*:", "->0:", line) for line in unknown],
                         [line for line in expected[begin:begin + lines] if line not in given])
        self.assertIn(expected[begin + lines], given)  # the build ID


if __name__ == "__main__":
    CLANG = recorded.need("clang", "clang")
    recorded.need("ld.lld", "lld")
    PROFDATA = recorded.need("llvm-profdata", "llvm")  # of the compiler's own version
    PROFGEN = recorded.need(recorded.newest("llvm-profgen"), "llvm-19")
    PERF2BOLT, BOLT = (recorded.need(recorded.newest(tool), "bolt-16") for tool in ("perf2bolt", "llvm-bolt"))
    PERF2BOLT = pathlib.Path(PERF2BOLT).resolve().parent / "perf2bolt"
    NM, READELF = (recorded.need(f"aarch64-linux-gnu-{tool}", "binutils-aarch64-linux-gnu") for tool in ("nm", "readelf"))
    QEMU = recorded.need("qemu-aarch64", "qemu-user")
    recorded.need("aarch64-linux-gnu-gcc", "libc6-dev-arm64-cross")
    unittest.main(argv=sys.argv[:1], verbosity=2)
