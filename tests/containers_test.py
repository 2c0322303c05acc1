#!/usr/bin/env python3
"""Checks that what a capture is, is decided in one place: open::identify.

    containers_test.py ROOT         check the tree at ROOT
    containers_test.py --self-test  check that the check finds violations planted in a small tree

Reported as violations, in the code (not in comments) of src/:
  - a call of a function that recognises one kind of container (RECOGNISES) outside src/open and the file that defines it
  - an entry of EXEMPT that is no longer needed
"""
import re
import sys

import house
from protocols_test import without_comments

# Each function, and the files in which it stands.
RECOGNISES = {
    "is_answers_file": {"src/answers/file_reader.cc"},
    "is_branch_list": {"src/exports/branch_list.cc"},
    "is_branch_text": {"src/capture/branch_text.cc"},
    "is_dpu_folder": {"src/capture/dpu_folder.cc"},
    "is_perf_data": {"src/capture/perf_data.cc", "src/capture/perf_file.cc"},
    "is_perf_folder": {"src/capture/perf_file.cc"},
    "perf::holds": set(),
}
# (function, file): why.
EXEMPT = {
    ("is_perf_data", "src/analysis/samples.cc"): "open_samples takes any file; what is not perf.data is a bare buffer",
    ("is_perf_data", "src/fleet/inputs.cc"): "a folder is searched by first bytes; identify unpacks a compressed file whole",
    ("is_perf_data", "src/record/perf_file.cc"): "a recording replaces no file but perf.data",
}


def check(root, exempt=None):
    """How many files were checked, and what is wrong."""
    exempt = EXEMPT if exempt is None else exempt
    count, wrong, unused = 0, [], set(exempt)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".cc", ".h"):
            continue
        count += 1
        name = path.relative_to(root).as_posix()
        if name.startswith("src/open/"):
            continue
        for number, line in enumerate(without_comments(path.read_text()).split("\n"), 1):
            for function, homes in RECOGNISES.items():
                if name in homes or not re.search(rf"\b{function}\(", line):
                    continue
                unused.discard((function, name))
                if (function, name) not in exempt:
                    wrong.append(f"{name}:{number}: calls {function}; ask open::identify what the capture is")
    wrong += [f"EXEMPT: {function} in {name} is no longer needed" for function, name in sorted(unused)]
    return count, wrong


def self_test():
    def one(text, name="src/cli/a.cc", exempt=()):
        return {name: text}, lambda root: check(root, dict.fromkeys(exempt, "why"))[1]

    return house.run_cases([
        (*one("if (capture::is_dpu_folder(path)) go();\n"), "src/cli/a.cc:1: calls is_dpu_folder"),
        (*one("\n// is_dpu_folder(path)\nif (perf::holds(file)) go();\n"), "src/cli/a.cc:3: calls perf::holds"),
        (*one("// is_dpu_folder(path)\nif (module.holds(file)) go();\n"), None),
        (*one("is_perf_data(head)\n", "src/open/container.cc"), None),
        (*one("is_perf_data(head)\n", "src/capture/perf_file.cc"), None),
        (*one("is_perf_data(head)\n", exempt=[("is_perf_data", "src/cli/a.cc")]), None),
        (*one("nothing\n", exempt=[("is_perf_data", "src/cli/a.cc")]), "is no longer needed"),
    ])


if __name__ == "__main__":
    sys.exit(house.main(__doc__, check, self_test))
