#!/usr/bin/env python3
"""Records captures with each of four units, and has `fleet_test` merge their answers by random trees.

    trees_test.py WAYMARK SOURCE_DIR FLEET_TEST

WAYMARK_PROPERTY_ROUNDS is the number of trees.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import local_test  # noqa: E402
from local_test import run  # noqa: E402
from scratch import failed, Folder  # noqa: E402

with Folder() as name:
    folder = pathlib.Path(name)
    local_test.Local.setUpClass()
    # The results of a fleet's shards: code that ran, and timelines.
    (folder / "answers").mkdir()
    for unit, captures in local_test.Local.captures.items():
        run(local_test.WAYMARK, "fleet", "plan", captures, "-o", folder / unit, "--shard-seconds", "0.001")
        run(local_test.WAYMARK, "fleet", "local", folder / unit)
        for answers in (folder / unit / "shards").glob("*.answers"):
            answers.rename(folder / "answers" / f"{unit}-{answers.name}")
    print(f"{len(list((folder / 'answers').iterdir()))} answers files", flush=True)
    status = subprocess.run([sys.argv[3], "--gtest_filter=MergeTrees.*"],
                            env={**os.environ, "WAYMARK_ANSWERS": str(folder / "answers")})
    if status.returncode:
        failed()
    local_test.Local.doClassCleanups()
sys.exit(status.returncode)
