"""What the tests of consumers share: programs recorded with each unit, commands that must succeed, and skipping aloud."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

SKIPPED = 77
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
WAYS = {  # unit: compiler and its package, its options, QEMU, program, how it is recorded, its arguments
    "ptm": ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf", ["-static"], "qemu-arm",
            "examples/interpreter/interpreter.c", ["--cycle-accurate", "--start-at", "main"], ["fibonacci", "12"]),
    "dpu": ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf", ["-static"], "qemu-arm",
            "examples/tasks/tasks.c", ["--unit", "dpu"], []),
    # Not static, and with relocations: BOLT 16 takes these.
    "spe": ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu", ["-Wl,--emit-relocs"], "qemu-aarch64",
            "examples/interpreter/interpreter.c", ["--unit", "spe", "-c", "256"], ["fibonacci", "15"]),
}


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(SKIPPED)


def need(tool, package):
    """The path of a tool of a Debian package, or one of several names; without it the test is skipped."""
    found = next(filter(None, map(shutil.which, [tool] if isinstance(tool, str) else tool)), None)
    if found is None:
        skip(f"{tool if isinstance(tool, str) else tool[0]} is missing (Debian package {package})")
    return found


def run(*arguments, status=0, **more):
    """Runs a command and gives what became of it; another status than the one that is due ends the test."""
    arguments = [str(a) for a in arguments]
    more = {"capture_output": True, "text": True, "timeout": 200, **more}
    done = subprocess.run(arguments, **more)
    if done.returncode != status:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}, not {status}:\n{done.stdout}{done.stderr}")
    return done


class Recording:
    """A program and the capture of a run of it."""

    def __init__(self, waymark, source, folder, unit):
        compiler, package, options, qemu, code, self.how, self.arguments = WAYS[unit]
        need(compiler, package)
        need(qemu, "qemu-user")
        self.waymark, self.unit = waymark, unit
        self.folder = pathlib.Path(folder) / unit
        self.folder.mkdir()
        self.source, self.program, self.capture = (self.folder / n for n in (pathlib.Path(code).name, "program", "capture"))
        shutil.copy(source / code, self.source)
        run(compiler, "-O1", "-g", *options, "-I", source / "guest", "-o", self.program, self.source, "-lpthread")
        run(waymark, "record", *self.how, "-o", self.capture, "--", self.program, *self.arguments)
        self.options = ["--symbols", self.program] if unit == "ptm" else []

    def waymark_says(self, command, *more):
        return run(self.waymark, command, self.capture, *self.options, *more).stdout

    def export(self, to, name=None, *more):
        file = self.folder / (name or to)
        run(self.waymark, "export", self.capture, *self.options, "--to", to, "-o", file, *more)
        return file

    def table(self, name):
        """The rows of one table of answers."""
        done = run(self.waymark, "export", self.capture, *self.options, "--to", "jsonl", "--table", name)
        return [json.loads(line) for line in done.stdout.splitlines()]


def corpus(source):
    """The folder of real captures, or None."""
    folder = pathlib.Path(os.environ.get("WAYMARK_CORPUS") or source / ".." / "shared" / "corpus")
    return folder if folder.is_dir() else None
