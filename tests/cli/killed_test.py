#!/usr/bin/env python3
"""Exports that are killed leave nothing behind: a signal removes what is not whole yet, and after SIGKILL the next run does.

usage: killed_test.py WAYMARK SOURCE_FOLDER

The export is stopped (SIGSTOP) while its temporary folder exists, and then killed. That is tried until it was met there.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import failed as keep, Folder, HANGS  # noqa: E402

TRIES = 200


def temporary(folder):
    return sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".part"))


class Export:
    def __init__(self, waymark, source, folder, form):
        self.command = [waymark, "export", source / "examples" / "sort" / "capture", "--to", form, "-o", folder / form]
        self.folder, self.form = folder, form

    def run(self):
        return subprocess.run(self.command, capture_output=True, timeout=HANGS, check=False)

    def stopped(self):
        """A process that is stopped while it has a temporary name, and that name."""
        for _ in range(TRIES):
            process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + HANGS
            while process.poll() is None and time.monotonic() < end:
                if not temporary(self.folder):
                    continue
                process.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                if process.poll() is None and (names := temporary(self.folder)):
                    return process, names
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()
            for name in temporary(self.folder):
                sys.exit(f"failed: {name} is left by an export that was not killed")
        sys.exit(f"failed: no export --to {self.form} was met while it had a temporary name, in {TRIES} tries")


def check(what, good):
    print(f"{'ok' if good else 'failed'}: {what}")
    if not good:
        keep()
    return 0 if good else 1


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    waymark, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    failed = 0
    for form in ("csv", "jsonl"):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with Folder() as name:
                folder = pathlib.Path(name)
                process, _ = Export(waymark, source, folder, form).stopped()
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
                process.wait(timeout=HANGS)
                failed += check(f"{form}: {number.name} leaves {temporary(folder)} and ends the process as a signal does",
                                temporary(folder) == [] and process.returncode == -number)
        with Folder() as name:
            folder = pathlib.Path(name)
            export = Export(waymark, source, folder, form)
            process, names = export.stopped()
            # What looks alike but is not ours stays: of a living process, of another place, not of our shape.
            others = [f"{form}.{os.getpid()}-0.part", f"other.{process.pid}-0.part", f"{form}.x-0.part"]
            for other in others:
                (folder / other).mkdir()
            done = export.run()
            failed += check(f"{form}: another run leaves what a process that is alive has",
                            done.returncode == 0 and temporary(folder) == sorted(names + others))
            process.kill()
            process.wait()
            failed += check(f"{form}: SIGKILL leaves {names}", temporary(folder) == sorted(names + others))
            (folder / f"{form}.{process.pid}-7.part" / "below").mkdir(parents=True)
            others.append(f"{form}.{process.pid}-7.part")
            done = export.run()
            failed += check(f"{form}: the next run removes it, and nothing else",
                            done.returncode == 0 and temporary(folder) == sorted(others))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
