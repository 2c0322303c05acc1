#!/usr/bin/env python3
"""`waymark fleet` without a batch system, on recordings of four units: any division gives the same bytes, which
`waymark merge` also gives; commands that show answers take the result.

    local_test.py WAYMARK SOURCE_DIR [TEST…]
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()


def run(*words, check=True, status=0, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=HANGS, stdin=subprocess.DEVNULL,
                          **more)
    if check and done.returncode != status:
        raise AssertionError(f"{' '.join(map(str, words))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Local(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Files of jobs are synced, which takes longer than everything else on a busy disk.
        cls.temporary = Folder(dir="/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None)
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        programs = cls.folder / "programs"
        run(SOURCE / "examples/build", "-o", programs, "interpreter")
        cls.captures = {unit: cls.folder / unit for unit in ("ptm", "ete", "spe", "dpu")}
        for unit, captures in cls.captures.items():
            captures.mkdir()
            program = programs / ("interpreter-aarch64" if unit in ("ete", "spe") else "interpreter")
            options = ["--as", "perf"] if unit == "ete" else ["-c", "256"] if unit == "spe" else []
            for n in range(4):
                run(WAYMARK, "record", "--from-start", "-q", "--unit", unit, *options, "-o", captures / f"c{n}", "--", program,
                    ("sieve", "fibonacci")[n % 2], 8 + n)

    def plan(self, inputs, *options, status=0):
        self.jobs = getattr(self, "jobs", 0) + 1
        job = self.folder / f"{self.id().rpartition('.')[2]}-{self.jobs}"
        return job, run(WAYMARK, "fleet", "plan", *inputs, "-o", job, *options, status=status)

    def test_any_division_gives_the_same_bytes(self):
        chance = random.Random(3)
        for unit, captures in self.captures.items():
            job, _ = self.plan([captures])
            run(WAYMARK, "fleet", "local", job, "-j", "2")
            expected = (job / "result.answers").read_bytes()
            job, plan = self.plan([captures], "--shard-seconds", "0.001")
            self.assertIn("shards         4;", plan.stdout)
            order = list(range(4))
            chance.shuffle(order)
            for shard in order:
                run(WAYMARK, "fleet", "run-shard", job, shard, "--jobs", chance.choice((1, 2)))
            run(WAYMARK, "fleet", "merge", job)
            self.assertEqual((job / "result.answers").read_bytes(), expected, unit)
            # Another program, another tree.
            answers = [job / f"shards/{n:06}.answers" for n in order]
            run(WAYMARK, "merge", *answers[:2], "-o", self.folder / "two")
            run(WAYMARK, "merge", self.folder / "two", *answers[2:], "-o", self.folder / "four")
            for words in (["profile", "--format", "tsv"], ["profile", "--by", "line", "--format", "tsv"]):
                self.assertEqual(run(WAYMARK, words[0], self.folder / "four", *words[1:], check=False).stdout,
                                 run(WAYMARK, words[0], job / "result.answers", *words[1:], check=False).stdout, unit)

    def test_answers_are_those_of_the_captures(self):
        job, _ = self.plan([self.captures["ptm"]])
        run(WAYMARK, "fleet", "local", job)
        captures = sorted(self.captures["ptm"].glob("c[0-9]"))
        for words in (["profile"], ["coverage", "--entered"], ["branches"], ["loops"]):
            more = ["--format", "tsv"]
            self.assertEqual(run(WAYMARK, *words, job / "result.answers", *more).stdout,
                             run(WAYMARK, *words, *captures, *more).stdout, words)
        self.assertIn("Functions that never ran", run(WAYMARK, "coverage", job / "result.answers").stderr)
        both = run(WAYMARK, "diff", job / "result.answers", job / "result.answers", "--threshold", "0")
        self.assertEqual(both.returncode, 0)
        run(WAYMARK, "report", job / "result.answers", "-o", self.folder / "report.html")
        run(WAYMARK, "export", job / "result.answers", "--to", "sqlite", "-o", self.folder / "out.sqlite")
        run(WAYMARK, "query", self.folder / "out.sqlite", "SELECT count(*) FROM functions")
        run(WAYMARK, "pgo", job / "result.answers", "--for", "bolt", "-o", self.folder / "out.bolt")

    def test_parallel_and_lists(self):
        listed = self.folder / "list"
        listed.write_text("# all of them\n" + "\n".join(str(p) for p in sorted(self.captures["spe"].glob("c[0-9]"))) + "\n")
        job, _ = self.plan([f"@{listed}"], "--shard-seconds", "0.001")
        run("sh", "-c", f"seq 0 3 | xargs -P 3 -n 1 '{WAYMARK}' fleet run-shard '{job}'")
        status = json.loads(run(WAYMARK, "fleet", "status", job, "--format", "json").stdout)
        self.assertEqual((status["done"], status["captures_decoded"], status["has_result"]), (4, 4, False))
        run(WAYMARK, "fleet", "merge", job)
        other, _ = self.plan([str(self.captures["spe"] / "c[0-9]")])
        run(WAYMARK, "fleet", "local", other)
        self.assertEqual((job / "result.answers").read_bytes(), (other / "result.answers").read_bytes())

    def test_recipes_of_the_document(self):
        """GNU parallel and make run shards as docs/fleet.md says."""
        text = (SOURCE / "docs/fleet.md").read_text()
        recipes = {"parallel": [line.strip() for line in text.splitlines() if line.startswith("    seq 0 ") and " -S " not in line],
                   "make": ["make -f shards.mk -k -j 8 JOB=job"]}
        self.assertIn(recipes["make"][0], text)
        expected = None
        for program, (command,) in recipes.items():
            if not shutil.which(program):
                print(f"without {program}: install the Debian package {program}")
                continue
            where = self.folder / program
            where.mkdir()
            (where / "shards.mk").write_text(text.split("```make\n")[1].split("```")[0])
            (where / "waymark").symlink_to(WAYMARK)
            run(WAYMARK, "fleet", "plan", self.captures["ptm"], "-o", where / "job", "--shard-seconds", "0.001")
            environment = {**os.environ, "PATH": f"{where}:{os.environ['PATH']}"}
            done = run("sh", "-c", command, cwd=where, env=environment)
            if program == "parallel":
                run(WAYMARK, "fleet", "merge", where / "job")
            result = (where / "job/result.answers").read_bytes()
            self.assertEqual(result, expected or result, done.stderr)
            expected = result

    def test_random_trees(self):
        """Answers of each unit, merged by random trees of commands."""
        chance = random.Random(17)
        for unit, captures in self.captures.items():
            leaves = []
            for capture in sorted(captures.glob("c[0-9]")):
                leaves.append(self.folder / f"tree-{unit}-{capture.name}")
                run(WAYMARK, "answers", capture, "-o", leaves[-1])
            expected = None
            for tree in range(3):
                files = list(leaves)
                while len(files) > 1:
                    chance.shuffle(files)
                    some = chance.randint(2, len(files))
                    # So that no intermediate file has the name of its inputs.
                    out = self.folder / f"tree-{unit}-{tree}-{len(files)}"
                    run(WAYMARK, "merge", *files[:some], "-o", out)
                    files = [*files[some:], out]
                result = files[0].read_bytes()
                self.assertEqual(result, expected or result, f"{unit}, tree {tree}")
                expected = result

    def test_numbers_of_shards_may_have_zeros_before(self):
        job, _ = self.plan([self.captures["ptm"]], "--shard-seconds", "0.001")
        run(WAYMARK, "fleet", "run-shard", job, "000003")
        self.assertEqual([p.name for p in (job / "shards").glob("*.answers")], ["000003.answers"])

    def test_missing_files_are_named_before(self):
        captures = self.folder / "moved"
        shutil.copytree(self.captures["ete"], captures)
        empty = self.folder / "empty"
        empty.mkdir(exist_ok=True)
        _, plan = self.plan([captures], "--symfs", empty)
        self.assertRegex(plan.stdout, r"interpreter-aarch64 \(build ID [0-9a-f]{40}\): in 4 captures, .*its code is needed")
        _, plan = self.plan([captures])
        self.assertIn("none not found", plan.stdout)

    def test_other_options_are_another_plan(self):
        job, _ = self.plan([self.captures["ptm"]])
        run(WAYMARK, "fleet", "local", job)
        ranges, _ = self.plan([self.captures["ptm"]], "--contents", "ranges")
        shutil.copytree(job / "shards", ranges / "shards", dirs_exist_ok=True)
        merged = run(WAYMARK, "fleet", "merge", ranges, status=1)
        self.assertIn("of another plan", merged.stdout)
        self.assertFalse((ranges / "result.answers").exists())
        run(WAYMARK, "fleet", "local", ranges)
        self.assertLess((ranges / "result.answers").stat().st_size, (job / "result.answers").stat().st_size)

    def test_programs_without_build_ids_are_not_mixed(self):
        """Two builds under one name."""
        captures = self.folder / "nameless"
        for n, level in enumerate(("-O1", "-O2")):
            where = captures / str(n)
            where.mkdir(parents=True)
            run("arm-linux-gnueabihf-gcc", level, "-static", "-Wl,--build-id=none", "-o", where / "p",
                SOURCE / "examples/interpreter/interpreter.c")
            run(WAYMARK, "record", "--from-start", "-q", "-o", where / "out", "--", where / "p", "fibonacci", "5")
        job, _ = self.plan([captures], "--shard-seconds", "0.001")
        done = run(WAYMARK, "fleet", "local", job, status=2)
        self.assertIn("no build ID", done.stderr)
        job, _ = self.plan([captures])
        done = run(WAYMARK, "fleet", "local", job, status=1)
        self.assertIn("no build ID", done.stdout)

    def test_wrong_use(self):
        capture = self.captures["ptm"] / "c0"
        for words, status, said in (
                (["plan", capture], 2, "--output"),
                (["plan", self.folder / "none", "-o", self.folder / "x"], 3, "no such file"),
                (["plan", SOURCE / "examples/sort/start.S", "-o", self.folder / "x"], 3, "text file"),
                (["plan", self.folder / "none*", "-o", self.folder / "x"], 3, "no file fits"),
                (["plan", capture, self.captures["ete"], "-o", self.folder / "x"], 2, "several units"),
                (["status", self.folder], 3, "not the folder of a job"),
                (["local", self.folder / "none"], 3, "not the folder of a job"),
                (["merge", self.folder], 3, "not the folder of a job"),
                (["cancel", self.folder], 3, "not submitted"),
                (["status"], 2, "needs the folder of a job"),
                (["run-shard", self.folder], 2, "number of a shard"),
                (["run-shard", self.folder, "x"], 2, "SHARD"),
                ([], 2, "needs a command")):
            done = run(WAYMARK, "fleet", *words, check=False)
            self.assertEqual((done.returncode, said in done.stderr), (status, True), f"{words}: {done.stderr}")
        job, _ = self.plan([capture])
        self.assertIn("has a plan already", run(WAYMARK, "fleet", "plan", capture, "-o", job, status=2).stderr)
        self.assertIn("shards are 0 to 0", run(WAYMARK, "fleet", "run-shard", job, "1", status=2).stderr)

    def test_a_cut_capture_fails_the_job(self):
        whole, cut = self.captures["ptm"] / "c0", self.folder / "cut"
        shutil.copytree(whole, cut)
        trace = cut / "trace.bin"
        os.truncate(trace, trace.stat().st_size // 5)
        job, _ = self.plan([whole, cut])
        for command in ("local", "status", "merge"):
            done = run(WAYMARK, "fleet", command, job, status=1)
            self.assertIn(f"{cut}: buffer ETB: ", done.stdout, command)

    def test_full_disk(self):
        job, _ = self.plan([self.captures["ptm"]])
        script = f"mount -t tmpfs -o size=4k none '{job}/shards' && exec '{WAYMARK}' fleet run-shard '{job}' 0"
        done = run("unshare", "-rm", "sh", "-c", script, check=False)
        if "unshare" in done.stderr or "mount" in done.stderr:
            self.skipTest("user namespaces are forbidden, so no small disk can be mounted")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("No space left", done.stderr)
        run(WAYMARK, "fleet", "local", job)


if __name__ == "__main__":
    for program in ("qemu-arm", "qemu-aarch64", "arm-linux-gnueabihf-gcc", "aarch64-linux-gnu-gcc"):
        if not shutil.which(program):
            print(f"SKIPPED: no {program}: install the Debian packages of scripts/lib.sh")
            sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
