#!/usr/bin/env python3
"""Compares the names of system calls in src/image/linux_calls.inc with the kernel's headers.

    linux_calls_test.py ROOT

The headers are the ones that the cross compilers for AArch64 and 32-bit Arm use; without a compiler the test is skipped.
A later kernel may have more system calls than the table, but none of another name.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

SKIPPED = 77
COMPILERS = {"AARCH64": "aarch64-linux-gnu-gcc", "ARM": "arm-linux-gnueabihf-gcc"}
# If one number has two names, 32-bit Arm defines the older name by the newer one.
SECOND_NAMES = {"sync_file_range2"}


def names_of_headers(compiler):
    """Number and name of each system call, as the preprocessor sees them."""
    text = subprocess.run([compiler, "-dM", "-E", "-include", "asm/unistd.h", "-x", "c", "/dev/null"],
                          capture_output=True, text=True, check=True).stdout
    macros = dict(re.findall(r"^#define (\w+) +(.+)$", text, re.MULTILINE))

    def value(expression):
        return eval(re.sub(r"\b[A-Za-z_]\w*", lambda name: str(value(macros[name[0]])), expression))

    out = {}
    for macro, expression in macros.items():
        name = re.fullmatch(r"__(?:ARM_)?NR_(\w+)", macro)
        if name and not re.search(r"BASE$|_MASK$|^(arch_specific_syscall|syscalls)$", name[1]) and name[1] not in SECOND_NAMES:
            out[value(expression)] = name[1]
    return out


class LinuxCalls(unittest.TestCase):
    def test_names_are_those_of_the_headers(self):
        text = (ROOT / "src/image/linux_calls.inc").read_text()
        for machine, compiler in COMPILERS.items():
            with self.subTest(machine=machine):
                part = re.search(rf"defined\(WM_LINUX_CALLS_{machine}\)\n(.*?)\n#e", text, re.DOTALL)[1]
                rows = [(int(number), name) for number, name in re.findall(r'\{(\d+), "(\w+)"\}', part)]
                self.assertEqual([number for number, _ in rows], sorted({number for number, _ in rows}))
                expected = names_of_headers(compiler)
                self.assertGreater(len(expected), 300)
                last = max(number for number, _ in rows)
                self.assertEqual(dict(rows), {n: name for n, name in expected.items() if n <= last})


if __name__ == "__main__":
    missing = [compiler for compiler in COMPILERS.values() if shutil.which(compiler) is None]
    if missing:
        print(f"SKIPPED: names of system calls are not compared with the kernel's headers: {', '.join(missing)} missing")
        sys.exit(SKIPPED)
    ROOT = pathlib.Path(sys.argv.pop(1))
    unittest.main(verbosity=2)
