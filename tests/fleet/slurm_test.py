#!/usr/bin/env python3
"""`waymark fleet` under a real Slurm: undisturbed, and with everything that goes wrong on clusters.

    slurm_test.py WAYMARK SOURCE_DIR [TEST…]

The captures are copies of examples/sort/capture. After each fault the result must be byte for byte that of `waymark fleet local`,
or a missing shard is named and the exit status is 1. Faults are made by a script in place of waymark, which looks for files
named after shards (FAULTS), and by killing processes. Without names of tests, the undisturbed run and one killed task are
tested; `all` tests everything.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cluster  # noqa: E402
from cluster import run, wait_for  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
FAULTS = cluster.FOLDER / "faults"
NODE_PROGRAM = f"""#!/bin/sh
# waymark as the nodes see it. Files named SHARD.FAULT make faults.
fault() {{ [ -e "{FAULTS}/$shard.$1" ]; }}
once() {{ rm "{FAULTS}/$shard.$1" 2>/dev/null; }}
shard=$2
[ "$2" = run-shard ] && shard=$4
echo "$2 $shard $(date +%s.%N)" >> "{FAULTS}/ran"
while fault held; do sleep 0.1; done
fault slow && sleep "$(cat "{FAULTS}/$shard.slow")"
once kill && kill -9 $$
fault crash && kill -SEGV $$
if once full; then
    cp /dev/zero "$3/fill" 2>/dev/null
    "{WAYMARK}" "$@"; status=$?
    rm "$3/fill"
    exit $status
