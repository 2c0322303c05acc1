#!/usr/bin/env python3
"""Records programs with one known performance problem each under the modelled Statistical Profiling unit: the answers must
name it first, with its source line. Also tests the sources of names: folders with another machine's files, build IDs.

    spe_answers_test.py WAYMARK SOURCE_DIR [TEST…]
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS, run, wait_for  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
COMPILER = "aarch64-linux-gnu-gcc"


def line_of(program, text):
    """The number of the line that contains `text` in a program's source."""
    lines = (SOURCE / f"tests/data/spe/{program}.c").read_text().splitlines()
    found = [i for i, line in enumerate(lines, 1) if text in line]
    assert len(found) == 1, (program, text, found)
    return found[0]


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.recorded = {}

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def record(self, program, period, folder=None, options=(), linked=("-static",)):
        if (program, folder) not in self.recorded:
            place = self.folder / (folder or program)
            place.mkdir()
            done = run(COMPILER, "-O2", "-g", *linked, "-pthread", "-Wl,--build-id", "-o", place / program,
                       SOURCE / f"tests/data/spe/{program}.c")
            self.assertEqual(done.returncode, 0, done.stderr)
            done = run(WAYMARK, "record", "--unit", "spe", "-c", period, *options, "-o", place / "perf.data", "--",
                       place / program)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.recorded[program, folder] = place
        return self.recorded[program, folder] / "perf.data"

    def answer(self, command, capture, *options, status=0):
        done = run(WAYMARK, "spe", command, capture, *options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def rows(self, command, capture, *options):
        lines = self.answer(command, capture, "--format", "tsv", *options).splitlines()
        names = lines[0].split("\t")
        return [dict(zip(names, line.split("\t"))) for line in lines[1:]]

    def test_pointer_chase(self):
        data = self.record("chase", 512)
        for sort in ("cycles", "llc-misses", "walks"):
            first = self.rows("report", data, "--by", "line", "--sort", sort)[0]
            self.assertRegex(first["line"], rf"chase\.c:{line_of('chase', 'n = n->next')}$", sort)
        source = self.rows("report", data, "--by", "source")[0]
        self.assertEqual((source["source"], source["function"]), ("DRAM", "chase"))

    def test_table_walks(self):
        data = self.record("pages", 512)
        first = self.rows("report", data, "--by", "line", "--sort", "walks")[0]
        self.assertRegex(first["line"], rf"pages\.c:{line_of('pages', 'from[i * page')}$")
        self.assertIn("table walk", self.answer("report", data))

    def test_unpredictable_branch(self):
        data = self.record("branch", 256)
        first = self.rows("branches", data)[0]
        self.assertRegex(first["from"], rf"guess\+0x[0-9a-f]+ .*branch\.c:{line_of('branch', 'if (x & 1)')}$")
        self.assertGreater(int(first["mispredicts"]), 30)
        self.assertRegex(self.rows("report", data, "--by", "line", "--sort", "mispredicts")[0]["line"],
                         rf"branch\.c:{line_of('branch', 'if (x & 1)')}$")

    def test_one_recording_at_a_time(self):
        endless = self.folder / "endless"
        done = subprocess.run([COMPILER, "-O1", "-static", "-x", "c", "-o", endless, "-"], text=True, capture_output=True,
                              input="int main(void) { for (volatile long i = 0;; ++i) ; }", timeout=HANGS)
        self.assertEqual(done.returncode, 0, done.stderr)
        hello = self.record("hello", 256).parent / "hello"
        out = self.folder / "one" / "perf.data"
        out.parent.mkdir()
        again = (WAYMARK, "record", "--unit", "spe", "-o", out)
        child = subprocess.Popen([str(a) for a in (*again, "--", endless)], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        try:
            # The lock is taken before the first byte is written.
            growing = out.with_name("perf.data.part") / "perf.data"
            wait_for(lambda: growing.exists() and growing.stat().st_size != 0, "the recording begins")
            before = growing.stat().st_size
            for options in ((), ("--force",)):
                done = run(*again, *options, "--", hello)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("another 'waymark record' is writing there", done.stderr)
            # The first recording is complete.
            self.assertGreaterEqual(growing.stat().st_size, before)
            self.assertFalse(out.exists())
            self.assertIsNone(child.poll())
        finally:
            child.kill()
            child.wait(timeout=HANGS)
        # The lock ends with its holder, and the next recording removes the remaining files.
        done = run(*again, "-c", "256", "--", hello)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(self.rows("records", out), [])
        self.assertFalse(growing.parent.exists())

    def check_false_sharing(self, data):
        text = self.answer("sharing", data)
        self.assertRegex(text, r"false +[\d,]+ .* shared\n")
        lines = [line for line in text.splitlines() if re.search(r"\+0x0[08] +share", line)]
        self.assertEqual(len(lines), 2, text)
        for line in lines:
            self.assertRegex(line, rf"shared +share\.c:{line_of('share', '++*p')}$")
        self.assertNotIn("alone", text)
        self.assertIn("false sharing of together\n", text)
        variables = {(row["line"], row["variable"]) for row in self.rows("sharing", data)}
        # Threads also share unnamed lines of the C library, such as a line that an ending thread leaves for join.
        self.assertEqual(sorted(name for _, name in variables if name), ["together", "together+0x8"])

    def test_false_sharing(self):
        self.check_false_sharing(self.record("share", 512))

    def test_false_sharing_in_a_position_independent_program(self):
        self.check_false_sharing(self.record("share", 512, "pie", linked=("-pie", "-fPIE")))

    def test_what_is_modelled_is_called_so(self):
        data = self.record("share", 512)
        for command in ("report", "sharing", "quality"):
            text = self.answer(command, data)
            self.assertIn("cores     modelled (near Neoverse N1)", text)
            self.assertNotIn("erratum", text)
        quality = json.loads(self.answer("quality", data, "--format", "json"))
        self.assertTrue(quality["modelled"])
        self.assertEqual(quality["errata"], [])
        for delivered in (run(WAYMARK, "doctor", data), run(WAYMARK, "profile", data)):
            self.assertNotRegex(delivered.stdout + delivered.stderr, "[Ee]rratum|r3p1|biased")
        self.assertIn("modelled", run(WAYMARK, "doctor", data).stdout)

    def test_packets(self):
        data = self.record("share", 512)
        records = len(self.rows("records", data))
        done = run(WAYMARK, "packets", data, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        packets = [json.loads(line) for line in done.stdout.splitlines()]
        # Each record begins with the address of its operation and ends with its timestamp.
        self.assertEqual(sum(p.get("packet") == "TIMESTAMP" for p in packets), records)
        self.assertEqual(sum(p.get("packet") == "ADDRESS" and p["meaning"].startswith("PC ") for p in packets), records)
        self.assertNotIn("gap", {key for p in packets for key in p})
        content = data.read_bytes()
        for p in packets[:1000]:
            if "…" not in p["bytes"]:
                raw = bytes.fromhex(p["bytes"])
                self.assertEqual(content[p["offset"]:p["offset"] + len(raw)], raw, p)
        self.assertIn("ADDRESS", run(WAYMARK, "packets", data, "--type", "ADDRESS").stdout)

    def test_accesses_of_vectors(self):
        """QEMU chooses which accesses of SVE have an address; the others are counted and reported."""
        place = self.folder / "vectors"
        place.mkdir()
        program, data = place / "vectors", place / "perf.data"
        done = run(COMPILER, "-static", "-Wl,--build-id", "-o", program, SOURCE / "tests/data/spe/vectors.S")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(WAYMARK, "record", "--unit", "spe", "-c", "256", "--machine-set", "midr=0x410fd4f0", "-o", data, "--",
                   program)
        self.assertEqual(done.returncode, 0, done.stderr)
        listing = run("aarch64-linux-gnu-objdump", "-d", program).stdout
        body = listing[listing.index("<main>:"):].split("\n\n")[0]
        mnemonic = {int(a, 16): m for a, m in re.findall(r"^ +([0-9a-f]+):\t[0-9a-f]{8} \t(\S+)", body, re.M)}
        symbols = dict(re.findall(r"^([0-9a-f]+) \S (buffer)$", run("aarch64-linux-gnu-nm", program).stdout, re.M))
        buffer = int(next(iter(symbols)), 16)
        with_address, without = {}, {}
        for row in self.rows("records", data):
            what = mnemonic.get(int(row["pc"], 16) if row["pc"] else 0, "")
            if re.match("ld|st", what):
                (with_address if row["vaddr"] else without).setdefault(what, []).append(row)
        self.assertEqual(sorted(without), ["ld1d", "ld1w", "ld2w", "st1d", "st1w"])
        self.assertEqual(sorted(with_address), ["ld1rw", "ldr", "str"])
        for rows in with_address.values():
            for row in rows:
                self.assertIn("l1d_access", row["event"], row)
                self.assertIn(int(row["vaddr"], 16) - buffer, range(128))
        count = sum(map(len, without.values()))
        quality = json.loads(self.answer("quality", data, "--format", "json"))
        # The C library has vector accesses of its own before main, and a sample may fall on one.
        self.assertEqual(quality["without_address"], quality["sve_without_address"])
        self.assertIn(quality["without_address"] - count, range(4))
        count = quality["without_address"]
        self.assertIn(f"addresses not known of {count:,} samples of loads and stores ({count} of SVE: QEMU reports",
                      self.answer("report", data))
        self.assertIn(f"{count:,} samples of loads and stores", run(WAYMARK, "info", data).stdout)
        self.assertRegex(run(WAYMARK, "doctor", data).stdout, rf"{count:,} samples of loads and stores without an address")
        self.assertNotIn("addresses", self.answer("report", self.record("chase", 512)))

    def test_rows_divide_the_samples(self):
        for program, period in (("share", 512), ("chase", 512)):
            data = self.record(program, period)
            all_samples = json.loads(self.answer("report", data, "--format", "json"))["quality"]["samples"]
            for by in ("function", "line", "pc", "file", "thread"):
                rows = self.rows("report", data, "--by", by, "--limit", "0")
                self.assertEqual(sum(int(row["samples"]) for row in rows), all_samples, by)
                for row in rows:
                    self.assertEqual(row["few"], "true" if int(row["samples"]) < 30 else "false")
                    self.assertLessEqual(float(row["share_low"]), float(row["share"]))
                    self.assertGreaterEqual(float(row["share_high"]), float(row["share"]))

    def general(self, command, capture, *options, status=0):
        """Rows of a command that reads captures of every unit."""
        done = run(WAYMARK, command, capture, "--format", "tsv", *options)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        names, *rows = [line.split("\t") for line in done.stdout.splitlines()]
        return [dict(zip(names, row)) for row in rows]

    def test_profiles_add_up(self):
        for program, period in (("share", 512), ("chase", 512), ("branch", 256)):
            data = self.record(program, period)
            truth = int(re.search(r"^samples\.written (\d+)", (data.parent / "perf.data.truth.txt").read_text(), re.M)[1])
            report = self.rows("report", data, "--limit", "0")
            cycles = sum(int(row["cycles"]) for row in report)
            for by in ("function", "line", "instruction", "image"):
                rows = self.general("profile", data, "--by", by)
                self.assertEqual(sum(int(row["samples"]) for row in rows), truth, by)
                self.assertEqual(sum(int(row["latency cycles"]) for row in rows), cycles, by)
            rows = {row["function"]: row for row in self.general("profile", data)}
            for row in report:
                self.assertEqual(rows[row["function"]]["samples"], row["samples"])
                self.assertEqual(rows[row["function"]]["share_low"][:12], row["share_low"][:12])

    def test_profiles_name_the_trouble(self):
        data = self.record("chase", 512)
        for metric in ("latency cycles", "last-level misses", "translation-cycles"):
            first = self.general("profile", data, "--by", "line", "--metric", metric)[0]
            self.assertEqual(first["line number"], str(line_of("chase", "n = n->next")), metric)
        data = self.record("branch", 256)
        first = self.general("branches", data, "--sort", "mispredicted")[0]
        self.assertEqual(first["line"], f"branch.c:{line_of('branch', 'if (x & 1)')}")
        self.assertEqual(first["kind"], "conditional")
        self.assertGreater(int(first["mispredicted"]), 30)
        for command in ("coverage", "loops", "exceptions"):
            done = run(WAYMARK, command, data)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"error: .*samples")

    def test_instructions_are_those_of_objdump(self):
        """Mnemonics and operands of every sampled instruction, compared with another disassembler."""
        def plain(text):
            """Without comments and names of places; numbers, and numbers of places, as decimal digits."""
            text = re.sub(r"\s*(//|<).*", "", text.replace("\t", " "))
            text = re.sub(r"\blo\b", "cc", re.sub(r"\bhs\b", "cs", text))  # two names of a condition
            mnemonic, _, operands = text.partition(" ")
            mnemonic = {"movz": "mov"}.get(mnemonic, mnemonic)  # and of an instruction
            if mnemonic == "adr" or mnemonic == "adrp" or mnemonic[0] in "bct":
                operands = re.sub(r"(^|, )#?(?:0x)?([0-9a-f]{5,})$", lambda m: f"{m[1]}#0x{m[2]}", operands)
            numbers = re.sub(r"#?(-?)0x([0-9a-f]+)", lambda m: m[1] + str(int(m[2], 16)), operands)
            return mnemonic, re.sub(r"#(?=[-\d])|\s", "", numbers)

        differ, compared, loads = [], 0, set()
        for program, period in (("chase", 512), ("pages", 512), ("branch", 256), ("share", 512)):
            data = self.record(program, period)
            listing = {}
            for line in run("aarch64-linux-gnu-objdump", "-d", data.parent / program).stdout.splitlines():
                if found := re.match(r" +([0-9a-f]+):\t[0-9a-f]{8} \t(.*)", line):
                    listing[int(found[1], 16)] = found[2]
            for row in self.general("profile", data, "--by", "instruction"):
                if row["image"] != program:
                    continue
                mine, other = plain(row["instruction"].split("  ", 1)[1]), plain(listing[int(row["address"], 16)])
                compared += 1
                if mine != other:
                    differ.append((row["address"], mine, other))
                if program == "chase" and row["line"] == f"chase.c:{line_of('chase', 'n = n->next')}":
                    loads.add(mine)
        self.assertGreater(compared, 100)
        # Some disassemblers support fewer extensions and print the opcode.
        self.assertLess(len(differ), compared / 50, differ)
        self.assertTrue([text for text in loads if text[0] == "ldr" and re.match(r"x\d+,\[x\d+\]$", text[1])], loads)

    def test_instructions_without_their_file(self):
        data = self.record("hello", 256, "without")
        (data.parent / "hello").rename(self.folder / "another")
        out = self.folder / "rows.jsonl"

        def texts(*options):
            done = run(WAYMARK, "export", data, "--to", "jsonl", "--table", "instructions", "-o", out, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            return [json.loads(line)["text"] for line in out.read_text().splitlines()]

        self.assertEqual(set(texts()), {None})
        done = run(WAYMARK, "export", data, "--to", "jsonl", "--table", "health", "-o", out)
        said = [row for row in map(json.loads, out.read_text().splitlines()) if "have no text" in str(row)]
        self.assertEqual(len(said), 1, said)
        self.assertIn("hello", str(said))
        copies = self.folder / "copies"
        copies.mkdir()
        shutil.copy(self.folder / "another", copies / "hello")
        self.assertNotIn(None, texts("--symfs", copies))

    def test_diff_knows_noise(self):
        data, other = self.record("chase", 512), self.record("chase", 500, "again", ("--seed", "7"))
        same = run(WAYMARK, "diff", data, other, "--threshold", "1")
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
        pages = self.record("pages", 512)
        self.assertEqual(run(WAYMARK, "diff", data, pages, "--threshold", "1").returncode, 1)

    def test_jobs_make_no_difference(self):
        data = self.record("share", 512)
        for command, options in (("report", ("--by", "pc", "--limit", "0")), ("sharing", ("--all",)),
                                 ("branches", ("--limit", "0")), ("quality", ()), ("records", ())):
            for form in ("text", "tsv", "json"):
                one = self.answer(command, data, *options, "--format", form, "--jobs", "1")
                self.assertEqual(one, self.answer(command, data, *options, "--format", form, "--jobs", "3"),
                                 f"{command} {form}")

    def test_names_from_elsewhere(self):
        data = self.record("hello", 256, "gone")
        place = data.parent
        (place / "hello").rename(self.folder / "moved")
        delivered = run(WAYMARK, "spe", "report", data, "--symfs", place)
        self.assertIn("(no symbol) hello", delivered.stdout)
        self.assertRegex(delivered.stderr, r"note: no names for .*/hello: ")

        by_name = self.folder / "by-name"
        by_name.mkdir()
        shutil.copy(self.folder / "moved", by_name / "hello")
        self.assertIn("__tunables_init", self.answer("report", data, "--symfs", by_name, "--limit", "0"))

        notes = run("aarch64-linux-gnu-readelf", "-n", self.folder / "moved").stdout
        build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
        cache = self.folder / "debug/.build-id" / build_id[:2] / build_id[2:]
        cache.mkdir(parents=True)
        shutil.copy(self.folder / "moved", cache / "elf")
        (self.folder / "nothing").mkdir()
        self.assertIn("__tunables_init", self.answer("report", data, "--symfs", self.folder / "nothing",
                                                       "--debug-dir", self.folder / "debug", "--limit", "0"))

        # Another program at that path is not the program that ran.
        shutil.copy(self.record("branch", 256).parent / "branch", by_name / "hello")
        wrong = run(WAYMARK, "spe", "report", data, "--symfs", by_name)
        self.assertIn("build ID", wrong.stderr)
        self.assertIn("(no symbol) hello", wrong.stdout)

    def test_unknown_sources_say_so(self):
        data = self.record("chase", 512)
        names = {row["source"] for row in self.rows("report", data, "--by", "source", "--midr", "0x610f0000")}
        self.assertTrue(names)
        for name in names:
            self.assertRegex(name, r"^unknown \(code \d+\)$")

    def test_records_over_profiles_only(self):
        place = self.record("hello", 256, "over").parent
        before = (place / "hello").read_bytes()
        done = run(WAYMARK, "record", "--unit", "spe", "-o", place / "hello", "--", place / "hello")
        self.assertEqual(done.returncode, 2)
        self.assertIn("exists and is not a perf.data file", done.stderr)
        self.assertEqual((place / "hello").read_bytes(), before)
        self.assertEqual(run(WAYMARK, "record", "--unit", "spe", "-o", place / "perf.data", "--",
                             place / "hello").returncode, 0)

    def test_atomics_write(self):
        source = self.folder / "atomic.c"
        source.write_text("""
            #include <pthread.h>
            static long both __attribute__((aligned(64)));
            static struct { long a, b; } apart __attribute__((aligned(64)));
            static void *work(void *mine) {
                for (long i = 0; i < 200000; ++i) __atomic_fetch_add(&both, 1, __ATOMIC_RELAXED);
                for (long i = 0; i < 200000; ++i) __atomic_fetch_add((long *)mine, 1, __ATOMIC_RELAXED);
                return mine;
            }
            int main(void) {
                pthread_t thread;
                if (pthread_create(&thread, 0, work, &apart.a) != 0) return 1;
                work(&apart.b);
                return pthread_join(thread, 0);
            }
        """)
        place = self.folder / "atomic"
        self.assertEqual(run(COMPILER, "-O2", "-static", "-pthread", "-march=armv8.1-a", "-o", place,
                             source).returncode, 0)
        data = self.folder / "atomic.data"
        self.assertEqual(run(WAYMARK, "record", "--unit", "spe", "-c", 256, "-o", data, "--", place).returncode, 0)
        lines = json.loads(self.answer("sharing", data, "--all", "--format", "json"))["lines"]
        self.assertEqual(sorted(line["sharing"] for line in lines)[:2], ["false", "true"])

    def test_cut_and_damaged(self):
        data = self.record("chase", 512)
        whole = data.read_bytes()
        cut = self.folder / "cut.data"
        cut.write_bytes(whole[:len(whole) // 2])
        done = run(WAYMARK, "spe", "report", cut)
        self.assertRegex(done.stdout, r"samples +[\d,]+")
        self.assertIn("chase", done.stdout)
        self.assertRegex(done.stderr, r"error: .*, offset 0x\w+: the file is cut: [\d,]+ bytes of data are missing")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(run(WAYMARK, "spe", "records", cut).returncode, 3)

        damaged = bytearray(whole)
        for at in range(len(whole) // 2, len(whole) // 2 + 4096):
            damaged[at] ^= 0x5a
        cut.write_bytes(damaged)
        done = run(WAYMARK, "spe", "report", cut)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: .* bytes")
        self.assertEqual(run(WAYMARK, "spe", "report", cut, "--strict").returncode, 1)
        self.assertRegex(self.answer("quality", cut), r"lost +[\d,]+ bytes")


if __name__ == "__main__":
    for tool, package in ((COMPILER, "gcc-aarch64-linux-gnu"), ("qemu-aarch64", "qemu-user")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
