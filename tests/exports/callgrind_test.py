#!/usr/bin/env python3
"""Tail calls in a callgrind file against valgrind's callgrind of the same source: the same calls between the same functions,
and costs of calls that add up.

    callgrind_test.py WAYMARK SOURCE_DIR
"""
import collections
import pathlib
import re
import sys
import tempfile
import unittest

import recorded

WAYMARK, SOURCE = (pathlib.Path(a).resolve() for a in sys.argv[1:3])

PROGRAM = """\
#include <stdio.h>
#include <stdlib.h>
#define NOINLINE __attribute__((noinline, noclone))
NOINLINE long leaf(long n) { long s = 0; for (long i = 0; i < n; i++) { s += i ^ n; __asm__ volatile("" : "+r"(s)); } return s; }
NOINLINE long mid(long n) { return leaf(n + 100); }
NOINLINE long top1(long n) { return mid(n + 1); }
NOINLINE long top2(long n) { long r = mid(n + 2); return r + 1; }
NOINLINE long odd(long n);
NOINLINE long even(long n) { __asm__ volatile(""); return n == 0 ? leaf(3) : odd(n - 1); }
NOINLINE long odd(long n) { __asm__ volatile(""); return n == 0 ? leaf(4) : even(n - 1); }
NOINLINE long pick(long (*f)(long), long n) { return f(n); }
int main(void)
{
  long s = 0;
  for (int i = 0; i < 10; i++) {
    s += top1(i);
    s += top2(i);
    s += pick(i & 1 ? top1 : leaf, i);
  }
  s += even(7);
  printf("%ld\\n", s);
  return 0;
}
"""
OURS = ("leaf", "mid", "top1", "top2", "even", "odd", "pick", "main")


class Profile:
    """The contents of a callgrind file."""

    def __init__(self, text):
        self.own, self.calls, self.passed = collections.Counter(), collections.Counter(), collections.Counter()
        names, function, callee, calls = {}, None, None, None
        positions = 1

        def named(word):
            found = re.fullmatch(r"(\(\d+\))(?: (.*))?", word)
            if not found:
                return word
            if found[2] is not None:
                names[found[1]] = found[2]
            return names[found[1]]

        for line in text.splitlines():
            if line.startswith("positions:"):
                positions = len(line.split()) - 1
            elif line.startswith("fn="):
                function = named(line[3:])
            elif line.startswith("cfn="):
                callee = named(line[4:])
            elif line.startswith("calls="):
                calls = int(line[6:].split()[0])
            elif re.match(r"[0-9+*\-]", line):
                words = line.split()
                cost = int(words[positions]) if len(words) > positions else 0
                if calls is None:
                    self.own[function] += cost
                else:
                    self.calls[function, callee] += calls
                    self.passed[function, callee] += cost
                    calls = None

    def contradictions(self):
        """Functions whose calls do not cost the sum of the functions themselves and their own calls; without
        recursion."""
        into, out = collections.Counter(), collections.Counter()
        for (caller, callee), cost in self.passed.items():
            into[callee] += cost
            out[caller] += cost
        # _start calls itself in its own way: its call of the C library gets the jump to main as an argument.
        recursive = {"even", "odd", "_start"}
        return {f: (into[f], self.own[f] + out[f]) for f in into if f not in recursive and into[f] != self.own[f] + out[f]}


class Callgrind(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        source = cls.folder / "tail.c"
        source.write_text(PROGRAM)
        recorded.run("gcc", "-O2", "-g", "-o", cls.folder / "native", source)
        recorded.run("valgrind", "--tool=callgrind", f"--callgrind-out-file={cls.folder / 'native.cg'}", cls.folder / "native")
        cls.reference = Profile((cls.folder / "native.cg").read_text())
        recorded.run("aarch64-linux-gnu-gcc", "-O2", "-g", "-static", "-o", cls.folder / "program", source)
        cls.captures = {}
        for unit in ("ete", "etmv4"):
            cls.captures[unit] = cls.folder / unit
            recorded.run(WAYMARK, "record", "--from-start", "-q", "--unit", unit, "-o", cls.captures[unit], "--", cls.folder / "program")

    def profile(self, unit):
        file = self.folder / f"{unit}.cg"
        recorded.run(WAYMARK, "export", self.captures[unit], "--to", "callgrind", "-o", file)
        return Profile(file.read_text())

    def test_calls_are_those_of_valgrind(self):
        def ours(profile):
            return {pair: calls for pair, calls in profile.calls.items() if set(pair) <= set(OURS)}
        expected = ours(self.reference)
        # valgrind numbers recursion: even, even'2.
        for (caller, callee), calls in self.reference.calls.items():
            pair = caller.split("'")[0], callee.split("'")[0]
            if pair != (caller, callee) and set(pair) <= set(OURS):
                expected[pair] = expected.get(pair, 0) + calls
        self.assertEqual(expected["top1", "mid"], 15)
        for unit in self.captures:
            with self.subTest(unit=unit):
                self.assertEqual(ours(self.profile(unit)), expected)

    def test_costs_of_calls_add_up(self):
        for unit in self.captures:
            with self.subTest(unit=unit):
                self.assertEqual(self.profile(unit).contradictions(), {})

    def test_callgrind_annotate_shows_callers_and_one_function_each(self):
        """Run in the folder of the source, whose path it removes from names."""
        file = self.folder / "etmv4.cg"
        recorded.run(WAYMARK, "export", self.captures["etmv4"], "--to", "callgrind", "-o", file)
        said = recorded.run("callgrind_annotate", "--tree=caller", "--inclusive=yes", "--threshold=100", file,
                            cwd=self.folder).stdout
        profile = Profile(file.read_text())
        for function in OURS:
            self.assertEqual(len(set(re.findall(rf"\* +(\S*tail\.c:{function}) ", said))), 1, said)
        for (caller, callee), calls in profile.calls.items():
            if {caller, callee} <= set(OURS):
                self.assertRegex(said, rf"(?m)< tail\.c:{caller} \({calls}x\)")


if __name__ == "__main__":
    recorded.need("valgrind", "valgrind")
    recorded.need("gcc", "gcc")
    recorded.need("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu")
    recorded.need("qemu-aarch64", "qemu-user")
    unittest.main(argv=sys.argv[:1], verbosity=2)
