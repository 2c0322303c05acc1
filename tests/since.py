#!/usr/bin/env python3
"""Chooses the tests that a change touches: for `scripts/test --since REV`.

    since.py ROOT REV BUILD targets    the targets of the build folder BUILD that these tests need, one a line
    since.py ROOT REV BUILD tests      the numbers of these tests, as `ctest -I` reads them; the last line is empty
    since.py --self-test

What changed are the files that differ from the commit REV, those not yet committed among them. Chosen are

  - tests of the layers that changed, and where a header of include/waymark changed, of the layers that may include it
    (cmake/layers.cmake)
  - other test programs that include what changed
  - tests of the program that concern a layer that changed (CONCERNS), the approved output of the command line always
  - tests whose own files changed, or that read a changed document
  - checks of the tree

How everything is built and tested (EVERYTHING) concerns every test. CI runs all tests, whatever changed.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import layers_test

# Changes of these files concern all tests.
EVERYTHING = re.compile(r"CMakeLists\.txt$|CMakePresets\.json$|^cmake/(?!web\.cmake|build_web\.cmake)|^scripts/(lib\.sh|test)$"
                        r"|^tests/support/|^\.ci/")
# The layers to which tests of the program belong: the first row that fits a test's name applies. A test without a row
# is always chosen.
RECORDING = "core isa flow follow coresight image capture record protocol pipeline analysis"
CONCERNS = [(re.compile(name), set(concerned.split())) for name, concerned in (
    (r"cli\.(completion|manners)$", "cli"),
    (r"cli\.(killed|strange_names|columns)$", "cli exports listing answers"),
    (r"cli\.(many_warnings|no_files)$", "cli doctor pipeline capture"),
    (r"cli\.", "*"),
    (r"record\.dpu", f"{RECORDING} dpu record_dpu"),
    (r"record\.spe|differential\.spe", f"{RECORDING} spe record_spe"),
    (r"record\.perf", "capture record spe etm4 follow pipeline"),
    (r"record\.(aarch64|system64|generated64|perf_modules|debian)$", f"{RECORDING} etm4"),
    (r"record\.etm3$", f"{RECORDING} etm3 pft"),
    (r"record\.(mtb|itm)$", f"{RECORDING} record_m mtb itm"),
    (r"record\.(answers|view|gates)$", "answers analysis report verify pft etm4 record"),
    (r"record\.|differential\.recover", f"{RECORDING} pft"),
    (r"exports\.", "exports analysis"),
    (r"report\.", "report"),
    (r"fleet\.", "fleet"),
    (r"serve\.", "serve"),
    (r"doctor\.", "doctor pipeline pft"),
    (r"golden\.|differential\.etm4", "etm4 pft follow pipeline capture"),
    (r"differential\.(isa|a64)", "isa"),
    (r"differential\.", "pft spe"),
    (r"capi\.|python\.", "capi"),
    (r"compile_fail\.etm4", "core etm4"),
    (r"compile_fail\.unhandled", "core pft"),
    (r"compile_fail\.", "core"),
    (r"fuzz\.(deformatter)", "coresight"),
    (r"fuzz\.(elf)", "image"),
    (r"fuzz\.(snapshot|perf_data|dpu_folder)", "capture"),
    (r"fuzz\.(doctor)", "doctor"),
    (r"fuzz\.(live_feed)", "capi"),
    (r"fuzz\.etm4", "etm4"),
    (r"fuzz\.pft", "pft"),
    (r"fuzz\.spe", "spe"),
    (r"fuzz\.dpu", "dpu"),
    (r"house\.consumer$|long\.", "-"),
    (r"house\.requirements$", "dpu"),
    (r"house\.toy$", "protocol follow"),
    (r"house\.format$", "*"),
    (r"house\..*self_test$", "-"),
)]
SOURCE = re.compile(r"\.(cc|h|c|hpp|inc)$")


class Change:
    """The layers that changed files concern, and the reason if all layers are concerned."""

    def __init__(self, files, table):
        self.files = sorted(files)
        self.everything = next((f for f in self.files if EVERYTHING.search(f)), None)
        self.changed = set()
        self.layers = set()
        for name in self.files:
            parts = name.split("/")
            interface = name.startswith("include/waymark/")
            layer = parts[2] if interface and len(parts) > 3 else parts[1] if parts[0] == "src" and len(parts) > 2 else None
            if name in ("include/waymark.h",) or parts[:2] == ["src", "python"] or name.startswith("include/waymark/") and len(parts) == 3:
                layer = "capi"
            elif parts[0] == "web":
                layer = "report"
            elif parts[0] == "completion":
                layer = "cli"
            elif parts[0] == "examples" or parts[0] == "guest":
                layer = "record"
            if layer not in table:
                continue
            self.changed.add(layer)
            self.layers.add(layer)
            if layer == "command_line":
                self.layers.add("cli")  # which alone uses it
            if interface:
                self.layers |= {above for above, uses in table.items() if layer in uses}

    def code(self):
        return any(SOURCE.search(f) for f in self.files)

    def documents(self):
        return any(f.endswith(".md") for f in self.files)


class Sources:
    """The files that sources of the test programs include, and the documents that tests in Python read."""

    def __init__(self, root):
        self.root = root

    def of_program(self, program):
        """The sources of a test program, and the layer that it tests, if there is one."""
        name = re.sub(r"_test$", "", program)
        folder = self.root / "tests" / name
        if folder.is_dir() and any(folder.glob("*_test.c*")):
            return [p.relative_to(self.root).as_posix() for p in sorted(folder.rglob("*")) if p.is_file()], name
        found = [p.relative_to(self.root).as_posix() for p in sorted(self.root.glob(f"tests/*/{program}.c*"))]
        return found, None

    def included(self, names):
        """The layers whose headers these sources include."""
        out = set()
        for name in names:
            if SOURCE.search(name):
                out |= set(re.findall(r'#include "waymark/(\w+)/', (self.root / name).read_text(errors="replace")))
        return out

    def mentions(self, name, documents):
        """Whether a script or source has one of the documents in a string; comments cite many."""
        try:
            text = (self.root / name).read_text(errors="replace")
        except OSError:
            return False
        return any(re.search(rf"""["'][^"'\n]*{re.escape(d)}""", text) for d in documents)


Test = collections.namedtuple("Test", "number name command")


def concerns(name, layers):
    for pattern, concerned in CONCERNS:
        if pattern.match(name):
            return "*" in concerned or bool(concerned & layers)
    return True


def chosen(test, change, sources):
    """Whether the change touches the test."""
    if change.everything:
        return True
    placeholder = re.fullmatch(r"(\w+)_NOT_BUILT", test.name)
    program = placeholder[1] if placeholder else pathlib.PurePath(test.command[0]).name if test.command else ""
    if re.match(r"house\.(layers|names|protocols|format)$", test.name):
        return change.code()
    if test.name == "house.links":
        return True
    if test.name == "house.documented_commands":
        return change.documents() or "cli" in change.layers
    command = " ".join(test.command)
    if any(f.startswith("tests/") and f in command for f in change.files):
        return True
    # Helpers of the scripts beside them, cases and data.
    scripts = [m for word in test.command for m in re.findall(r"tests/[\w/]+\.(?:py|cmake)$", word)]
    beside = {pathlib.PurePath(s).parent.as_posix() for s in scripts} - {"tests"}
    if any(pathlib.PurePath(f).parent.as_posix() in beside and not re.search(r"_test\.\w+$", f) and not SOURCE.search(f)
           for f in change.files):
        return True
    if any(f.startswith("tests/cli/") for f in change.files) and test.name.startswith("cli.") and scripts == ["tests/cli/cli_test.py"]:
        return True
    files, layer = sources.of_program(program)
    if files:
        if any(f in files for f in change.files):
            return True
        read = [f for f in change.files if f.startswith(("tests/data/", "docs/"))]
        if any(sources.mentions(f, read_names(read)) for f in files):
            return True
        return layer in change.layers if layer else bool(sources.included(files) & change.changed)
    documents = [f for f in change.files if f.startswith("docs/")]
    if documents and any(sources.mentions(s, documents) for s in scripts):
        return True
    return bool(change.changed) and concerns(test.name, change.changed)


def read_names(files):
    """How tests name the files that they read: the file, or the folder of data that contains it."""
    return {f for f in files if f.startswith("docs/")} | {"/".join(f.split("/")[2:-1]) for f in files if f.startswith("tests/data/") and f.count("/") > 2}


def tests_of(build):
    shown = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], check=True, capture_output=True,
                           text=True).stdout
    return [Test(i, t["name"], t.get("command", [])) for i, t in enumerate(json.loads(shown)["tests"], 1)]


