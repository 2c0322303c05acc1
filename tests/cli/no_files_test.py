#!/usr/bin/env python3
"""Named pipes, devices and folders in place of files: every command ends with a message, and none waits.

usage: no_files_test.py WAYMARK SOURCE_FOLDER
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import cli_test

TIMEOUT_SECONDS = 30
CAPTURES = (["info"], ["packets"], ["flow"], ["report", "-o", "page.html"], ["profile"], ["coverage"], ["branches"],
            ["loops"], ["exceptions"], ["doctor"], ["spe", "report"], ["spe", "records"], ["spe", "sharing"],
            ["spe", "branches"], ["spe", "quality"], ["dpu", "report"], ["dpu", "tasks"], ["dpu", "program"],
            ["spe", "explain"], ["query"], ["export", "--to", "firefox", "-o", "profile.json"],
            ["flow", "--protocol", "ptm"], ["info", "--protocol", "ptm", "--buffer-format", "source_data"],
            ["flow", "--protocol", "ptm", "--buffer-format", "coresight"])


class Checks:
    def __init__(self, waymark, folder):
        self.waymark, self.folder, self.failed, self.done = waymark, folder, 0, 0

    def refused(self, *arguments, statuses=(1, 2, 3, 4), says=()):
        """The command ends soon, with such a status and one of these words on standard error."""
        self.done += 1
        what = " ".join(map(str, arguments))
        try:
            done = subprocess.run([self.waymark, *arguments], capture_output=True, timeout=TIMEOUT_SECONDS,
                                  cwd=self.folder, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            self.failed += 1
            print(f"failed: {what} did not end")
            return
        text = (done.stderr + done.stdout).decode(errors="replace")
        if done.returncode not in statuses or not done.stderr or says and not any(s in text for s in says):
            self.failed += 1
            print(f"failed: {what} ended with {done.returncode}: {text[:300]}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    fixtures = pathlib.Path(sys.argv[2]).resolve() / "tests" / "cli" / "fixtures"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cli_test.use(fixtures, folder, "loop", "loop")
        cli_test.use(fixtures, folder, "spe", "spe")
        cli_test.use(fixtures, folder, "dpu", "dpu")
        (folder / "empty").mkdir()
        os.mkfifo(folder / "pipe")
        checks = Checks(pathlib.Path(sys.argv[1]).resolve(), folder)
        for command in CAPTURES:
            checks.refused(*command, "pipe", says=("named pipe", "is no folder", "no snapshot", "no dpu.ini", "dpu.ini"))
            checks.refused(*command, "/dev/zero", says=("device", "is no folder", "no snapshot", "dpu.ini"))
            checks.refused(*command, "/dev/null")
            checks.refused(*command, "empty")
        checks.refused("diff", "pipe", "loop")
        checks.refused("diff", "loop", "/dev/zero")
        # What an ini file names.
        cli_test.use(fixtures, folder, "dpu", "dpu-pipe")
        (folder / "dpu-pipe" / "vtb.bin").unlink()
        os.mkfifo(folder / "dpu-pipe" / "vtb.bin")
        for command in (["info"], ["packets"], ["dpu", "report"], ["doctor"]):
            checks.refused(*command, "dpu-pipe", says=("named pipe",))
        cli_test.use(fixtures, folder, "loop", "loop-pipe")
        (folder / "loop-pipe" / "etb.bin").unlink()
        os.mkfifo(folder / "loop-pipe" / "etb.bin")
        for command in (["info"], ["packets"], ["flow"], ["doctor"], ["profile"]):
            checks.refused(*command, "loop-pipe", says=("named pipe",))
        # Options that name files.
        for place in ("pipe", "/dev/zero"):
            checks.refused("flow", "loop", "--image", f"{place}@0x8000", statuses=(2, 3))
            checks.refused("flow", "loop", "--symbols", place, statuses=(2, 3))
        # Output: a pipe that nobody reads.
        for command in (["info", "loop"], ["packets", "loop"], ["flow", "loop"], ["report", "loop"],
                        ["export", "loop", "--to", "firefox"], ["doctor", "loop"], ["spe", "report", "spe/perf.data"]):
            checks.refused(*command, "-o", "pipe", statuses=(2, 3), says=("named pipe",))
            checks.refused(*command, "-o", "empty", statuses=(2, 3))
    print(f"{checks.done} commands, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
