#!/usr/bin/env python3
"""Warnings of one kind are one line with their number and the first places, for every unit and command.

usage: many_warnings_test.py WAYMARK SOURCE_FOLDER

A snapshot, a capture of a Debug and Profiling Unit and a perf.data file each get 20 faults of one kind. Every command
that lists what is wrong must list them once: `… (the same 19 times more, as in …)`.
"""
import pathlib
import struct
import subprocess
import sys

import cli_test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import scratch  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402

FAULTS = 20
SAME = f"the same {FAULTS - 1} times more, as in "
AUXTRACE_INFO = 70


def snapshot(fixtures, folder):
    """Memory dumps whose files are missing."""
    cli_test.use(fixtures, folder, "loop", "loop")
    with open(folder / "loop" / "cpu.ini", "a", encoding="utf-8") as ini:
        ini.write("".join(f"\n[dump{100 + i}]\nfile=missing{i}.bin\naddress=0x{i}0000\nlength=16\n"
                          for i in range(1, FAULTS + 1)))
    return folder / "loop", "The memory dump"


def dpu(fixtures, folder):
    """Values of registers that are no numbers."""
    cli_test.use(fixtures, folder, "dpu", "dpu")
    ini = folder / "dpu" / "dpu.ini"
    bad = "".join(f"DP_X{i}=none{i}\n" for i in range(FAULTS))
    ini.write_text(ini.read_text().replace("[registers]\n", "[registers]\n" + bad))
    return folder / "dpu", "is not a value of 32 bits"


def perf_data(fixtures, folder):
    """The AUXTRACE_INFO record again and again."""
    cli_test.use(fixtures, folder, "spe", "spe")
    path = folder / "spe" / "perf.data"
    content = bytearray(path.read_bytes())
    data, size = struct.unpack_from("<QQ", content, 40)
    at = data
    while struct.unpack_from("<I", content, at)[0] != AUXTRACE_INFO:
        at += struct.unpack_from("<H", content, at + 6)[0]
    record = bytes(content[at:at + struct.unpack_from("<H", content, at + 6)[0]])
    struct.pack_into("<Q", content, 48, size + FAULTS * len(record))
    content[72:104] = bytes(32)  # the sections behind the data, which have moved
    content[at + len(record):at + len(record)] = record * FAULTS
    path.write_bytes(content[:data + size + FAULTS * len(record)])
    return path, "a second AUXTRACE_INFO record"


CASES = (
    (snapshot, (["info"], ["flow"], ["packets"], ["profile"], ["loops"])),
    (dpu, (["info"], ["flow"], ["packets"], ["profile"], ["dpu", "report"], ["dpu", "tasks"])),
    (perf_data, (["info"], ["spe", "report"], ["spe", "records"], ["spe", "quality"], ["spe", "sharing"], ["packets"])),
)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    waymark = pathlib.Path(sys.argv[1]).resolve()
    fixtures = pathlib.Path(sys.argv[2]).resolve() / "tests" / "cli" / "fixtures"
    failed = done = 0
    with Folder() as name:
        for make, commands in CASES:
            capture, what = make(fixtures, pathlib.Path(name))
            for command in commands:
                ran = subprocess.run([waymark, *command, capture], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                     timeout=HANGS)
                lines = [line for line in ran.stdout.decode().split("\n") if what in line]
                gathered = [line for line in lines if SAME in line]
                done += 1
                # Standard output and standard error may both say it.
                if not gathered or len(lines) != len(gathered) or len(lines) > 2:
                    failed += 1
                    print(f"failed: {' '.join(command)} {capture.name} has {len(lines)} lines, {len(gathered)} of them "
                          f"with a number:\n" + "\n".join(lines[:4]))
        if failed:
            scratch.failed()
    print(f"{done} commands run, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
