#!/usr/bin/env python3
"""Help, man pages, pager, tables and progress, in terminals of several widths.

usage: manners_test.py WAYMARK SOURCE_FOLDER [TEST...]
"""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

import terminal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK = SOURCE = None
# Words of the parser, not for readers.
LEAKS = re.compile(r"\b(UINT|INT|TEXT|FLOAT|BOOLEAN)\b|\w\{|:\{|\w in \[|\[OPTIONS\] SUBCOMMAND|Positionals")

HIDDEN = ("--next-round",)  # of jobs of a fleet


def plain(*arguments, env=None):
    done = subprocess.run([WAYMARK, *arguments], capture_output=True, text=True, env={**os.environ, **(env or {})},
                          stdin=subprocess.DEVNULL, timeout=HANGS)
    return done


@functools.cache
def help_of(*command):
    return plain(*command, "--help").stdout


@functools.cache
def commands(of=()):
    """Every command, as tuples of words, with () for the program itself."""
    found = [of]
    text = help_of(*of)
    below = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.M)
    for name in re.findall(r"^  ([\w-]+)", below[1] if below else "", re.M):
        found += commands((*of, name))
    return tuple(found)


class Help(unittest.TestCase):
    def test_fits_every_width(self):
        for command in commands():
            for columns in (50, 200):
                text, status = terminal.run([WAYMARK, "--no-pager", *command, "--help", "all"], columns)
                self.assertEqual(status, 0)
                for line in text.splitlines():
                    # A word that is longer than a line has one of its own.
                    if " " in line.strip():
                        self.assertLessEqual(len(line), min(columns, 100), (command, columns, line))

    def test_each_text_is_shown(self):
        """An option in src/cli/texts that no command has any more would stay unnoticed."""
        every = {command: plain("--no-pager", *command, "--help", "all").stdout for command in commands()}
        files = sorted((SOURCE / "src/cli/texts").glob("*.txt"))
        self.assertGreater(len(files), 30)
        for file in files:
            head, *lines = file.read_text().removeprefix('R"(').splitlines()
            scope = tuple(head.removeprefix("options of ").split()[1:])
            of = [text for command, text in every.items() if command[:len(scope)] == scope]
            self.assertTrue(of, (file.name, head))
            lines = lines[:lines.index("===")] if "===" in lines else lines
            for line in lines[0 if head.startswith("options of") else 1:]:
                name = re.match(r"-?-[\w-]+|[A-Z_]+\b", line)
                if name and name[0] not in HIDDEN:
                    shown = re.compile(r"(^|[\s,])" + re.escape(name[0]) + r"($|[\s,=\[.])", re.M)
                    self.assertTrue(any(shown.search(text) for text in of), (file.name, name[0]))

    def test_shows_no_types_of_the_parser(self):
        for command in commands():
            text = help_of(*command)
            self.assertIsNone(LEAKS.search(text), (command, LEAKS.search(text)))

    def test_no_two_blank_lines(self):
        for command in commands():
            self.assertNotIn("\n\n\n", help_of(*command), command)

    def test_version(self):
        lines = plain("--version").stdout.splitlines()
        self.assertRegex(lines[0], r"^waymark \d+\.\d+\.\d+$")
        self.assertRegex(lines[1], r"^build: .*(GNU|Clang) \d+")
        for library in ("fmt", "zstd", "zlib", "SQLite", "oneTBB", "elfutils", "capstone"):
            self.assertRegex(lines[2], library + r" \d+\.\d+")

    def test_starts_without_the_libraries_of_single_commands(self):
        """Loading OpenSSL for the server of `serve`, and the tables of capstone, took three fifths of the time to start."""
        loaded = plain("--version", env={"LD_TRACE_LOADED_OBJECTS": "1"}).stdout
        self.assertIn("libstdc++", loaded)
        for library in ("libcpp-httplib", "libssl", "libcrypto", "libbrotli", "libcapstone"):
            self.assertNotIn(library, loaded)

    def test_a_library_that_cannot_be_loaded(self):
        with Folder() as folder:
            name = re.search(r"capstone (\d+)", plain("--version").stdout)[1]
            (pathlib.Path(folder) / f"libcapstone.so.{name}").write_text("not a library")
            capture, program = (SOURCE / "examples/sort" / name for name in ("capture", "sort.elf"))
            done = plain("flow", capture, "--image", program, "--disassemble", env={"LD_LIBRARY_PATH": folder})
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"^waymark: error: instructions cannot be shown: .*libcapstone\.so")


class ManPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Folder()
        subprocess.run([WAYMARK, "__man", cls.folder.name], check=True, timeout=HANGS,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})
        cls.pages = sorted(pathlib.Path(cls.folder.name).iterdir())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_one_for_each_command(self):
        self.assertEqual({page.stem for page in self.pages}, {"-".join(("waymark", *each)) for each in commands()})

    def test_can_be_made_again(self):
        self.assertIn(" 1 1970-01-02 ", (pathlib.Path(self.folder.name) / "waymark-flow.1").read_text())

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc: install the Debian package mandoc")
    def test_mandoc_finds_nothing(self):
        done = subprocess.run(["mandoc", "-Tlint", *self.pages], capture_output=True, text=True, timeout=HANGS)
        self.assertEqual((done.stdout, done.returncode), ("", 0))

    @unittest.skipUnless(shutil.which("man") and shutil.which("groff"), "no man: install the Debian packages man-db and groff-base")
    def test_man_warns_of_nothing(self):
        # All in one run of groff, which reads its macros once; man itself for one of them.
        for command in (["groff", "-mandoc", "-Tutf8", "-Kutf8", "-wmac", "-z", *self.pages],
                        ["man", "--warnings", "-E", "UTF-8", "-l", self.pages[0]]):
            done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS,
                                  env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
            self.assertEqual((done.stderr, done.returncode), ("", 0))

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc: install the Debian package mandoc")
    def test_says_what_help_says(self):
        """Every word of --help is on the page, so the formatter read nothing as a request."""
        for command in commands():
            page = pathlib.Path(self.folder.name) / ("-".join(("waymark", *command)) + ".1")
            shown = subprocess.run(["mandoc", "-Tutf8", "-Owidth=1000", page], capture_output=True, text=True,
                                   timeout=HANGS).stdout
            shown = re.sub(r".\x08", "", shown)

            def words(text):
                return re.findall(r"[^\s,.:;()]+", text.lower())

            on_page = set(words(shown))
            # The names of pages, such as waymark-spe-report, where help has the names of commands.
            on_page |= {part for word in on_page for part in word.split("-")}
            on_page |= {"-".join(word.split("-")[i:]) for word in on_page for i in range(1, word.count("-") + 1)}
            for word in words(plain(*command, "--help", "all").stdout):
                if word not in ("\\", "usage", "example"):
                    self.assertIn(word, on_page, command)


