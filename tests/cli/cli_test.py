#!/usr/bin/env python3
"""Command line tests: what the program prints and its exit status, as approved in tests/cli/cases.

usage: cli_test.py WAYMARK SOURCE_FOLDER [CASE...]

WM_UPDATE_APPROVED=1 writes what was printed into the cases instead of comparing. A case is a text file:

    # A comment.
    @ use loop                          a step of preparation, in an empty folder
    $ waymark flow loop --format tsv    a command as in a shell; < FILE and > FILE are understood, pipes are not
    | what it printed
    ! what it printed on standard error
    = 0

Steps:

    use FIXTURE [as NAME]       copies a folder of tests/cli/fixtures; each NAME.hex in it becomes a binary file NAME
    replace FILE: OLD => NEW    exactly one place in a text file; \\n is a line break
    remove FILE
    text FILE: CONTENTS         \\n is a line break
    bytes FILE: HEX             a new file
    patch FILE at OFFSET: HEX   other bytes in a file
    cut FILE to N               keeps the first N bytes
    zeros FILE N                a file of N zeros
    gzip FILE, zstd FILE        leaves FILE.gz, FILE.zst beside it
    folder NAME
    link NAME: TARGET
    processors N                what follows may run on N of them

HEX, and a file NAME.hex: bytes of two digits; four or eight digits are a little-endian halfword or word, as
disassemblers show them; from # on a line is comment.
"""
import difflib
import gzip
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import failed, Folder, HANGS  # noqa: E402


def from_hex(text):
    out = bytearray()
    for line in text.splitlines():
        for token in line.split("#")[0].split():
            if len(token) not in (2, 4, 8):
                sys.exit(f"'{token}' is no byte, halfword or word")
            out += bytes.fromhex(token)[::-1]
    return bytes(out)


def zstd(data):
    """A frame of one uncompressed block (RFC 8878, 3.1.1)."""
    block = struct.pack("<I", len(data) << 3 | 1)[:3] + data
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + block


def use(fixtures, folder, name, target):
    target = folder / target
    shutil.copytree(fixtures / name, target)
    for hex_file in list(target.rglob("*.hex")):
        hex_file.with_suffix("").write_bytes(from_hex(hex_file.read_text()))
        hex_file.unlink()


def prepare(step, fixtures, folder):
    word, rest = (step.split(" ", 1) + [""])[:2]
    head, _, tail = rest.removesuffix(":").partition(": ")
    text = tail.replace("\\n", "\n")
    path = folder / head.split()[0]
    if word == "use":
        name, _, target = rest.partition(" as ")
        use(fixtures, folder, name, target or name)
    elif word == "replace":
        old, new = text.split(" => ") if " => " in text else (text.removesuffix(" =>"), "")
        content = path.read_text()
        if content.count(old) != 1:
            sys.exit(f"'{old}' stands {content.count(old)} times in {head}")
        path.write_text(content.replace(old, new))
    elif word == "remove":
        path.unlink()
    elif word == "text":
        path.write_text(text)
    elif word == "bytes":
        path.write_bytes(from_hex(tail))
    elif word == "patch":
        at = int(head.split(" at ")[1], 0)
        content = bytearray(path.read_bytes())
        new = from_hex(tail)
        content[at:at + len(new)] = new
        path.write_bytes(content)
    elif word == "cut":
        path.write_bytes(path.read_bytes()[:int(head.split(" to ")[1], 0)])
    elif word == "zeros":
        path.write_bytes(bytes(int(head.split()[1], 0)))
    elif word == "gzip":
        pathlib.Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    elif word == "zstd":
        pathlib.Path(f"{path}.zst").write_bytes(zstd(path.read_bytes()))
    elif word == "folder":
        path.mkdir()
    elif word == "link":
        path.symlink_to(tail)
    else:
        sys.exit(f"no step is called '{word}'")


def run(command, waymark, folder, processors):
    arguments, stdin, stdout = [], subprocess.DEVNULL, subprocess.PIPE
    tokens = iter(shlex.split(command))
    for token in tokens:
        if token == "<":
            stdin = open(folder / next(tokens), "rb")
        elif token == ">":
            stdout = open(folder / next(tokens), "wb")
        else:
            arguments.append(token)
    if arguments[0] == "cat":
        return [f"| {line}" for line in (folder / arguments[1]).read_text().splitlines()]
    done = subprocess.run([waymark, *arguments[1:]], cwd=folder, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE,
                          timeout=HANGS, preexec_fn=lambda: os.sched_setaffinity(0, processors))

    def lines(mark, output):
        text = (output or b"").decode(errors="backslashreplace").replace(str(folder), "FOLDER")
        text = re.sub(r"^waymark \d+\.\d+\.\d+$", "waymark VERSION", text, flags=re.M)
        text = re.sub(r"^(build|libraries): .*$", r"\1: …", text, flags=re.M)
        return [f"{mark} {line}" if line else mark for line in text.splitlines()]

    return lines("|", done.stdout) + lines("!", done.stderr) + [f"= {done.returncode}"]


def play(case, waymark, fixtures):
    """The case as it reads, and as it should read."""
    out, processors = [], os.sched_getaffinity(0)
    approved = case.read_text()
    with Folder() as name:
        folder = pathlib.Path(name).resolve()
        for line in approved.splitlines():
            if line.startswith(("|", "!", "=")):
                continue
            out.append(line)
            if line.startswith("@ processors "):
                processors = set(sorted(processors)[:int(line.split()[2])])
            elif line.startswith("@ "):
                prepare(line[2:], fixtures, folder)
            elif line.startswith("$ "):
                out += run(line[2:], waymark, folder, processors)
        actual = "\n".join(out) + "\n"
        if actual != approved and os.environ.get("WM_UPDATE_APPROVED") != "1":
            failed()
    return approved, actual


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    waymark = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(sys.argv[2]).resolve() / "tests" / "cli"
    cases = sys.argv[3:] or sorted(path.stem for path in (folder / "cases").glob("*.txt"))
    wrong = 0
    for name in cases:
        case = folder / "cases" / f"{name}.txt"
        approved, actual = play(case, waymark, folder / "fixtures")
        if actual == approved:
            print(f"ok: {name}")
            continue
        if os.environ.get("WM_UPDATE_APPROVED") == "1":
            case.write_text(actual)
            print(f"{name}: approved")
            continue
        wrong += 1
        print("".join(difflib.unified_diff(approved.splitlines(True), actual.splitlines(True), f"{name}: approved",
                                           f"{name}: now")))
        print(f"failed: {name}")
    # With the lines above, what tests/summary.py counts.
    print(f"{len(cases)} cases, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
