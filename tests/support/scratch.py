"""What tests in Python share: folders that stay when a test fails, commands that cannot hang and print the same on every
machine, and how their output is read.

    from scratch import Folder, run
"""
import csv
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

# Seconds after which a command counts as hanging: no machine, however busy, is as slow. CTest ends a test later
# (tests/CMakeLists.txt).
HANGS = 1200

# The names of Debian's browsers for tests of pages, the smallest first.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# Messages, numbers and orders of other programs are compared with their English form, and times with UTC.
for _variable in [name for name in os.environ if name.startswith("LC_")] + ["LANG", "LANGUAGE", "LOCPATH", "TZ"]:
    os.environ.pop(_variable, None)
os.environ["LC_ALL"] = "C.UTF-8"
# Further variables that Waymark, QEMU and the dynamic loader of programs for Arm read.
for _variable in ("DEBUGINFOD_URLS", "SOURCE_DATE_EPOCH", "PAGER", "LESS", "NO_COLOR", "COLUMNS", "LINES", "QEMU_LD_PREFIX",
                  "QEMU_SET_ENV", "QEMU_LOG", "QEMU_STRACE", *([] if "SHAKE_SEED" in os.environ else ["QEMU_UNSET_ENV"])):
    os.environ.pop(_variable, None)
# An empty home: the user's settings have no effect, and perf, go and npm leave no files there.
_home = tempfile.TemporaryDirectory(prefix="waymark-home-", ignore_cleanup_errors=True)
os.environ["HOME"] = _home.name
os.umask(0o022)
# A shell lets its background jobs ignore these signals, and the commands of a test would inherit that.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for _signal in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(_signal, signal.SIG_DFL)


def run(*arguments, **more):
    """Runs a command without standard input, unless `more` gives one. Its output is text."""
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=HANGS, **more)


def rows(text):
    """The rows of a table that a command printed as TSV, each by the names of its columns."""
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def number(text):
    """A number that a command printed with commas between thousands."""
    return int(str(text).replace(",", ""))


def wait_for(condition, what, pause=0.02):
    """The value of the condition, as soon as it holds. The condition is certain to hold at some time, on any
    machine."""
    end = time.monotonic() + HANGS
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {HANGS} s: {what}")
        time.sleep(pause)
    return found


_failures = 0


def failed():
    """A case failed: folders that are in use stay."""
    global _failures
    _failures += 1


class Folder(tempfile.TemporaryDirectory):
    """A temporary folder. It stays, and "kept: FOLDER" is printed, if a case failed since it was made."""

    def __init__(self, **more):
        super().__init__(prefix="waymark-test-", **more)
        self._before = _failures

    def cleanup(self):
        if _failures == self._before:
            super().cleanup()
        elif self._finalizer.detach():
            print(f"kept: {self.name}", file=sys.stderr, flush=True)

    def __exit__(self, kind, value, trace):
        ends_well = kind is None or issubclass(kind, unittest.SkipTest) or kind is SystemExit and value.code in (None, 0, 77)
        if not ends_well:
            failed()
        self.cleanup()


def _told(add):
    def told(result, test, *why):
        if why[-1] is not None:  # addSubTest is also called for passed ones
            failed()
        return add(result, test, *why)
    return told


for _name in ("addError", "addFailure", "addSubTest"):
    setattr(unittest.TestResult, _name, _told(getattr(unittest.TestResult, _name)))


def _self_test():
    """Folders stay or go, depending on the result of a case."""
    class Cases(unittest.TestCase):
        def good(self):
            with Folder() as name:
                kept["good"] = name

        def skipped(self):
            with Folder() as name:
                kept["skipped"] = name
                self.skipTest("x")

        def bad(self):
            with Folder() as name:
                kept["bad"] = name
                self.fail("x")

        def part(self):
            folder = Folder()
            kept["part"] = folder.name
            with self.subTest(1):
                self.fail("x")
            with self.subTest(2):
                pass
            folder.cleanup()

    for case, stays in (("good", False), ("skipped", False), ("bad", True), ("part", True), ("good", False)):
        kept = {}
        Cases(case).run(unittest.TestResult())
        there = pathlib.Path(kept[case]).is_dir()
        assert there == stays, case
        if there:
            pathlib.Path(kept[case]).rmdir()
    print("what a failure needs stays")


if __name__ == "__main__":
    _self_test()
