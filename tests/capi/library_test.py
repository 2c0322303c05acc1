#!/usr/bin/python3
"""Compiles and runs the recipes of docs/library.md, and compares what they print.

    library_test.py LIBRARY PYTHON_FOLDER WAYMARK ROOT   PYTHON_FOLDER: empty: there is no module
WM_UPDATE_APPROVED=1 in the environment writes what is printed into the document.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

LIBRARY, FOLDER, WAYMARK, ROOT = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
DOCUMENT = ROOT / "docs" / "library.md"
RECIPE = re.compile(r"^## (\d+)\. [^\n]*\n(.*?)^```(c|python)\n(.*?)^```\n\n```text\n(.*?)^```\n", re.S | re.M)


def run_c(code, folder):
    source, program = folder / "recipe.c", folder / "recipe"
    source.write_text(code)
    subprocess.run(["cc", "-std=c11", "-pedantic", "-Wall", "-Werror", f"-I{ROOT}/include", source, "-o", program, LIBRARY,
                    f"-Wl,-rpath,{LIBRARY.parent}"], check=True, timeout=60)
    return [program]


def run_python(code, folder):
    source = folder / "recipe.py"
    source.write_text(code)
    return [sys.executable, source]


class Recipes(unittest.TestCase):
    def test_all(self):
        text = DOCUMENT.read_text()
        recipes = list(RECIPE.finditer(text))
        self.assertEqual([int(r[1]) for r in recipes], list(range(1, 11)))
        approved = text
        for number, _, language, code, printed in (r.groups() for r in recipes):
            with self.subTest(recipe=number), tempfile.TemporaryDirectory() as folder:
                if language == "python" and not FOLDER:
                    print(f"SKIPPED: recipe {number}: the Python module was not built")
                    continue
                command = (run_c if language == "c" else run_python)(code, pathlib.Path(folder))
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120,
                                      env={**os.environ, "PYTHONPATH": FOLDER, "WAYMARK": WAYMARK})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                if os.environ.get("WM_UPDATE_APPROVED"):
                    approved = approved.replace(f"{code}```\n\n```text\n{printed}```", f"{code}```\n\n```text\n{done.stdout}```")
                else:
                    self.assertEqual(done.stdout, printed)
        if approved != text:
            DOCUMENT.write_text(approved)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
