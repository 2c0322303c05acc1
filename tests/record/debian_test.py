#!/usr/bin/env python3
"""Programs of Debian for arm64, dynamic PIE most of them, recorded as users would: with pipes, input files, threads,
signals, forks and other exit codes.

    debian_test.py WAYMARK SOURCE_DIR FOLDER [TEST…]

Downloads the packages from where the system's apt has its own, for arm64 and in state of its own, and unpacks them in FOLDER;
nothing of the system changes. A second run uses what is there. Without apt or a mirror: status 77.

Each program prints and returns what it does under plain QEMU. Each recording is compared by `waymark verify` with what
executed, and with OpenCSD, range by range. Where runs of a program are equal, its truth is compared with QEMU's own log
of each instruction (see executed_test.py) too.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import apt  # noqa: E402
import opencsd  # noqa: E402
import truth_file  # noqa: E402
from scratch import HANGS  # noqa: E402
from executed_test import Mismatch, follow, is_straight  # noqa: E402

WAYMARK, FOLDER = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[3]).resolve()
ROOT = FOLDER / "root"
PACKAGES = ("bash dash coreutils gawk python3-minimal perl-base gzip xz-utils bzip2 zstd sqlite3 openssl grep sed bc jq "
            "lua5.4 cpp-12").split()
# Options that program each unit.
UNITS = (("--unit", "ete"), ("--unit", "etmv4"),
         ("--unit", "etmv4", "--return-stack", "--cycle-accurate", "--timestamps", "--context-id", "4"))
# Maximum length of a recording for comparison with OpenCSD, which writes a line for each range.
MOST_INSTRUCTIONS = 1_500_000

PYTHON_THREADS = """
import _thread, time
done, lock = [], _thread.allocate_lock()
def work(number):
    for i in range(200):
        with lock: done.append(i)
