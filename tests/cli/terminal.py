"""A terminal for tests: runs a program in one of a given size, types into it, and reads what it shows."""
import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import HANGS  # noqa: E402


class Terminal:
    """A program in a terminal. `text` is all that it wrote so far, as bytes."""

    def __init__(self, command, columns=80, rows=24, env=None, cwd=None):
        self.text = b""
        self.status = None
        self.process, self.file = pty.fork()
        if self.process == 0:
            try:
                if cwd:
                    os.chdir(cwd)
                fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **(env or {})})
            finally:
                os._exit(127)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.file, text.encode())

    def read(self, until=None, seconds=HANGS):
        """Reads until the regular expression is in what was written since the call, or the program ends; returns that."""
        begin, end = len(self.text), time.monotonic() + seconds
        while time.monotonic() < end:
            if until and re.search(until.encode(), self.text[begin:]):
                break
            if not select.select([self.file], [], [], 0.05)[0]:
                continue
            try:
                more = os.read(self.file, 1 << 16)
            except OSError:  # the program has ended
                break
            if not more:
                break
            self.text += more
        else:
            if until:
                raise AssertionError(f"no {until} within {seconds} s in {self.text[begin:]!r}")
        return self.text[begin:].decode(errors="replace")

    def wait(self, seconds=HANGS):
        """Reads to the end; returns all that was written, with line breaks as a file has them."""
        end = time.monotonic() + seconds
        while self.status is None:
            self.read(None, 0.1)
            process, status = os.waitpid(self.process, os.WNOHANG)
            if process:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                self.close()
                raise AssertionError(f"did not end within {seconds} s: {self.text!r}")
        self.read(None, 0.1)
        os.close(self.file)
        return self.text.decode(errors="replace").replace("\r\n", "\n")

    def close(self):
        """Ends the program at any point."""
        if self.status is None:
            os.kill(self.process, signal.SIGKILL)
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
            os.close(self.file)


def run(command, columns=80, rows=24, env=None, cwd=None):
    """(what a program writes to a terminal, its exit status)"""
    terminal = Terminal(command, columns, rows, env, cwd)
    text = terminal.wait()
    return text, terminal.status