class Pager(unittest.TestCase):
    def help_in_terminal(self, *arguments, **env):
        text, status = terminal.run([WAYMARK, *arguments], rows=24, env={"PAGER": "sed s/^/paged:/", **env})
        return text, status

    def test_output_goes_through_it(self):
        text, status = self.help_in_terminal("--help")
        self.assertEqual(status, 0)
        self.assertTrue(all(line.startswith("paged:") for line in text.splitlines()), text)

    def test_not_wanted(self):
        for arguments, env in ((["--no-pager", "--help"], {}), (["flow", "--help", "--no-pager"], {}),
                               (["--help"], {"PAGER": "cat"}), (["--help"], {"PAGER": ""}),
                               (["--help"], {"TERM": "dumb"}), (["--help"], {"PAGER": "no-such-pager -x"})):
            text, status = self.help_in_terminal(*arguments, **env)
            self.assertEqual(status, 0)
            self.assertNotIn("paged:", text, (arguments, env))
            self.assertIn("Usage: waymark", text)

    def test_not_in_a_pipe(self):
        self.assertNotIn("paged:", plain("--help", env={"PAGER": "sed s/^/paged:/", "TERM": "xterm"}).stdout)

    def test_its_options(self):
        """less gets FRX unless the user has chosen others."""
        text, _ = self.help_in_terminal("--version", PAGER="sh -c 'echo [$LESS]'")
        self.assertIn("[FRX]", text)
        text, _ = self.help_in_terminal("--version", PAGER="sh -c 'echo [$LESS]'", LESS="S")
        self.assertIn("[S]", text)

    def test_colours_go_through_it(self):
        capture = SOURCE / "examples" / "sort" / "capture"
        for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            text, _ = self.help_in_terminal("profile", str(capture), **env)
            self.assertEqual("\x1b[" in text, coloured)
            self.assertIn("paged:", text)

    def test_messages_come_after_it(self):
        """A warning in the middle of the pager's screen would be lost."""
        capture = SOURCE / "examples" / "sort" / "capture"
        text, status = self.help_in_terminal("flow", str(capture), "--source", "0x10", "--strict", "--symbols",
                                             str(SOURCE / "README.md"))
        self.assertIn("paged:", text + "paged:")
        lines = text.splitlines()
        messages = [number for number, line in enumerate(lines) if line.startswith("waymark: ")]
        paged = [number for number, line in enumerate(lines) if line.startswith("paged:")]
        if messages and paged:
            late = [number for number in messages if number > paged[0]]
            self.assertTrue(all(number > paged[-1] for number in late), text)

    @unittest.skipUnless(shutil.which("less"), "no less: install the Debian package less")
    def test_less(self):
        env = {"LESS": "FRX", "PAGER": "less"}
        # Everything fits on one screen: the pager ends by itself.
        text, status = terminal.run([WAYMARK, "--version"], env=env)
        self.assertEqual(status, 0)
        self.assertIn("libraries:", text)
        # More than one screen: the pager waits, and leaving it ends the program.
        long = terminal.Terminal([WAYMARK, "record", "--help", "all"], env=env)
        long.read(r"Usage: ")
        time.sleep(0.3)
        self.assertNotIn(b"Exit status", long.text)
        long.type("q")
        long.wait()

    @unittest.skipUnless(shutil.which("less"), "no less: install the Debian package less")
    def test_interrupt_leaves_less_to_the_user(self):
        """Ctrl-C must not leave less on the screen beside the shell."""
        long = terminal.Terminal([WAYMARK, "record", "--help", "all"], env={"LESS": "FRX", "PAGER": "less"})
        long.read(r"Usage: ")
        time.sleep(0.3)
        long.type("\x03")
        time.sleep(0.3)
        self.assertEqual(os.waitpid(long.process, os.WNOHANG), (0, 0), "it ended before less")
        long.type("q")
        long.wait()


class Tables(unittest.TestCase):
    def profile(self, columns, *more):
        sort = SOURCE / "examples" / "sort"
        text, status = terminal.run([WAYMARK, "profile", str(sort / "capture"), "--image", str(sort / "sort.elf"),
                                     "--no-pager", *more], columns, env={"NO_COLOR": "1"})
        self.assertEqual(status, 0)
        return [line for line in text.splitlines() if re.match(r"  +\S+.*\s\S+", line)]

    def test_fit(self):
        for columns in (70, 80, 120):
            rows = self.profile(columns)
            self.assertGreater(len(rows), 3)
            for row in rows:
                self.assertLessEqual(len(row), columns, row)

    def test_the_sorted_column_has_its_share(self):
        """A terminal too narrow for bars shows their figures."""
        sort = SOURCE / "examples" / "sort"
        for command, head in (("profile", "share"), ("coverage", "ran")):
            shares = {}
            for columns in (80, 300):
                text, status = terminal.run([WAYMARK, command, str(sort / "capture"), "--image", str(sort / "sort.elf"),
                                             "--no-pager", "--limit", "3"], columns, env={"NO_COLOR": "1"})
                self.assertEqual(status, 0)
                shares[columns] = re.findall(r"^  +[█·]* *([0-9.]+%)", text, re.M)
            self.assertTrue(shares[300], (command, text))
            self.assertEqual(shares[80], shares[300], command)
            text, _ = terminal.run([WAYMARK, command, str(sort / "capture"), "--image", str(sort / "sort.elf"), "--no-pager"],
                                   80, env={"NO_COLOR": "1"})
            self.assertRegex(text, rf"(?m)^ +{head} ")

    def test_names_are_recognisable(self):
        rows = self.profile(70)
        self.assertTrue(any("quicksort" in row for row in rows), rows)

    def test_whole_if_asked(self):
        self.assertEqual(self.profile(70, "--wide"), self.profile(500, "--wide"))


