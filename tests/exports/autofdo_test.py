#!/usr/bin/env python3
"""Sample profiles of a C++ program with inlined calls, as LLVM's tools have them: every count in its nest of inlined calls
against llvm-symbolizer, and the branches that clang weighs by it.

    autofdo_test.py WAYMARK SOURCE_DIR
"""
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import recorded

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
HERE = pathlib.Path(__file__).resolve().parent
# Options that compilers need to describe inlined calls for profiles.
FOR_PROFILES = ("-O2", "-g", "-fdebug-info-for-profiling", "-fno-exceptions")


def read_profile(text):
    """(function and calls inlined in it, by place; place) → samples, callees; function → total and head counts. A place
    is a line's offset and discriminator."""
    counts, totals, nest = {}, {}, []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" "))
        if depth == 0:
            name, total, head = line.rsplit(":", 2)
            totals[name] = (int(total), int(head))
            nest = [name]
            continue
        place, what = re.fullmatch(r" +(\d+(?:\.\d+)?): (.*)", line).groups()
        del nest[depth:]
        if called := re.fullmatch(r"(\D.*):(\d+)", what):
            nest.append((place, called[1]))
            continue
        samples, *callees = what.split()
        key = (tuple(nest), place)
        assert key not in counts, line
        counts[key] = (int(samples), dict((c.rsplit(":", 1)[0], int(c.rsplit(":", 1)[1])) for c in callees))
    return counts, totals


def base_and_copies(discriminator):
    """The fields that LLVM packs into a discriminator: the piece of a line, and how often it was duplicated."""
    out = []
    for _ in range(2):
        if discriminator & 1:
            out.append(0)
            discriminator >>= 1
        elif discriminator & 0x40:
            out.append((discriminator >> 1 & 0x1f) | (discriminator >> 7 & 0x7f) << 5)
            discriminator >>= 14
        else:
            out.append(discriminator >> 1 & 0x1f)
            discriminator >>= 7
    return out[0], out[1] or 1


