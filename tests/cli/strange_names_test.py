#!/usr/bin/env python3
"""Names that no format likes, in captures of every unit: programs must be able to read all output that is meant for them.

usage: strange_names_test.py WAYMARK SOURCE_FOLDER

Names of functions, source files, sources, tasks, threads and captures get tabs, quotes, line breaks and bytes that are
not UTF-8, in place of as many of their own. Then JSON must be JSON, tab-separated values must have as many fields in
every line as in the first, exports must be what their format asks for, text must keep a row to a line, and all of it
must be UTF-8. On a terminal the only escape sequences are Waymark's own colours.
"""
import csv
import html.parser
import io
import json
import os
import pathlib
import pty
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import xml.etree.ElementTree

import cli_test

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import scratch  # noqa: E402
from scratch import Folder, HANGS  # noqa: E402

DIRECTION = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
# A terminal obeys these bytes.
OBEYED = re.compile(f"[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f{DIRECTION}]")
CONTROL = re.compile("[\\x00-\\x1f]")
STRANGE = b"\t\"\n\xff\\'\r,;<&>%\x1b\xc3"  # no name is longer


def strange(name):
    """As many bytes as `name`, of which few are letters."""
    return (name[:1] + STRANGE + name)[:len(name)]


def patch(path, *names):
    content = path.read_bytes()
    for name in names:
        if name not in content:
            sys.exit(f"{path} has no {name}")
        content = content.replace(name, strange(name))
    path.write_bytes(content)


def run(waymark, *arguments):
    return subprocess.run([waymark, *arguments], capture_output=True, timeout=HANGS,
                          env={**os.environ, "LC_ALL": "C.UTF-8"})


class Checks:
    def __init__(self, waymark):
        self.waymark, self.failed, self.done = waymark, 0, 0

    def check(self, what, reads, output):
        self.done += 1
        try:
            reads(output)
        except Exception as error:  # any error of a reader
            self.failed += 1
            print(f"failed: {what}: {type(error).__name__}: {error}")

    def quiet(self, what, done):
        """Nothing that a terminal obeys is on standard error."""
        self.check(f"{what}, standard error", read_shown, done.stderr)

    def shown(self, *arguments):
        """The text of a command, with any exit status, contains no control sequences of terminals."""
        done = run(self.waymark, *arguments)
        what = " ".join([os.fsencode(a).decode(errors="backslashreplace") for a in arguments])
        self.check(what, read_shown, done.stdout)
        self.quiet(what, done)

    def command(self, *arguments, formats=("json", "tsv")):
        """Each format of a command that has something to show."""
        self.shown(*arguments)
        for form in formats:
            done = run(self.waymark, *arguments, "--format", form)
            what = " ".join([os.fsencode(a).decode(errors="backslashreplace") for a in (*arguments, form)])
            self.quiet(what, done)
            if done.returncode not in (0, 1) or not done.stdout:
                self.failed += 1
                print(f"failed: {what} ended with {done.returncode}: {done.stderr!r}")
                continue
            self.check(what, read_json if form == "json" else read_tsv, done.stdout)

    def export(self, form, reads, folder, *arguments):
        target = folder / form
        done = run(self.waymark, "export", *arguments, "--to", form, "-o", target)
        self.quiet(f"export --to {form}", done)
        if done.returncode != 0:
            self.failed += 1
            print(f"failed: export {arguments} --to {form} ended with {done.returncode}: {done.stderr!r}")
            return
        for path in sorted(target.iterdir()) if target.is_dir() else [target]:
            if path.name.startswith("manifest-"):
                self.check(f"export --to {form}: {path.name}", read_json, path.read_bytes())
                continue
            self.check(f"export --to {form}: {path.name}", reads, path if reads is read_sqlite else path.read_bytes())
        shutil.rmtree(target, ignore_errors=True)


# Readers: each raises an exception on what it cannot read.


def members(pairs):
    """An object: a name that stands in it twice hides a value."""
    once({name for name, _ in pairs}, [name for name, _ in pairs])
    return dict(pairs)


def once(different, names):
    if len(different) != len(names):
        raise TwiceError(f"names stand there twice: {names}")


class TwiceError(Exception):
    """No ValueError, which is what a JSON reader ends with."""


