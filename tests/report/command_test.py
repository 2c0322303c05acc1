#!/usr/bin/env python3
"""`waymark report` without arguments, capture, program or a writable place; and built without its page.

    command_test.py WAYMARK SOURCE_DIR
"""
import base64
import json
import pathlib
import re
import shutil
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import cli_test  # its fixtures
from scratch import Folder, HANGS  # noqa: E402

waymark, source = (pathlib.Path(a).resolve() for a in sys.argv[1:3])
capture, program = source / "examples/sort/capture", source / "examples/sort/sort.elf"


def run(work, status, says, *arguments):
    done = subprocess.run([waymark, "report", *map(str, arguments)], cwd=work, capture_output=True, text=True, timeout=HANGS)
    command = "waymark report " + " ".join(map(str, arguments))
    assert done.returncode == status, f"{command}: {done.returncode}, not {status}:\n{done.stderr}"
    assert re.search(says, done.stderr), f"{command}: does not say {says!r}:\n{done.stderr}"
    assert done.stdout == "", command
    return done


def head(report):
    packed = re.search(r'id="waymark-head">([^<]*)<', report.read_text())[1]
    return json.loads(zlib.decompress(base64.b64decode(packed), -15))


with Folder() as folder:
    work = pathlib.Path(folder)
    built_without = subprocess.run([waymark, "report", capture, "-o", "x.html"], cwd=work, capture_output=True, text=True, timeout=HANGS)
    if built_without.returncode == 2:
        # Every other command works; this one reports the missing page before it reads anything.
        assert re.search(r"page .*(install|Install|build again)", built_without.stderr), built_without.stderr
        assert not (work / "x.html").exists()
        run(work, 2, "page", "missing")
        print("built without its page: says so")
        sys.exit(0)

    run(work, 2, "no capture given")
    run(work, 2, "unexpected argument", capture, capture)
    run(work, 2, "--max-size takes megabytes", capture, "--max-size", "0.1")
    run(work, 3, "no such file or folder", "missing")
    (work / "empty.bin").write_bytes(b"")
    run(work, 3, "empty.bin: is empty", "empty.bin")
    run(work, 3, "cannot create no/folder/x.html: there is no folder no/folder; make it first", capture, "-o", "no/folder/x.html")
    run(work, 3, "it is a folder; name a file", capture, "-o", work)

    run(work, 0, r"report.html \([\d,]+ bytes\): open it in a browser", capture, "--image", program)
    whole = head(work / "report.html")
    assert whole["has"]["instructions"] > 0 and not any("No symbols" in f["what"] for f in whole["health"]), whole["health"]
    before = (work / "report.html").read_bytes()
    run(work, 3, "no such file or folder", "missing")
    assert (work / "report.html").read_bytes() == before, "a report that was there stays"

    # A capture without its program: the contents of the trace, and the benefit of a program.
    shutil.copytree(capture, work / "bare")
    for ini in (work / "bare").glob("*.ini"):
        ini.write_text(re.sub(r"\[dump\d*\][^\[]*", "", ini.read_text()))
    run(work, 1, "no instruction decoded: no image is known for the code that ran", "bare", "-o", "bare.html")
    bare = head(work / "bare.html")
    assert "--image" in bare["health"][0]["todo"] and bare["has"]["instructions"] == 0, bare["health"]
    assert bare["has"]["marks"] > 0 and bare["traceBytes"] > 0, bare["has"]
    # For a program without symbols, it states how to get names.
    run(work, 0, "open it", capture, "-o", "nameless.html")
    assert any("--symbols" in f["todo"] for f in head(work / "nameless.html")["health"])

    bad = 3  # the highest severity of a finding
    # Cut captures of each unit: the report shows the readable part and says so at its head; the status is 3.
    for name, trace, keep, says in (("loop", "etb.bin", 42, "no whole frame"), ("dpu", "vtb.bin", 72, "lacks 56 bytes"),
                                    ("spe", "perf.data", 1150, "file's own structure")):
        cli_test.use(source / "tests/cli/fixtures", work, name, name)
        given = f"{name}/{trace}" if name == "spe" else name
        whole = (work / name / trace).read_bytes()
        run(work, 0, "open it", given, "-o", "whole.html")
        (work / name / trace).write_bytes(whole[:keep])
        run(work, 3, f"error: .*{says}", given, "-o", "cut.html")
        first = head(work / "cut.html")["health"][0]
        assert first["severity"] == bad and says in first["what"], first
        (work / name / trace).write_bytes(b"")
        run(work, 3, "empty|lacks 128 bytes", given, "-o", "none.html")
        assert not (work / "none.html").exists()
print("good")
