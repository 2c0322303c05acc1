#!/usr/bin/env python3
"""How often a command opens the capture that it is given: once, or twice where a format needs it. What a capture is, is
decided once (open::identify). strace counts.

usage: opens_test.py WAYMARK SOURCE_FOLDER
"""
import pathlib
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import scratch  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402


def record(kind, body):
    return struct.pack("<IHH", kind, 0, 8 + len(body)) + body


def perf_data(branches):
    """perf.data with one sample: a branch stack, or an address alone (docs/spec/perf-cs-etm.md, section 1)."""
    ip, tid, time, stack = 1 << 0, 1 << 1, 1 << 2, 1 << 11
    fields = ip | tid | time | (stack if branches else 0)
    attr = struct.pack("<IIQQQQQ", 0, 112, 0, 1000, fields, 0, 0).ljust(112, b"\0") + struct.pack("<QQ", 0, 0)
    sample = struct.pack("<QIIQ", 0x1000, 1, 1, 5)
    if branches:
        sample += struct.pack("<Q", 1) + struct.pack("<QQQ", 0x1000, 0x2000, 0)
    data = record(9, sample)
    head = struct.pack("<8sQQQQQQQQ", b"PERFILE2", 104, len(attr), 104, len(attr), 104 + len(attr), len(data), 0, 0)
    return head.ljust(104, b"\0") + attr + data


def opens(waymark, folder, capture, command):
    log = folder / "strace.txt"
    done = subprocess.run(["strace", "-f", "-e", "trace=open,openat", "-o", log, waymark, *command], cwd=folder,
                          timeout=HANGS, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return sum(f'"{capture}"' in line for line in log.read_text(errors="replace").splitlines()), done.stderr


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    waymark = pathlib.Path(sys.argv[1]).resolve()
    if shutil.which("strace") is None:
        print("SKIPPED: there is no strace")
        return 77
    failed = done = 0
    with Folder() as name:
        folder = pathlib.Path(name)
        # Where tracing is not permitted, nothing can be counted.
        (folder / "words").write_text("twelve words\n")
        if opens("/bin/cat", folder, "words", ["words"])[0] != 1:
            print("SKIPPED: strace does not count here")
            return 77
        captures = {"stacks.data": perf_data(True), "samples.data": perf_data(False), "bare.bin": bytes(range(1, 200))}
        for capture, content in captures.items():
            (folder / capture).write_bytes(content)
        for capture in captures:
            for command in (["info"], ["profile"], ["flow", "--format", "summary"], ["packets"], ["doctor"],
                            ["report", "-o", "page.html"], ["answers", "-o", "a.answers"], ["verify"]):
                count, said = opens(waymark, folder, capture, [command[0], capture, *command[1:]])
                # The bytes of a bare file are examined by other parts of the program. `doctor` looks once and then
                # decodes, and where nothing decodes the other commands name what it finds.
                names_doctor = f"waymark doctor {capture}" in said
                no_flow = command[0] == "flow" and capture == "samples.data"
                most = (6 if capture == "bare.bin" else 3 if names_doctor else
                        2 if command[0] == "doctor" or no_flow else 1)
                done += 1
                if not 1 <= count <= most:
                    failed += 1
                    print(f"failed: waymark {command[0]} {capture}: {count} opens, not 1 to {most}")
        if failed:
            scratch.failed()
    print(f"{done - failed} of {done} commands as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
