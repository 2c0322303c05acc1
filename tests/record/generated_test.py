#!/usr/bin/env python3
"""Code that a program generates while it runs: versions of it at one place over time, and the names a perf map and a
jitdump file give it.

    generated_test.py WAYMARK SOURCE_DIR

The witness is the program itself, which knows how often it called what it had made, and names it.
"""
import base64
import collections
import json
import pathlib
import re
import shutil
import struct
import sys
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, number, run  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CROSS = "arm-linux-gnueabihf-"
LISTER = shutil.which("trc_pkt_lister")

# generate VERSIONS PERF-MAP JITDUMP ('' leaves one out; 'pid' writes /tmp/perf-PID.map): generates `first` VERSIONS
# times at one place, each version five calls and a loop of five rounds, and `second` once at another, called once for
# each version. `deep` is called by `first`.
PROGRAM = r"""
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
typedef unsigned (*function)(unsigned);
static unsigned* place[2];
static FILE *map, *dump;
__attribute__((noinline)) unsigned deep(unsigned x) { return x * 3 + 1; }
static void drive(const unsigned* at, unsigned words, const char* name, unsigned number) {
    if (map) fprintf(map, "%lx %x %s\n", (unsigned long)at, words * 4, name);
    if (!dump) return;
    struct { uint32_t id, bytes; uint64_t time; uint32_t pid, tid; uint64_t vma, address, size, number; } load = {
        0, 56 + strlen(name) + 1 + words * 4, number, getpid(), getpid(), (uintptr_t)at, (uintptr_t)at, words * 4,
        number };
    fwrite(&load, 56, 1, dump);
    fwrite(name, strlen(name) + 1, 1, dump);
    fwrite(at, 4, words, dump);
}
static function make(int which, unsigned version) {
    unsigned* p = place[which];
    unsigned n = 0;
    p[n++] = 0xe92d4010;                          /* push {r4, lr} */
    p[n++] = 0xe3a04005;                          /* mov r4, #5 */
    p[n++] = 0xe2800000 | (version & 255);        /* add r0, r0, #version */
    p[n++] = 0xe2544001;                          /* subs r4, r4, #1 */
    p[n++] = 0x1afffffc;                          /* bne the add */
    if (which == 0) {
        p[n++] = 0xe59f3004;                      /* ldr r3, the last word */
        p[n++] = 0xe12fff33;                      /* blx r3 */
    }
    p[n++] = 0xe8bd8010;                          /* pop {r4, pc} */
    if (which == 0) p[n++] = (unsigned)deep;
    __builtin___clear_cache((char*)p, (char*)(p + n));
    char name[40];
    sprintf(name, "%s version %u", which ? "second" : "first", version);
    drive(p, n, name, version * 2 + which);
    return (function)p;
}
static __attribute__((noinline)) unsigned use(function f, unsigned times) {
    unsigned sum = 0;
    for (unsigned i = 0; i < times; ++i) sum = f(sum);
    return sum;
}
int main(int argc, char** argv) {
    unsigned versions = atoi(argv[1]), sum = 0;
    char* memory = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), name[64];
    place[0] = (unsigned*)memory;
    place[1] = (unsigned*)(memory + 4096);
    sprintf(name, "/tmp/perf-%d.map", getpid());
    if (argc > 2 && argv[2][0]) map = fopen(strcmp(argv[2], "pid") ? argv[2] : name, "w");
    if (argc > 3 && (dump = fopen(argv[3], "wb"))) {
        uint32_t head[10] = {0x4a695444, 1, 40, 40, 0, getpid()};
        fwrite(head, 40, 1, dump);
    }
    function second = make(1, 0);
    for (unsigned v = 0; v < versions; ++v) {
        sum += use(make(0, v), 5);
        sum += use(second, 1);
    }
    if (map) fclose(map);
    if (dump) fclose(dump);
    printf("%u\n", sum);
    return 0;
}
"""
VERSIONS = 60

