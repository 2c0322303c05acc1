#!/usr/bin/env python3
"""Exports that are killed leave nothing behind: a signal removes what is not whole yet, and after SIGKILL the next run does.
A query that is killed leaves no file of SQLite's.

usage: killed_test.py WAYMARK SOURCE_FOLDER

A library that is loaded with the export stops it (SIGSTOP) before it renames its temporary folder; then it is killed.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import failed as keep, Folder, HANGS, wait_for  # noqa: E402

SKIPPED = 77
# The first rename of an incomplete file waits for SIGCONT.
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
int rename(const char* from, const char* to) {
    static int stopped;
    const size_t length = strlen(from);
    if (!stopped && length > 5 && strcmp(from + length - 5, ".part") == 0) {
        stopped = 1;
        raise(SIGSTOP);
    }
    return ((int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename"))(from, to);
}
"""


def temporary(folder):
    return sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".part"))


class Export:
    def __init__(self, waymark, source, folder, form, library):
        self.command = [waymark, "export", source / "examples" / "sort" / "capture", "--to", form, "-o", folder / form]
        self.folder, self.form, self.library = folder, form, library

    def run(self):
        return subprocess.run(self.command, capture_output=True, timeout=HANGS, check=False)

    def stopped(self):
        """A process that is stopped while it has a temporary name, and that name."""
        loaded = " ".join(filter(None, [str(self.library), os.environ.get("LD_PRELOAD")]))
        process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "LD_PRELOAD": loaded})
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        names = temporary(self.folder)
        if process.poll() is not None or not names:
            sys.exit(f"failed: an export --to {self.form} ended with {process.poll()} before it renamed what it wrote; {names}")
        return process, names


def library(folder):
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        print("SKIPPED: no C compiler (Debian package gcc)")
        sys.exit(SKIPPED)
    (folder / "stop.c").write_text(LIBRARY)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "stop.so", folder / "stop.c", "-ldl"], check=True,
                   timeout=HANGS)
    return folder / "stop.so"


def check(what, good):
    print(f"{'ok' if good else 'failed'}: {what}")
    if not good:
        keep()
    return 0 if good else 1


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    waymark, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    # LD_PRELOAD separates names by spaces.
    failed = query(waymark, source)
    with Folder(dir="/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None) as name:
        failed += kills(waymark, source, library(pathlib.Path(name)))
    return 1 if failed else 0


def query(waymark, source):
    """What SQLite sorts beyond its memory goes into files of TMPDIR, which have no name as soon as they are open."""
    with Folder() as name:
        folder = pathlib.Path(name)
        (folder / "tmp").mkdir()
        subprocess.run([waymark, "export", source / "examples" / "sort" / "capture", "--to", "sqlite", "-o", folder / "s.sqlite"],
                       capture_output=True, check=True, timeout=HANGS)
        sql = "SELECT a.name || b.rowid || c.rowid AS x FROM functions a, instructions b, instructions c ORDER BY x"
        process = subprocess.Popen([waymark, "query", folder / "s.sqlite", sql, "-o", folder / "out"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(folder / "tmp")})
        place = f"{(folder / 'tmp').resolve()}/"

        def sorts():
            if process.poll() is not None:
                return True
            opened = pathlib.Path(f"/proc/{process.pid}/fd")
            try:
                return any(os.readlink(number).startswith(place) and os.readlink(number).endswith(" (deleted)")
                           for number in opened.iterdir())
            except FileNotFoundError:  # closed meanwhile
                return False
        wait_for(sorts, "a file of SQLite's in TMPDIR")
        alive = process.poll() is None
        process.kill()
        process.wait()
        left = os.listdir(folder / "tmp")
        return check(f"query: SIGKILL while it sorts leaves {left} in TMPDIR", alive and left == [])


def kills(waymark, source, stop):
    failed = 0
    for form in ("csv", "jsonl"):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with Folder() as name:
                folder = pathlib.Path(name)
                process, _ = Export(waymark, source, folder, form, stop).stopped()
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
                process.wait(timeout=HANGS)
                failed += check(f"{form}: {number.name} leaves {temporary(folder)} and ends the process as a signal does",
                                temporary(folder) == [] and process.returncode == -number)
        with Folder() as name:
            folder = pathlib.Path(name)
            export = Export(waymark, source, folder, form, stop)
            process, names = export.stopped()
            # Files that only look alike stay: of a living process, of another place, of another shape.
            others = [f"{form}.{os.getpid()}-0.part", f"other.{process.pid}-0.part", f"{form}.x-0.part"]
            for other in others:
                (folder / other).mkdir()
            done = export.run()
            failed += check(f"{form}: another run leaves what a process that is alive has",
                            done.returncode == 0 and temporary(folder) == sorted(names + others))
            process.kill()
            process.wait()
            failed += check(f"{form}: SIGKILL leaves {names}", temporary(folder) == sorted(names + others))
            (folder / f"{form}.{process.pid}-7.part" / "below" / "deep").mkdir(parents=True)
            others.append(f"{form}.{process.pid}-7.part")
            done = export.run()
            failed += check(f"{form}: the next run removes it, and nothing else",
                            done.returncode == 0 and temporary(folder) == sorted(others))
    return failed


if __name__ == "__main__":
    sys.exit(main())