def read_json(output):
    text = output.decode()
    try:
        json.loads(text, object_pairs_hook=members)
    except ValueError:
        for line in text.removesuffix("\n").split("\n"):
            json.loads(line, object_pairs_hook=members)


def read_tsv(output):
    rows = list(csv.reader(output.decode().removesuffix("\n").split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE,
                           strict=True))
    once(set(rows[0]), rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(f"line {number} has {len(row)} fields, the first {len(rows[0])}: {row}")
        if any(CONTROL.search(field) for field in row):
            raise ValueError(f"line {number} has control characters: {row}")


def read_csv(output):
    rows = list(csv.reader(output.decode().splitlines(keepends=True), strict=True))
    if any(len(row) != len(rows[0]) for row in rows):
        raise ValueError("rows of different length")


def read_sqlite(path):
    with sqlite3.connect(path) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            database.execute(f"SELECT * FROM {table}").fetchall()


def read_folded(output):
    for line in output.decode().removesuffix("\n").split("\n"):
        stack, count = line.rsplit(" ", 1)
        if int(count) < 0 or CONTROL.search(stack):
            raise ValueError(line)


def read_text(output):
    for line in output.decode().split("\n"):
        if CONTROL.search(line.replace("\t", "")):
            raise ValueError(line)


def read_shown(output):
    """Neither C0 but for the end of a line, nor DEL and C1, which a terminal obeys, nor marks of direction; and UTF-8
    throughout."""
    text = output.decode()
    if found := OBEYED.search(text):
        raise ValueError(f"{found[0]!r} in {output[:2000]!r}")
    # In all names here a byte that is no UTF-8, or a comma, follows the line break: no line of ours begins so.
    for line in text.split("\n"):
        if line.startswith(("\ufffd", ",")):
            raise ValueError(f"a name was broken: {line!r} begins a line")


OWN_COLOUR = re.compile("\x1b\\[([0-9]*)m")


def read_terminal(output):
    """Colours are switched on and off in turn, and no other control character comes along."""
    text = output.decode().replace("\r\n", "\n")
    codes = OWN_COLOUR.findall(text)
    if codes[1::2] != ["0"] * (len(codes) // 2) or "0" in codes[0::2] or len(codes) % 2 != 0:
        raise ValueError(f"colours {codes} do not alternate with their ends in {output[:2000]!r}")
    if "\ufffd[31m" not in text:
        raise ValueError(f"the name is not shown with its escape sequence replaced: {output[:2000]!r}")
    read_shown(OWN_COLOUR.sub("", text).encode())


EXPORTS = {"firefox": read_json, "speedscope": read_json, "folded": read_folded, "callgrind": read_text, "csv": read_csv,
           "jsonl": read_json, "sqlite": read_sqlite}
WITH_LINES = {"lcov": read_text, "cobertura": xml.etree.ElementTree.fromstring, "autofdo": read_text}


def with_lines(source, folder, path):
    """The program of examples/sort with debug information, its source at `path`; none without a compiler."""
    compiler = shutil.which("arm-linux-gnueabihf-gcc")
    if compiler is None:
        print("SKIPPED: source files: arm-linux-gnueabihf-gcc is missing (Debian package gcc-arm-linux-gnueabihf)")
        return None
    shutil.copy(source / "examples" / "sort" / "sort.c", path)
    program = folder / "sort-g.elf"
    subprocess.run([compiler, "-g", "-march=armv7-a", "-mthumb", "-mfloat-abi=soft", "-O1", "-fno-inline",
                    "-fno-builtin", "-ffreestanding", "-fno-pic", "-fno-asynchronous-unwind-tables",
                    "-fno-unwind-tables", "-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none",
                    "-Wl,-z,noseparate-code", "-o", program, source / "examples" / "sort" / "start.S", path],
                   check=True)
    return program


def check_flow(checks, source, folder):
    capture, elf = folder / os.fsdecode(b"sort\t\"\n\xff"), folder / os.fsdecode(b"so rt\t\"\xff\n.elf")
    shutil.copytree(source / "examples" / "sort" / "capture", capture)
    shutil.copy(source / "examples" / "sort" / "sort.elf", elf)
    patch(elf, b"descending", b"quicksort", b"sorted")
    for ini in capture.glob("*.ini"):  # an ini file has no line breaks in its values
        ini.write_bytes(ini.read_bytes().replace(b"PTM_0", b"P\t\"\xff0").replace(b"ETB_0", b"E\t\"\xff0"))
    with_image = [capture, "--image", elf]
    for form in (["info"], ["packets"], ["flow"], ["profile"], ["profile", "--by", "instruction"],
                 ["profile", "--by", "image"], ["profile", "--by", "block"], ["coverage", "--by", "function"],
                 ["coverage", "--uncovered"], ["branches"], ["loops"]):
        checks.command(*form, *with_image)
    checks.command("flow", *with_image, formats=["json"])
    checks.command("diff", capture, capture, "--image", elf)
    checks.command("doctor", *with_image)
    for form, reads in EXPORTS.items():
        checks.export(form, reads, folder, *with_image)
    program = with_lines(source, folder, folder / os.fsdecode(b"a b\t\"c\"\xff,;<.c"))
    if program is None:
        return
    for form in (["profile", "--by", "line"], ["coverage", "--by", "file"], ["coverage", "--uncovered"], ["branches"],
                 ["loops"]):
        checks.command(*form, capture, "--image", program)
    for form, reads in {**EXPORTS, **WITH_LINES}.items():
        checks.export(form, reads, folder, capture, "--image", program)


def check_dpu(checks, fixtures, folder):
    for fixture in ("dpu", "dpu-loops"):
        capture = folder / os.fsdecode(fixture.encode() + b"\t\"\n\xff")
        cli_test.use(fixtures, folder, fixture, capture.name)
        ini = capture / "dpu.ini"
        text = ini.read_bytes().replace(b"timer", b"ti\t\"\xffmer").replace(b"radio", b"ra\t\"\xffdio")
        text += b"" if b"[parameters]" in text else b"\n[parameters]\n"
        ini.write_bytes(text + b"program=/a b\t\"c\"\xff,d\n")
        for view in ("report", "tasks", "functions", "paths", "interrupts", "ranges", "timeline", "loops", "data",
                     "health"):
            checks.command("dpu", view, capture)
        for command in ("info", "packets", "flow", "doctor"):
            checks.command(command, capture)
        if fixture == "dpu":
            checks.command("profile", capture)
            checks.command("diff", capture, capture)
        else:
            checks.command("loops", capture)
        for form in ("csv", "jsonl", "sqlite"):
            checks.export(form, EXPORTS[form], folder, capture)


def check_profile(checks, fixtures, folder):
    cli_test.use(fixtures, folder, "spe", "spe")
    perf = folder / os.fsdecode(b"pe rf\t\"\n\xff.data")
    (folder / "spe" / "perf.data").rename(perf)
    # A path and a command name of the file, each as long as it was.
    content = perf.read_bytes()
    content = content.replace(b"/bin/prog", b"/b\t\"\xff/p\n,").replace(b"prog\0", b"\"\t\n\xff\0")
    perf.write_bytes(content)
    for by in ("function", "line", "instruction", "address", "thread", "image", "source"):
        if run(checks.waymark, "spe", "report", perf, "--by", by).returncode == 0:
            checks.command("spe", "report", perf, "--by", by)
    for view in ("sharing", "quality", "records"):
        checks.command("spe", view, perf)
    checks.command("spe", "branches", perf)
    for command in ("profile", "branches"):
        checks.command(command, perf)
    checks.command("doctor", perf)
    checks.command("diff", perf, perf)
    for form, reads in EXPORTS.items():
        checks.export(form, reads, folder, perf)


def on_terminal(waymark, *arguments):
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([waymark, *arguments], stdout=theirs, stderr=subprocess.DEVNULL,
                          env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm", "NO_COLOR": "", "PAGER": "cat"}) as process:
        os.close(theirs)
        out = b""
        try:
            while piece := os.read(ours, 1 << 16):
                out += piece
        except OSError:  # the other end was closed
            pass
        process.wait(timeout=HANGS)
    os.close(ours)
    return out


def check_terminal(checks, source, folder):
    """Escape sequences that are spelled as Waymark's own: in the names of a function, an image and a capture."""
    capture, elf = folder / "co\x1b[31mlours\u202e", folder / "so\x1b[31mrt\u2066.elf"
    shutil.copytree(source / "examples" / "sort" / "capture", capture)
    content = (source / "examples" / "sort" / "sort.elf").read_bytes()
    elf.write_bytes(content.replace(b"descending\0", b"de\x1b[31mxyz\0"))
    with_image = ["--image", elf]
    for command in (["profile", capture], ["profile", capture, "--by", "image"], ["diff", capture, capture],
                    ["loops", capture], ["branches", capture], ["coverage", capture], ["info", capture], ["flow", capture],
                    ["doctor", capture]):
        checks.check(f"{command} on a terminal", read_terminal, on_terminal(checks.waymark, *command, *with_image))


def check_query(checks, folder):
    path = folder / "strange.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE \"a\tb\"\"c\nd\" (\"x\ty\" TEXT, z BLOB, w REAL)")
        database.execute("INSERT INTO \"a\tb\"\"c\nd\" VALUES (?, ?, ?)", ("t\t\n\"q", b"\0\xff\xfe\t", 1e999))
        database.execute("INSERT INTO \"a\tb\"\"c\nd\" VALUES (CAST(x'41ff' AS TEXT), x'', NULL)")
        # Views of strangers are not run: one is impossible, one would not end.
        database.execute("CREATE TABLE gone (g)")
        database.execute("CREATE VIEW lost AS SELECT g FROM gone")
        database.execute("DROP TABLE gone")
        database.execute("CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
    checks.command("query", path, "SELECT * FROM \"a\tb\"\"c\nd\"")
    checks.command("query", path)
    done = run(checks.waymark, "query", path, "--format", "json")
    checks.check("tables and columns", lambda text: assert_equal(
        [(t["table"], t["rows"], [c["column"] for c in t["columns"]]) for t in json.loads(text)["tables"]],
        [("a\tb\"c\nd", 2, ["x\ty", "z", "w"]), ("lost", None, []), ("endless", None, ["i"])]), done.stdout)
    done = run(checks.waymark, "query", path, "SELECT z FROM \"a\tb\"\"c\nd\"", "--format", "json")
    checks.check("a blob is hexadecimal", lambda text: assert_equal(json.loads(text), [{"z": "00fffe09"}, {"z": ""}]),
                 done.stdout)


# Names of functions, each for a place where it would be more than a name.
WORST = (b"$(touch owned)`touch owned`; touch owned", b"\"; touch owned; '; touch owned #\n-rf ../../../owned",
         b"=1+cmd|' /C calc'!A0", b"-->]]><script>alert(1)</script>&lt;'\"\xef\xbf\xbe\xef\xbf\xbf", b"\x1b]0;owned\x07\x1b[31m\x01\x7f\xc2\x9b",
         b"\xff\xfe\xc3(\xed\xa0\x80\xe2\x80\xaegnp.exe", b"--output=owned", b"a;b;c 12\tfn=(1) x\r\nDA:1,1", b"x" * 70000 + b"'")


def with_names(content, names):
    """An ELF file (32 bits) whose functions have these names, in turn: its symbols have a new table of names at the end."""
    out = bytearray(content)
    at, size, count = struct.unpack_from("<I", out, 32)[0], *struct.unpack_from("<HH", out, 46)
    sections = [struct.unpack_from("<10I", out, at + i * size) for i in range(count)]
    symbols = next(s for s in sections if s[1] == 2)
    texts = sections[symbols[6]]
    table, given = bytearray(out[texts[4]:texts[4] + texts[5]]), 0
    for entry in range(symbols[4], symbols[4] + symbols[5], 16):
        if out[entry + 12] & 15 == 2:
            struct.pack_into("<I", out, entry, len(table))
            table += names[given % len(names)] + b"\0"
            given += 1
    struct.pack_into("<II", out, at + symbols[6] * size + 16, len(out), len(table))
    return bytes(out + table)


class Elements(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, [name for name, _ in attrs]))


def check_worst(checks, source, folder):
    """The worst names in every output, each read by its own reader; nothing they name comes into being."""
    place = folder / "worst"
    place.mkdir()
    capture, content = source / "examples" / "sort" / "capture", (source / "examples" / "sort" / "sort.elf").read_bytes()
    reports = {}
    for first in range(0, len(WORST), 3):
        names = WORST[first:first + 3]
        elf = place / "worst.elf"
        elf.write_bytes(with_names(content, names))
        with_image = [capture, "--image", elf]
        for form in (["flow"], ["profile"], ["coverage", "--by", "function"], ["branches"], ["loops"]):
            checks.command(*form, *with_image, formats=["tsv"] if form == ["flow"] else ("json", "tsv"))
        for form, reads in {**EXPORTS, **WITH_LINES, "pprof": len, "perfetto": len}.items():
            if form not in WITH_LINES:
                checks.export(form, reads, place, *with_image)
        table, database = place / "functions.csv", place / "names.sqlite"
        run(checks.waymark, "export", *with_image, "--to", "csv", "--table", "functions", "-o", table)
        run(checks.waymark, "export", *with_image, "--to", "sqlite", "-o", database)
        with sqlite3.connect(database) as opened:
            kept = {name for (name,) in opened.execute("SELECT name FROM functions")}
        fields = {row["name"] for row in csv.DictReader(io.StringIO(table.read_bytes().decode(), newline=""))}
        checks.check("CSV and SQLite have the same names, and no formulas", lambda _, kept=kept, fields=fields: check_fields(kept, fields), b"")
        page = place / "page.html"
        run(checks.waymark, "report", *with_image, "-o", page)
        reports[first] = Elements(page.read_text()).seen
    checks.check("names are no elements of a page", lambda _: assert_equal(len({str(seen) for seen in reports.values()}), 1), b"")
    job = place / "job $(touch owned); '\"`touch owned`"
    done = run(checks.waymark, "fleet", "plan", capture, "-o", job)
    word = done.stderr.decode().partition("waymark fleet local ")[2].partition(", or waymark")[0]
    shown = subprocess.run(["sh", "-c", f"printf %s {word}"], capture_output=True, text=True, cwd=place)
    checks.check("a command that is named can be copied", lambda _: assert_equal(shown.stdout, str(job)), b"")
    checks.check("nothing was run", lambda _: assert_equal([str(p) for p in folder.rglob("owned*")], []), b"")


def check_fields(kept, fields):
    def plain(name):
        return "".join("\ufffd" if (ord(c) < 0x20 and c not in "\t\r\n") or 0x7f <= ord(c) < 0xa0
                       or c in DIRECTION else c for c in name)
    for name in kept:
        name = plain(name)
        if name not in fields and "'" + name not in fields:
            raise ValueError(f"{name!r} is not in {sorted(fields)!r}")
    if wrong := [name for name in fields if name.startswith(("=", "+", "-", "@"))]:
        raise ValueError(f"formulas: {wrong}")


HOSTILE = os.fsdecode(b"x\x1b]0;title\x07\xff\xc2\x9b31m\x7f\x08y")


def check_messages(checks, source, folder):
    """What the commands say of names that are not there, are no captures, or cannot be written."""
    capture = source / "examples" / "sort" / "capture"
    (folder / HOSTILE).write_bytes(b"no capture at all, but words")
    for name in (HOSTILE, "absent" + HOSTILE):
        path = folder / name
        for command in (["info"], ["packets"], ["flow"], ["report", "-o", folder / "page.html"], ["profile"],
                        ["coverage"], ["branches"], ["loops"], ["exceptions"], ["doctor"], ["verify"], ["query"],
                        ["spe", "report"], ["spe", "records"], ["spe", "sharing"], ["spe", "branches"],
                        ["spe", "quality"], ["spe", "explain"], ["dpu", "report"], ["dpu", "program"],
                        ["export", "--to", "firefox", "-o", folder / "out.json"], ["diff", capture]):
            checks.shown(*command, path)
        for option in ("--image", "--symbols", "--source", "--format", "--protocol"):
            checks.shown("flow", capture, option, path)
        checks.shown("info", capture, "-o", path / "below")
        checks.shown("record", "-o", folder / "recorded", "--", path)
    checks.shown(HOSTILE)
    checks.shown("flow", "--" + HOSTILE)


def assert_equal(found, expected):
    if found != expected:
        raise ValueError(f"{found} instead of {expected}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    checks = Checks(pathlib.Path(sys.argv[1]).resolve())
    source = pathlib.Path(sys.argv[2]).resolve()
    fixtures = source / "tests" / "cli" / "fixtures"
    with Folder() as name:
        folder = pathlib.Path(name)
        check_flow(checks, source, folder)
        check_dpu(checks, fixtures, folder)
        check_profile(checks, fixtures, folder)
        check_query(checks, folder)
        check_terminal(checks, source, folder)
        check_messages(checks, source, folder)
        check_worst(checks, source, folder)
        if checks.failed:
            scratch.failed()
    print(f"{checks.done} outputs read, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