for i in range(3): _thread.start_new_thread(work, (i,))
while len(done) < 600: time.sleep(.01)
print(len(done))
"""
PYTHON_SIGNALS = """
import _signal as s
seen = []
s.signal(s.SIGALRM, lambda number, frame: seen.append(number))
s.setitimer(s.ITIMER_REAL, .002, .002)
while len(seen) < 20: pass
s.setitimer(s.ITIMER_REAL, 0)
print("20 signals")
"""
PERL = """
my %h; $h{$_ % 7} += $_ for 1..500;
print "$_ $h{$_}\\n" for sort keys %h;
eval { die "out\\n" }; print $@;
$SIG{USR1} = sub { print "USR1\\n" }; kill USR1 => $$;
"""
FORKS = """
$| = 1; my $p = fork; if (!$p) { exit 3 }
waitpid $p, 0; print $? >> 8, "\\n"; kill SEGV => $$
"""
LUA = """
local t = {} for i = 1, 300 do t[i] = tostring(i):rep(3) end table.sort(t)
print(#t, t[1], pcall(error, 'no')) local co = coroutine.wrap(function() coroutine.yield(1) end) print(co()) os.exit(2)
"""
SQL = """create table t(a integer primary key, b text); begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100) insert into t select i, hex(i) from n;
commit; select count(*), sum(a), max(b) from t where b like '3%';"""
C = "struct s { int a[4]; }; static int f(struct s *p) { return p->a[1] * 3; } int main(void) { struct s s = {{1}}; return f(&s); }\n"

EQUAL, NO_LOG = "equal", "no log"
# name: (command, standard input, status or signal, whether two runs are equal)
PROGRAMS = {
    "sha256sum": (("usr/bin/sha256sum", "in.txt"), "", 0, EQUAL),
    "sort": (("usr/bin/sort", "-k2", "-"), "in.txt", 0, EQUAL),
    "sort-threads": (("usr/bin/sort", "--parallel=4", "-S", "8M", "-n", "many.txt"), "", 0, NO_LOG),
    "cat-of-nothing": (("bin/cat", "nowhere.txt"), "", 1, EQUAL),
    "bash": (("bin/bash", "-c", 'trap "echo USR1; exit 7" USR1; while read -r a b; do n=$((n + ${#b})); done; echo $n; '
              'kill -USR1 $$; echo never'), "in.txt", 7, EQUAL),
    "bash-pipes": (("bin/bash", "-c", 'echo a b | while read x y; do echo $y; done; (exit 4); echo $?; x=$(echo sub); '
                    'echo $x; sleep 0 & wait; exit 5'), "", 5, NO_LOG),
    "dash-forks": (("bin/dash", "-c", 'for i in 1 2 3; do (echo $i); done; exec 3<in.txt; read x <&3; echo "$x"'), "", 0,
                   NO_LOG),
    "gawk": (("usr/bin/gawk", '{ n[$1 % 17] += $1; gsub(/[0-9]+/, "<&>") } END { for (i = 0; i < 17; i++) print i, n[i] }'),
             "in.txt", 0, EQUAL),
    "python": (("usr/bin/python3.11", "-I", "-S", "-c", "print(sorted(str(i * i) for i in range(300))[:3])"), "", 0, NO_LOG),
    "python-threads": (("usr/bin/python3.11", "-I", "-S", "-c", PYTHON_THREADS), "", 0, NO_LOG),
    "python-signals": (("usr/bin/python3.11", "-I", "-S", "-c", PYTHON_SIGNALS), "", 0, NO_LOG),
    "perl": (("usr/bin/perl", "-e", PERL), "", 0, NO_LOG),
    "perl-forks": (("usr/bin/perl", "-e", FORKS), "", "SIGSEGV", NO_LOG),
    "perl-exec": (("usr/bin/perl", "-e", '$| = 1; print "before\\n"; exec "/bin/echo", "after"'), "", 0, NO_LOG),
    "gzip": (("bin/gzip", "-9", "-n"), "in.txt", 0, EQUAL),
    "xz": (("usr/bin/xz", "-1", "-c"), "in.txt", 0, EQUAL),
    "xz-threads": (("usr/bin/xz", "-T3", "--block-size=16384", "-c"), "many.txt", 0, NO_LOG),
    "bzip2": (("bin/bzip2", "-c"), "in.txt", 0, EQUAL),
    "zstd-threads": (("usr/bin/zstd", "-T2", "-c"), "in.txt", 0, NO_LOG),
    "sqlite3": (("usr/bin/sqlite3", ":memory:", SQL), "", 0, NO_LOG),
    "openssl": (("usr/bin/openssl", "dgst", "-sha512", "in.txt"), "", 0, NO_LOG),
    "grep": (("bin/grep", "-cE", "^([0-9]+) .*7.*3"), "in.txt", 0, EQUAL),
    "grep-finds-nothing": (("bin/grep", "nothing", "in.txt"), "", 1, EQUAL),
    "sed": (("bin/sed", "-n", r"s/\([0-9]\)\([0-9]\)/\2\1/gp;$="), "in.txt", 0, EQUAL),
    "bc": (("usr/bin/bc", "-l"), "pi.bc", 0, EQUAL),
    "jq": (("usr/bin/jq", "-n", "[range(50)] | map(. * 2) | add"), "", 0, NO_LOG),
    "lua": (("usr/bin/lua5.4", "-e", LUA), "", 2, NO_LOG),
    "cc1": (("usr/lib/gcc/aarch64-linux-gnu/12/cc1", "-quiet", "-O2", "-o", "-", "c.c"), "", 0, NO_LOG),
}


def run(*arguments, **more):
    return subprocess.run([str(a) for a in arguments], capture_output=True, timeout=HANGS, cwd=FOLDER, **more)


def entered(path):
    """Functions of aarch64_test.py, whose import would run as that test."""
    found = []
    with path.open(errors="replace") as lines:
        for line in lines:
            if line.startswith("Trace "):
                found.append(int(line.split("/", 2)[1], 16))
            elif line.startswith("Stopped execution") and found:
                found.pop()
    return found


def prepare():
    """None, or the reason why the packages are missing."""
    marker = FOLDER / "packages"
    if marker.exists() and marker.read_text() == " ".join(PACKAGES):
        return None
    shutil.rmtree(FOLDER, ignore_errors=True)
    try:
        packages = apt.Apt(FOLDER / "apt", "arm64")
        packages.do("install", "--yes", "--download-only", *PACKAGES)
        apt.unpack(sorted(packages.cache.glob("*.deb")), ROOT)
    except apt.Missing as why:
        return str(why)
    (FOLDER / "in.txt").write_text("".join(f"{i * 7919 % 1000} {i * i % 977:x} {i * 31 % 513}\n" for i in range(400)))
    (FOLDER / "many.txt").write_text("".join(f"{i * 7919 % 100003} {i * i % 9973:x}\n" for i in range(7000)))
    (FOLDER / "pi.bc").write_text("scale = 30\n4 * a(1)\ndefine f(n) { if (n < 2) return n; return f(n - 1) + f(n - 2) }\nf(9)\n")
    (FOLDER / "c.c").write_text(C)
    marker.write_text(" ".join(PACKAGES))
    return None


class Debian(unittest.TestCase):
    def setUp(self):
        self.environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PERL_HASH_SEED": "0", "HOME": str(FOLDER)}

    def input(self, name):
        return {"input": (FOLDER / name).read_bytes() if name else b"", "env": self.environment}

    def record(self, name, *options):
        command, given, status, _ = PROGRAMS[name]
        out = FOLDER / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = run(WAYMARK, "record", "--from-start", "--truth", "--sysroot", ROOT, "-o", out, *options, "--", ROOT / command[0],
                   *command[1:], **self.input(given))
        said = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, 4 if isinstance(status, str) else 0, said)
        if isinstance(status, str):
            self.assertIn(f"the program was ended by {status}", said)
        elif status != 0:
            self.assertIn(f"the program exited with {status}\n", said)
        else:
            self.assertNotIn("the program exited", said)
        ended = f", ended by {status}" if isinstance(status, str) else f", exited with {status}" if status else ""
        described = re.search(r"^description=(.*)$", (out / "snapshot.ini").read_text(), re.M)[1]
        self.assertEqual(re.search(r"(, (ended by|exited with) \S+)?$", described)[0], ended)
        return out, done.stdout

    def verify(self, out):
        done = run(WAYMARK, "verify", out)
        self.assertEqual(done.returncode, 0, (done.stdout + done.stderr).decode(errors="replace"))
        self.assertRegex(done.stdout.decode(), r"equal: [\d,]+ instructions")
        text = (out / "truth.txt").read_text()
        self.assertIn("\ncomplete 1\n", text)
        return sum(int(count) for count in re.findall(r"^source .* instructions (\d+) hash", text, re.M))

    def sums(self, out):
        return re.sub(r"E[TM]+[VE]?4?_", "", (out / "truth.txt").read_text())

    def check(self, name):
        command, given, _, runs = PROGRAMS[name]
        plain = run("qemu-aarch64", "-L", ROOT, ROOT / command[0], *command[1:], **self.input(given))
        truths = set()
        for options in UNITS:
            with self.subTest(options=options):
                out, printed = self.record(name, *options)
                self.assertEqual(printed, plain.stdout)
                instructions = self.verify(out)
                truths.add(self.sums(out))
                if instructions > MOST_INSTRUCTIONS:
                    out, _ = self.record(name, *options, "--limit", str(MOST_INSTRUCTIONS))
                    self.verify(out)
                if opencsd.LISTER is None:
                    print(opencsd.MISSING)
                else:
                    self.assertEqual(opencsd.differences(out), [])
        if runs == EQUAL:
            self.assertEqual(len(truths), 1, truths)
            self.compare_with_log(name, truths)

    def compare_with_log(self, name, truths):
        """Recording and QEMU's log come from one run, in which each instruction is a block."""
        logs = FOLDER / "logs"
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir()
        out, _ = self.record(name, *(f"--qemu={option}" for option in
                                     ("-singlestep", "-d", "exec,nochain,tid", "-D", str(logs / "%d"))))
        self.assertIn(self.sums(out), truths)
        entries = [log for log in map(entered, sorted(logs.iterdir())) if log]
        (source, ranges), = truth_file.sources(out)
        self.assertEqual(len(entries), 1, "threads that were not recorded")
        try:
            stopped, rest = follow(ranges, entries[0])
        except Mismatch as mismatch:
            self.fail(f"{source}: {mismatch}")
        left = int(re.search(rf"^source {source} .*unfinished_instructions (\d+) ", (out / "truth.txt").read_text(), re.M)[1])
        self.assertTrue(is_straight(rest[left:]), rest[:10])
        self.assertEqual(stopped, 0)
        shutil.rmtree(logs)


def add_tests():
    for name in PROGRAMS:
        def test(self, name=name):
            self.check(name)
        setattr(Debian, "test_" + name.replace("-", "_"), test)


if __name__ == "__main__":
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    if not shutil.which("qemu-aarch64"):
        print("SKIPPED: qemu-aarch64 is not on PATH; it is in the Debian package qemu-user")
        sys.exit(77)
    if why := prepare():
        print(f"SKIPPED: no programs of Debian for arm64: {why}")
        sys.exit(77)
    add_tests()
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=2)
