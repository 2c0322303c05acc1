#!/usr/bin/python3
"""Compiles and runs the recipes of docs/library.md, and compares what they print.

    library_test.py LIBRARY PYTHON_FOLDER WAYMARK ROOT CPP_RECIPES COMPILER
PYTHON_FOLDER: -: there is no module. CPP_RECIPES: the program that recipes.py wrote, compiled.
WM_UPDATE_APPROVED=1 in the environment writes what is printed into the document. WM_EACH_ALONE=1 also lets the compiler
read each recipe in C++ alone, which takes a minute: its one header is enough.
"""
import os
import pathlib
import subprocess
import sys
import unittest

import recipes

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

LIBRARY, FOLDER, WAYMARK = pathlib.Path(sys.argv[1]), "" if sys.argv[2] == "-" else sys.argv[2], sys.argv[3]
ROOT, CPP_RECIPES, COMPILER = pathlib.Path(sys.argv[4]), sys.argv[5], sys.argv[6]
DOCUMENT = ROOT / "docs" / "library.md"


def run_c(_, code, folder):
    source, program = folder / "recipe.c", folder / "recipe"
    source.write_text(code)
    subprocess.run(["cc", "-std=c11", "-pedantic", "-Wall", "-Werror", f"-I{ROOT}/include", source, "-o", program, LIBRARY,
                    f"-Wl,-rpath,{LIBRARY.parent}"], check=True, timeout=HANGS)
    return [program]


def run_cpp(number, code, folder):
    if os.environ.get("WM_EACH_ALONE"):
        source = folder / "recipe.cc"
        source.write_text(code)
        subprocess.run([COMPILER, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", "-fsyntax-only", source],
                       check=True, timeout=HANGS)
    return [CPP_RECIPES, str(number)]


def run_python(_, code, folder):
    source = folder / "recipe.py"
    source.write_text(code)
    return [sys.executable, source]


RUN = {"c": run_c, "cpp": run_cpp, "python": run_python}


class Recipes(unittest.TestCase):
    def test_all(self):
        text = DOCUMENT.read_text()
        found = recipes.recipes(DOCUMENT)
        self.assertEqual([number for number, *_ in found], list(range(1, 22)))
        approved = text
        for number, language, code, printed in found:
            with self.subTest(recipe=number), Folder() as folder:
                if language == "python" and not FOLDER:
                    print(f"SKIPPED: recipe {number}: the Python module was not built")
                    continue
                command = RUN[language](number, code, pathlib.Path(folder))
                done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANGS,
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