def expected_counts(program, counted, by_llvm):
    """The same for a program's addresses and their execution counts, by the output of llvm-symbolizer."""
    unpack = base_and_copies if by_llvm else lambda discriminator: (0, 1)
    done = subprocess.run([SYMBOLIZER, "--obj", program, "--output-style=JSON", "--functions=linkage", "--inlines",
                           "--no-demangle"],
                          input="\n".join(f"{a:#x}" for a in counted), text=True, capture_output=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    out = collections.Counter()
    for one in map(json.loads, done.stdout.splitlines()):
        frames = list(reversed(one["Symbol"]))
        for frame in frames:
            # GCC describes all variants of a constructor once.
            frame["FunctionName"] = re.sub(r"([CD])4(?=E)", r"\g<1>2", frame["FunctionName"])
        if not frames or any(f["Line"] == 0 or f["StartLine"] == 0 for f in frames):
            continue
        nest = [frames[0]["FunctionName"]]
        for frame, callee in zip(frames, frames[1:]):
            base = unpack(frame["Discriminator"])[0]
            place = f"{(frame['Line'] - frame['StartLine']) & 0xffff}" + (f".{base}" if base else "")
            nest.append((place, callee["FunctionName"]))
        last = frames[-1]
        base, copies = unpack(last["Discriminator"])
        place = f"{(last['Line'] - last['StartLine']) & 0xffff}" + (f".{base}" if base else "")
        key = (tuple(nest), place)
        out[key] = max(out[key], counted[int(one["Address"], 16)] * copies)
    return out


class AutoFdo(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        temporary = Folder()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        cls.source = cls.folder / "hot.cc"
        shutil.copy(HERE / "hot.cc", cls.source)

    def weights(self, *options):
        """Number of branches that clang weighs, and number of conditional branches and switches."""
        text = recorded.run(CLANG, "-O2", "-g", *options, "-S", "-emit-llvm", "-o", "-",
                            self.source).stdout
        weighed = set(re.findall(r"^(!\d+) = !\{!\"branch_weights\"", text, re.M))
        used = sum(of in weighed for of in re.findall(r"^ +(?:br|switch) .*?!prof (!\d+)", text, re.M) +
                   re.findall(r"^ +\], .*?!prof (!\d+)", text, re.M))
        return used, len(re.findall(r"^ +(?:br i1|switch) ", text, re.M))

    def compiled(self, target, linker, *options):
        program = self.folder / target
        recorded.run(CLANG, f"--target={target}", *FOR_PROFILES, *options, "-c", self.source, "-o",
                     self.folder / f"{target}.o")
        recorded.run(linker, self.folder / f"{target}.o", "-o", program)
        return program

    def exported(self, capture, to, *options):
        file = self.folder / f"{capture.name}.{to}"
        recorded.run(WAYMARK, "export", capture, "--to", to, "-o", file, *options)
        return file

    def check_counts(self, program, capture, executions, bias, by_llvm=True):
        """Checks that the profile has every count in its nest of inlined calls; gives the profile, counts and
        totals."""
        profile = self.exported(capture, "autofdo")
        counts, totals = read_profile(profile.read_text())
        # Functions have linkage names, inlined ones too.
        self.assertIn("_ZN6shapes5TableclEi", totals)
        self.assertTrue(all(re.fullmatch(r"[\w$]+(\.\w+)*", name) for name in totals), totals)
        self.assertTrue(any(callee == "_ZN6shapes4areaIlEET_RKS1_ii" for (nest, _) in counts for _, callee in nest[1:]))
        # Every count, with its nest of inlined calls.
        rows = [json.loads(line) for line in
                self.exported(capture, "jsonl", "--table", "instructions").read_text().splitlines()]
        functions = [json.loads(line) for line in
                     self.exported(capture, "jsonl", "--table", "functions").read_text().splitlines()]
        images = {row["id"]: row["name"] for row in map(json.loads, self.exported(
            capture, "jsonl", "--table", "images").read_text().splitlines())}
        image_of = {f["id"]: images.get(f["image"]) for f in functions}
        ran = {int(row["address"], 16) - bias: row[executions] for row in rows
               if image_of.get(row["function"]) == program.name and row[executions]}
        self.assertGreater(len(ran), 100)
        wanted = expected_counts(program, ran, by_llvm)
        given = {key: samples for key, (samples, _) in counts.items() if samples != 0}
        self.assertEqual(given, dict(wanted))
        # Totals are sums over the nest.
        for name, (total, _) in totals.items():
            self.assertEqual(total, sum(s for (nest, _), (s, _) in counts.items() if nest[0] == name), name)
        return profile, counts, totals

    def check(self, program, capture, executions, bias, exact):
        profile, counts, totals = self.check_counts(program, capture, executions, bias)
        text = profile.read_text()
        # Calls that were not inlined, and how often their callees were entered.
        calls = collections.Counter()
        for _, callees in counts.values():
            calls.update(callees)
        choose = "_ZN6shapes6chooseEii"
        self.assertEqual(totals[choose][1], calls[choose])
        if exact:
            self.assertEqual(calls[choose], 50 * 64)
            self.assertEqual(calls["_ZN6shapes5TableclEi"], 50)
            # Program flow also shows code that never ran: here the second piece of code in its line, by its
            # discriminator.
            never = [place for (nest, place), (samples, _) in counts.items() if nest == (choose,) and samples == 0]
            self.assertEqual(never, ["1.1"])
        else:
            self.assertGreater(calls[choose], 0)
        # LLVM's own reader reads the whole file.
        shown = recorded.run(PROFDATA, "show", "--sample", profile).stdout
        for name, (total, head) in totals.items():
            self.assertIn(f"Function: {name}: {total}, {head}, ", shown)
        recorded.run(PROFDATA, "merge", "--sample", profile, "-o", self.folder / "merged.prof")
        used, branches = self.weights(f"-fprofile-sample-use={profile}")
        # The same without inlined calls, by readable names, and without a profile.
        alone = self.folder / "alone.txt"
        alone.write_text("".join(line + "\n" for line in text.splitlines() if re.match(r"\S| \S+: \d", line)))
        demangled = self.folder / "demangled.txt"
        demangled.write_text(recorded.run("c++filt", input=text).stdout)
        without = self.weights(f"-fprofile-sample-use={alone}")[0]
        print(f"{capture.name}: clang weighs {used} of {branches} branches; without inlined calls {without}, by other "
              f"names {self.weights(f'-fprofile-sample-use={demangled}')[0]}")
        self.assertLess(self.weights(f"-fprofile-sample-use={demangled}")[0], used)
        self.assertGreater(used, 2 * without)
        self.assertEqual(self.weights()[0], 0)
        return used, branches

    def test_samples(self):
        capture = self.folder / "samples"
        program = self.compiled("aarch64-linux-gnu", GCC, "-fPIE")
        recorded.run(WAYMARK, "record", "--unit", "spe", "-c", "256", "-o", capture, "--", program)
        used, branches = self.check(program, capture, "cost", 0, exact=False)
        self.assertGreater(used, 0.6 * branches)

    def test_program_flow(self):
        capture = self.folder / "flow"
        program = self.compiled("arm-linux-gnueabihf", GCC32, "-fPIE")
        recorded.run(WAYMARK, "record", "--from-start", "-o", capture, "--", program)
        mapped = re.search(r"^.*arm-linux-gnueabihf\b.*$", (capture / "maps.txt").read_text(), re.M)
        self.assertIsNotNone(mapped)
        bias = self.bias(capture, program)
        used, branches = self.check(program, capture, "times", bias, exact=True)
        self.assertGreater(used, 0.6 * branches)

    def test_program_of_another_compiler(self):
        program, capture = self.folder / "gcc", self.folder / "of_gcc"
        recorded.run(GXX32, "-O2", "-g", "-fno-exceptions", self.source, "-o", program)
        recorded.run(WAYMARK, "record", "--from-start", "-o", capture, "--", program)
        _, counts, _ = self.check_counts(program, capture, "times", self.bias(capture, program), by_llvm=False)
        # Constructors have the name of one of their variants, as in clang.
        self.assertIn("_ZN6shapes5TableC2Ev", {callee for (nest, _) in counts for _, callee in nest[1:]})

    def bias(self, capture, program):
        """The address at which a position-independent program was loaded: a function's address minus its place in the
        file."""
        symbols = recorded.run("nm", program).stdout
        place = int(re.search(r"^([0-9a-f]+) T _ZN6shapes5TableclEi$", symbols, re.M)[1], 16) & ~1
        rows = map(json.loads, self.exported(capture, "jsonl", "--table", "functions").read_text().splitlines())
        return next(int(row["address"], 16) for row in rows if row["linkage_name"] == "_ZN6shapes5TableclEi") - place


if __name__ == "__main__":
    CLANG = recorded.need("clang", "clang")
    GCC = recorded.need("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    GCC32 = recorded.need("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf")
    GXX32 = recorded.need("arm-linux-gnueabihf-g++", "g++-arm-linux-gnueabihf")
    SYMBOLIZER = recorded.need(("llvm-symbolizer", "llvm-symbolizer-14", "llvm-symbolizer-16"), "llvm")
    PROFDATA = recorded.need(("llvm-profdata", "llvm-profdata-14", "llvm-profdata-16"), "llvm")
    recorded.need("c++filt", "binutils")
    for qemu in ("qemu-arm", "qemu-aarch64"):
        recorded.need(qemu, "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