fi
if once die_after; then "{WAYMARK}" "$@"; kill -9 $$; fi
if once killed_soon; then "{WAYMARK}" "$@" & sleep 0.02; kill -9 $! $$; fi
fault clock && exec faketime -f "$(cat "{FAULTS}/$shard.clock")" "{WAYMARK}" "$@"
exec "{WAYMARK}" "$@"
"""
CAPTURES = 12


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.captures = cluster.FOLDER / "captures"
        for n in range(CAPTURES):
            shutil.copytree(SOURCE / "examples/sort/capture", cls.captures / f"c{n:02}")
        cls.program = cluster.FOLDER / "waymark"
        cls.program.write_text(NODE_PROGRAM)
        cls.program.chmod(0o755)
        FAULTS.mkdir()
        cls.cluster = cluster.Cluster(patience=10 if "all" in sys.argv[3:] else 600).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        alone = cls.plan(cluster.FOLDER / "alone")
        run(WAYMARK, "fleet", "local", alone)
        cls.expected = (alone / "result.answers").read_bytes()

    def setUp(self):
        for file in FAULTS.iterdir():
            file.unlink()
        for node in self.cluster.NODES:
            if self.cluster.processes[node].poll() is not None:
                self.cluster.start_node(node)
        if self.cluster.processes["slurmctld"].poll() is not None:
            self.cluster.start_controller()
        # The result of an earlier test: a node is drained that came back with tasks which the controller had forgotten.
        if self.cluster.nodes("idle") != 3:
            run("scontrol", "update", "NodeName=n[1-3]", "State=RESUME", check=False)
        wait_for("all nodes idle", lambda: self.cluster.nodes("idle") == 3)
        self.job = cluster.FOLDER / self.id().rpartition(".")[2]

    def tearDown(self):
        outcome = self._outcome.result
        if outcome.failures or outcome.errors:
            self.cluster.print_logs()
            for log in sorted(self.job.glob("**/*.log")) + [self.job / "slurm/output.txt"]:
                if log.exists() and log.stat().st_size:
                    print(f"---- {log}\n{log.read_text()[-2000:]}", file=sys.stderr)

    @classmethod
    def plan(cls, job, *more):
        run(WAYMARK, "fleet", "plan", cls.captures, "-o", job, "--shard-seconds", "0.001", *more)
        return job

    def fault(self, shard, name, text=""):
        (FAULTS / f"{shard}.{name}").write_text(str(text))

    def submit(self, *more):
        return run(WAYMARK, "fleet", "submit", self.job, "--program", self.program, *more)

    def ran(self, *what):
        """How often the nodes ran something."""
        lines = (FAULTS / "ran").read_text().splitlines() if (FAULTS / "ran").exists() else []
        return sum(line.startswith(" ".join(str(w) for w in what) + " ") for line in lines)

    def status(self):
        return json.loads(run(WAYMARK, "fleet", "status", self.job, "--format", "json", check=False).stdout)

    def wait(self, seconds=cluster.HANGS):
        self.cluster.wait_until_empty(seconds)

    def assert_whole(self):
        self.assertTrue((self.job / "result.answers").exists(), (self.job / "slurm/output.txt").read_text())
        self.assertEqual((self.job / "result.answers").read_bytes(), self.expected)
        merged = run(WAYMARK, "fleet", "merge", self.job, "-o", cluster.FOLDER / "again.answers", check=False)
        self.assertEqual(merged.returncode, 0, merged.stdout + merged.stderr)
        self.assertEqual((cluster.FOLDER / "again.answers").read_bytes(), self.expected)
        self.assertEqual(list(self.job.glob("shards/*.part")), [])

    # ---- in scripts/test

    def test_undisturbed(self):
        self.plan(self.job)
        self.fault(0, "held")
        self.submit("--array-size", "5", "--", "--time=50", "--mem=500M", "--comment=passed on")
        status = self.status()
        self.assertEqual(status["shards"], CAPTURES)
        self.assertTrue(status["queued"], status)
        self.assertIn("passed on", run("scontrol", "show", "job").stdout)
        again = run(WAYMARK, "fleet", "resume", self.job, check=False)
        self.assertEqual(again.returncode, 2, "jobs are still queued")
        (FAULTS / "0.held").unlink()
        self.wait()
        self.assert_whole()
        self.assertEqual(self.ran("run-shard"), CAPTURES)
        nodes = {json.loads(f.read_text())["host"] for f in self.job.glob("shards/*.json")}
        self.assertEqual(nodes, {"cluster"})
        self.assertEqual(self.status()["queued"], [])

    def test_killed_task(self):
        self.plan(self.job)
        self.fault(3, "kill")
        self.submit()
        self.wait()
        self.assert_whole()
        self.assertEqual(self.ran("run-shard"), CAPTURES + 1)

    # ---- with --long

    def test_task_killed_by_its_pid(self):
        self.plan(self.job)
        self.fault(5, "slow", 30)
        self.submit()
        task = wait_for("shard 5", lambda: self.ran("run-shard", 5) and pids("run-shard", str(self.job), "5"))
        (FAULTS / "5.slow").unlink()
        for pid in task:
            os.kill(pid, signal.SIGKILL)
        self.wait()
        self.assert_whole()

    def test_killed_slurmd(self):
        self.plan(self.job)
        for shard in range(CAPTURES):
            self.fault(shard, "slow", 3)
        self.submit()
        wait_for("tasks on n2", lambda: any("RUNNING|n2" in line for line in self.cluster.queue()))
        self.cluster.kill("n2")
        time.sleep(12)
        self.cluster.start_node("n2")
        self.wait()
        self.assert_whole()

    def test_killed_slurmctld(self):
        self.plan(self.job)
        for shard in range(CAPTURES):
            self.fault(shard, "slow", 12)
        self.submit()
        wait_for("running tasks", lambda: any("RUNNING" in line for line in self.cluster.queue()))
        self.cluster.wait_until_saved()
        before = len(self.cluster.queue())
        self.cluster.kill("slurmctld")
        status = self.status()  # works without Slurm
        self.assertEqual(status["shards"], CAPTURES)
        time.sleep(3)
        self.cluster.start_controller()
        self.assertGreater(len(self.cluster.queue()), before / 2, "the queue is still there")
        self.wait()
        self.assert_whole()

    def test_controller_is_away_at_the_next_round(self):
        self.plan(self.job)
        self.fault(3, "kill")
        self.fault("resume", "slow", 12)
        self.submit()
        wait_for("the job after the round", lambda: self.ran("resume"))
        self.cluster.wait_until_saved()
        self.cluster.kill("slurmctld")
        time.sleep(10)
        self.cluster.start_controller()
        self.wait()
        self.assert_whole()

    def test_node_down_while_its_tasks_run(self):
        self.plan(self.job)
        for shard in range(CAPTURES):
            self.fault(shard, "slow", 4)
        self.submit()
        wait_for("tasks on n3", lambda: any("RUNNING|n3" in line for line in self.cluster.queue()))
        # The node, with all processes that run on it.
        self.cluster.kill("n3")
        for pid in pids("slurmstepd", "n3") + environment_pids("SLURMD_NODENAME=n3"):
            kill_if_there(pid)
        for file in FAULTS.glob("*.slow"):
            file.unlink()
        self.wait()
        self.assert_whole()

    def test_full_disk(self):
        self.job.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=8m", "small", self.job)
        self.plan(self.job)
        self.fault(4, "full")
        self.submit()
        self.wait()
        self.assert_whole()
        self.assertGreater(self.ran("run-shard"), CAPTURES)

    def test_shard_that_always_crashes(self):
        self.plan(self.job)
        self.fault(7, "crash")
        self.submit("--retries", "1")
        self.wait()
        self.assertEqual(self.ran("run-shard", 7), 2)
        merged = run(WAYMARK, "fleet", "merge", self.job, check=False)
        self.assertEqual(merged.returncode, 1)
        self.assertIn("11 of 12 merged", merged.stdout)
        self.assertIn("\n  7 (1 capture): ", merged.stdout)
        self.assertIn("  7 (1 capture): ", (self.job / "report.txt").read_text())
        coverage = run(WAYMARK, "coverage", self.job / "result.answers", "--strict", check=False)
        self.assertEqual(coverage.returncode, 1, coverage.stderr)
        (FAULTS / "7.crash").unlink()
        run(WAYMARK, "fleet", "resume", self.job)
        self.wait()
        self.assert_whole()

    def test_damaged_capture(self):
        damaged = self.captures / "c99"
        shutil.copytree(self.captures / "c00", damaged)
        try:
            self.plan(self.job)
            (damaged / "snapshot.ini").write_text("[nothing]\n")
            self.submit("--retries", "1")
            self.wait()
        finally:
            shutil.rmtree(damaged)
        merged = run(WAYMARK, "fleet", "merge", self.job, check=False)
        self.assertEqual(merged.returncode, 1)
        self.assertIn("c99", merged.stdout)
        self.assertIn("13 of 13 merged", merged.stdout)
        parts = run(WAYMARK, "profile", self.job / "result.answers", "--format", "json").stdout
        self.assertTrue(json.loads(parts))

    def test_killed_between_rename_and_exit(self):
        self.plan(self.job)
        self.fault(2, "die_after")
        self.submit()
        self.wait()
        self.assert_whole()
        self.assertEqual(self.ran("run-shard", 2), 1, "it was done")

    def test_one_shard_twice_at_once(self):
        self.plan(self.job)
        others = [subprocess.Popen([WAYMARK, "fleet", "run-shard", self.job, str(shard)], stderr=subprocess.DEVNULL)
                  for shard in (0, 0, 1, 1, 2)]
        self.submit()
        self.assertEqual([other.wait() for other in others], [0] * 5)
        self.wait()
        self.assert_whole()

    def test_killed_merge(self):
        self.plan(self.job)
        self.fault("resume", "killed_soon")
        self.submit()
        self.wait()
        run(WAYMARK, "fleet", "resume", self.job)
        self.assert_whole()

    def test_moved_job(self):
        self.plan(self.job)
        for shard in range(6, CAPTURES):
            self.fault(shard, "slow", 60)
        self.submit()
        wait_for("half of it", lambda: self.status()["done"] >= 6)
        run(WAYMARK, "fleet", "cancel", self.job)
        self.wait()
        for file in FAULTS.glob("*.slow"):
            file.unlink()
        moved = cluster.FOLDER / "moved"
        self.job.rename(moved)
        self.job = moved
        run(WAYMARK, "fleet", "resume", self.job)
        self.wait()
        self.assert_whole()

    @unittest.skipUnless(shutil.which("faketime"), "no faketime: install the Debian package faketime")
    def test_clocks_off_by_an_hour(self):
        self.plan(self.job)
        for shard in range(CAPTURES):
            self.fault(shard, "clock", "-1h" if shard % 2 else "+1h")
        self.fault("resume", "clock", "-1h")
        self.submit()
        self.wait()
        self.assert_whole()

    @unittest.skipUnless(shutil.which("qemu-aarch64") and shutil.which("aarch64-linux-gnu-gcc"),
                         "no qemu-aarch64 or aarch64-linux-gnu-gcc: install the Debian packages of scripts/lib.sh")
    def test_stale_image_cache(self):
        """The machines' caches have a damaged copy of one build, and another program in place of a second one."""
        work, cache = cluster.FOLDER / "cached", cluster.FOLDER / "cache"
        (work / "captures").mkdir(parents=True)
        for build in ("O1", "O2"):
            run("aarch64-linux-gnu-gcc", f"-{build}", "-g", "-static", "-Wl,--build-id", "-o", work / build,
                SOURCE / "examples/interpreter/interpreter.c")
            for n in range(3):
                run(WAYMARK, "record", "-q", "--unit", "ete", "--as", "perf", "-o", work / f"captures/{build}-{n}.data", "--",
                    work / build, "fibonacci", 4 + n)

        def plan(job):
            run(WAYMARK, "fleet", "plan", work / "captures", "-o", job, "--debug-dir", work / "debug", "--shard-seconds",
                "0.001")

        # Only the folder of builds contains the programs.
        (work / "debug").mkdir()
        plan(work / "builds")
        lines = (work / "builds/shards.jsonl").read_text().splitlines()
        places = {}
        for file in (file for line in lines for file in json.loads(line)["files"]):
            place = pathlib.Path(".build-id", file["build_id"][:2], file["build_id"][2:], "elf")
            if file["name"] in (str(work / "O1"), str(work / "O2")) and place not in places.values():
                places[file["name"]] = place
                (work / "debug" / place).parent.mkdir(parents=True)
                shutil.move(file["name"], work / "debug" / place)
        self.assertEqual(len(places), 2)
        alone = work / "alone"
        plan(alone)
        run(WAYMARK, "fleet", "local", alone)
        self.expected = (alone / "result.answers").read_bytes()
        one, other = places.values()
        for place in (one, other):
            (cache / place).parent.mkdir(parents=True)
        (cache / one).write_bytes((work / "debug" / one).read_bytes()[:100_000])
        shutil.copyfile(work / "debug" / one, cache / other)
        plan(self.job)
        self.submit("--image-cache", cache)
        self.wait()
        self.assert_whole()
        for place in (one, other):
            self.assertEqual((cache / place).read_bytes(), (work / "debug" / place).read_bytes())
        self.assertEqual(list(cache.glob("**/*.part")), [])

    def test_captures_that_come_later(self):
        self.job = cluster.FOLDER / "added"
        run(WAYMARK, "fleet", "plan", *sorted(self.captures.iterdir())[:8], "-o", self.job, "--shard-seconds", "0.001")
        self.submit()
        self.wait()
        run(WAYMARK, "fleet", "add", self.job, self.captures, "--shard-seconds", "0.001")
        run(WAYMARK, "fleet", "resume", self.job)
        self.wait()
        self.assert_whole()
        self.assertEqual(self.ran("run-shard"), CAPTURES)

    def test_levels_of_merging(self):
        many = cluster.FOLDER / "many"
        for n in range(60):
            shutil.copytree(SOURCE / "examples/sort/capture", many / f"m{n:02}")
        for job in (self.job, cluster.FOLDER / "levels-alone"):
            run(WAYMARK, "fleet", "plan", many, "-o", job, "--shard-seconds", "0.001")
        self.submit()
        self.wait()
        self.assertEqual(self.ran("merge"), 2)
        run(WAYMARK, "fleet", "local", cluster.FOLDER / "levels-alone")
        self.assertEqual((self.job / "result.answers").read_bytes(),
                         (cluster.FOLDER / "levels-alone/result.answers").read_bytes())


def pids(*words):
    """Processes whose command lines have these words."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if all(any(word in argument for argument in line) for word in words) and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def environment_pids(setting):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if setting.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def kill_if_there(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    reason = cluster.why_not()
    if reason:
        print(f"SKIPPED: {reason}")
        sys.exit(77)
    tests = sys.argv[3:] or ["Slurm.test_undisturbed", "Slurm.test_killed_task"]
    cluster.enter()
    unittest.main(argv=[sys.argv[0], *(t for t in tests if t != "all")], verbosity=2)
