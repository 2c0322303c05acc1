#!/usr/bin/env python3
"""`waymark info` takes every capture that another command takes, in every wrapping.

usage: info_takes_test.py WAYMARK SOURCE_FOLDER
"""
import gzip
import pathlib
import struct
import subprocess
import sys

import cli_test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import scratch  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402

HEADER_ATTR = 64


def piped(content):
    """A perf.data file as `perf record -o -` writes it: attributes are records, and there are no sections."""
    entry = struct.unpack_from("<Q", content, 16)[0]
    attributes, attributes_bytes, data, data_bytes = struct.unpack_from("<QQQQ", content, 24)
    out = b"PERFILE2" + struct.pack("<Q", 16)
    for at in range(attributes, attributes + attributes_bytes, entry):
        attribute = content[at:at + entry - 16]
        ids, ids_bytes = struct.unpack_from("<QQ", content, at + entry - 16)
        body = attribute + content[ids:ids + ids_bytes]
        out += struct.pack("<IHH", HEADER_ATTR, 0, 8 + len(body)) + body
    return out + content[data:data + data_bytes]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    waymark = pathlib.Path(sys.argv[1]).resolve()
    fixtures = pathlib.Path(sys.argv[2]).resolve() / "tests" / "cli" / "fixtures"
    failed = done = 0
    with Folder() as name:
        folder = pathlib.Path(name)
        for fixture in ("loop", "spe", "dpu"):
            cli_test.use(fixtures, folder, fixture, fixture)
        profile = (folder / "spe" / "perf.data").read_bytes()
        ptm = fixtures.parents[2] / "examples" / "sort" / "capture"
        files = {  # name -> content, and info's description
            "perf.data": (profile, "perf.data, samples of the Statistical Profiling Extension"),
            "piped.data": (piped(profile), "perf.data, samples of the Statistical Profiling Extension"),
            "spe.bin": (profile[0x3e0:0x3e0 + 192], "Statistical Profiling (SPE)"),
            "dpu.bin": ((folder / "dpu" / "vtb.bin").read_bytes(), "Debug and Profiling Unit (DPU)"),
            "ptm.bin": ((ptm / "trace.bin").read_bytes(), "Program Flow Trace (PTM)"),
        }

        def check(what, arguments, says, stdin=None, kind=None):
            nonlocal failed, done
            done += 1
            for form in ("text", "json"):
                ran = subprocess.run([waymark, "info", *arguments, "--format", form], capture_output=True, cwd=folder,
                                     timeout=HANGS, **({"stdin": subprocess.DEVNULL} if stdin is None else stdin))
                text = ran.stdout.decode()
                if ran.returncode != 0 or (form == "text" and says not in text) or (form == "json" and "{" not in text):
                    failed += 1
                    print(f"failed: info {what}, {form}: {ran.returncode}, {text[:300]}{ran.stderr.decode()[:300]}")

        for capture in ("loop", "loop/snapshot.ini"):
            check(capture, [capture], "A loop that calls")
        for capture in ("dpu", "dpu/dpu.ini"):
            check(capture, [capture], "Debug and Profiling Unit, mode TASK")
        for file, (content, says) in files.items():
            for end, pack in (("", bytes), (".gz", gzip.compress), (".zst", cli_test.zstd)):
                path = folder / (file + end)
                path.write_bytes(pack(content))
                check(path.name, [path.name], says)
                check(f"- (a pipe with {path.name})", ["-"], says, {"input": pack(content)})
                with open(path, "rb") as opened:
                    ran = subprocess.run([waymark, "info", "-"], stdin=opened, capture_output=True,
                                         timeout=HANGS)
                done += 1
                if ran.returncode != 0 or says not in ran.stdout.decode():
                    failed += 1
                    print(f"failed: info - < {path.name}: {ran.returncode}, {ran.stdout.decode()[:300]}")
        # A folder around a capture is no capture, and the message names the capture in it.
        ran = subprocess.run([waymark, "info", "spe"], cwd=folder, capture_output=True, timeout=HANGS)
        done += 1
        if ran.returncode != 3 or b"it contains spe/perf.data: name that" not in ran.stderr:
            failed += 1
            print(f"failed: info spe: {ran.returncode}, {ran.stderr!r}")
        ran = subprocess.run([waymark, "info", "--help"], capture_output=True, timeout=HANGS)
        done += 1
        if any(word not in ran.stdout for word in (b"perf.data", b"dpu.ini", b"snapshot.ini", b".zst", b"bare buffer")):
            failed += 1
            print("failed: info --help does not name all that info takes")
        if failed:
            scratch.failed()
    print(f"{done} captures, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
