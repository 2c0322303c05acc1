"""The program `waymark`, for what only it does: recording under QEMU, and reports."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

from waymark.errors import Error, NotFoundError, UnreadableError, UsageError

# What its exit statuses mean (docs/exit-status.md).
_ERRORS = {1: (NotFoundError, 2), 2: (UsageError, 1), 3: (UnreadableError, 3)}


def _find() -> str:
    """The program: the one that the environment variable WAYMARK names, or the one in PATH."""
    found = os.environ.get("WAYMARK") or shutil.which("waymark")
    if not found:
        raise NotFoundError("the program waymark is not in PATH: install the package waymark, or name the program in the "
                            "environment variable WAYMARK", 2)
    return found


def _options(options) -> list[str]:
    """{"max_size": 5, "strict": True, "symbols": ["a", "b"]} → --max-size 5 --strict --symbols a --symbols b"""
    out = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is True:
                out.append(option)
            elif each is not None and each is not False:
                out += [option, str(each)]
    return out


def run(*arguments, **options) -> str:
    """Runs `waymark ARGUMENTS OPTIONS` and returns what it prints: run("info", "capture", format="json"). Its error becomes
    an exception with its message."""
    command = [_find(), *map(os.fspath, arguments), *_options(options)]
    return _run(command)


def _run(command) -> str:
    done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", check=False)
    if done.returncode == 0:
        return done.stdout
    message = done.stderr.strip() or f"{' '.join(command)} ended with status {done.returncode}"
    kind, status = _ERRORS.get(done.returncode, (Error, 8))
    raise kind(message, status)


def record(program, output, **options) -> pathlib.Path:
    """Runs a program under QEMU and records the trace that a unit would have produced.

    program: a path, or a list of a path and arguments. output: the folder of the recording, which is returned and can be
    opened. Options are the same as of `waymark record`: unit="ete", limit=100000, force=True and so on.
    """
    words = [program] if isinstance(program, (str, os.PathLike)) else list(program)
    _run([_find(), "record", "-o", os.fspath(output), *_options(options), "--", *map(os.fspath, words)])
    return pathlib.Path(output)


def report(capture, output="report.html", **options) -> pathlib.Path:
    """Writes a report of a capture: one HTML file with everything in it, whose path is returned. Options are the same as of
    `waymark report`: symbols="program.elf", max_size=20 and so on."""
    _run([_find(), "report", os.fspath(capture), "-o", os.fspath(output), *_options(options)])
    return pathlib.Path(output)
