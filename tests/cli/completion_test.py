#!/usr/bin/env python3
"""Completion in bash, zsh and fish: each shell runs in a terminal, where Tab is typed.

usage: completion_test.py WAYMARK SOURCE_FOLDER [TEST...]
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

import terminal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK = SOURCE = None
SCRIPTS = None


def candidates(*words):
    done = subprocess.run([WAYMARK, "__complete", *words], capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0 and done.stderr == "", done
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


# Names of functions that a shell must neither obey nor change. In all, `touch pwned` would leave a file.
WORST = ["zed\"$(touch pwned)\"x", "zed'$(touch pwned)'x", "zed`touch pwned`", "zed;touch pwned", "zed$(touch pwned)",
         "zed\\\"$(touch pwned)", "zed\"; touch pwned; \"", "zed'; touch pwned; '", "zed&touch pwned|tee>pwned", "zed!!",
         "zed* ?[a]{b,c}~ #x %y", "zed(touch pwned)", "zed\\", "zed::=$(touch pwned)"]


class Program(unittest.TestCase):
    """What the program answers to the scripts."""

    def test_commands(self):
        self.assertIn("flow", candidates(""))
        self.assertEqual(candidates("flo"), ["flow"])
        self.assertEqual(candidates("spe", "rep"), ["report"])
        self.assertNotIn("__complete", candidates("_"))

    def test_options(self):
        self.assertIn("--disassemble", candidates("flow", "--"))
        self.assertEqual(candidates("flow", "--dis"), ["--disassemble"])
        # Once only, and as often as one likes.
        self.assertNotIn("--format", candidates("flow", "--format", "tsv", "--"))
        self.assertIn("--source", candidates("flow", "--source", "0x10", "--"))

    def test_values(self):
        self.assertEqual(candidates("flow", "--format", ""), ["text", "tsv", "json", "summary", "calls"])
        self.assertEqual(candidates("flow", "--format=t"), ["text", "tsv"])
        self.assertIn("perfetto", candidates("export", "out", "--to", "p"))
        self.assertIn("functions", candidates("export", "out", "--to", "csv", "--table", ""))
        self.assertIn("ete", candidates("record", "--unit", ""))
        self.assertEqual(candidates("flow", "--protocol", ""), ["ptm", "pft", "ptm1.0", "ptm1.1", "etm3", "etmv3", "etm3.0", "etm3.5", "etmv4", "etm4.0", "etm4.6", "ete", "stm", "mtb", "itm"])
        self.assertEqual(candidates("info", "--buffer-format", ""), ["coresight", "source_data", "dstream_coresight"])
        self.assertEqual(candidates("record", "--core="), ["cortex-a7", "cortex-a9", "cortex-a15", "cortex-a53", "armv9-a"])
        self.assertIn("Cortex-M33", candidates("flow", "--core", "Cortex-M"))

    def test_files(self):
        self.assertEqual(candidates("flow", ""), [":files"])
        self.assertEqual(candidates("flow", "--image", ""), [":files"])
        self.assertEqual(candidates("flow", "--symfs", ""), [":folders"])
        self.assertEqual(candidates("record", "-o", "out", "--", ""), [":files"])

    def test_sources(self):
        capture = str(SOURCE / "examples" / "sort" / "capture")
        self.assertEqual(candidates("flow", capture, "--source", "0x"), ["0x10"])
        self.assertEqual(candidates("flow", "--source", ""), [])
        self.assertEqual(candidates("flow", "/dev/stdin", "--source", ""), [])

    def test_functions_of_an_answers_file(self):
        with Folder() as folder:
            file = f"{folder}/a.answers"
            sort = SOURCE / "examples" / "sort"
            subprocess.run([WAYMARK, "answers", sort / "capture", "--image", sort / "sort.elf", "-o", file], check=True,
                           stderr=subprocess.DEVNULL, timeout=HANGS)
            self.assertEqual(candidates("coverage", file, "--only", "quick"), ["quicksort"])
            self.assertIn("instructions", candidates("profile", file, "--metric", ""))

    def test_nonsense(self):
        for words in (["nonsense", ""], ["flow", "--nonsense", ""], ["flow", "--nonsense=", ""], ["--", "--", "-"],
                      ["flow", "-", "--source", ""], ["flow", "--format"], ["-"], ["flow", "--=x"]):
            candidates(*words)


class Shell:
    """What each shell is asked, and what its command line is then."""

    def setUp(self):
        self.folder = Folder()
        bin_folder = pathlib.Path(self.folder.name) / "bin"
        bin_folder.mkdir()
        (bin_folder / "waymark").symlink_to(WAYMARK)
        shutil.copytree(SOURCE / "examples" / "sort" / "capture", pathlib.Path(self.folder.name) / "my capture")
        self.env = {"PATH": f"{bin_folder}:{os.environ['PATH']}", "HOME": self.folder.name, "LC_ALL": "C.UTF-8"}
        self.shell = self.start()

    def tearDown(self):
        self.shell.close()
        self.folder.cleanup()

    def type(self, text, tabs):
        """Some shells take a Tab that comes together with other input for pasted text."""
        self.shell.type(text)
        self.shell.read(None, seconds=0.15)
        self.shell.type(tabs)

    def line_after(self, typed):
        """The command line after this and Tab are typed."""
        self.type(typed, "\t")
        self.shell.read(None, seconds=0.3)
        self.shell.type("\x14")  # Ctrl-T shows it in brackets
        line = re.search(r"<<<(.*?)>>>", self.shell.read(r"<<<.*?>>>"))[1]
        self.shell.type("\x15")
        self.shell.read(None, seconds=0.1)
        return line

    def test_command(self):
        self.assertEqual(self.line_after("waymark flo"), "waymark flow ")
        self.assertEqual(self.line_after("waymark spe sh"), "waymark spe sharing ")

    def test_option(self):
        self.assertEqual(self.line_after("waymark flow --disa"), "waymark flow --disassemble ")

    def test_value(self):
        self.assertEqual(self.line_after("waymark flow x --format su"), "waymark flow x --format summary ")
        self.assertEqual(self.line_after("waymark flow x --format=su"), "waymark flow x --format=summary ")

    def test_file(self):
        self.assertRegex(self.line_after("waymark info my"), r"^waymark info (my\\ capture|'my capture)/?'? ?$")

    def test_names_that_run_commands(self):
        """Tab inserts a name as text, also behind a quote."""
        folder = pathlib.Path(self.folder.name)
        program = pathlib.Path(self.env["PATH"].split(":")[0]) / "waymark"
        program.unlink()
        program.write_text("#!/bin/sh\nif [ \"$1\" = __complete ]; then cat name; touch asked; else\n"
                           "printf '%s\\n' \"$@\" >part; mv part given; fi\n")
        program.chmod(0o755)
        given, asked = folder / "given", folder / "asked"

        def wait_for(what):
            end = time.monotonic() + terminal.HANGS
            while not what() and time.monotonic() < end:
                self.shell.read(None, seconds=0.02)
            self.assertTrue(what(), self.shell.text[-300:])

        for i, name in enumerate(WORST):
            (folder / "name").write_text(name + "\n")
            for before in ('--function "', "--function '", "--function ", '--function="')[:4 if i < 3 else 2]:
                given.unlink(missing_ok=True)
                asked.unlink(missing_ok=True)
                self.shell.type(f"waymark flow x {before}zed")
                self.shell.read(r"z[\s\S]*e[\s\S]*d")
                self.shell.type("\t")
                wait_for(asked.exists)
                begin = len(self.shell.text)
                self.shell.type(self.enter)
                wait_for(lambda: given.exists() and b"> " in self.shell.text[begin:])
                self.assertFalse((folder / "pwned").exists(), f"{name} ran, after {before}")
                wanted = f"--function={name}" if "=" in before else name
                self.assertEqual(given.read_text().splitlines()[-1], wanted, before)

    enter = "\n"

    def test_source(self):
        self.assertRegex(self.line_after(r"waymark flow my\ capture --source 0x"), r"--source 0x10 $")


@unittest.skipUnless(shutil.which("bash"), "no bash: install the Debian package bash")
class Bash(Shell, unittest.TestCase):
    def start(self):
        shell = terminal.Terminal(["bash", "--norc", "--noprofile", "-i"], 120, env={**self.env, "PS1": "> "},
                                  cwd=self.folder.name)
        shell.type(f". {SCRIPTS}/waymark.bash; bind -x '\"\\C-t\": printf \"<\"\"<<%s>\"\">>\" \"$READLINE_LINE\"'; "
                   "echo rea\"\"dy\n")
        shell.read(r"ready[\s\S]*> ")
        return shell

    def test_list(self):
        self.type("waymark flow --format ", "\t\t")
        shown = self.shell.read("summary")
        self.assertIn("text", shown)

    def test_name_with_colons(self):
        """The part before the last colon stays, and is not there twice."""
        program = pathlib.Path(self.env["PATH"].split(":")[0]) / "waymark"
        program.unlink()
        program.write_text("#!/bin/sh\nfor last; do :; done\nprintf 'space::one\\nspace::other two\\n' | grep \"^$last\"\n")
        program.chmod(0o755)
        self.assertEqual(self.line_after("waymark flow x --function space::on"),
                         "waymark flow x --function space::one ")
        self.assertEqual(self.line_after("waymark flow x --function space::ot"),
                         r"waymark flow x --function space::other\ two ")


@unittest.skipUnless(shutil.which("zsh"), "no zsh: install the Debian package zsh")
class Zsh(Shell, unittest.TestCase):
    def start(self):
        shell = terminal.Terminal(["zsh", "-f", "-i"], 120, env={**self.env, "PS1": "> "}, cwd=self.folder.name)
        shell.type(f"fpath=({SCRIPTS} $fpath); autoload -U compinit; compinit -u -D; unsetopt zle_bracketed_paste; "
                   "show() { print -rn \"<\"\"<<$BUFFER>\"\">>\" }; zle -N show; bindkey '^T' show; bindkey -e '^T' show; "
                   "echo rea\"\"dy\n")
        shell.read(r"ready[\s\S]*> ")
        return shell

    def test_list(self):
        self.type("waymark flow --format ", "\t\t")
        shown = self.shell.read("summary")
        self.assertIn("text", shown)


@unittest.skipUnless(shutil.which("fish"), "no fish: install the Debian package fish")
class Fish(Shell, unittest.TestCase):
    enter = "\r"

    def start(self):
        shell = terminal.Terminal(["fish", "--no-config", "-i"], 120, env=self.env, cwd=self.folder.name)
        shell.type(f"function fish_prompt; echo -n \"> \"; end; source {SCRIPTS}/waymark.fish; bind \\ct 'printf \"<<\"\"<%s>>\"\">\" (commandline)'; "
                   "echo rea\"\"dy\r")
        shell.read(r"ready[\s\S]*> ")
        return shell

    def test_list(self):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {SCRIPTS}/waymark.fish; "
                               "complete -C 'waymark flow --format '"], capture_output=True, text=True,
                              env={**os.environ, **self.env}, timeout=HANGS)
        self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()],
                         ["calls", "json", "summary", "text", "tsv"])


def main():
    global WAYMARK, SOURCE, SCRIPTS
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    WAYMARK, SOURCE = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    SCRIPTS = SOURCE / "completion"
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)


if __name__ == "__main__":
    main()
