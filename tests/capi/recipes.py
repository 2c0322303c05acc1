#!/usr/bin/python3
"""The recipes of docs/library.md, and those in C++ as one program: their headers are then read once for all.

    recipes.py DOCUMENT OUTPUT   writes the program: OUTPUT N runs recipe N
"""
import pathlib
import re
import sys

RECIPE = re.compile(r"^## (\d+)\. [^\n]*\n(.*?)^```(c|cpp|python)\n(.*?)^```\n\n```text\n(.*?)^```\n", re.S | re.M)


def recipes(document):
    """(number, language, code, printed text) of each recipe."""
    return [(int(number), language, code, printed)
            for number, _, language, code, printed in RECIPE.findall(pathlib.Path(document).read_text())]


def one_program(document):
    includes, bodies, cases = set(), [], []
    for number, language, code, _ in recipes(document):
        if language != "cpp":
            continue
        lines = code.splitlines()
        includes |= {line for line in lines if line.startswith("#include")}
        body = "\n".join(line for line in lines if not line.startswith("#include"))
        bodies.append(f"namespace recipe_{number} {{\n{body.replace('int main()', 'int run()')}\n}}\n")
        cases.append(f"        case {number}: return recipe_{number}::run();\n")
    # Functions other than main return nothing by themselves.
    bodies = [re.sub(r"\n}\n}\n$", "\n    return 0;\n}\n}\n", body) for body in bodies]
    return ("\n".join(sorted(includes | {"#include <cstdlib>"})) + "\n\n" + "\n".join(bodies) +
            "\nint main(int argc, char** argv) {\n    switch (argc > 1 ? std::atoi(argv[1]) : 0) {\n" + "".join(cases) +
            "        default: return 2;\n    }\n}\n")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pathlib.Path(sys.argv[2]).write_text(one_program(sys.argv[1]))
