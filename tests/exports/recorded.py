"""Shared by the tests of readers: programs recorded with each unit, commands that must succeed, and skips with a message."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import CHROMIUM, HANGS  # noqa: E402

SKIPPED = 77
WAYS = {  # unit: compiler and its package, compiler options, QEMU, program, recording options, program arguments
    "ptm": ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf", ["-static"], "qemu-arm",
            "examples/interpreter/interpreter.c", ["--cycle-accurate", "--start-at", "main"], ["fibonacci", "12"]),
    "dpu": ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf", ["-static"], "qemu-arm",
            "examples/tasks/tasks.c", ["--unit", "dpu"], []),
    # Not static, and with relocations, as BOLT 16 requires.
    "spe": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", ["-Wl,--emit-relocs"], "qemu-aarch64",
            "examples/interpreter/interpreter.c", ["--unit", "spe", "-c", "256"], ["fibonacci", "18"]),
}


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def need(tool, package):
    """The path of a tool from a Debian package, or of the first that exists among several names; without it the test is
    skipped."""
    found = next(filter(None, map(shutil.which, [tool] if isinstance(tool, str) else tool)), None)
    if found is None:
        skip(f"{tool if isinstance(tool, str) else tool[0]} is missing (Debian package {package})")
    return found


def newest(tool):
    """Names of an LLVM tool for need(): the newest version first, then the one that Debian's package `llvm` has."""
    return (*(f"{tool}-{version}" for version in range(30, 14, -1)), tool, f"{tool}-14")


def attempt(*arguments, **more):
    """Runs a command and returns its result."""
    more = {"capture_output": True, "text": True, "timeout": HANGS, **more}
    return subprocess.run([str(a) for a in arguments], **more)


def run(*arguments, status=0, **more):
    """Runs a command; an unexpected exit status ends the test."""
    done = attempt(*arguments, **more)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, arguments))} ended with {done.returncode}, not {status}:\n{done.stdout}{done.stderr}")
    return done


class Capture:
    """A capture, the options its answers need, and a folder for generated files."""

    def __init__(self, waymark, capture, folder, options=()):
        self.waymark, self.capture, self.folder, self.options = waymark, capture, pathlib.Path(folder), list(options)
        self.folder.mkdir(exist_ok=True)

    def says(self, command, *more):
        return run(self.waymark, command, self.capture, *self.options, *more).stdout

    def export(self, to, name=None, *more, status=0):
        file = self.folder / (name or to)
        run(self.waymark, "export", self.capture, *self.options, "--to", to, "-o", file, *more, status=status)
        return file

    def costs(self, metric=0, *options):
        """Name → self and inclusive costs of functions by a metric, as `waymark profile` has them; its name."""
        delivered = json.loads(self.says("profile", "--format", "json", *options))
        metric, own, total = delivered["metrics"][metric]["name"], collections.Counter(), collections.Counter()
        # Functions in different files may share a name.
        for row in delivered["rows"]:
            own[row["function"]] += row[metric] or 0
            total[row["function"]] += row.get(f"{metric} inclusive") or row[metric] or 0
        return own, total, metric


class Recording(Capture):
    """A program and the capture of a run of it."""

    def __init__(self, waymark, source, folder, unit):
        compiler, package, options, qemu, code, how, self.arguments = WAYS[unit]
        need(compiler, package)
        need(qemu, "qemu-user")
        folder = pathlib.Path(folder) / unit
        super().__init__(waymark, folder / "capture", folder)
        self.source, self.program = folder / pathlib.Path(code).name, folder / "program"
        # Its own copy, so that paths in messages belong to this folder.
        shutil.copy(source / code, self.source)
        run(compiler, "-O1", "-g", *options, "-I", source / "guest", "-o", self.program, self.source, "-lpthread")
        run(waymark, "record", *how, "-o", self.capture, "--", self.program, *self.arguments)
        if unit == "ptm":
            self.options = ["--symbols", self.program]


def corpus(source):
    """The folder of real captures, or None."""
    folder = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or source / ".." / "shared" / "corpus")
    return folder if folder.is_dir() else None