def targets_of(build):
    """The names of executables and libraries that the build folder can make."""
    shown = subprocess.run(["ninja", "-C", str(build), "-t", "targets", "all"], check=True, capture_output=True, text=True).stdout
    return set(re.findall(r"^(?:.*/)?([\w.-]+): \w", shown, re.MULTILINE))


def needed(tests, build, targets):
    """The targets that the commands of tests name."""
    out = set()
    for test in tests:
        placeholder = re.fullmatch(r"(\w+)_NOT_BUILT", test.name)
        words = [word for word in test.command if str(build) in word]
        if placeholder:
            words = [placeholder[1]]
        elif not test.command:  # CTest shows no command whose program is not there yet
            words = [test.name.replace(".", "_"), f"{test.name.split('.')[0]}_test"]
        for word in words:
            name = pathlib.PurePath(word).name
            if name == "waymark":
                out |= {"waymark", "waymark_qemu", "waymark_http"}
            elif name.startswith("fuzz_"):
                out.add("fuzz")
            elif name == "python":
                out |= {"waymark_python", "waymark_python_package"}
            elif name == "web":
                out.add("waymark_web")
            elif name.startswith("libwaymark.so"):
                out.add("waymark-c")
            else:
                out.add(name)
            if "capi_example" in str(word) or test.name == "capi.examples":
                out |= {"capi_example_decode", "capi_example_live"}
    return sorted(out & targets)