class Progress(unittest.TestCase):
    def test_never_in_a_line_of_output(self):
        """Trace comes slowly through a pipe, so progress is shown while packets are listed."""
        trace = (SOURCE / "examples" / "sort" / "capture" / "trace.bin").read_bytes()
        with Folder() as name:
            pipe = pathlib.Path(name) / "trace"
            os.mkfifo(pipe)
            command = [WAYMARK, "packets", "-", "--protocol", "ptm1.1", "--buffer-format", "coresight",
                       "--trace-id", "0x10", "--no-pager"]
            shown = terminal.Terminal(["sh", "-c", 'exec "$@" <"$0"', str(pipe), *command], columns=200)

            def feed():
                with open(pipe, "wb") as end:
                    for _ in range(6):
                        end.write(trace * (1 + 100_000 // len(trace)))
                        end.flush()
                        time.sleep(0.25)

            feeder = threading.Thread(target=feed, daemon=True)
            feeder.start()
            text = shown.wait()
            feeder.join(10)
        self.assertIn("# source 0x10", text)
        parts = text.split("\r\x1b[K")
        for part in parts[1:-1]:
            self.assertRegex(part, r"^([^\n]* MB/s[^\n]*)?$")

    def test_never_in_a_line_of_the_recorded_program(self):
        """It has the last row of the terminal, above which the program's lines scroll as if it were not there."""
        compiler = shutil.which("arm-linux-gnueabihf-gcc")
        if not compiler or not shutil.which("qemu-arm"):
            self.skipTest("no arm-linux-gnueabihf-gcc or no qemu-arm: install gcc-arm-linux-gnueabihf and qemu-user")
        lines = 40
        with Folder() as name:
            folder = pathlib.Path(name)
            (folder / "talk.c").write_text(
                "#include <stdio.h>\n#include <unistd.h>\n"
                "int main(int n, char** goes_on) {\n"
                f"for (int i = 0; i < {lines}; ++i) {{ printf(\"half of \"); fflush(stdout);\n"
                'usleep(30000); printf("line %d\\n", i); }\n'
                "while (access(goes_on[1], F_OK)) usleep(10000); }\n")
            subprocess.run([compiler, "-static", "-o", folder / "talk", folder / "talk.c"], check=True, timeout=HANGS)
            # It ends after progress was shown twice, however slow the machine is.
            shown = terminal.Terminal([WAYMARK, "record", "--from-start", "-o", name + "/out", "--", name + "/talk", name + "/end"], rows=24)
            shown.read("(?s)\x1b7.*\x1b7")
            (folder / "end").touch()
            text = shown.wait()
        self.assertEqual(shown.status, 0, text)
        shown = re.findall("\x1b7\x1b\\[24;1H\x1b\\[K([^\x1b]*)\x1b8", text)
        self.assertGreater(len(shown), 1, text)
        self.assertTrue(all(len(line) < 80 and "\n" not in line for line in shown), shown)
        rest = re.sub("\x1b7.*?\x1b8", "", text).replace("\x1bD", "").replace("\x1b[1A", "")
        self.assertEqual(rest.splitlines()[:lines], [f"half of line {i}" for i in range(lines)])
        self.assertNotIn("\x1b", rest)
        # The whole terminal scrolls again.
        self.assertIn("\x1b[r", text)


def main():
    global WAYMARK, SOURCE
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    WAYMARK, SOURCE = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    for name in ("LESS", "PAGER", "NO_COLOR", "COLUMNS"):
        os.environ.pop(name, None)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)


if __name__ == "__main__":
    main()