# Two threads, each of which generates a function 20 times and calls each version five times.
THREADS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/mman.h>
typedef unsigned (*function)(unsigned);
static __attribute__((noinline)) unsigned use(function f) {
    unsigned sum = 0;
    for (int i = 0; i < 5; ++i) sum = f(sum);
    return sum;
}
static void* work(void* unused) {
    unsigned* p = mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 0;
    for (unsigned v = 0; v < 20; ++v) {
        p[0] = 0xe2800000 | v; /* add r0, r0, #v */
        p[1] = 0xe12fff1e;     /* bx lr */
        __builtin___clear_cache((char*)p, (char*)(p + 2));
        sum += use((function)p);
    }
    return (void*)sum;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(threads + i, 0, work, 0);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
    return 0;
}
"""


JOINED = """
#define _GNU_SOURCE
#include <sys/mman.h>
static unsigned run(unsigned* p, unsigned value) {
    p[0] = 0xe3a00000 | value; /* mov r0, #value */
    p[1] = 0xe12fff1e;         /* bx lr */
    __builtin___clear_cache((char*)p, (char*)(p + 2));
    return ((unsigned (*)(void))p)();
}
static char* map(void) { return mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
int main(void) {
    char* first = map();
    unsigned sum = run((unsigned*)first, 1);
    char* second = map(); /* just below the first */
    sum += run((unsigned*)second, 2);
    return sum + run((unsigned*)first, 3) != 6;
}
"""


class Generated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = Folder()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.program = cls.folder / "generate"
        (cls.folder / "generate.c").write_text(PROGRAM)
        done = run(CROSS + "gcc", "-O1", "-g", "-o", cls.program, cls.folder / "generate.c")
        assert done.returncode == 0, done.stderr
        cls.map, cls.dump = cls.folder / "names.map", cls.folder / "names.dump"
        cls.out = cls.folder / "out"
        cls.record(cls.out, VERSIONS, cls.map, cls.dump)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def record(cls, out, *arguments):
        done = run(WAYMARK, "record", "--from-start", "-o", out, "--", cls.program, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def waymark(self, *arguments, status=0):
        done = run(WAYMARK, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def profile(self, *options):
        done = self.waymark("profile", self.out, *options, "--format", "json")
        return json.loads(done.stdout)["rows"], done.stderr

    def calls_of(self, *options):
        times = collections.Counter()
        for row in self.profile(*options)[0]:
            times[row["function"]] += number(row["calls"])
        return times

    def tree(self, *options):
        """(depth, function, calls, instructions, own instructions) of `flow --format calls`, and how often a source is
        named."""
        text = self.waymark("flow", self.out, "--format", "calls", *options).stdout
        rows = re.findall(r"^ *([\d,]+) +([\d,]+) +([\d,]+)  \S+ +[<>\d.]+%  ( *)(\S.*)$", text, re.M)
        return ([(len(r[3]) // 2, r[4], number(r[2]), number(r[0]), number(r[1])) for r in rows],
                text.count("source 0x"))

    @staticmethod
    def roots(rows):
        return sorted(row[1] for row in rows if row[0] == 0)

    # ---- versions of code at one place

    def test_one_tree_for_each_thread(self):
        rows, sources = self.tree()
        self.assertEqual(sources, 1)
        # Decoding does not begin again: the dynamic linker jumps to the program.
        self.assertEqual(self.roots(rows), ["(no symbol) in ld-linux-armhf.so.3"])
        # main is called once, and everything it calls lies below it.
        self.assertEqual([row[2] for row in rows if row[1] == "main"], [1])
        uses = [row for row in rows if row[1] == "use"]
        self.assertEqual([row[2] for row in uses], [2 * VERSIONS])
        self.assertEqual(sum(row[2] for row in rows if row[1] == "deep"), 5 * VERSIONS)

    def test_each_thread_has_its_tree(self):
        (self.folder / "threads.c").write_text(THREADS)
        program, out = self.folder / "threads", self.folder / "threads_out"
        done = run(CROSS + "gcc", "-O1", "-g", "-pthread", "-o", program, self.folder / "threads.c")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(WAYMARK, "record", "--from-start", "-o", out, "--", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("equal: ", self.waymark("verify", out).stdout)
        text = self.waymark("flow", out, "--format", "calls").stdout
        threads = re.split(r"^source .*$", text, flags=re.M)[1:]
        self.assertEqual(len(threads), 3)
        for thread in threads[1:]:
            self.assertEqual(re.findall(r"([\d,]+)  \S+ +\S+%  +use$", thread, re.M), ["20"])
            self.assertEqual(re.findall(r"([\d,]+)  \S+ +\S+%  +\[no file\]\S+$", thread, re.M), ["100"])
        self.assertLess(len(self.waymark("info", out).stdout.splitlines()), 180)

    def test_mappings_that_are_joined_keep_their_names(self):
        """Linux joins neighbouring mappings without a file into one: then the same code has another offset in its
        mapping."""
        (self.folder / "joined.c").write_text(JOINED)
        program, out = self.folder / "joined", self.folder / "joined_out"
        done = run(CROSS + "gcc", "-O1", "-o", program, self.folder / "joined.c")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(WAYMARK, "record", "--from-start", "-o", out, "--", program)
        self.assertEqual(done.returncode, 0, done.stderr)
        starts = {line.split()[4] for line in (out / "maps.txt").read_text().splitlines()
                  if line.startswith("map ") and line.endswith(" - -")}
        self.assertEqual(len(starts), 2, "Linux did not join them")
        rows = [row for row in json.loads(self.waymark("profile", out, "--format", "json").stdout)["rows"]
                if row["function"].startswith("[no file]")]
        self.assertEqual([(row["function"], row["calls"]) for row in rows], [("[no file]+0x1000?", 2), ("[no file]+0x0?", 1)])

    def test_sums_agree(self):
        whole = json.loads(self.waymark("flow", self.out, "--format", "json", "--source", "PTM_1_60").stdout
                           .splitlines()[-1])
        self.assertTrue(whole)
        summary = self.waymark("flow", self.out, "--format", "summary").stdout
        instructions = number(re.findall(r"instructions +([\d,]+)", summary)[-1])
        rows, _ = self.tree()
        self.assertEqual(sum(row[4] for row in rows), instructions)
        profile = self.profile()[0]
        self.assertEqual(sum(number(row["instructions"]) for row in profile), instructions)
        # 300 calls of the function generated at one place, 60 of the function at the other, in each view.
        calls = collections.Counter(row[2] for row in rows if row[1].startswith("[no file]") or row[1].startswith("0x"))
        self.assertEqual(sum(calls.elements()), 6 * VERSIONS, rows)
        of_generated = [number(row["calls"]) for row in profile if row["function"].startswith("[no file]")]
        self.assertEqual(sorted(of_generated), [VERSIONS, 5 * VERSIONS])
        # Each function's own cost and its cost with callees, in the tree and in the profile.
        own, seen = collections.Counter(), {}
        for row in rows:
            own[row[1]] += row[4]
        for row in profile:
            seen[row["function"]] = seen.get(row["function"], 0) + number(row["instructions"])
        self.assertEqual({name: n for name, n in own.items() if n}, {name: n for name, n in seen.items() if n})
        main = next(row for row in rows if row[1] == "main")
        edges = next(row for row in profile if row["function"] == "main")
        self.assertEqual(number(edges["instructions inclusive"]), main[3])

    def test_report_has_the_same_sums(self):
        page = self.folder / "report.html"
        done = run(WAYMARK, "report", self.out, "-o", page)
        if "was built without" in done.stderr:
            self.skipTest("Waymark was built without the report's page")
        self.assertEqual(done.returncode, 0, done.stderr)

        def part(name):
            packed = re.search(rf'id="waymark-{name}">([^<]*)<', page.read_text())[1]
            return json.loads(zlib.decompress(base64.b64decode(packed), -15))

        head, calls = part("head"), part("calls")
        summary = {figure["name"]: int(figure["value"]) for figure in head["summary"] if figure["value"].isdigit()}
        self.assertRegex(next(f["value"] for f in head["summary"] if f["name"] == "recorded"), r"^under QEMU: \S+")
        self.assertEqual(summary["sources"], 1)
        self.assertEqual(sum(calls["self"][0]), summary["instructions"])
        names = head["functions"]["name"]
        texts = head["functions"].get("names")
        parents, at = [], 0
        for difference in calls["parent"]:
            at += difference
            parents.append(at)
        self.assertEqual(sum(1 for p in parents if p == 0), 1, "the dynamic linker, which jumps to the program")
        times = collections.Counter()
        for function, n in zip(calls["function"], calls["calls"]):
            if function >= 0:
                name = names[function]
                times[texts[name] if texts is not None and isinstance(name, int) else name] += n
        self.assertEqual(times["use"], 2 * VERSIONS)
        self.assertEqual(times["deep"], 5 * VERSIONS)
        self.assertEqual(times, self.calls_in_tree())

    def calls_in_tree(self):
        times = collections.Counter()
        for row in self.tree()[0]:
            times[row[1]] += row[2]
        return times

    def test_files_and_info_are_few(self):
        self.assertLess(len(self.waymark("info", self.out).stdout.splitlines()), 80)
        # A version costs three files, which other readers need; its code is in one file with the code of all others.
        files = [path.name for path in self.out.iterdir()]
        self.assertEqual(sum(name.startswith("code") for name in files), 2, files)
        self.assertLess(len(files), 3 * VERSIONS + 12)
        code = sum(path.stat().st_size for path in self.out.glob("code*.bin"))
        self.assertLess(code, 1_500_000)  # each version for itself would be twice that
        self.assertIn("equal: ", self.waymark("verify", self.out).stdout)

    @unittest.skipUnless(LISTER, "trc_pkt_lister is not on PATH; it is in the Debian package libopencsd-bin")
    def test_opencsd_reads_each_version(self):
        for buffer in ("ETB_2", "ETB_31", "ETB_60"):
            log = self.folder / f"{buffer}.log"
            done = run(LISTER, "-ss_dir", self.out, "-src_name", buffer, "-decode_only", "-logfilename", log)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            theirs = [(int(a, 16), int(b, 16)) for a, b in
                      re.findall(r"OCSD_GEN_TRC_ELEM_INSTR_RANGE\(exec range=0x([0-9a-f]+):\[0x([0-9a-f]+)\]",
                                 log.read_text())]
            mine = []
            listing = self.waymark("flow", self.out, "--source", "PTM_1_" + buffer[4:], "--format", "json").stdout
            for line in listing.splitlines():
                row = json.loads(line)
                if row.get("kind") == "range" or "end" in row and "start" in row:
                    mine.append((int(str(row.get("start", row.get("from"))), 0),
                                 int(str(row.get("end", row.get("to"))), 0)))
            self.assertGreater(len(theirs), 50)
            self.assertEqual(len(mine), len(theirs), listing[:600])
            self.assertEqual(mine, theirs)

    # ---- names

    def test_a_perf_map_gives_the_last_name(self):
        rows, said = self.profile("--perf-map", self.map)
        calls = {row["function"]: number(row["calls"]) for row in rows}
        self.assertEqual(calls[f"first version {VERSIONS - 1}"], 5 * VERSIONS)
        self.assertEqual(calls["second version 0"], VERSIONS)
        self.assertIn(f"{VERSIONS - 1} pieces of generated code had another name before", said)

    def test_a_jitdump_tells_versions_apart(self):
        calls = self.calls_of("--jitdump", self.dump)
        for version in range(VERSIONS):
            self.assertEqual(calls[f"first version {version}"], 5, version)
        self.assertEqual(calls["second version 0"], VERSIONS)
        self.assertEqual(calls["deep"], 5 * VERSIONS)
        rows, sources = self.tree("--jitdump", self.dump)
        self.assertEqual(sources, 1)
        self.assertEqual(len(self.roots(rows)), 1, self.roots(rows))
        self.assertEqual([row[2] for row in rows if row[1] == "main"], [1])
        self.assertEqual([row[2] for row in rows if row[1] == "use"], [2 * VERSIONS])
        instructions = sum(row[4] for row in self.tree()[0])
        self.assertEqual(sum(row[4] for row in rows), instructions)
        flow = self.waymark("flow", self.out, "--source", "PTM_1_7", "--jitdump", self.dump).stdout
        self.assertIn("first version 6", flow)
        self.assertNotIn("first version 7", flow)

    def test_every_command_that_names_code_does(self):
        for command in ("profile", "branches", "loops", "flow"):
            self.assertIn("first version 59", self.waymark(command, self.out, "--perf-map", self.map).stdout, command)
        done = self.waymark("coverage", self.out, "--perf-map", self.map, "--by", "function", "--only", "second version 0")
        self.assertIn("second version 0", done.stdout)
        made = self.folder / "out.folded"
        self.waymark("export", self.out, "--to", "folded", "-o", made, "--jitdump", self.dump)
        self.assertRegex(made.read_text(), r"main;use;first version 3(;deep)? \d+")
        self.waymark("diff", self.out, self.out, "--perf-map", self.map, "--threshold", "0")
        # Units whose names have another origin say so.
        dpu = self.folder / "dpu"
        self.assertEqual(run(WAYMARK, "record", "--unit", "dpu", "-o", dpu, "--", self.program, "1").returncode, 0)
        self.assertIn("--perf-map", self.waymark("profile", dpu, "--perf-map", self.map, status=2).stderr)

    def test_a_perf_map_of_the_process_is_found_without_an_option(self):
        out = self.folder / "found"
        self.record(out, 2, "pid")
        self.assertIn("names perf-map perf.map\n", (out / "maps.txt").read_text())
        rows = json.loads(self.waymark("profile", out, "--format", "json").stdout)["rows"]
        self.assertEqual({row["function"]: number(row["calls"]) for row in rows}["first version 1"], 10)
        self.assertIn("perf.map", json.dumps(json.loads(self.waymark("info", out, "--format", "json").stdout)))
        # A recording that replaces it has none.
        self.record(out, 2)
        self.assertFalse((out / "perf.map").exists())
        self.assertNotIn("perf-map", (out / "maps.txt").read_text())

    def test_damaged_names_are_counted_with_their_place(self):
        lines = self.map.read_text().splitlines()
        bad = self.folder / "bad.map"
        bad.write_text("\n".join([lines[0], "no numbers here", "10 0 empty", "ffffffffffffffff 10 beyond", "10 20",
                                  *lines[1:]]) + "\n")
        rows, said = self.profile("--perf-map", bad)
        for line, what in ((2, "expected START SIZE NAME"), (3, "its size is 0"), (4, "exceeds the address space"),
                           (5, "expected START SIZE NAME")):
            self.assertRegex(said, rf"bad\.map:{line}: .*{what}")
        self.assertIn("second version 0", {row["function"] for row in rows})
        bad.write_text("x\n" * 1000)
        said = self.profile("--perf-map", bad)[1]
        self.assertIn("980 more were left out", said)
        whole = self.dump.read_bytes()
        for name, contents, what in (("cut", whole[:len(whole) - 7], r"offset 0x[0-9a-f]+: the file ends inside"),
                                     ("short", whole[:40] + struct.pack("<IIQ", 0, 5, 0) + whole[40:],
                                      r"offset 0x28: a record is 5 bytes long")):
            (self.folder / name).write_bytes(contents)
            self.assertRegex(self.profile("--jitdump", self.folder / name)[1], what)
        for name, contents, what in (("elf", b"\x7fELF" + bytes(100), "not a jitdump file"),
                                     ("version", whole[:4] + b"\x02" + whole[5:], "version 2"),
                                     ("head", whole[:20], "inside its header")):
            (self.folder / name).write_bytes(contents)
            self.assertIn(what, self.waymark("profile", self.out, "--jitdump", self.folder / name, status=3).stderr)
        self.assertIn("no such file", self.waymark("profile", self.out, "--perf-map", "/nowhere", status=3).stderr)


if __name__ == "__main__":
    for tool, package in (("qemu-arm", "qemu-user"),
                          (CROSS + "gcc", "gcc-arm-linux-gnueabihf, with libc6-dev-armhf-cross")):
        if not shutil.which(tool):
            print(f"SKIPPED: {tool} is not on PATH; it is in the Debian package {package}")
            sys.exit(77)
    if not pathlib.Path("/usr/arm-linux-gnueabihf/include/stdio.h").exists():
        print("SKIPPED: the C library for Arm is missing; it is in the Debian package libc6-dev-armhf-cross")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0]] + [a for a in sys.argv[3:] if a != "--few"], verbosity=2)
