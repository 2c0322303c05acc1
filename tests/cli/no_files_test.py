#!/usr/bin/env python3
"""Named pipes, devices and folders in place of files: every command ends with a message, and none waits. Files of settings
and symbols, which are read once and as a whole, may come through a pipe.

usage: no_files_test.py WAYMARK SOURCE_FOLDER
"""
import os
import pathlib
import subprocess
import sys

import cli_test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import scratch  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402

CAPTURES = (["info"], ["packets"], ["messages"], ["flow"], ["report", "-o", "page.html"], ["profile"], ["coverage"], ["branches"],
            ["loops"], ["exceptions"], ["calls", "--function", "f"], ["doctor"], ["spe", "report"],
            ["spe", "records"], ["spe", "sharing"], ["spe", "branches"], ["spe", "quality"], ["dpu", "report"], ["dpu", "tasks"], ["dpu", "program"],
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
            done = subprocess.run([self.waymark, *arguments], capture_output=True, timeout=HANGS,
                                  cwd=self.folder, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            self.failed += 1
            print(f"failed: {what} did not end")
            return
        text = (done.stderr + done.stdout).decode(errors="replace")
        if done.returncode not in statuses or not done.stderr or says and not any(s in text for s in says):
            self.failed += 1
            print(f"failed: {what} ended with {done.returncode}: {text[:300]}")


    def through_pipe(self, content, make, says):
        """The command that `make` makes of a pipe with `content` ends and prints as that of a file does."""
        self.done += 1
        file = self.folder / "settings"
        file.write_bytes(content)
        outputs = []
        for pipe in (False, True):
            ours, theirs = os.pipe()
            with subprocess.Popen(["cat", file], stdout=theirs) as writer:
                os.close(theirs)
                path = f"/dev/fd/{ours}" if pipe else str(file)
                done = subprocess.run([self.waymark, *make(path)], capture_output=True, timeout=HANGS,
                                      cwd=self.folder, stdin=subprocess.DEVNULL, pass_fds=[ours])
                os.close(ours)
                writer.wait()
            outputs.append((done.returncode, (done.stdout + done.stderr).decode().replace(path, "FILE")))
        if outputs[0] != outputs[1] or outputs[0][0] not in (0, 1) or says not in outputs[0][1]:
            self.failed += 1
            print(f"failed: {make('FILE')}: of a file {outputs[0]}\nthrough a pipe {outputs[1]}")

    def endless_pipe(self, *arguments):
        """`PIPE` among the arguments is a pipe that does not end; there is a bound."""
        ours, theirs = os.pipe()
        with subprocess.Popen(["yes", "x" * 100], stdout=theirs, stderr=subprocess.DEVNULL) as writer:
            os.close(theirs)
            os.set_inheritable(ours, True)
            self.done += 1
            what = [f"/dev/fd/{ours}" if a == "PIPE" else a for a in arguments]
            done = subprocess.run([self.waymark, *what], capture_output=True, timeout=HANGS,
                                  cwd=self.folder, stdin=subprocess.DEVNULL, pass_fds=[ours])
            os.close(ours)
            writer.kill()
        if done.returncode not in (2, 3) or b"contains more than" not in done.stderr:
            self.failed += 1
            print(f"failed: {arguments} of a pipe without end: {done.returncode}, {done.stderr[:300]}")


PROGRAM = b"DP_TC=0x00201085\n"
REGISTERS = b"PMSCR_EL1=3\n"
KALLSYMS = b"ffff800008001000 T a_function_of_the_kernel\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    fixtures = pathlib.Path(sys.argv[2]).resolve() / "tests" / "cli" / "fixtures"
    with Folder() as name:
        folder = pathlib.Path(name)
        cli_test.use(fixtures, folder, "loop", "loop")
        cli_test.use(fixtures, folder, "spe", "spe")
        cli_test.use(fixtures, folder, "dpu", "dpu")
        (folder / "empty").mkdir()
        os.mkfifo(folder / "pipe")
        checks = Checks(pathlib.Path(sys.argv[1]).resolve(), folder)
        for command in CAPTURES:
            checks.refused(*command, "pipe", says=("named pipe", "is not a folder", "no snapshot", "no dpu.ini", "dpu.ini"))
            checks.refused(*command, "/dev/zero", says=("device", "is not a folder", "no snapshot", "dpu.ini"))
            checks.refused(*command, "/dev/null")
            checks.refused(*command, "empty")
        checks.refused("diff", "pipe", "loop")
        checks.refused("diff", "loop", "/dev/zero")
        # Files that an ini file names.
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
        # Files that are read once and as a whole.
        arm = fixtures.parents[2] / "examples" / "sort" / "sort.elf"
        for place in ("pipe", "/dev/zero", "empty"):
            says = ("this named pipe has no writer", "is a device", "is a folder")
            checks.refused("dpu", "program", place, statuses=(2, 3), says=says)
            checks.refused("spe", "explain", place, statuses=(2, 3), says=says)
            checks.refused("record", "--unit", "dpu", "--registers", place, "-o", "never", "--", arm,
                           statuses=(2, 3), says=says)
            checks.refused("record", "--unit", "spe", "--machine-model", place, "-o", "never", "--", arm,
                           statuses=(2, 3), says=says)
        for place in ("/dev/zero", "empty"):
            checks.refused("spe", "report", "spe/perf.data", "--kallsyms", place, statuses=(2, 3),
                           says=("is a device", "is a folder"))
        checks.through_pipe(PROGRAM, lambda file: ["dpu", "program", file], "DP_TC")
        checks.through_pipe(REGISTERS, lambda file: ["spe", "explain", file], "samples")
        checks.through_pipe(KALLSYMS, lambda file: ["spe", "report", "spe/perf.data", "--kallsyms", file],
                            "a_function_of_the_kernel")
        checks.endless_pipe("dpu", "program", "PIPE")
        checks.endless_pipe("spe", "explain", "PIPE")
        # Output: a pipe that nobody reads.
        for command in (["info", "loop"], ["packets", "loop"], ["flow", "loop"], ["report", "loop"],
                        ["export", "loop", "--to", "firefox"], ["doctor", "loop"], ["spe", "report", "spe/perf.data"]):
            checks.refused(*command, "-o", "pipe", statuses=(2, 3), says=("named pipe",))
            checks.refused(*command, "-o", "empty", statuses=(2, 3))
        if checks.failed:
            scratch.failed()
    print(f"{checks.done} commands, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