def changed_files(root, revision):
    def git(*arguments):
        out = subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True).stdout
        return [line for line in out.split("\0") if line]
    return git("diff", "--name-only", "--no-renames", "-z", revision, "--") + git("ls-files", "--others", "--exclude-standard", "-z")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) != 5 or sys.argv[4] not in ("targets", "tests"):
        print(__doc__, file=sys.stderr)
        return 2
    root, revision, build = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    table, wrong = layers_test.read_table(root / "cmake/layers.cmake")
    if wrong:
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    change = Change(changed_files(root, revision), table)
    sources = Sources(root)
    picked = [t for t in tests_of(build) if chosen(t, change, sources)]
    if sys.argv[4] == "targets":
        if change.everything:
            print("all")
        else:
            print(*needed(picked, build, targets_of(build)), sep="\n")
    else:
        # Begin, end and stride come first, so that only the listed tests run.
        print("0,0,0", *(t.number for t in picked), sep=",")
    return 0


def self_test():
    """The tests that are chosen in a small tree, for each kind of changed file."""
    tests = [Test(i, name, command.split()) for i, (name, command) in enumerate((
        ("etm4.Decoder", "/b/bin/etm4_test --gtest_filter=Decoder.*"), ("spe_test_NOT_BUILT", ""),
        ("pipeline.Run", "/b/bin/pipeline_test"), ("differential.opencsd.Spe", "/b/bin/opencsd_test"),
        ("cli.flow", "python3 /r/tests/cli/cli_test.py /b/bin/waymark /r flow"),
        ("record.dpu", "python3 /r/tests/record/dpu_test.py /b/bin/waymark /r"),
        ("record.system64", "python3 /r/tests/record/system64_test.py /b/bin/waymark /r"),
        ("report.browser", "python3 /r/tests/report/browser_test.py /b/bin/waymark"),
        ("record.lines", "python3 /r/tests/record/lines_test.py /b/bin/waymark /r"),
        ("fuzz.etm4_parser", ""), ("house.links", "python3 /r/tests/documents_test.py /r"),
        ("house.layers", "python3 /r/tests/layers_test.py /r"),
        ("house.documented_commands", "python3 /r/tests/documents_test.py /r /b/bin/waymark"),
        ("house.layers_self_test", "python3 /r/tests/layers_test.py --self-test"), ("new.kind", "true")), 1)]
    table = {"core": set(), "etm4": {"core"}, "spe": {"core"}, "dpu": {"core"}, "report": {"core"}, "pipeline": {"core", "etm4", "spe"},
             "cli": {"core", "pipeline", "spe", "report"}, "record": {"core"}}
    code = {"cli.flow", "house.links", "house.layers", "new.kind"}
    cases = (
        (["src/etm4/decoder.cc"], code | {"etm4.Decoder", "record.system64", "fuzz.etm4_parser"}),
        (["include/waymark/etm4/config.h"], code | {"etm4.Decoder", "pipeline.Run", "record.system64",
                                                    "fuzz.etm4_parser"}),
        (["src/spe/model.cc"], code | {"spe_test_NOT_BUILT", "differential.opencsd.Spe"}),
        (["src/report/json.h"], code | {"report.browser"}),
        (["src/cli/views.cc"], code | {"house.documented_commands"}),
        (["docs/glossary.md"], {"house.links", "house.documented_commands"}),
        (["docs/columns.md"], {"house.links", "house.documented_commands", "record.lines"}),
        (["tests/etm4/decoder_test.cc"], {"etm4.Decoder", "house.links", "house.layers"}),
        (["tests/record/lines_test.py"], {"record.lines", "house.links"}),
        (["tests/record/helper.py"], {"record.lines", "record.dpu", "record.system64", "house.links"}),
        (["tests/cli/cases/flow.txt"], {"cli.flow", "house.links"}),
        (["tests/layers_test.py"], {"house.layers_self_test", "house.links"}),
        (["README.md", "cmake/layers.cmake"], {t.name for t in tests}),
        (["tests/support/wmt.cc"], {t.name for t in tests}),
        (["web/src/main.ts"], {"report.browser", "cli.flow", "house.links", "new.kind"}),
        ([], {"house.links"}))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in {"tests/etm4/decoder_test.cc": '#include "waymark/etm4/decoder.h"', "tests/pipeline/run_test.cc": "",
                           "tests/spe/model_test.cc": "", "tests/differential/opencsd_test.cc": '#include "waymark/spe/model.h"',
                           "tests/record/lines_test.py": 'read("docs/columns.md")', "tests/record/dpu_test.py": "# docs/columns.md"}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        for files, expected in cases:
            change = Change(files, table)
            got = {t.name for t in tests if chosen(t, change, Sources(root))}
            if got != expected:
                wrong += 1
                print(f"{files}: missing {sorted(expected - got)}, too many {sorted(got - expected)}")
        targets = {"waymark", "waymark_qemu", "waymark_http", "etm4_test", "fuzz", "spe_test"}
        built = needed([t for t in tests if t.name.startswith(("etm4", "spe", "fuzz", "report"))], pathlib.Path("/b"), targets)
        if built != sorted(targets):
            wrong += 1
            print(f"targets: {built}")
    print(f"{len(cases) + 1 - wrong} of {len(cases) + 1} cases as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
