#!/usr/bin/env python3
"""`waymark fleet resume --next-round`, run in the job that waits for a round, if Slurm runs this job again after it
submitted the next round. Scripts stand for Slurm's commands: squeue prints a file, and sbatch counts.

    next_round_test.py WAYMARK SOURCE_DIR
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from scratch import Folder, HANGS  # noqa: E402

WAYMARK, SOURCE = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
COMMANDS = {"sbatch": 'echo >> "$SLURM/submitted"; wc -l < "$SLURM/submitted"', "squeue": 'cat "$SLURM/queue"',
            "scontrol": "echo MaxArraySize = 100", "scancel": "exit 1"}


class NextRound(unittest.TestCase):
    def setUp(self):
        temporary = Folder()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "bin").mkdir()
        for name, script in COMMANDS.items():
            command = self.folder / "bin" / name
            command.write_text(f"#!/bin/sh\n{script}\n")
            command.chmod(0o755)
        shutil.copytree(SOURCE / "examples/sort/capture", self.folder / "captures/c0")
        self.job = self.folder / "job"
        self.queue()
        self.fleet("plan", self.folder / "captures", "-o", self.job)
        self.fleet("submit", self.job, "--retries", "5")
        self.assertEqual(self.submitted(), 2)  # the shards as 1, and the job after them as 2

    def fleet(self, *words, **environment):
        done = subprocess.run([str(w) for w in (WAYMARK, "fleet", *words)], capture_output=True, text=True, timeout=HANGS,
                              env={**{k: v for k, v in os.environ.items() if k != "SLURM_JOB_ID"}, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                                   "SLURM": str(self.folder), **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def queue(self, *lines):
        (self.folder / "queue").write_text("".join(line + "\n" for line in lines))

    def submitted(self):
        return (self.folder / "submitted").read_text().count("\n")

    def round(self):
        return json.loads((self.job / "slurm/submission.json").read_text())["round"]

    def next_round(self, **environment):
        return self.fleet("resume", self.job, "--next-round", **environment)

    def test_a_round_is_submitted_once(self):
        for environment in ({"SLURM_JOB_ID": "2"}, {}):
            with self.subTest(environment):
                before, rounds = self.submitted(), self.round()
                self.queue("1|COMPLETING|None", "2|RUNNING|None", "77|RUNNING|None")
                self.next_round(**environment)
                self.assertEqual((self.submitted(), self.round()), (before + 2, rounds + 1))
                self.queue("2|RUNNING|None", f"{before + 1}|PENDING|Resources", f"{before + 2}|PENDING|Dependency")
                self.assertIn("another round is already queued or running", self.next_round(**environment))
                self.assertEqual((self.submitted(), self.round()), (before + 2, rounds + 1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
